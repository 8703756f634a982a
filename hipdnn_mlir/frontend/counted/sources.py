"""Operators whose data decides how many rows they have, in a form that fills a bound."""

import math
from collections.abc import Callable, Sequence

import onnx
from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ..own_operators import CHOSEN, DISTINCT, POSITIONS, SELECTED
from ..shape_inference import attributes_of
from .sizes import MOST, Dim, Times, times
from .writer import Cut, Writer

MAX_BOXES = 1 << 16
"""How many boxes of a class are chosen where the number of boxes is not known."""
_RANK_OF_SCORES, _UNIQUE_RESULTS, _INVERSE = 3, 4, 2


def is_source(node: onnx.NodeProto) -> bool:
    """Whether a node has such an operator; Unique along an axis, which compares slices, is not known here."""
    if node.domain or node.op_type not in OPERATORS:
        return False
    return node.op_type != "Unique" or "axis" not in attributes_of(node)


def _positions(write: Writer) -> Cut:
    x, result = write.node.input[0], write.node.output[0]
    dims = _known(write, x)
    rows = _rows(write, dims)
    write.sizes.tell(result, (len(dims), rows), TensorProto.INT64)
    write.places.add(result)
    write.emit(POSITIONS, [write.masked(x, "zero")], [result, rows.name], HIPDNN_DOMAIN)
    return write.finish(x)


def _selected(write: Writer) -> Cut:
    (x, condition), (result,) = write.node.input, write.node.output
    dims, of_condition, attributes = write.sizes.dims_of(x), _known(write, condition), attributes_of(write.node)
    rows = _rows(write, of_condition)
    axis = attributes.get("axis")
    made: list[Dim] | None = [rows]
    if axis is not None:
        made = None if dims is None else [rows if at == axis % len(dims) else dim for at, dim in enumerate(dims)]
    along = [dim for at, dim in times(dims) if axis is None or dims is None or at == axis % len(dims)]
    if along and not times(of_condition):
        raise write.refused("it has a fixed number of conditions, and data decides how many rows it chooses from")
    write.sizes.tell(result, None if made is None else tuple(made), write.sizes.kind_of(x))
    write.emit(SELECTED, [x, write.masked(condition, "zero")], [result, rows.name], HIPDNN_DOMAIN, **attributes)
    return write.finish(x, condition)


def _distinct(write: Writer) -> Cut:
    x, results = write.node.input[0], list(write.node.output)
    dims = _known(write, x)
    if times(dims):
        raise write.refused("data decides how many elements it compares")
    rows = _rows(write, dims)
    for index, name in enumerate(results):
        if name:
            kind = TensorProto.INT64 if index else write.sizes.kind_of(x)
            write.sizes.tell(name, (_most(write, dims) if index == _INVERSE else rows,), kind)
    results += [""] * (_UNIQUE_RESULTS - len(results))
    write.emit(DISTINCT, [x], [*results, rows.name], HIPDNN_DOMAIN, **attributes_of(write.node))
    return write.finish(x)


def _chosen(write: Writer) -> Cut:
    boxes, scores, *options = write.node.input
    dims = _known(write, scores)
    if len(dims) != _RANK_OF_SCORES:
        raise write.refused("its scores do not have three dims")
    stated = write.sizes.fixed(options[0]) if options and options[0] else None
    most = int(stated.reshape(-1)[0]) if stated is not None and stated.size else 0
    of_class = write.sizes.at(dims[2], MOST)
    most = min(most, of_class) if of_class is not None else most * (most <= MAX_BOXES)
    if most < 1:
        raise write.refused("how many boxes of a class there can be at most is not known")
    rows = _rows(write, [*dims[:2], most])
    write.sizes.tell(write.node.output[0], (rows, 3), TensorProto.INT64)
    write.places.add(write.node.output[0])
    given = [boxes, write.masked(scores, "least"), *options]
    results = [write.node.output[0], rows.name]
    write.emit(CHOSEN, given, results, HIPDNN_DOMAIN, most=most, **attributes_of(write.node))
    return write.finish(boxes, scores, *options[1:])


def _known(write: Writer, name: str) -> Sequence[Dim]:
    dims = write.sizes.dims_of(name)
    if dims is None:
        raise write.refused(f"the rank of {name!r} is not known")
    return dims


def _most(write: Writer, dims: Sequence[Dim]) -> int | None:
    """How many elements dims have at most, where that is known."""
    sizes = [size for dim in dims if (size := write.sizes.at(dim, MOST)) is not None]
    return math.prod(sizes) if len(sizes) == len(dims) else None


def _rows(write: Writer, dims: Sequence[Dim]) -> Times:
    """A list of as many rows as dims have elements, or fewer."""
    most = _most(write, dims)
    if most == 0:
        raise write.refused("there can be no rows")
    return write.new_rows(most)


OPERATORS: dict[str, Callable[[Writer], Cut]] = {
    "NonZero": _positions,
    "Compress": _selected,
    "NonMaxSuppression": _chosen,
    "Unique": _distinct,
}
