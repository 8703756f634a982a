"""Operators that fill a bound and count their rows, as cumulative sums and scatters; parts of those that know how many rows count."""

import math
from collections.abc import Sequence

import numpy as np
import onnx

from ...ops.families.detection import SUPPRESS
from ...ops.registry import HIPDNN_DOMAIN
from ..own_operators import (
    CHOSEN,
    DISTINCT,
    INDICES,
    JOINED,
    MASKED,
    NUMBER,
    POSITIONS,
    REPEATED,
    SCATTERED,
    SELECTED,
    VALID,
)
from .call import BOOL, INT32, INT64, Call
from .registry import decomposes


@decomposes(POSITIONS, domain=HIPDNN_DOMAIN)
def positions(call: Call) -> Sequence[str | None]:
    """NonZero: as many columns as there are elements; those behind the number of them are the first one.

    Source: ONNX, NonZero-13.
    """
    x = call.need(0)
    dims = [call.size(x, axis) for axis in range(call.rank(x))]
    mask = x if call.kind(x) == BOOL else call.op("Not", call.op("Equal", x, call.number(0, x)))
    flat, count = _listed(call, call.reshape(mask, -1), math.prod(dims))
    rows = []
    for axis, size in enumerate(dims):
        inner = math.prod(dims[axis + 1 :])
        row = call.op("Div", flat, call.const(np.int64(inner))) if inner > 1 else flat
        row = call.op("Mod", row, call.const(np.int64(size))) if axis else row
        rows.append(call.unsqueeze(row, 0))
    return [call.concat(0, *rows), count]


@decomposes(SELECTED, domain=HIPDNN_DOMAIN)
def selected(call: Call) -> Sequence[str | None]:
    """Compress: as many slices as there are conditions; those behind the number of selected ones are the first of them.

    Source: ONNX, Compress-11.
    """
    x, condition = call.need(0), call.need(1)
    axis = call.attr("axis")
    if axis is None:
        x, axis = call.reshape(x, -1), 0
    indices, count = _listed(call, condition, call.size(condition, 0))
    return [call.op("Gather", x, indices, axis=axis), count]


@decomposes(CHOSEN, domain=HIPDNN_DOMAIN)
def chosen(call: Call) -> Sequence[str | None]:
    """NonMaxSuppression: as many rows as there can be boxes; those behind the number of them are the first.

    Source: ONNX, NonMaxSuppression-11.
    """
    boxes, scores = call.need(0), call.need(1)
    batches, classes, most = call.size(scores, 0), call.size(scores, 1), call.count("most")
    limit = call.reshape(call.arg(3) or call.const(np.float32(0)), 1)
    least = call.reshape(call.arg(4) or call.const(np.float32(-np.inf)), 1)
    options = {"most": most, "center": call.one_of((0, 1), "center_point_box", 0)}
    found, counts, _ = call.outs(SUPPRESS, boxes, scores, limit, least, count=3, domain=HIPDNN_DOMAIN, **options)
    mask = call.op("Less", call.range(call.ints(most)), call.unsqueeze(counts, 2))
    flat, count_of_all = _listed(call, call.reshape(mask, -1), batches * classes * most)
    in_batch = call.op("Mod", flat, call.const(np.int64(classes * most)))
    columns = (
        call.op("Div", flat, call.const(np.int64(classes * most))),
        call.op("Div", in_batch, call.const(np.int64(most))),
        call.op("Gather", call.reshape(found, -1), flat),
    )
    return [call.concat(1, *(call.unsqueeze(column, 1) for column in columns)), count_of_all]


