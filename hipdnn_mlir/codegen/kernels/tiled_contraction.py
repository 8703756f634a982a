"""Convolutions and matmuls with what is computed on their results: the kernels of last resort, where no library takes them.

A block computes a tile of the table. Its threads fetch strips of rows and columns into shared memory as f32, one strip ahead of the one
they multiply, and keep a square of sums each. What follows is computed on the sums before they are written.
"""

from dataclasses import dataclass
from math import ceil, prod

from ...ops.graph import Graph, Tensor
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load
from ..core.kernel import Operand
from ..core.space import Space, is_wide
from .body import Body
from .contraction import Contraction, Factor, contraction
from .evaluate import Evaluator
from .graph_body import graph_body

_SIDE = 16
"""Threads of a block along rows and along columns."""
_THREADS = _SIDE * _SIDE
_DEPTH = 16
"""Inner positions of a strip."""
_MOST = 128
"""Rows and columns of the largest tile."""
_PADDING = 4
"""Elements between lines of a strip, so that threads that write beside each other do not meet in a bank."""
_TOGETHER = 4
"""Elements that a thread reads at once from shared memory."""
_MAX_INSTRUCTIONS = 4096
"""Of what one thread computes on its sums."""


def contraction_launch(graph: Graph, architecture: Architecture) -> Launch:
    """The launch of a convolution or matmul with pointwise nodes behind it; raises Refusal."""
    anchor = graph.nodes[0]
    body = graph_body(graph, given=[anchor])
    table = contraction(graph, anchor)
    (result,) = anchor.outputs.values()
    writer = _Writer(graph, body, table, _tile(table, len(body.code), architecture), len(graph.tensors[result].dims))
    tile = writer.tile
    shared_bytes = 4 * _DEPTH * (tile.rows + tile.columns + 2 * _PADDING)
    positions = max(_THREADS * tile.blocks, prod(table.inner) + _DEPTH, table.rows.count, table.columns.count)
    operands = [_operand(graph.tensors[factor.tensor]) for factor in (table.rows, table.columns)]
    return Launch(writer.write, tile.blocks, _THREADS, shared_bytes, is_wide([*body.operands, *operands], positions))


def _operand(tensor: Tensor) -> Operand:
    return Operand("in", tensor.dtype, tensor.dims, tensor.strides)


@dataclass(frozen=True)
class _Tile:
    """Rows and columns of a block's tile, tiles along each, batches."""

    rows: int
    columns: int
    down: int
    across: int
    batches: int

    @property
    def blocks(self) -> int:
        """Of the grid."""
        return self.down * self.across * self.batches


