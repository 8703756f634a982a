"""Operators that fill a bound and count their rows, written as cumulative sums and scatters."""

import math
from collections.abc import Sequence

import numpy as np

from ...ops.families.detection import SUPPRESS
from ...ops.registry import HIPDNN_DOMAIN
from ..shape_inference import CHOSEN, DISTINCT, POSITIONS, SELECTED
from .call import BOOL, INT32, INT64, Call
from .registry import decomposes


@decomposes(POSITIONS, domain=HIPDNN_DOMAIN)
def positions(call: Call) -> Sequence[str | None]:
    """NonZero: as many columns as there are elements; those behind the number of them are of the first element.

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
    """Compress: as many slices as there are conditions; those behind the number of selected ones are the first slice.

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
    """NonMaxSuppression: as many rows as there can be boxes; those behind the number of them are of the first batch, class and box.

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


def _numbered(call: Call, mask: str) -> str:
    """For each place of a list, how many places up to it are true, less one."""
    ranks = call.op("CumSum", call.cast(mask, INT32), call.const(np.int64(0)))
    return call.op("Sub", call.cast(ranks, INT64), call.const(np.int64(1)))


def _listed(call: Call, mask: str, bound: int) -> tuple[str, str]:
    """The indices of what is true in a list, zeros behind them, and their number as i64[1]."""
    places = _numbered(call, mask)
    count = call.op("Add", call.slice(places, 0, bound - 1, bound), call.const(np.int64(1)))
    places = call.op("Where", mask, places, call.const(np.int64(bound)))  # the others go to one more place
    zeros = call.const(np.zeros(bound + 1, np.int64))
    found = call.op("ScatterElements", zeros, places, call.range(call.ints(bound)), axis=0)
    return call.slice(found, 0, 0, bound), count