@decomposes(DISTINCT, domain=HIPDNN_DOMAIN)
def distinct(call: Call) -> Sequence[str | None]:
    """Unique of all elements: as many as there are; those behind the number of different ones are the first.

    Source: ONNX, Unique-11.
    """
    x = call.reshape(call.need(0), -1)
    size = call.size(x, 0)
    ordered, order = call.outs("TopK", x, call.ints(size), count=2, axis=0, largest=0, sorted=1)  # equal ones in order
    before = call.concat(0, call.slice(ordered, 0, 0, 1), call.slice(ordered, 0, 0, size - 1))
    is_new = call.op("Not", call.op("Equal", ordered, before))
    is_new = call.op("Or", is_new, call.op("Equal", call.range(call.ints(size)), call.const(np.int64(0))))
    zeros, ones = (call.const(np.full(size, number, np.int64)) for number in (0, 1))
    rank = _numbered(call, is_new)
    inverse = call.op("ScatterElements", zeros, order, rank, axis=0)
    counts = call.op("ScatterElements", zeros, rank, ones, axis=0, reduction="add")
    if call.one_of((0, 1), "sorted", 1):
        at, count = _listed(call, is_new, size)
        return [call.op("Gather", ordered, at), call.op("Gather", order, at), inverse, counts, count]
    is_first = call.cast(call.op("ScatterElements", zeros, order, call.cast(is_new, INT64), axis=0), BOOL)
    at, count = _listed(call, is_first, size)
    at_rank, _ = _listed(call, is_new, size)
    number = call.op("Gather", _numbered(call, is_first), call.op("Gather", order, at_rank))
    counts = call.op("Gather", counts, call.op("Gather", inverse, at))
    return [call.op("Gather", x, at), at, call.op("Gather", number, inverse), counts, count]


@decomposes(VALID, domain=HIPDNN_DOMAIN)
def valid(call: Call) -> Sequence[str | None]:
    """(x, number; axis): for each row along the axis whether it counts; all do without a number.

    Source: adr/0062.
    """
    size = call.size(call.need(0), call.attr("axis", 0))
    count = call.arg(1)
    return [_counting(call, size, count) if count else call.const(np.ones(size, bool))]


@decomposes(MASKED, domain=HIPDNN_DOMAIN)
def masked(call: Call) -> Sequence[str | None]:
    """(x, number; axis, fill): x, in which rows behind the number are the least or greatest number, zero or one.

    Source: adr/0062.
    """
    x, kind = call.need(0), call.kind(call.need(0))
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    least, greatest = (0, 1) if kind == BOOL else (-np.inf, np.inf)
    if np.issubdtype(dtype, np.integer):
        least, greatest = np.iinfo(dtype).min, np.iinfo(dtype).max
    fill = {"least": least, "greatest": greatest, "zero": 0, "one": 1}[call.attr("fill", "zero")]
    return [call.op("Where", _along(call, x), x, call.const(fill, kind))]


@decomposes(REPEATED, domain=HIPDNN_DOMAIN)
def repeated(call: Call) -> Sequence[str | None]:
    """(x, number; axis): x, in which rows behind the number are the first row.

    Source: adr/0062.
    """
    x, axis = call.need(0), call.attr("axis", 0)
    return [call.op("Where", _along(call, x), x, call.slice(x, axis, 0, 1))]


@decomposes(JOINED, domain=HIPDNN_DOMAIN)
def joined(call: Call) -> Sequence[str | None]:
    """(x, places; axis): rows of x at places (1, n).

    Source: adr/0062.
    """
    return [call.op("Gather", call.need(0), call.reshape(call.need(1), -1), axis=call.attr("axis", 0))]


@decomposes(NUMBER, domain=HIPDNN_DOMAIN)
def number(call: Call) -> Sequence[str | None]:
    """(number, other; factor, most): the number times the factor, at most so many, 0 where the other one is 0.

    Source: adr/0062.
    """
    made, other = call.need(0), call.arg(1)
    if call.attr("factor", 1) != 1:
        made = call.op("Mul", made, call.ints(call.attr("factor", 1)))
    if call.attr("most") is not None:
        made = call.op("Min", made, call.ints(call.attr("most")))
    if other is not None:
        made = call.op("Mul", made, call.op("Min", other, call.ints(1)))
    return [made]


