"""Follows what depends on the length of a past through a model, and writes the model that has it as data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..ops.evaluate import Array
from ..ops.registry import HIPDNN_DOMAIN
from ..ops.strides import Dims
from .shape_inference import attributes_of, infer_shapes, static_dims

ROWS_AXIS = 2
"""The axis of a cache [batch, heads, rows, features] that grows."""
_ELEMENTWISE = frozenset(
    {"Abs", "Add", "And", "Cast", "Clip", "Div", "Equal", "Exp", "Greater", "GreaterOrEqual", "Identity", "IsNaN", "Less", "LessOrEqual",
     "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Relu", "Sigmoid", "Sign", "Sqrt", "Sub", "Tanh", "Where", "Xor"}
)  # fmt: skip
_MOVEMENTS = frozenset({"Concat", "Expand", "Flatten", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
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
        softmaxes: nodes that go over keys: those that are not valid are hidden from them.
        numbers: node and operand -> how often the length of the past is in it, where it is a number to compute with.
        ranges: nodes that count from the length of the past on.
    """

    caches: list[int] = field(default_factory=list)
    softmaxes: list[int] = field(default_factory=list)
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
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
        self._dims = [_dims(model), _dims(longer)]
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
            if node.op_type in ("Concat", "Identity") and len(node.input) == 1 and node.input[0] in self._pasts:
                self._pasts[node.output[0]] = self._pasts[node.input[0]]
                continue
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
            if numbers != [0, 1] or {self._factor(node.input[at], node) for at in numbers} != {1}:
                raise _unknown(node)
            self._edits.ranges.append(index)
            return
        if node.op_type == "Slice":
            self._check_slice(node, numbers)
            return
        for at in numbers:
            if at in sizes:
                continue
            if node.op_type not in _ELEMENTWISE and not (node.op_type in _LOOKUPS and at == 1):
                raise _unknown(node)
            self._edits.numbers[index, at] = self._factor(node.input[at], node)

    def _check_slice(self, node: onnx.NodeProto, numbers: Sequence[int]) -> None:
        """Slices of the first elements, as many as there are rows: of a mask, where that is all of it, or of a table."""
        (starts, ends), steps = (self._constants[0].get(name) for name in node.input[1:3]), node.input[4:5]
        is_from_first = starts is not None and not starts.any() and ends is not None and ends.size == 1
        is_dense = not steps or bool((self._constants[0].get(steps[0], np.zeros(1)) == 1).all())
        grown = self._grown(node.input[0])
        is_whole = self._dims[0][node.input[0]] == self._dims[0][node.output[0]]
        if numbers != [2] or not is_from_first or not is_dense or (grown and not is_whole):
            raise _unknown(node)

    def _factor(self, name: str, node: onnx.NodeProto) -> int:
        """How often the length of the past is in the elements of a constant."""
        difference = np.unique(self._constants[1][name].astype(np.int64) - self._constants[0][name].astype(np.int64))
        if self._constants[0][name].dtype.kind not in "iu" or difference.size != 1 or difference[0] % self._by:
            raise _unknown(node)
        return int(difference[0]) // self._by

    def _take_grown(self, index: int, node: onnx.NodeProto, grown: Sequence[int]) -> None:
        name = node.op_type
        if any(operand in self._pasts for operand in node.input):
            self._take_cache(index, node)
        elif any(operand in self._flat for operand in node.input) and name not in _MOVEMENTS:
            raise _unknown(node)
        elif name == "Softmax":
            self._take_softmax(index, node)
        elif name == "MatMul":
            self._take_matmul(node)
        elif name in _LOOKUPS:
            if 0 in grown and attributes_of(node).get("axis", 0) in self._grown(node.input[0]) and 1 not in grown:
                return  # valid elements stay where they are
            if grown != [1]:
                raise _unknown(node)
        elif name == "Slice":
            if grown != [0] or not self._keeps_grown(node):
                raise _unknown(node)
        elif name == "Trilu":
            if grown != [0] or len(self._dims[0][node.input[0]]) - 2 in self._grown(node.input[0]):
                raise _unknown(node)
        elif name == "Where" and self._is_guard(node):
            self._zeroed.add(node.output[0])
        elif name == "Concat":
            axis = attributes_of(node)["axis"] % len(self._dims[0][node.output[0]])
            if any(axis in self._grown(operand) for operand in node.input):
                raise _unknown(node)
        elif name not in _ELEMENTWISE | _MOVEMENTS:
            raise _unknown(node)
        if name in _KEEP_ZEROS and node.input[0] in self._zeroed:
            self._zeroed.add(node.output[0])

    def _take_cache(self, index: int, node: onnx.NodeProto) -> None:
        past = self._pasts.get(node.input[0])
        is_join = node.op_type == "Concat" and len(node.input) == 2 and past is not None
        if not is_join or self._caches[past or ""] != node.output[0] or self._grown(node.input[1]):
            raise _unknown(node)
        self._edits.caches.append(index)
        self._cached.add(node.output[0])

    def _take_softmax(self, index: int, node: onnx.NodeProto) -> None:
        rank = len(self._dims[0][node.input[0]])
        axis = attributes_of(node).get("axis", -1) % rank
        if self._grown(node.input[0]) != [axis]:
            if axis in self._grown(node.input[0]):
                raise _unknown(node)
            return
        if axis != rank - 1 or node.input[0] not in self._cached:
            raise _unknown(node)
        self._edits.softmaxes.append(index)
        self._zeroed.add(node.output[0])

    def _take_matmul(self, node: onnx.NodeProto) -> None:
        """Matmuls along what grows need zeros on one side: that of the softmax."""
        a, b = node.input
        if len(self._dims[0][a]) - 1 in self._grown(a) and a not in self._zeroed:
            raise _unknown(node)

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
        return weights in self._zeroed and is_zero and [m.op_type for m in makers] == ["IsNaN"] and makers[0].input[0] == weights

    def _check_results(self, node: onnx.NodeProto) -> None:
        """Results grow by as much as the past does, along axes of their own; a reshape may hide that for a while."""
        for name in node.output:
            axes = self._grown(name)
            if node.op_type in ("Reshape", "Flatten") and (axes or node.input[0] in self._flat):
                origin = self._flat.get(node.input[0], node.input[0])
                if not self._keeps_rows(origin, name):
                    self._flat[name] = origin
            elif axes and node.input and node.input[0] in self._flat:
                raise _unknown(node)
            elif any(self._delta(name, axis) != self._by for axis in axes):
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