def _tile(table: Contraction, instructions: int, architecture: Architecture) -> _Tile:
    """The largest tile that leaves every multiprocessor one."""
    rows, columns = (
        min(_MOST, max(_SIDE, 1 << (factor.count - 1).bit_length())) for factor in (table.rows, table.columns)
    )
    while True:
        down, across = ceil(table.rows.count / rows), ceil(table.columns.count / columns)
        made = _Tile(rows, columns, down, across, prod(dim.size for dim in table.batch))
        is_long = rows * columns // _THREADS * instructions > _MAX_INSTRUCTIONS
        if max(rows, columns) == _SIDE or not (is_long or made.blocks < architecture.units):
            return made
        rows, columns = (rows // 2, columns) if rows >= columns else (rows, columns // 2)


@dataclass(frozen=True)
class _Slot:
    """One element of a strip that a thread fetches: its place, and where along the factor's free dims it lies.

    Attributes:
        line: row or column within the tile.
        depth: inner position within the strip.
        inside: whether there is such a row or column; None where there always is.
        base: offset of its first element.
        starts: per window, where it begins.
    """

    line: Value
    depth: Value
    inside: Value
    base: Value
    starts: list[Value]


class _Writer:
    """Writes the kernel."""

    def __init__(self, graph: Graph, body: Body, table: Contraction, tile: _Tile, rank: int) -> None:
        self.graph, self.body, self.table, self.tile = graph, body, table, tile
        order = [(operand["role"], operand["index"]) for operand in graph.operands()]
        self.places = {
            factor.tensor: order.index(("in", graph.tensors[factor.tensor].operand))
            for factor in (table.rows, table.columns)
        }
        self.depth = prod(table.inner)
        dims = [*table.batch, *table.rows.free, *table.columns.free]
        strides = []
        for operand in body.operands:
            known = operand.strides if len(operand.strides) == rank else (0,) * rank  # the other is a factor only
            strides.append(tuple(known[dim.axis] * dim.step for dim in dims))
        self.space = Space(tuple(dim.size for dim in dims), tuple(strides))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        tile, table = self.tile, self.table
        self.b = b
        thread, block = b.thread(), b.block()
        across, rest = b.mod(block, tile.across), b.div(block, tile.across)
        down, batch = b.mod(rest, tile.down), b.div(rest, tile.down)
        self.batch = b.coordinates(batch, [dim.size for dim in table.batch])
        first = b.mul(down, tile.rows), b.mul(across, tile.columns)
        self.part = b.div(thread, _SIDE), b.mod(thread, _SIDE)
        sides = ((table.rows, tile.rows, first[0]), (table.columns, tile.columns, first[1]))
        slots = [self._slots(factor, count, start, thread) for factor, count, start in sides]
        each = tile.rows // _SIDE, tile.columns // _SIDE
        zero = b.constant(0, b.f32)
        sums = [zero] * (each[0] * each[1])

        def strip(start: Value, carried: list[Value]) -> list[Value]:
            so_far, fetched = carried[: len(sums)], carried[len(sums) :]
            b.barrier()
            self._keep(slots, fetched)
            b.barrier()
            ahead = self._fetch(slots, b.add(start, _DEPTH))
            return [*self._multiply(so_far, each), *ahead]

        done = b.loop(0, self.depth, _DEPTH, [*sums, *self._fetch(slots, 0)], strip)
        self._finish(done[: len(sums)], first, each)

    # -- strips ---------------------------------------------------------------------------------------------------

    def _slots(self, factor: Factor, count: int, first: Value, thread: Value) -> list[_Slot]:
        """What a thread fetches of a factor; adjacent threads take elements that lie beside each other."""
        b = self.b
        along_inner = _step(factor.inner, [w.stride for w in factor.windows if w.inner == len(factor.inner) - 1])
        along_free = _step(
            factor.strides, [w.step * w.stride for w in factor.windows if w.free == len(factor.free) - 1]
        )
        is_deep = along_inner < along_free
        fast, slow = (_DEPTH, count) if is_deep else (count, _DEPTH)
        in_fast, in_slow = b.mod(thread, fast), b.div(thread, fast)
        made, known = [], dict[int, _Slot]()
        for number in range(fast * slow // _THREADS):
            behind = b.add(in_slow, number * (_THREADS // fast))
            line, depth = (behind, in_fast) if is_deep else (in_fast, behind)
            key = number if is_deep else 0
            if key not in known:
                known[key] = self._line(factor, count, first, line)
            found = known[key]
            made.append(_Slot(line, depth, found.inside, found.base, found.starts))
        return made

    def _line(self, factor: Factor, count: int, first: Value, line: Value) -> _Slot:
        """A row or column of a factor; behind the last, the last."""
        b = self.b
        place = b.add(first, line)
        inside = b.less(place, factor.count) if factor.count % count else None
        at = b.coordinates(b.least(place, factor.count - 1), [dim.size for dim in factor.free])
        base = b.add(b.dot(self.batch, factor.batch), b.dot(at, factor.strides))
        starts = [b.add(b.mul(at[window.free], window.step), window.low) for window in factor.windows]
        return _Slot(line, 0, inside, base, starts)

    def _fetch(self, slots: list[list[_Slot]], start: Value) -> list[Value]:
        """The elements of the strip from an inner position on; zero where there is none."""
        sides = zip((self.table.rows, self.table.columns), slots, strict=True)
        return [self._element(factor, slot, start) for factor, some in sides for slot in some]

    def _element(self, factor: Factor, slot: _Slot, start: Value) -> Value:
        b = self.b
        position = b.add(start, slot.depth)
        checks = [b.less(position, self.depth)]
        if slot.inside is not None:
            checks.append(slot.inside)
        inner = b.coordinates(position, self.table.inner)
        offset = b.add(slot.base, b.dot(inner, factor.inner))
        for window, first in zip(factor.windows, slot.starts, strict=True):
            moved = b.mul(inner[window.inner], window.dilation) if window.inner is not None else 0
            at = b.add(first, moved)
            checks.append(b.less(at, (window.size - 1) * window.divisor + 1))  # what is negative is large
            if window.divisor > 1:
                checks.append(b.compare("eq", b.at(b.mod(at, window.divisor)), b.at(0)))
            offset = b.add(offset, b.mul(b.div(at, window.divisor), window.stride))
        inside = checks[0]
        for check in checks[1:]:
            inside = b.same("arith.andi", inside, check)
        tensor = self.graph.tensors[factor.tensor]
        offset = b.select(inside, b.at(offset), b.at(0))  # some element that exists
        (value,) = load(b, b.arguments[self.places[factor.tensor]], offset, tensor.dtype)
        return b.select(inside, value, b.constant(0, b.f32))

    def _strip(self, side: int) -> tuple[Value, int]:
        """Shared memory of a strip and elements from one inner position to the next."""
        line = self.tile.rows + _PADDING
        if side == 0:
            return self.b.shared(0), line
        return self.b.shared(4 * _DEPTH * line), self.tile.columns + _PADDING

    def _keep(self, slots: list[list[_Slot]], fetched: list[Value]) -> None:
        b, values = self.b, iter(fetched)
        for side, some in enumerate(slots):
            base, step = self._strip(side)
            for slot in some:
                b.store(base, b.add(b.mul(slot.depth, step), slot.line), [next(values)])

    # -- sums -----------------------------------------------------------------------------------------------------

    def _multiply(self, sums: list[Value], each: tuple[int, int]) -> list[Value]:
        """Add the products of the strip in shared memory."""
        b, made = self.b, list(sums)
        for depth in range(_DEPTH):
            lines = [self._lines(side, depth, each[side]) for side in (0, 1)]
            for i, x in enumerate(lines[0]):
                for j, y in enumerate(lines[1]):
                    place = i * each[1] + j
                    made[place] = b.intrinsic("fma", x, y, made[place])
        return made

    def _lines(self, side: int, depth: int, count: int) -> list[Value]:
        """One element of each of this thread's rows or columns."""
        b = self.b
        base, step = self._strip(side)
        size = min(count, _TOGETHER)
        return [
            value
            for chunk in range(count // size)
            for value in b.load(base, b.add(self._chunk(side, chunk, size), depth * step), b.f32, size)
        ]

    def _chunk(self, side: int, chunk: int, size: int) -> Value:
        """The first of adjacent rows or columns of this thread."""
        return self.b.add(self.b.mul(self.part[side], size), chunk * _SIDE * size)

    def _finish(self, sums: list[Value], first: tuple[Value, Value], each: tuple[int, int]) -> None:
        """Compute what follows and write it."""
        b, rows, columns = self.b, self.table.rows, self.table.columns
        size = [min(count, _TOGETHER) for count in each]
        last = columns.free[-1].size if columns.free else 1
        lanes = size[1] if last % size[1] == 0 else 1
        evaluator = Evaluator(b, self.body, self.space, lanes)
        across = []
        for j in range(0, each[1], lanes):
            line = b.add(first[1], self._chunk(1, j // size[1], size[1]), j % size[1])
            across.append((j, *self._at(columns, line, self.tile.columns)))
        for i in range(each[0]):
            line = b.add(first[0], self._chunk(0, i // size[0], size[0]), i % size[0])
            at_row, is_row = self._at(rows, line, self.tile.rows)
            for j, at_column, is_column in across:
                given = sums[i * each[1] + j : i * each[1] + j + lanes]
                checks = [check for check in (is_row, is_column) if check is not None]
                at = [*self.batch, *at_row, *at_column] if self.space.dims else []
                if not checks:
                    evaluator.run([given], at)
                    continue
                with b.when(checks[0] if len(checks) == 1 else b.same("arith.andi", *checks)):
                    evaluator.run([given], at)

    def _at(self, factor: Factor, line: Value, count: int) -> tuple[list[Value], Value]:
        """Coordinates of a row or column along its dims of the table, and whether there is one."""
        b = self.b
        inside = b.less(line, factor.count) if factor.count % count else None
        return b.coordinates(line, [dim.size for dim in factor.free]), inside


def _step(strides: tuple[int, ...], moved: list[int]) -> int:
    """Elements between neighbours along the last of some dims; those with windows say it there."""
    return moved[0] if moved else strides[-1] if strides else 2**62