@decomposes(INDICES, domain=HIPDNN_DOMAIN)
def indices(call: Call) -> Sequence[str | None]:
    """(indices, number, size): the indices, all 0 where their number is 0; negative ones count from the size, if that is given.

    Source: adr/0062.
    """
    made, size = call.need(0), call.arg(2)
    if size is not None:
        from_end = call.op("Add", made, call.cast(size, call.kind(made)))
        made = call.op("Where", call.op("Less", made, call.number(0, made)), from_end, made)
    is_any = call.op("Greater", call.need(1), call.ints(0))
    return [call.op("Where", is_any, made, call.number(0, made))]


@decomposes(SCATTERED, domain=HIPDNN_DOMAIN)
def scattered(call: Call) -> Sequence[str | None]:
    """(x, indices, updates, number; axis, reduction): ScatterElements of rows up to the number; the others go to one more row.

    Where the indices have ones in the place of all dims but that of the rows, whole rows of the updates move.

    Source: adr/0062.
    """
    x, at, updates = (call.need(index) for index in range(3))
    axis, reduction = call.attr("axis", 0), call.attr("reduction", "none")
    size = call.size(x, axis)
    if call.dims(at) != call.dims(updates):
        return [_rows_moved(call, x, at, updates)]
    more = call.concat(axis, x, call.slice(x, axis, 0, 1))
    places = call.op("Where", _along(call, at, 3), at, call.number(size, at))
    made = call.op("ScatterElements", more, places, updates, axis=axis, reduction=reduction)
    return [call.slice(made, axis, 0, size)]


def _rows_moved(call: Call, x: str, at: str, updates: str) -> str:
    """The same of whole rows: which of the updates each row is, counted from 1, 0 for those that stay."""
    axis, zero, one = call.attr("axis", 0), call.const(np.int64(0)), call.const(np.int64(1))
    size, rows = call.size(x, axis), call.size(at, axis)
    places = call.op("Where", _counting(call, rows, call.need(3)), call.reshape(at, -1), call.number(size, at))
    numbers = call.op("Add", call.range(call.ints(rows)), one)
    none = call.const(np.zeros(size + 1, np.int64))
    found = call.slice(call.op("ScatterElements", none, places, numbers, axis=0), 0, 0, size)
    moved = call.op("Gather", updates, call.op("Max", call.op("Sub", found, one), zero), axis=axis)
    dims = [-1 if place == axis else 1 for place in range(call.rank(x))]
    return call.op("Where", call.reshape(call.op("Greater", found, zero), *dims), moved, x)


def _along(call: Call, x: str, number: int = 1) -> str:
    """For each row of x along the attribute `axis` whether it counts, with the rank of x."""
    axis = call.axis(x, call.attr("axis", 0))
    dims = [1] * call.rank(x)
    dims[axis] = -1
    return call.reshape(_counting(call, call.size(x, axis), call.need(number)), *dims)


def _counting(call: Call, size: int, number: str) -> str:
    return call.op("Less", call.range(call.ints(size)), number)


def _numbered(call: Call, mask: str) -> str:
    """For each place of a list, how many places up to it are true, less one."""
    ranks = call.op("CumSum", call.cast(mask, INT32), call.const(np.int64(0)))
    return call.op("Sub", call.cast(ranks, INT64), call.const(np.int64(1)))


def _listed(call: Call, mask: str, bound: int) -> tuple[str, str]:
    """The indices of what is true in a list, the first of them behind them, 0 where there is none, and their number as i64[1]."""
    places = _numbered(call, mask)
    count = call.op("Add", call.slice(places, 0, bound - 1, bound), call.const(np.int64(1)))
    places = call.op("Where", mask, places, call.const(np.int64(bound)))  # the others go to one more place
    zeros = call.const(np.zeros(bound + 1, np.int64))
    found = call.op("ScatterElements", zeros, places, call.range(call.ints(bound)), axis=0)
    found, first = call.slice(found, 0, 0, bound), call.slice(found, 0, 0, 1)
    return call.op("Where", _counting(call, bound, count), found, first), count
