"""`cache_update`: new rows of a cache from a computed position on. Where the result lies in the cache's memory, nothing else is written."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import bits_type
from ..core.kernel import Operand
from ..core.space import ACCESS_BYTES, is_wide
from .places import Pages, nearest_place

_THREADS = 256
_ROWS = 2
"""The dim of rows."""


def cache_update_launch(operands: Sequence[Operand], _: Any, __: Any) -> Launch:
    """`cache_update`; a start from which the rows do not fit becomes the nearest one, as does a page that there is not."""
    cache, new, start, *table, out = operands
    if table:
        return _into_pages(cache, new, start, table[0], out)
    lanes = min(_adjacent(operand) for operand in (cache, new, out))
    groups = out.elements // lanes
    wide = is_wide([cache, new, out], groups)

    def write(b: KernelBuilder) -> None:
        place = b.add(b.mul(b.block(), _THREADS), b.thread())
        with b.when(b.less(place, groups)):
            at = b.coordinates(place, (*out.dims[:3], out.dims[3] // lanes))
            at = [*at[:3], b.mul(at[3], lanes)]
            first = nearest_place(b, start, b.arguments[2], at[0], out.dims[_ROWS] - new.dims[_ROWS])
            row = b.sub(at[_ROWS], first)  # one in front of the first is large
            is_new = b.less(row, new.dims[_ROWS]) if new.elements else b.constant(0, b.i1)
            kind = bits_type(b, out.dtype.bytes)

            def moved(operand: Operand, source: Value, row: Value) -> None:
                offset = b.dot([at[0], at[1], row, at[3]], operand.strides)
                values = b.load(source, offset, kind, lanes)
                b.store(b.arguments[3], b.dot(at, out.strides), values)

            if new.elements:
                with b.when(is_new):
                    moved(new, b.arguments[1], row)
            is_kept = b.same("arith.xori", is_new, b.constant(1, b.i1))
            is_in_place = b.compare("eq", b.integer_of(b.arguments[0]), b.integer_of(b.arguments[3]))
            if cache.strides == out.strides:
                is_kept = b.same("arith.andi", is_kept, b.same("arith.xori", is_in_place, b.constant(1, b.i1)))
            is_known = b.less(at[_ROWS], cache.dims[_ROWS])
            if cache.elements:
                with b.when(b.same("arith.andi", is_kept, is_known)):
                    moved(cache, b.arguments[0], at[_ROWS])
            if cache.dims[_ROWS] < out.dims[_ROWS]:
                is_behind = b.same("arith.xori", is_known, b.constant(1, b.i1))
                is_new_too = b.same("arith.xori", is_new, b.constant(1, b.i1))
                with b.when(b.same("arith.andi", is_behind, is_new_too)):
                    b.store(b.arguments[3], b.dot(at, out.strides), [b.constant(0, kind)] * lanes)

    return Launch(write, ceil(groups / _THREADS), _THREADS, 0, wide)


def _into_pages(cache: Operand, new: Operand, start: Operand, table: Operand, out: Operand) -> Launch:
    """The same where the cache lies in pages: threads write what is new, and copy the rest only where the result is in other memory."""
    lanes = min(_adjacent(operand) for operand in (cache, new, out))
    kept, groups = out.elements // lanes, new.elements // lanes
    blocks = max(ceil(groups / _THREADS), 1)

    def write(b: KernelBuilder) -> None:
        source, fresh, starts, names, target = b.arguments
        pages, count = Pages(out, table, names), new.dims[_ROWS]
        kind = bits_type(b, out.dtype.bytes)
        first = b.add(b.mul(b.block(), _THREADS), b.thread())

        def start_of(batch: Value) -> Value:
            return nearest_place(b, start, starts, batch, pages.rows - count)

        def place(group: Value, dims: Sequence[int]) -> list[Value]:
            at = b.coordinates(group, (*dims[:3], dims[3] // lanes))
            return [*at[:3], b.mul(at[3], lanes)]

        def copy(group: Value, _: list[Value]) -> list[Value]:
            at = place(group, out.dims)
            is_new = pages.has(b, (at[0], at[_ROWS]), start_of, count) if groups else b.constant(0, b.i1)
            with b.when(b.same("arith.xori", is_new, b.constant(1, b.i1))):
                b.store(target, b.dot(at, out.strides), b.load(source, b.dot(at, cache.strides), kind, lanes))
            return []

        is_other = b.compare("ne", b.integer_of(source), b.integer_of(target))
        if cache.strides != out.strides:
            is_other = b.constant(1, b.i1)
        with b.when(is_other):
            b.loop(first, kept, blocks * _THREADS, [], copy)
        if not groups:
            return
        with b.when(b.less(first, groups)):
            at = place(first, new.dims)
            page, row = pages.find(b, at[0], b.add(start_of(at[0]), at[_ROWS]))
            values = b.load(fresh, b.dot(at, new.strides), kind, lanes)
            b.store(target, b.dot([page, at[1], row, at[3]], out.strides), values)

    return Launch(write, blocks, _THREADS, 0, is_wide([cache, new, out], max(kept, groups) + blocks * _THREADS))


def _adjacent(operand: Operand) -> int:
    """Elements of one access along the last dim."""
    size = ACCESS_BYTES // operand.dtype.bytes if operand.strides[3] == 1 or operand.dims[3] == 1 else 1
    while size > 1 and (
        operand.dims[3] % size
        or operand.alignment % (size * operand.dtype.bytes)
        or any(step % size for dim, step in zip(operand.dims[:3], operand.strides[:3], strict=True) if dim > 1)
    ):
        size //= 2
    return size
