"""Elements that move unchanged: gathers, slices, pads. A result's position says where its element comes from."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from ...ops.spec import Refusal
from ...ops.strides import Strides
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import bits_type
from ..core.kernel import Operand
from ..core.space import Space, access_size, arranged, is_wide, vector_size

_THREADS = 256
_MAX_GROUPS = 4


@dataclass
class Move:
    """One move of elements.

    Attributes:
        source, target: numbers of the operands that are read and written.
        read: strides in the source per dim of the target.
        first: offset in the source of what goes to the target's first position, apart from `more`.
        known: linear functions of the position that `more` needs, as strides per dim of the target.
        more: what the source's offset has beside the linear part, from the values of `known`.
        inside: whether there is such an element, from the values of `known`; where there is none, `fill` is written.
    """

    source: int
    target: int
    read: Strides
    first: int = 0
    known: list[Strides] = field(default_factory=list)
    more: Callable[[KernelBuilder, list[Value]], Value] = lambda _, __: 0
    inside: Callable[[KernelBuilder, list[Value]], Value] | None = None
    fill: int = 0


def move_launch(move: Move, operands: Sequence[Operand], architecture: Architecture) -> Launch:
    """The launch of a move."""
    return _Writer(move, operands, architecture).launch()


class _Writer:
    def __init__(self, move: Move, operands: Sequence[Operand], architecture: Architecture) -> None:
        self.move, self.operands = move, operands
        target, source = operands[move.target], operands[move.source]
        if source.elements == 0:
            raise Refusal("shape", "the data has no elements")
        alignment = math.gcd(source.alignment, move.first * source.dtype.bytes)
        self.target, self.source = target, replace(source, alignment=alignment)
        self.space: Space = arranged(target.dims, [target.strides, move.read, *move.known], [0, 1])
        lanes = vector_size(self.space, [self.target, self.source], divides=True)
        is_same = all(not strides or strides[-1] == 0 for strides in self.space.strides[2:])
        self.lanes = lanes if is_same else 1
        self.groups = self.space.size // self.lanes
        self.each = min(_MAX_GROUPS, max(1, self.groups // (_THREADS * architecture.units * 8)))

    def launch(self) -> Launch:
        """The launch."""
        blocks = ceil(self.groups / (_THREADS * self.each))
        positions = (blocks + 1) * _THREADS * self.each * self.lanes
        return Launch(self.write, blocks, _THREADS, 0, is_wide(self.operands, positions))

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel: all loads of a thread, then its stores."""
        first = b.add(b.mul(b.block(), _THREADS * self.each), b.thread())
        dims = (*self.space.dims[:-1], self.space.dims[-1] // self.lanes) if self.space.dims else ()
        points: list[tuple[Value, Value, list[Value]]] = []
        for part in range(self.each):
            group = b.add(first, part * _THREADS)
            at = b.coordinates(b.least(group, self.groups - 1), dims)
            at = [*at[:-1], b.mul(at[-1], self.lanes)] if at else []
            known = [b.dot(at, strides) for strides in self.space.strides[2:]]
            offset = b.add(b.dot(at, self.space.strides[1]), self.move.first, self.move.more(b, known))
            values = self._load(b, offset)
            if self.move.inside is not None:
                exists = self.move.inside(b, known)
                nothing = b.constant(self.move.fill, bits_type(b, self.source.dtype.bytes))
                values = [b.select(exists, value, nothing) for value in values]
            points.append((b.less(group, self.groups), b.dot(at, self.space.strides[0]), values))
        for inside, offset, values in points:
            with b.when(inside):
                self._store(b, offset, values)

    def _load(self, b: KernelBuilder, offset: Value) -> list[Value]:
        kind, base = bits_type(b, self.source.dtype.bytes), b.arguments[self.move.source]
        strides = self.space.strides[1]
        # The part that is not linear is a multiple of a stride, and `more` of a move says so by its operands' strides.
        size = access_size(self.source, strides, self.lanes) or 1
        step = strides[-1] if strides else 0
        if step == 0:
            return b.load(base, offset, kind) * self.lanes
        return [v for lane in range(0, self.lanes, size) for v in b.load(base, b.add(offset, lane * step), kind, size)]

    def _store(self, b: KernelBuilder, offset: Value, values: Sequence[Value]) -> None:
        strides = self.space.strides[0]
        size = access_size(self.target, strides, self.lanes) or 1
        step = strides[-1] if strides else 0
        for lane in range(0, self.lanes, size):
            b.store(b.arguments[self.move.target], b.add(offset, lane * step), values[lane : lane + size])


def read_index(b: KernelBuilder, operands: Sequence[Operand], number: int, offset: Value, size: int) -> Value:
    """An index of an operand of indices: negative ones count from the end, ones out of range become the nearest."""
    dtype = operands[number].dtype
    kind = b.i32 if dtype.name == "i32" else b.i64
    raw = b.load(b.arguments[number], offset, kind)[0]
    zero, count = b.constant(0, kind), b.constant(size, kind)
    raw = b.select(b.compare("slt", raw, zero), b.same("arith.addi", raw, count), raw)
    raw = b.same("arith.minsi", b.same("arith.maxsi", raw, zero), b.constant(max(size - 1, 0), kind))
    if kind == b.position_type:
        return raw
    return b.op("arith.trunci" if kind == b.i64 else "arith.extui", [raw], b.position_type)


def _still(count: int) -> Strides:
    return (0,) * count


def _with_source_alignment(operands: Sequence[Operand], number: int, steps: Sequence[int]) -> list[Operand]:
    """Operands, of which one is no more aligned than offsets by any multiples of these steps (in elements) leave it."""
    operand = operands[number]
    alignment = math.gcd(operand.alignment, *(step * operand.dtype.bytes for step in steps))
    return [replace(o, alignment=alignment) if i == number else o for i, o in enumerate(operands)]


def gather_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`gather`: slices of data at indices."""
    data, indices, _ = operands
    axis, rank = attributes["axis"], len(indices.dims)
    read = (*data.strides[:axis], *_still(rank), *data.strides[axis + 1 :])
    where = (*_still(axis), *indices.strides, *_still(len(data.dims) - axis - 1))
    step = data.strides[axis]

    def more(b: KernelBuilder, known: list[Value]) -> Value:
        return b.mul(read_index(b, operands, 1, known[0], data.dims[axis]), step)

    move = Move(0, 2, read, known=[where], more=more)
    return move_launch(move, _with_source_alignment(operands, 0, [step]), architecture)


def gather_elements_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`gather_elements`: for each index an element at its own position but along one dim."""
    data, indices, _ = operands
    axis = attributes["axis"]
    read = tuple(0 if dim == axis else step for dim, step in enumerate(data.strides))

    def more(b: KernelBuilder, known: list[Value]) -> Value:
        return b.mul(read_index(b, operands, 1, known[0], data.dims[axis]), data.strides[axis])

    move = Move(0, 2, read, known=[indices.strides], more=more)
    return move_launch(move, _with_source_alignment(operands, 0, [data.strides[axis]]), architecture)


def gather_nd_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`gather_nd`: slices of data at rows of indices."""
    data, indices, _ = operands
    batch, rows = attributes["batch_dims"], len(indices.dims) - 1
    depth = indices.dims[-1]
    inner = batch + depth
    read = (*data.strides[:batch], *_still(rows - batch), *data.strides[inner:])
    where = (*indices.strides[:-1], *_still(len(data.dims) - inner))

    def more(b: KernelBuilder, known: list[Value]) -> Value:
        found = [
            read_index(b, operands, 1, b.add(known[0], d * indices.strides[-1]), data.dims[batch + d])
            for d in range(depth)
        ]
        return b.dot(found, data.strides[batch:inner])

    move = Move(0, 2, read, known=[where] if depth else [], more=more)
    return move_launch(move, _with_source_alignment(operands, 0, data.strides[batch:inner]), architecture)


def slice_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`slice`: elements at equal distances."""
    x = operands[0]
    read = tuple(stride * step for stride, step in zip(x.strides, attributes["steps"], strict=True))
    first = sum(start * stride for start, stride in zip(attributes["starts"], x.strides, strict=True))
    return move_launch(Move(0, 1, read, first), operands, architecture)


def pad_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`pad`: zeros, another byte, or elements repeated, around a tensor."""
    x, out = operands
    fill = attributes.get("fill", 0)
    mode, low = attributes["mode"], attributes["low"]
    moved = [dim for dim, size in enumerate(x.dims) if low[dim] or size != out.dims[dim]]
    read = tuple(0 if dim in moved else step for dim, step in enumerate(x.strides))
    units = [tuple(int(axis == dim) for axis in range(len(x.dims))) for dim in moved]

    def more(b: KernelBuilder, known: list[Value]) -> Value:
        found = [_padded(b, mode, b.at(at), low[dim], x.dims[dim]) for dim, at in zip(moved, known, strict=True)]
        return b.dot(found, [x.strides[dim] for dim in moved])

    def inside(b: KernelBuilder, known: list[Value]) -> Value:
        places = [
            b.sub(b.at(at), low[dim]) for dim, at in zip(moved, known, strict=True)
        ]  # below the border they wrap around
        found = [b.less(place, x.dims[dim]) for dim, place in zip(moved, places, strict=True)]
        return functools.reduce(lambda a, other: b.same("arith.andi", a, other), found)

    fill -= 256 if fill > 127 else 0
    is_known = mode == "zeros" and moved
    move = Move(0, 1, read, known=units, more=more, inside=inside if is_known else None, fill=fill)
    return move_launch(move, _with_source_alignment(operands, 0, [x.strides[dim] for dim in moved]), architecture)


def _padded(b: KernelBuilder, mode: str, at: Value, low: int, size: int) -> Value:
    """Where position `at` of the result comes from; positions are signed here."""
    from_low = b.at(b.sub(at, low))
    zero, last = b.at(0), b.at(size - 1)
    if mode in ("edge", "zeros"):
        return b.same("arith.minsi", b.same("arith.maxsi", from_low, zero), last)
    period = size if mode == "wrap" else max(2 * (size - 1), 1)
    rest = b.same("arith.remsi", from_low, b.at(period))
    rest = b.select(b.compare("slt", rest, zero), b.at(b.add(rest, period)), rest)
    if mode == "wrap":
        return rest
    return b.select(b.compare("sgt", rest, last), b.same("arith.subi", b.at(period), rest), rest)


def reverse_sequence_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`reverse_sequence`: the first elements of each sequence backwards."""
    x, lengths, _ = operands
    batch, time = attributes["batch_axis"], attributes["time_axis"]
    rank = len(x.dims)
    read = tuple(0 if dim == time else step for dim, step in enumerate(x.strides))
    units = [
        tuple(lengths.strides[0] if dim == batch else 0 for dim in range(rank)),
        tuple(int(dim == time) for dim in range(rank)),
    ]

    def more(b: KernelBuilder, known: list[Value]) -> Value:
        length = read_index(b, operands, 1, known[0], x.dims[time] + 1)
        at = b.at(known[1])
        back = b.sub(b.sub(length, 1), at)
        return b.mul(b.select(b.less(at, length), back, at), x.strides[time])

    move = Move(0, 2, read, known=units, more=more)
    return move_launch(move, _with_source_alignment(operands, 0, [x.strides[time]]), architecture)
