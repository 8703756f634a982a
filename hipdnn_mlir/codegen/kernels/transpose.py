"""Maps with an operand that lies across the result: through tiles in shared memory, so that reads and writes are both along memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type
from ..core.space import Space, access_size, is_wide
from .body import Body
from .evaluate import Evaluator, Lanes

_ROW = 32
"""Threads along memory."""
_ROWS = 8
_LEAST = 16
"""Sizes below which lines of memory are shared by neighbours anyway."""


@dataclass(frozen=True)
class Tiles:
    """How a space is cut into tiles of the last dim and another one, `across`, along which `operands` lie."""

    space: Space
    across: int
    operands: tuple[int, ...]
    lanes: int

    @property
    def side(self) -> int:
        """Positions of a tile along either dim."""
        return _ROW * self.lanes

    @property
    def counts(self) -> tuple[int, ...]:
        """Tiles, or single positions, along every dim."""
        dims = list(self.space.dims)
        for axis in (self.across, len(dims) - 1):
            dims[axis] = ceil(dims[axis] / self.side)
        return tuple(dims)


def tiles_of(body: Body, space: Space, architecture: Architecture) -> Tiles | None:
    """The tiles for an elementwise kernel, or None where no operand lies across it."""
    if not space.dims or space.dims[-1] < _LEAST:
        return None
    weights: dict[int, int] = {}
    for operand, strides in zip(body.operands, space.strides, strict=False):
        if operand.role == "in" and strides[-1] > 1 and 1 in strides and space.dims[strides.index(1)] >= _LEAST:
            across = strides.index(1)
            weights[across] = weights.get(across, 0) + operand.extent * operand.dtype.bytes
    if not weights:
        return None
    across = max(weights, key=lambda axis: weights[axis])
    numbers = tuple(
        number
        for number, (operand, strides) in enumerate(zip(body.operands, space.strides, strict=False))
        if operand.role == "in" and strides[across] == 1 and strides[-1] > 1
    )
    for lanes in (2, 1):
        tiles = Tiles(space, across, numbers, lanes)
        if _is_even(body, tiles) and _bytes(body, tiles) <= architecture.shared_bytes:
            return tiles
    return None


def _is_even(body: Body, tiles: Tiles) -> bool:
    """Whether groups of lanes divide both dims and are aligned in memory."""
    if tiles.lanes == 1:
        return True
    dims = tiles.space.dims
    if dims[tiles.across] % tiles.lanes or dims[-1] % tiles.lanes:
        return False
    for number, operand in enumerate(body.operands):
        strides = tiles.space.strides[number]
        if operand.dtype.bytes > 4:
            return False
        if number in tiles.operands:
            strides = (*(s for axis, s in enumerate(strides) if axis != tiles.across), 1)
        if strides[-1] == 1 and access_size(operand, strides, tiles.lanes) != tiles.lanes:
            return False
    return True


def _bytes(body: Body, tiles: Tiles) -> int:
    return sum(_tile_bytes(body, tiles, number) for number in tiles.operands)


def _tile_bytes(body: Body, tiles: Tiles, number: int) -> int:
    size = tiles.side * (tiles.side + 1) * body.operands[number].dtype.bytes
    return ceil(size / 16) * 16


def tiled_launch(body: Body, tiles: Tiles) -> Launch:
    """The launch of an elementwise kernel by tiles."""
    blocks = prod(tiles.counts)
    return Launch(
        lambda b: _write(b, body, tiles), blocks, _ROW * _ROWS, _bytes(body, tiles),
        is_wide(body.operands, blocks * _ROW * _ROWS),
    )  # fmt: skip


class _TileEvaluator(Evaluator):
    """Reads the operands that lie across from their tiles, at the place set before."""

    place: Value = 0

    def __init__(self, b: KernelBuilder, body: Body, tiles: Tiles) -> None:
        super().__init__(b, body, tiles.space, tiles.lanes)
        self.bases, offset = {}, 0
        for number in tiles.operands:
            self.bases[number] = b.shared(offset)
            offset += _tile_bytes(body, tiles, number)

    def _load(self, number: int, coordinates: Sequence[Value]) -> Lanes:
        if number not in self.bases:
            return super()._load(number, coordinates)
        b, dtype = self.b, self.body.operands[number].dtype
        kind = memory_type(b, dtype)
        return [
            from_memory(b, b.load(self.bases[number], b.add(self.place, lane), kind)[0], dtype)
            for lane in range(self.lanes)
        ]


def _write(b: KernelBuilder, body: Body, tiles: Tiles) -> None:
    evaluator = _TileEvaluator(b, body, tiles)
    thread = b.thread()
    along, beside = b.mul(b.mod(thread, _ROW), tiles.lanes), b.div(thread, _ROW)
    corner = b.coordinates(b.block(), tiles.counts)
    for axis in (tiles.across, -1):
        corner[axis] = b.mul(corner[axis], tiles.side)
    _fill(b, evaluator, tiles, corner, along, beside)
    b.barrier()
    _compute(b, evaluator, tiles, corner, along, beside)


def _fill(
    b: KernelBuilder, evaluator: _TileEvaluator, tiles: Tiles, corner: list[Value], along: Value, beside: Value
) -> None:
    """Read lines of the operands that lie across, and put them into the tiles as columns."""
    dims, pitch = tiles.space.dims, tiles.side + 1
    loaded = []
    for step in range(0, tiles.side, _ROWS):
        at = list(corner)
        at[tiles.across] = b.least(b.add(at[tiles.across], along), dims[tiles.across] - tiles.lanes)
        at[-1] = b.least(b.add(at[-1], beside, step), dims[-1] - 1)
        for number in tiles.operands:
            kind = memory_type(b, evaluator.body.operands[number].dtype)
            offset = b.dot(at, tiles.space.strides[number])
            loaded.append((number, step, b.load(b.arguments[number], offset, kind, tiles.lanes)))
    for number, step, values in loaded:
        for lane, value in enumerate(values):
            b.store(evaluator.bases[number], b.add(b.mul(b.add(along, lane), pitch), beside, step), [value])


def _compute(
    b: KernelBuilder, evaluator: _TileEvaluator, tiles: Tiles, corner: list[Value], along: Value, beside: Value
) -> None:
    """The kernel, lines along the results; what lies past the end is computed at the last position and not stored."""
    dims, pitch, code = tiles.space.dims, tiles.side + 1, evaluator.body.code
    computed: list[tuple[Value, list[Value], list[Lanes]]] = []
    for step in range(0, tiles.side, _ROWS):
        row, column = b.add(corner[tiles.across], beside, step), b.add(corner[-1], along)
        inside = b.same("arith.andi", b.less(row, dims[tiles.across]), b.less(column, dims[-1]))
        at = list(corner)
        at[tiles.across], at[-1] = b.least(row, dims[tiles.across] - 1), b.least(column, dims[-1] - tiles.lanes)
        evaluator.place = b.add(b.mul(b.add(beside, step), pitch), along)
        made: list[Lanes] = []
        for instruction in code:
            operands = [made[o] for o in instruction.operands]
            made.append([] if instruction.name == "store" else evaluator.value(instruction, operands, at))
        computed.append((inside, at, made))
    for inside, at, made in computed:
        with b.when(inside):
            for instruction in code:
                if instruction.name == "store":
                    evaluator.store(instruction.data, made[instruction.operands[0]], at)
