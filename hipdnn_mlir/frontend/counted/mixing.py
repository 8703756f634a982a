"""Operators that mix the rows of a list, in a form that knows how many of them count.

A form returns None for a node that does not mix rows that data counts.
"""

from collections.abc import Callable

import onnx

from ...ops.registry import HIPDNN_DOMAIN
from ..own_operators import INDICES, JOINED, NUMBER, POSITIONS, REPEATED, SCATTERED, VALID
from ..shape_inference import attributes_of
from .sizes import FEW, MANY, MOST, NONE, ONE, PARTS, SIZES, Dim, Times, times
from .writer import Cut, Writer

_FILLS = {"ReduceMax": "least", "ReduceMin": "greatest", "ReduceSum": "zero", "ReduceProd": "one"}
"""Reductions -> what has no part in them."""
_MINIMA = frozenset({"Add", "Min", "ReduceMin"})


def _top_k(write: Writer) -> Cut | None:
    """As many as are wanted, or all where there are fewer."""
    x, attributes = write.node.input[0], attributes_of(write.node)
    axis, rows = write.rows_along(x, attributes.get("axis", -1))
    if rows is None:
        return None
    most = _limit(write, rows, write.node.input[1] if len(write.node.input) > 1 else "")
    if most is None:
        raise write.refused("data decides how many rows there are, and it takes others than all or so many of them")
    kept = write.at_most(rows, most)
    write.sizes.infer(write.node, {axis: kept})
    write.places.add(write.node.output[1])
    whole = [write.fresh(name) for name in write.node.output]
    fill = "least" if attributes.get("largest", 1) else "greatest"
    write.again(write.masked(x, fill, [axis]), outputs=whole, sorted=1)  # rows that count first
    for name, of_all in zip(write.node.output, whole, strict=True):
        write.emit(REPEATED, [of_all, write.number(kept)], [name], HIPDNN_DOMAIN, axis=axis)
    return write.finish(x)


def _limit(write: Writer, rows: Times, name: str, at: int = 0, *, may_exceed: bool = False) -> int | None:
    """The most that a number of rows to be taken is, if it is no other than that or all there are.

    Sums and minima of sizes and constants are that for all numbers of rows if they are at no row, one, few and many.

    Args:
        write: for the node.
        rows: how many there are.
        name: how many are taken.
        at: which of its numbers says that.
        may_exceed: whether more may be taken than there are.
    """
    chain, found = write.sizes.chain(name), write.sizes.numbers(name)
    if found is None or any(number.size <= at for number in found):
        return None
    taken = [number.reshape(-1)[at] for number in found]
    is_least = all(node.op_type in SIZES | PARTS | _MINIMA for node in chain) and write.sizes.lists(chain) <= {
        rows.name
    }
    if not is_least and len({*taken}) > 1:
        return None
    points = (NONE, ONE, FEW, MANY)
    numbers = [int(number) for number in taken]
    most = max(numbers)
    if write.sizes.at(rows, MOST) is None and len({*numbers}) > 1:
        return None
    there = [write.sizes.at(rows, point) or 0 for point in points]
    if most < 0 or any(
        numbers[point] != min(size, most) and not (may_exceed and numbers[point] == most)
        for point, size in zip(points, there, strict=True)
    ):
        return None
    return numbers[MOST]


