"""`cache_update`: new rows of a cache from a computed position on. Where the result lies in the cache's memory, nothing else is written."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import bits_type
from ..core.kernel import Operand
from ..core.space import ACCESS_BYTES, is_wide

_THREADS = 256
_ROWS = 2
"""The dim of rows."""


def cache_update_launch(operands: Sequence[Operand], _: Any, __: Any) -> Launch:
    """`cache_update`; a start from which the rows do not fit becomes the nearest one."""
    cache, new, start, out = operands
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


def nearest_place(b: KernelBuilder, places: Operand, base: Value, batch: Value, most: int) -> Value:
    """A number of i32 or i64 that is one of the batch's, or that of all, as a position: the nearest one from zero to `most`."""
    kind = bits_type(b, places.dtype.bytes)
    offset = b.mul(batch, places.strides[0]) if places.dims[0] > 1 else 0
    (value,) = b.load(base, offset, kind)
    zero, limit = b.constant(0, kind), b.constant(most, kind)
    value = b.select(b.compare("slt", value, zero), zero, value)
    value = b.select(b.compare("sgt", value, limit), limit, value)
    if kind == b.position_type:
        return value
    return b.op("arith.trunci" if kind == b.i64 else "arith.extui", [value], b.position_type)
