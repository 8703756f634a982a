"""Which part of a dynamic dimension a Slice, Range, Pad and the like takes or adds: what sample sizes show of it, and where that holds."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import onnx

from hipdnn_mlir_runtime.errors import DynamicDimensionError

from ...dynamic.facts import Assumption, Computed, Fact, Values
from ...ops.evaluate import Array
from ...ops.strides import Dims

PAD_AXES = 3
"""Which operand of Pad names axes."""
FAR = 2**31 - 1
"""From this number on a bound of a slice means the end, however long the dim."""
_NEAR = 200
"""The last elements up to this number are taken of longer dims; of a longer window, as decoders have, dims are as long at most."""


@dataclass(frozen=True)
class Sampled:
    """The values of a model at each sample point.

    Attributes:
        dims: per point: value -> its dims, where they are known.
        arrays: a value's elements per point; None where they are not known.
    """

    dims: Sequence[Mapping[str, Dims]]
    arrays: Callable[[str], Sequence[Array] | None]

    def columns(self, name: str) -> list[Values] | None:
        """Per element of a value the whole numbers at the points; None where these are not known."""
        arrays = self.arrays(name)
        if arrays is None or not all(is_whole(array) and array.size == arrays[0].size for array in arrays):
            return None
        return list(zip(*(map(int, array.reshape(-1).tolist()) for array in arrays), strict=True))

    def size(self, name: str, axis: int) -> Values | None:
        """A dim of a value at the points."""
        arrays = self.arrays(name)
        shapes = [known.get(name) for known in self.dims] if arrays is None else [array.shape for array in arrays]
        if any(shape is None or not -len(shape) <= axis < len(shape) for shape in shapes):
            return None
        return tuple(shape[axis] for shape in shapes if shape is not None)


def is_whole(array: Array) -> bool:
    """Whether elements are whole numbers, whatever their type: exporters make floats of sizes, and ranges of these."""
    return array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool((array % 1 == 0).all()))


def cut_facts(node: onnx.NodeProto, at: Sampled) -> list[Fact]:
    """What has to be true of sizes for a node to take, add or leave what it does at the sample points; none of most nodes.

    Args:
        node: the node.
        at: the model's values.

    Raises:
        DynamicDimensionError: the sample points do not tell what is taken of other sizes; `beyond` says which sizes might.
    """
    rule = _RULES.get(node.op_type)
    facts: list[Fact] = [] if rule is None else [*rule(node, at)]
    for span in _spans(node, at):
        facts += [*span.facts, *_in_order(span)]
    return facts


def cut_counts(node: onnx.NodeProto, at: Sampled) -> list[Computed]:
    """How many elements are between the ends of a Slice or Range that takes every second one or fewer.

    Args:
        node: the node.
        at: the model's values.

    Raises:
        DynamicDimensionError: as for `cut_facts`.
    """
    return [
        Computed("ceildiv", span.distance, (span.stride,) * len(span.distance), node.name)
        for span in _spans(node, at)
        if span.stride > 1 and len(set(span.distance)) > 1 and min(span.distance) >= 0
    ]


@dataclass(frozen=True)
class _Span:
    """Positions along an axis at the sample points: from `low` to before `high`, or the same backwards, each `stride`-th of them.

    Attributes:
        named: the numbers that the node gives, added up.
        facts: what the positions follow from.
        is_moved: whether one of them is the border of a dim that a bound lies outside of.
    """

    low: Values
    high: Values
    stride: int
    node: onnx.NodeProto
    named: int
    facts: tuple[Assumption, ...] = ()
    is_moved: bool = False

    @property
    def distance(self) -> Values:
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))


def untold(node: onnx.NodeProto, reason: str, beyond: int = 0) -> DynamicDimensionError:
    """The error of a node of which the sample points do not tell what it does at other sizes."""
    error = DynamicDimensionError(f"{node.op_type} {reason}", where=node.name)
    error.beyond = beyond
    return error


def _in_order(span: _Span) -> list[Assumption]:
    """That the first position is not behind the last."""
    distance, node = span.distance, span.node
    if max(distance) <= 0:
        if len(set(distance)) > 1 or span.is_moved:
            raise untold(node, "takes nothing at any sample size", span.named)
        return []
    if min(distance) < 0:
        raise untold(node, "takes something at some sample sizes only", span.named)
    counts = {-(-length // span.stride) for length in distance}
    if span.stride > 1 and len(set(distance)) > 1 and len(counts) == 1:
        raise untold(node, "takes as much at every sample size", max(span.named, 2 * span.stride))
    return [Assumption("<=", span.low, span.high, node.name)]


def _spans(node: onnx.NodeProto, at: Sampled) -> Iterator[_Span]:
    """What a Slice or Range takes that differs with sizes."""
    if node.op_type == "Range":
        yield from _counted(node, at)
    elif node.op_type == "Slice":
        for axis, start, end, step in _cuts(node, at):
            size = at.size(node.input[0], axis)
            if size is not None and max(map(len, map(set, (size, start, end)))) > 1:
                yield from _cut(node, size, start, end, step)


def _counted(node: onnx.NodeProto, at: Sampled) -> Iterator[_Span]:
    columns = [at.columns(name) for name in node.input]
    if any(column is None or len(column) != 1 for column in columns):
        is_known = all(at.arrays(name) is not None for name in node.input)
        if is_known and any(column and len(set(column[0])) > 1 for column in columns):
            raise untold(node, "counts to a dynamic dimension from a number, or in steps, that are not whole")
        return
    start, limit, delta = (column[0] for column in columns if column)
    if len(set(start)) == len(set(limit)) == len(set(delta)) == 1:
        return
    if len(set(delta)) > 1 or delta[0] == 0:
        raise untold(node, "has a step that is a dynamic dimension")
    low, high = (start, limit) if delta[0] > 0 else (limit, start)
    yield _Span(low, high, abs(delta[0]), node, sum(map(abs, _numbers(start, limit))))


def _cuts(node: onnx.NodeProto, at: Sampled) -> list[tuple[int, Values, Values, int]]:
    """A Slice axis by axis: axis, start, end, step; empty where an operand is not known."""
    names = dict(zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False))
    known = {role: at.columns(name) for role, name in names.items() if name}
    rows = {role: columns for role, columns in known.items() if columns is not None}
    if len(rows) < len(known) or "starts" not in rows:
        return []
    points = len(at.dims)
    axes = rows.get("axes", [(axis,) * points for axis in range(len(rows["starts"]))])
    steps = rows.get("steps", [(1,) * points] * len(axes))
    if any(len(set(values)) > 1 for values in (*axes, *steps)):
        raise untold(node, "has a step or an axis that is a dynamic dimension")
    return [
        (axis[0], start, end, step[0])
        for axis, start, end, step in zip(axes, rows["starts"], rows["ends"], steps, strict=True)
    ]


def _cut(node: onnx.NodeProto, size: Values, start: Values, end: Values, step: int) -> Iterator[_Span]:
    """What a Slice takes of one axis: ONNX moves bounds outside of the dim to its border."""
    named = sum(abs(number) for number in _numbers(start, end) if abs(number) < FAR)
    first, second = (start, end) if step > 0 else (end, start)
    gaps = {b - a for a, b in zip(first, second, strict=True)}
    if len(gaps) == 1 and max(gaps) <= 0 and (min(*first, *second) >= 0 or max(*first, *second) < 0):
        return  # nothing, of any size
    place = _Place(node, size, step > 0, named)
    bounds = place.of(start, is_end=False), place.of(end, is_end=True)
    low, high = (bound.at for bound in bounds)
    if step < 0:
        low, high = (tuple(number + 1 for number in bound.at) for bound in reversed(bounds))
    facts = tuple(fact for bound in bounds for fact in bound.facts)
    yield _Span(low, high, abs(step), node, named, facts, any(bound.is_moved for bound in bounds))


class _Bound(NamedTuple):
    """Where a bound of a Slice lies at the sample points, and for which reason."""

    at: Values
    facts: Sequence[Assumption] = ()
    is_moved: bool = False


@dataclass(frozen=True)
class _Place:
    """A dim that a Slice takes a part of."""

    node: onnx.NodeProto
    size: Values
    is_forward: bool
    named: int

    def of(self, bound: Values, *, is_end: bool) -> _Bound:
        """A bound's position."""
        if min(bound) >= FAR:
            return _Bound(self._border)
        if max(bound) <= -FAR:
            return _Bound(self._start)
        found = None
        if min(bound) >= 0:
            found = self._from_the_start(bound)
        elif max(bound) < 0:
            found = self._from_the_end(bound, is_end=is_end)
        if found is None:
            raise untold(self.node, "has a bound that lies elsewhere at some sample sizes than at others", self.named)
        return found

    @property
    def _border(self) -> Values:
        return tuple(number if self.is_forward else number - 1 for number in self.size)

    @property
    def _start(self) -> Values:
        return (0 if self.is_forward else -1,) * len(self.size)

    def _from_the_start(self, bound: Values) -> _Bound | None:
        size, name = self.size, self.node.name
        sign = [Assumption("<=", (0,) * len(size), bound, name)] if len(set(bound)) > 1 else []
        if max(bound) == 0 and self.is_forward:
            return _Bound(bound, sign)
        if all(b <= s for b, s in zip(bound, self._border, strict=True)):
            return _Bound(bound, [*sign, Assumption("<=" if self.is_forward else "<", bound, size, name)])
        if all(b >= s for b, s in zip(bound, size, strict=True)):
            return _Bound(self._border, [*sign, Assumption("<=", size, bound, name)], is_moved=True)
        return None

    def _from_the_end(self, bound: Values, *, is_end: bool) -> _Bound | None:
        size, name = self.size, self.node.name
        sign = [Assumption("<", bound, (0,) * len(size), name)] if len(set(bound)) > 1 else []
        back = tuple(-b for b in bound)
        below = {s - b for s, b in zip(size, bound, strict=True)}
        if sign and len(below) == 1:
            raise untold(self.node, "counts from a size that is too small at every sample", *below)
        position = tuple(s - b for s, b in zip(size, back, strict=True))
        if min(position) >= 0:
            return _Bound(position, [*sign, Assumption("<=", back, size, name)])
        if max(position) > (0 if self.is_forward else -1) or not (is_end or self.is_forward):
            return None
        if not is_end and len(set(back)) == 1 and back[0] <= _NEAR:
            return None
        relation = "<=" if self.is_forward else "<"
        return _Bound(self._start, [*sign, Assumption(relation, size, back, name)], is_moved=True)


