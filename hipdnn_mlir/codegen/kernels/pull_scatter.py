"""Scatters of few updates in one launch: every element of the result looks through the positions for the updates that it takes.

So updates that meet are applied in order, as on the host, and nothing depends on timing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from ...ops.strides import Dims, Strides
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type, to_memory, value_type
from ..core.kernel import Operand
from ..core.space import Space, access_size, arranged, is_wide, vector_size
from ..math.instructions import Instructions
from .move import read_index

_THREADS = 256
_MOST = 256
"""Positions that an element looks at."""
DATA, INDICES, UPDATES, OUT = range(4)


@dataclass(frozen=True)
class _Search:
    """What an element of the result looks through.

    Attributes:
        updates, indices: strides of the offsets of an element's first update and position, per dim of the out.
        rows: how positions follow each other; functions are offsets of updates and positions.
        known: dims of the out whose coordinates a position names, `index_step` apart.
        bounds: dims of the out beyond whose sizes here no update lies.
    """

    updates: Strides
    indices: Strides
    rows: Space
    known: tuple[int, ...]
    index_step: int
    bounds: dict[int, int]


def pull_launch(function: str, operands: Sequence[Operand], attributes: Any) -> Launch | None:
    """The launch of a scatter, or None where there are too many positions."""
    search = (_elements if function == "scatter_elements" else _slices)(operands, attributes)
    if search.rows.size > _MOST or 0 in search.rows.dims:
        return None
    return _Writer(search, operands, attributes["reduction"]).launch()


def _elements(operands: Sequence[Operand], attributes: Any) -> _Search:
    _, indices, updates, out = operands
    axis = attributes["axis"]
    rows = Space((indices.dims[axis],), ((updates.strides[axis],), (indices.strides[axis],)))
    bounds = {d: n for d, n in enumerate(indices.dims) if d != axis and n != out.dims[d]}
    still = [tuple(0 if d == axis else s for d, s in enumerate(o.strides)) for o in (updates, indices)]
    return _Search(still[0], still[1], rows, (axis,), 0, bounds)


def _slices(operands: Sequence[Operand], attributes: Any) -> _Search:
    del attributes
    _, indices, updates, out = operands
    count, depth = len(indices.dims) - 1, indices.dims[-1]
    dims: Dims = indices.dims[:-1]
    size = prod(dims)
    rows = (
        Space((0,), ((0,), (0,))) if size == 0 else arranged(dims, [updates.strides[:count], indices.strides[:-1]], [])
    )
    of_slice = (*(0,) * depth, *updates.strides[count:])
    return _Search(of_slice, (0,) * len(out.dims), rows, tuple(range(depth)), indices.strides[-1], {})


class _Writer:
    def __init__(self, search: _Search, operands: Sequence[Operand], reduction: str) -> None:
        self.search, self.operands, self.reduction = search, operands, reduction
        out = operands[OUT]
        self.dims = (*search.known, *search.bounds)
        units = [tuple(int(axis == dim) for axis in range(len(out.dims))) for dim in self.dims]
        functions = [out.strides, operands[DATA].strides, search.updates, search.indices, *units]
        self.space = arranged(out.dims, functions, [0])
        lanes = vector_size(self.space, [out, operands[DATA]], divides=True)
        varies = any(strides and strides[-1] for strides in self.space.strides[3:])
        self.lanes = 1 if varies else lanes

    def launch(self) -> Launch:
        """The launch."""
        blocks = ceil(self.space.size // self.lanes / _THREADS)
        positions = (blocks + 1) * _THREADS * self.lanes
        return Launch(self.write, blocks, _THREADS, 0, is_wide(self.operands, positions))

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b = b
        group, groups = b.add(b.mul(b.block(), _THREADS), b.thread()), self.space.size // self.lanes
        with b.when(b.less(group, groups)):
            dims = (*self.space.dims[:-1], self.space.dims[-1] // self.lanes) if self.space.dims else ()
            at = b.coordinates(group, dims)
            at = [*at[:-1], b.mul(at[-1], self.lanes)] if at else []
            offsets = [b.dot(at, strides) for strides in self.space.strides]
            values = self._updated(self._load(DATA, 1, offsets[1]), offsets)
            raw = [to_memory(b, value, self.operands[OUT].dtype) for value in values]
            size = max(access_size(self.operands[OUT], self.space.strides[0], self.lanes), 1)
            step = self.space.strides[0][-1] if self.space.dims else 0
            for lane in range(0, self.lanes, size):
                b.store(b.arguments[OUT], b.add(offsets[0], lane * step), raw[lane : lane + size])

    def _load(self, number: int, function: int, offset: Value, extra: Sequence[int] = ()) -> list[Value]:
        """An element for every lane; `extra` are steps of what the offset has beside the space's strides."""
        b, operand, strides = self.b, self.operands[number], self.space.strides[function]
        size = access_size(operand, (*extra, *strides), self.lanes) or 1
        step, kind = (strides[-1] if strides else 0), memory_type(b, operand.dtype)
        count = self.lanes if step else 1
        raw = [
            v
            for lane in range(0, count, size)
            for v in b.load(b.arguments[number], b.add(offset, lane * step), kind, size)
        ]
        values = [from_memory(b, value, operand.dtype) for value in raw]
        return values if step else values * self.lanes

    def _updated(self, values: list[Value], offsets: Sequence[Value]) -> list[Value]:
        b, search = self.b, self.search
        coordinates = dict(zip(self.dims, offsets[4:], strict=True))
        stop = b.at(search.rows.size)
        for dim, size in search.bounds.items():
            stop = b.select(b.less(coordinates[dim], size), stop, b.at(0))
        sizes = self.operands[OUT].dims

        def row(number: Value, carried: list[Value]) -> list[Value]:
            at = b.coordinates(number, search.rows.dims)
            update, index = (
                b.add(base, b.dot(at, s)) for base, s in zip(offsets[2:4], search.rows.strides, strict=True)
            )
            matches = b.constant(1, b.i1)
            for place, dim in enumerate(search.known):
                found = read_index(b, self.operands, INDICES, b.add(index, place * search.index_step), sizes[dim])
                matches = b.same("arith.andi", matches, b.compare("eq", found, b.at(coordinates[dim])))
            return self._where(matches, update, carried)

        return b.loop(0, stop, 1, values, row)

    def _where(self, matches: Value, update: Value, values: list[Value]) -> list[Value]:
        """The values with an update, where it is theirs."""
        b, dtype = self.b, self.operands[OUT].dtype
        instructions = Instructions(b, rounds=True)

        def taken() -> list[Value]:
            new = self._load(UPDATES, 2, update, self.search.rows.strides[0])
            if self.reduction == "none":
                return new
            return [
                instructions.apply(self.reduction, dtype, old, value) for old, value in zip(values, new, strict=True)
            ]

        return b.choose(matches, taken, lambda: values, [value_type(b, dtype)] * self.lanes)