def _slice(write: Writer) -> Cut | None:
    """The first rows."""
    x, starts, ends, axes, steps = [*write.node.input, "", ""][:5]
    dims = write.sizes.dims_of(x)
    listed = dict(times(dims))
    if dims is None or not listed:
        return None
    along = write.sizes.fixed(axes)
    chosen = [int(axis) % len(dims) for axis in along.reshape(-1)] if along is not None else [*range(len(dims))]
    cut = [at for at, axis in enumerate(chosen) if axis in listed]
    if (axes and along is None) or len(cut) != 1:
        return None
    (at,) = cut
    rows = listed[chosen[at]]
    first, step = (write.sizes.numbers(name) if name else None for name in (starts, steps))
    is_first = first is not None and all(number.reshape(-1)[at] == 0 for number in first)
    is_whole = not steps or (step is not None and all(number.reshape(-1)[at] == 1 for number in step))
    last = write.sizes.numbers(ends)
    if not (is_first and is_whole):
        raise write.refused("data decides how many rows there are, and it takes others than the first of them")
    if last is not None and all(
        number.size > at and number.reshape(-1)[at] >= (write.sizes.at(rows, point) or 0)
        for point, number in enumerate(last)
    ):
        return None
    most = _limit(write, rows, ends, at, may_exceed=True)
    if most is None:
        raise write.refused("data decides how many rows there are, and it takes others than the first of them")
    kept = write.at_most(rows, most)
    write.sizes.infer(write.node, {chosen[at]: kept})
    if x in write.places:
        write.places.add(write.node.output[0])
    write.again()
    return write.finish(x)


def _concat(write: Writer) -> Cut | None:
    """Rows that count, of one list after the other."""
    axis = int(attributes_of(write.node)["axis"])
    parts: list[Dim] = []
    for name in write.node.input:
        dims = write.sizes.dims_of(name)
        parts.append(dims[axis] if dims and -len(dims) <= axis < len(dims) else None)
    if len(parts) == 1 or not any(isinstance(part, Times) for part in parts):
        return None
    if not all(isinstance(part, (int, Times)) for part in parts):
        raise write.refused("data decides how many rows there are, and the sizes of its operands are not known")

    def join() -> tuple[str, ...]:
        sizes = [size for part in parts if (size := write.sizes.at(part, MOST)) is not None]
        rows = write.new_rows(sum(sizes) if len(sizes) == len(parts) else None)
        operands = zip(write.node.input, parts, strict=True)
        valid = [
            write.own(VALID, name, *([write.number(part)] if isinstance(part, Times) else []), axis=axis)
            for name, part in operands
        ]
        mask, at = write.fresh(f"{rows.name}.valid"), write.fresh(f"{rows.name}.places")
        write.emit("Concat", valid, [mask], axis=0)
        write.emit(POSITIONS, [mask], [at, rows.name], HIPDNN_DOMAIN)
        return rows.name, at

    name, at = write.shared(("joined", *parts), join)
    rank = len(write.sizes.dims_of(write.node.input[0]) or ())
    write.sizes.infer(write.node, {axis % rank: Times(name)})
    if write.places.issuperset(write.node.input):
        write.places.add(write.node.output[0])
    whole = write.fresh(write.node.output[0])
    write.again(outputs=[whole])
    write.emit(JOINED, [whole, at], [write.node.output[0]], HIPDNN_DOMAIN, axis=axis)
    return write.finish(*write.node.input)


def _gather(write: Writer) -> Cut | None:
    """Rows that other rows say the places of."""
    data, indices = write.node.input[:2]
    _axis, rows = write.rows_along(data, attributes_of(write.node).get("axis", 0))
    return _looked_up(write, data, indices, rows)


def _gather_nd(write: Writer) -> Cut | None:
    """The same of several dims."""
    data, indices = write.node.input[:2]
    depth = (write.sizes.dims_of(indices) or (0,))[-1]
    listed = [rows for axis, rows in times(write.sizes.dims_of(data)) if isinstance(depth, int) and axis < depth]
    if attributes_of(write.node).get("batch_dims", 0):
        return None
    if listed and indices not in write.places:
        raise write.refused("data decides how many rows there are, and its indices may count from the last of them")
    return _looked_up(write, data, indices, next(iter(listed), None))


def _looked_up(write: Writer, data: str, indices: str, rows: Times | None) -> Cut | None:
    """A lookup among all rows of a list, or with indices that are rows; those of a list without rows may be no indices."""
    of_indices = [dim for _, dim in times(write.sizes.dims_of(indices))]
    if data in write.places:
        write.places.add(write.node.output[0])
    if rows is None and (indices in write.places or len(of_indices) != 1):
        return None
    if not of_indices:
        raise write.refused("data decides how many rows there are, and it takes some at fixed places")
    write.sizes.infer(write.node)
    if indices in write.places:
        write.again()
    else:
        counts = [write.number(dim) for dim in (of_indices[0], *([] if rows is None else [rows]))]
        write.again(data, write.own(INDICES, indices, *counts))
    made = write.finish(data, indices)
    return made if rows is not None else Cut(made.node, made.nodes, None)