def _grown(node: onnx.NodeProto, at: Sampled) -> Iterator[Fact]:
    """That a Pad does not cut where it adds, nor adds where it cuts, nor cuts more than there is."""
    columns = (at.columns(node.input[1]) if len(node.input) > 1 else None) or []
    zero = (0,) * len(at.dims)
    for values in columns:
        if min(values) < 0 < max(values):
            raise untold(node, "adds at some sample sizes and cuts at others")
        if len(set(values)) > 1:
            yield Assumption("<=", *((zero, values) if min(values) >= 0 else (values, zero)), node.name)
    given = at.columns(node.input[PAD_AXES]) if len(node.input) > PAD_AXES else None
    count = len(columns) // 2
    for axis in range(count):
        cut = tuple(-min(a, 0) - min(b, 0) for a, b in zip(columns[axis], columns[axis + count], strict=True))
        size = at.size(node.input[0], given[axis][0] if given else axis)
        if max(cut) > 0 and size is not None and len({*zip(cut, size, strict=True)}) > 1:
            yield Assumption("<=", cut, size, node.name)


def _resized(node: onnx.NodeProto, at: Sampled) -> Iterator[Fact]:
    """Nothing, of a Resize whose result changes with its operand."""
    scales = at.arrays(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    for axis, scale in enumerate(scales[0].reshape(-1).tolist() if scales else ()):
        read, made = at.size(node.input[0], axis), at.size(node.output[0], axis)
        if read and made and len(set(read)) > 1 and len(set(made)) == 1:
            raise untold(node, "makes the same of every sample size", math.ceil(3 / scale))
    yield from ()


def _split(node: onnx.NodeProto, at: Sampled) -> Iterator[Fact]:
    """The size of a Split's parts, where it is given how many."""
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    size, parts = at.size(node.input[0], attributes.get("axis", 0)), attributes.get("num_outputs", 1)
    if size is not None and len(set(size)) > 1:
        yield Computed("ceildiv", size, (parts,) * len(size), node.name)


_RULES: Mapping[str, Callable[[onnx.NodeProto, Sampled], Iterator[Fact]]] = {
    "Pad": _grown,
    "Resize": _resized,
    "Split": _split,
}


def _numbers(*bounds: Values) -> Iterator[int]:
    """The bounds that are the same at all sample points."""
    return chain.from_iterable({*bound} for bound in bounds if len(set(bound)) == 1)
