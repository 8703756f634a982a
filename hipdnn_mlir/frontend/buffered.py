"""Writes a model whose caches are buffers, with what is valid in them as data."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ..ops.evaluate import Array
from ..ops.registry import HIPDNN_DOMAIN
from .cache_edits import ROWS_AXIS, Edits, known_dims
from .shape_inference import infer_shapes


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
        self._dims = known_dims(model)
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
                    node.input[at] = self._counted(name)
            if (
                len(node.input) == 1
                and node.input[0] in {*self._caches, *origins}
                and node.op_type in ("Concat", "Identity")
            ):
                origins[node.output[0]] = origins.get(node.input[0], node.input[0])
                continue
            if index in self._edits.caches:
                past = origins.get(node.input[0], node.input[0])
                del node.attribute[:]
                node.op_type, node.domain = "CacheUpdate", HIPDNN_DOMAIN
                node.input[:] = [past, node.input[1], self._length, places]
            elif index in self._edits.maxima:
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
        dtype = helper.tensor_dtype_to_np_dtype(self._kinds[like])
        return self._constant(np.array(np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf, dtype))

    def _plus(self, name: str, number: int) -> str:
        return self._node("Add", name, self._constant(np.array([number], np.int64)))

    def _counted(self, constant: str) -> str:
        """A constant in which the length of the past is, with the number of valid rows in its place."""
        array = numpy_helper.to_array(self._constants[constant])
        rest = array - np.asarray(self._past, array.dtype)
        length = self._length
        if not array.ndim:
            length = self._node("Squeeze", length, self._constant(np.array([0], np.int64)))
        if array.dtype != np.int64:
            name = self._node("Cast", length)
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            self._made[-1].attribute.append(helper.make_attribute("to", kind))
            length = name
        is_same = not rest.any() and rest.size == 1 and rest.ndim <= 1  # else the sum has its shape
        return length if is_same else self._node("Add", length, self._constant(rest))

    def _move_range(self, node: onnx.NodeProto) -> None:
        """Count from 0 on, and add the number of valid rows."""
        start, limit = (numpy_helper.to_array(self._constants[name]) for name in node.input[:2])
        counted = f"{node.output[0]}.counted"
        zeros = [self._constant(np.asarray(array - self._past, array.dtype)) for array in (start, limit)]
        self._made.append(helper.make_node("Range", [*zeros, node.input[2]], [counted], name=node.name))
        length = self._length
        if start.dtype != np.int64:
            length = self._node("Cast", length)
            self._made[-1].attribute.append(helper.make_attribute("to", helper.np_dtype_to_tensor_dtype(start.dtype)))
        self._made.append(helper.make_node("Add", [counted, length], [node.output[0]], name=f"{node.name}.moved"))
