"""Follows what depends on the length of a past through a model: what has to be written otherwise for caches that are buffers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.strides import Dims
from .shape_inference import attributes_of, static_dims
from .subgraphs import reads

ROWS_AXIS = 2
"""The axis of a cache [batch, heads, rows, features] that grows."""
_ELEMENTWISE = frozenset(
    {"Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Equal", "Erf", "Exp", "Floor", "Greater", "GreaterOrEqual", "Identity",
     "IsNaN", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid",
     "Sign", "Sin", "Sqrt", "Sub", "Tanh", "Where", "Xor"}
)  # fmt: skip
_MOVEMENTS = frozenset({"Concat", "Expand", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
_MOVES_FIRST = (_MOVEMENTS - {"Concat"}) | {"Tile"}
"""Movements of their first operand alone."""
_SIZES = {"Expand": (1,), "Reshape": (1,), "ConstantOfShape": (0,)}
"""Operands that are sizes: those of the buffers are right."""
_KEEP_ZEROS = frozenset({"Cast", "Identity", "Reshape", "Expand", "Unsqueeze", "Squeeze"})
_LOOKUPS = ("Gather", "GatherND")


class NotBufferedError(Exception):
    """A model does more with a growing cache than is known here; the text says what."""


@dataclass
class Edits:
    """What becomes of a model's nodes.

    Attributes:
        caches: nodes that join a past with what is new.
        maxima: nodes that look for the largest element among keys, as softmax does: those that are not valid are hidden from them.
        numbers: nodes and operands that are numbers to compute with, with the length of the past in them.
        ranges: nodes that count from the length of the past on.
    """

    caches: list[int] = field(default_factory=list)
    maxima: list[int] = field(default_factory=list)
    numbers: set[tuple[int, int]] = field(default_factory=set)
    ranges: list[int] = field(default_factory=list)


def edits_of(model: onnx.ModelProto, longer: onnx.ModelProto, caches: Mapping[str, str]) -> Edits:
    """What becomes of a model's nodes where its caches are buffers.

    Args:
        model: with static dims, constants folded.
        longer: the same with a longer past.
        caches: input -> output.

    Raises:
        NotBufferedError: a node does more with its caches than is known here.
    """
    return _Follower(model, longer, caches).run()


class _Follower:
    """One pass over the nodes of a model and of the one with a longer past, which are alike."""

    def __init__(self, model: onnx.ModelProto, longer: onnx.ModelProto, caches: Mapping[str, str]) -> None:
        self._nodes = list(zip(model.graph.node, longer.graph.node, strict=False))
        if [node.op_type for node in model.graph.node] != [node.op_type for node in longer.graph.node]:
            raise NotBufferedError("other nodes are left for another past")
        self._outputs = [value.name for value in model.graph.output]
        self._dims = [known_dims(model), known_dims(longer)]
        self._constants = [{t.name: numpy_helper.to_array(t) for t in m.graph.initializer} for m in (model, longer)]
        self._caches = caches
        self._pasts = {name: name for name in caches}
        """Values that are a past, and which."""
        (self._by,) = {self._delta(name, ROWS_AXIS) for name in caches}
        self._flat: dict[str, str] = {}
        """Values whose dims hide which elements are valid, and the value whose elements they have in the same order."""
        self._zeroed: set[str] = set()
        """Values that are 0 along their last axis behind what is valid."""
        self._cached: set[str] = set()
        """Values that a cache is in."""
        self._edits = Edits()

    def run(self) -> Edits:
        for index, (node, other) in enumerate(self._nodes):
            if any(name not in dims for dims in self._dims for name in filter(None, node.output)):
                raise NotBufferedError(f"the sizes of what {node.op_type} {node.name!r} gives are not known")
            if node.op_type in ("Concat", "Identity") and len(node.input) == 1 and node.input[0] in self._pasts:
                self._pasts[node.output[0]] = self._pasts[node.input[0]]
                continue
            if any(self._grown(name) or self._is_number(name, name) for name in {*reads(node)} - {*node.input}):
                raise _unknown(node)
            numbers = [at for at in range(len(node.input)) if self._is_number(node.input[at], other.input[at])]
            grown = [at for at, name in enumerate(node.input) if self._grown(name)]
            if numbers:
                self._take_numbers(index, node, numbers)
            if grown:
                self._take_grown(index, node, grown)
            if self._cached.intersection(node.input) and any(map(self._grown, node.output)):
                self._cached.update(node.output)
            self._check_results(node)
        made = {self._nodes[index][0].output[0] for index in self._edits.caches}
        if made != set(self._caches.values()):
            raise NotBufferedError("not every cache is joined with what is new")
        for name in self._outputs:
            if self._grown(name) and name not in made:
                raise NotBufferedError(f"the output {name!r} is as long as the caches")
        return self._edits

    def _delta(self, name: str, axis: int) -> int:
        return self._dims[1][name][axis] - self._dims[0][name][axis]

    def _grown(self, name: str) -> list[int]:
        """The axes of a value that are longer for a longer past."""
        before, after = (dims.get(name, ()) for dims in self._dims)
        return [axis for axis, (a, b) in enumerate(zip(before, after, strict=False)) if a != b]

    def _is_number(self, name: str, other: str) -> bool:
        """Whether an operand is a constant of one shape that another past changes."""
        a, b = self._constants[0].get(name), self._constants[1].get(other)
        return a is not None and b is not None and a.shape == b.shape and not np.array_equal(a, b)

    def _take_numbers(self, index: int, node: onnx.NodeProto, numbers: Sequence[int]) -> None:
        sizes = _SIZES.get(node.op_type, ())
        if node.op_type == "Range":
            if numbers == [1]:
                return  # as many as there are rows
            if numbers != [0, 1] or not all(self._has_length(node.input[at]) for at in numbers):
                raise _unknown(node)
            self._edits.ranges.append(index)
            return
        if node.op_type == "Slice":
            self._check_slice(node, numbers)
            return
        for at in numbers:
            if at in sizes:
                continue
            is_moved = node.op_type in _MOVES_FIRST and at == 0
            if node.op_type not in _ELEMENTWISE and not is_moved and not (node.op_type in _LOOKUPS and at == 1):
                raise _unknown(node)
            if not self._has_length(node.input[at]):
                raise _unknown(node)
            self._edits.numbers.add((index, at))

    def _check_slice(self, node: onnx.NodeProto, numbers: Sequence[int]) -> None:
        """Slices of the first elements, as many as there are rows: of a mask, where that is all of it, or of a table."""
        (starts, ends), steps = (self._constants[0].get(name) for name in node.input[1:3]), node.input[4:5]
        is_from_first = starts is not None and not starts.any() and ends is not None and ends.size == 1
        is_dense = not steps or bool((self._constants[0].get(steps[0], np.zeros(1)) == 1).all())
        grown = self._grown(node.input[0])
        is_whole = self._dims[0][node.input[0]] == self._dims[0][node.output[0]]
        if numbers != [2] or not is_from_first or not is_dense or (grown and not is_whole):
            raise _unknown(node)

    def _has_length(self, name: str) -> bool:
        """Whether the elements of a constant are the length of the past and something that does not depend on it."""
        before, after = (constants[name] for constants in self._constants)
        return before.dtype.kind in "iu" and bool((after.astype(np.int64) - before.astype(np.int64) == self._by).all())

    def _take_grown(self, index: int, node: onnx.NodeProto, grown: Sequence[int]) -> None:
        if any(operand in self._pasts for operand in node.input):
            self._take_cache(index, node)
        elif any(operand in self._flat for operand in node.input) and node.op_type not in _MOVEMENTS:
            raise _unknown(node)
        elif node.op_type in ("ArgMax", "Softmax"):
            self._take_maximum(index, node)
        elif node.op_type == "Where" and self._is_guard(node):
            self._zeroed.add(node.output[0])
        elif node.op_type not in _ELEMENTWISE | _MOVEMENTS and not self._keeps_places(node, grown):
            raise _unknown(node)
        elif node.op_type == "Concat":
            self._check_join(node)
        if node.op_type in _KEEP_ZEROS and node.input[0] in self._zeroed:
            self._zeroed.add(node.output[0])

    def _keeps_places(self, node: onnx.NodeProto, grown: Sequence[int]) -> bool:
        """Whether an operator that is neither elementwise nor moves its operand leaves valid elements where they are."""
        first = self._grown(node.input[0])
        rank = len(self._dims[0][node.input[0]])
        match node.op_type:
            case "MatMul":  # along what grows it needs zeros on one side: that of the softmax
                return rank - 1 not in first or node.input[0] in self._zeroed
            case "Gather" | "GatherND":
                return grown == [1]
            case "Slice":
                return grown == [0] and self._keeps_grown(node)
            case "Tile":
                repeats = self._constants[0].get(node.input[1])
                return grown == [0] and repeats is not None and all(repeats[axis] == 1 for axis in first)
            case "Trilu":
                return grown == [0] and rank - 2 not in first
        return False

    def _check_join(self, node: onnx.NodeProto) -> None:
        axis = attributes_of(node)["axis"] % len(self._dims[0][node.output[0]])
        if any(axis in self._grown(operand) for operand in node.input):
            raise _unknown(node)

    def _take_cache(self, index: int, node: onnx.NodeProto) -> None:
        past = self._pasts.get(node.input[0])
        is_join = node.op_type == "Concat" and len(node.input) == 2 and past is not None
        if not is_join or self._caches[past or ""] != node.output[0] or self._grown(node.input[1]):
            raise _unknown(node)
        self._edits.caches.append(index)
        self._cached.add(node.output[0])

    def _take_maximum(self, index: int, node: onnx.NodeProto) -> None:
        is_softmax = node.op_type == "Softmax"
        rank = len(self._dims[0][node.input[0]])
        axis = attributes_of(node).get("axis", -1 if is_softmax else 0) % rank
        if self._grown(node.input[0]) != [axis]:
            if axis in self._grown(node.input[0]):
                raise _unknown(node)
            return
        if axis != rank - 1 or is_softmax != (node.input[0] in self._cached):
            raise _unknown(node)
        self._edits.maxima.append(index)
        if is_softmax:
            self._zeroed.add(node.output[0])

    def _keeps_grown(self, node: onnx.NodeProto) -> bool:
        """Whether a slice leaves the axes that grow whole."""
        before, after = (self._dims[0][name] for name in (node.input[0], node.output[0]))
        axes = self._grown(node.input[0])
        steps = self._constants[0].get(node.input[4]) if len(node.input) > 4 else np.ones(1)
        return steps is not None and bool((steps > 0).all()) and all(before[axis] == after[axis] for axis in axes)

    def _is_guard(self, node: onnx.NodeProto) -> bool:
        """Whether a where puts 0 for NaN in weights."""
        weights, zero = node.input[2], self._constants[0].get(node.input[1])
        makers = [other for other, _ in self._nodes if other.output[0] == node.input[0]]
        is_zero = zero is not None and zero.size == 1 and not zero.any()
        return (
            weights in self._zeroed
            and is_zero
            and [m.op_type for m in makers] == ["IsNaN"]
            and makers[0].input[0] == weights
        )

    def _check_results(self, node: onnx.NodeProto) -> None:
        """Results grow by as much as the past does, along axes of their own; a reshape may hide that for a while."""
        for name in node.output:
            axes = self._grown(name)
            if node.op_type in ("Reshape", "Flatten") and (axes or node.input[0] in self._flat):
                origin = self._flat.get(node.input[0], node.input[0])
                if not self._keeps_rows(origin, name):
                    self._flat[name] = origin
            elif (axes and node.input and node.input[0] in self._flat) or any(
                self._delta(name, axis) != self._by for axis in axes
            ):
                raise _unknown(node)

    def _keeps_rows(self, before: str, after: str) -> bool:
        """Whether a reshape leaves the axis that grows as it is, with as many elements in front of it."""
        old, new = self._grown(before), self._grown(after)
        if not old:  # a past of which only the sizes are read
            return True
        if len(old) != 1 or len(new) != 1:
            return False
        (i,), (j,) = old, new
        x, y = self._dims[0][before], self._dims[0][after]
        return x[i] == y[j] and prod(x[:i]) == prod(y[:j]) and self._delta(after, j) == self._by


def _unknown(node: onnx.NodeProto) -> NotBufferedError:
    return NotBufferedError(f"{node.op_type} {node.name!r} does something with their length that is not known")


def known_dims(model: onnx.ModelProto) -> dict[str, Dims]:
    """The dims of a model's values."""
    graph = model.graph
    found = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info, *graph.output)}
    known = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return known | {name: dims for name, dims in found.items() if dims is not None}