def _reduce(write: Writer) -> Cut | None:
    """All rows that count."""
    x, attributes = write.node.input[0], attributes_of(write.node)
    dims = write.sizes.dims_of(x)
    axes = attributes.get("axes")
    if len(write.node.input) > 1 and write.node.input[1]:
        known = write.sizes.fixed(write.node.input[1])
        if known is None:
            return None
        axes = known.reshape(-1).tolist()
    if not axes and attributes.get("noop_with_empty_axes", 0):
        return None
    reduced = [int(axis) % len(dims) for axis in axes or range(len(dims))] if dims else []
    if not any(axis in reduced for axis, _ in times(dims)):
        return None
    write.sizes.infer(write.node)
    write.again(write.masked(x, _FILLS[write.node.op_type], reduced))
    return write.finish(x)


def _scatter(write: Writer) -> Cut | None:
    """Rows put into the places that other rows say."""
    data, indices, updates = write.node.input[:3]
    axis, rows = write.rows_along(indices, attributes_of(write.node).get("axis", 0))
    if rows is None:
        return None
    if indices not in write.places:
        raise write.refused("its indices may count from the last row, and data decides how many there are")
    write.sizes.infer(write.node)
    reduction = attributes_of(write.node).get("reduction", "none")
    if reduction == "none" and write.sizes.dims_of(indices) == write.sizes.dims_of(updates):
        indices = _per_row(write, indices, axis)
    given = [data, indices, updates, write.number(rows)]
    write.emit(SCATTERED, given, list(write.node.output), HIPDNN_DOMAIN, axis=axis, reduction=reduction)
    return write.finish(data, indices, updates)


def _per_row(write: Writer, indices: str, axis: int) -> str:
    """Indices with ones in the place of dims along which an Expand repeats them; whole rows then move."""
    maker, dims = write.sizes.maker(indices), write.sizes.dims_of(indices) or ()
    if maker is None or maker.op_type != "Expand":
        return indices
    rows = tuple(dim if at == axis else 1 for at, dim in enumerate(dims))
    return maker.input[0] if write.sizes.dims_of(maker.input[0]) == rows else indices


MIXING: dict[str, Callable[[Writer], Cut | None]] = {
    "TopK": _top_k,
    "Slice": _slice,
    "Concat": _concat,
    "Gather": _gather,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter,
    **dict.fromkeys(_FILLS, _reduce),
}
VIEWS = frozenset(
    {
        "Cast",
        "Concat",
        "Expand",
        "Flatten",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Transpose",
        "Unsqueeze",
    }
)
"""Operators whose results have elements of their first operand alone."""


def keep_places(write: Writer, node: onnx.NodeProto) -> None:
    """Note that what shows places in another form has places, too."""
    if node.op_type in VIEWS and write.places.issuperset(
        node.input[: len(node.input) if node.op_type == "Concat" else 1]
    ):
        write.places.update(node.output)


def empty_where(write: Writer, value: str, result: str, other: Times) -> Cut:
    """A list that has no rows where another has none, as the result of an If that asks for it."""
    dims = write.sizes.dims_of(value) or ()
    ((axis, rows),) = times(dims)
    made = write.new_rows(write.sizes.at(rows, MOST))
    write.emit(NUMBER, [write.number(rows), write.number(other)], [made.name], HIPDNN_DOMAIN)
    write.emit("Identity", [value], [result])
    kept = tuple(made if at == axis else dim for at, dim in enumerate(dims))
    write.sizes.tell(result, kept, write.sizes.kind_of(value))
    if value in write.places:
        write.places.add(result)
    return write.finish(value)