def _dims(model: onnx.ModelProto) -> dict[str, Dims]:
    graph = model.graph
    found = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info, *graph.output)}
    known = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    return known | {name: dims for name, dims in found.items() if dims is not None}


def buffered(model: onnx.ModelProto, edits: Edits, caches: Mapping[str, str], length: str) -> onnx.ModelProto:
    """A model on buffers that a run fills.

    Before: `%present = Concat(%past, %new)`, `%w = Softmax(%scores)`, positions counted from the past's size.
    After: `%present = hipdnn.CacheUpdate(%past, %new, %past_length, ...)`, `%w = Softmax(Where(%valid, %scores, -inf))`, positions
    counted from `%past_length`, which is an input.

    Args:
        model: the model; not modified.
        edits: from `edits_of`.
        caches: input -> output.
        length: name of the input for the number of valid rows.
    """
    return _Writer(model, edits, caches, length).run()


class _Writer:
    def __init__(self, model: onnx.ModelProto, edits: Edits, caches: Mapping[str, str], length: str) -> None:
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        self._edits, self._length = edits, length
        self._dims = _dims(model)
        graph = self._model.graph
        self._kinds = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._made: list[onnx.NodeProto] = []
        ((past, self._rows),) = {
            (self._dims[name][ROWS_AXIS], self._dims[output][ROWS_AXIS]) for name, output in caches.items()
        }
        self._past, self._caches = past, caches

    def run(self) -> onnx.ModelProto:
        graph = self._model.graph
        nodes = list(graph.node)
        for value in graph.input:
            if value.name in self._caches:
                value.type.tensor_type.shape.dim[ROWS_AXIS].dim_value = self._rows
        graph.input.append(helper.make_tensor_value_info(self._length, onnx.TensorProto.INT64, [1]))
        places = self._node("Range", *(self._number(value) for value in (0, self._rows, 1)))
        valid = self._node("Less", places, self._plus(self._length, self._rows - self._past))
        origins: dict[str, str] = {}
        for index, node in enumerate(nodes):
            for at, name in enumerate(node.input):
                if (index, at) in self._edits.numbers:
                    node.input[at] = self._counted(name, self._edits.numbers[index, at])
            if len(node.input) == 1 and node.input[0] in {*self._caches, *origins} and node.op_type in ("Concat", "Identity"):
                origins[node.output[0]] = origins.get(node.input[0], node.input[0])
                continue
            if index in self._edits.caches:
                past = origins.get(node.input[0], node.input[0])
                del node.attribute[:]
                node.op_type, node.domain = "CacheUpdate", HIPDNN_DOMAIN
                node.input[:] = [past, node.input[1], self._length, places]
            elif index in self._edits.softmaxes:
                node.input[0] = self._node("Where", valid, node.input[0], self._lowest(node.input[0]))
            elif index in self._edits.ranges:
                self._move_range(node)
                continue
            self._made.append(node)
        del graph.node[:]
        graph.node.extend(self._made)
        del graph.value_info[:]
        if all(entry.domain != HIPDNN_DOMAIN for entry in self._model.opset_import):
            self._model.opset_import.append(helper.make_opsetid(HIPDNN_DOMAIN, 1))
        return infer_shapes(self._model)

    def _node(self, operator: str, *operands: str) -> str:
        name = f"{self._length}.{len(self._made)}"
        self._made.append(helper.make_node(operator, operands, [name], name=name))
        return name

    def _constant(self, array: Array) -> str:
        name = f"{self._length}.constant.{len(self._model.graph.initializer)}"
        self._model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _number(self, value: int) -> str:
        return self._constant(np.array(value, np.int64))

    def _lowest(self, like: str) -> str:
        kind = self._kinds[like]
        return self._constant(np.array(-np.inf, helper.tensor_dtype_to_np_dtype(kind)))

    def _plus(self, name: str, number: int) -> str:
        return self._node("Add", name, self._constant(np.array([number], np.int64)))

    def _counted(self, constant: str, factor: int) -> str:
        """A constant in which the length of the past is, with the number of valid rows in its place."""
        array = numpy_helper.to_array(self._constants[constant])
        rest = array - np.asarray(factor * self._past, array.dtype)
        length = self._length
        if not array.ndim:
            length = self._node("Squeeze", length, self._constant(np.array([0], np.int64)))
        if array.dtype != np.int64:
            name = self._node("Cast", length)
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self._made[-1].attribute.append(helper.make_attribute("to", kind))
            length = name
        if factor != 1:
            length = self._node("Mul", length, self._constant(np.asarray(factor, array.dtype)))
        return self._node("Add", length, self._constant(rest)) if rest.any() or rest.size > 1 else length

    def _move_range(self, node: onnx.NodeProto) -> None:
        """Count from 0 on, and add the number of valid rows."""
        start, limit = (numpy_helper.to_array(self._constants[name]) for name in node.input[:2])
        counted = f"{node.output[0]}.counted"
        zeros = [self._constant(np.asarray(array - self._past, array.dtype)) for array in (start, limit)]
        self._made.append(helper.make_node("Range", [*zeros, node.input[2]], [counted], name=node.name))
        length = self._length
        if start.dtype != np.int64:
            length = self._node("Cast", length)
            self._made[-1].attribute.append(
                helper.make_attribute("to", helper.np_dtype_to_tensor_dtype(start.dtype))
            )
        self._made.append(helper.make_node("Add", [counted, length], [node.output[0]], name=f"{node.name}.moved"))
