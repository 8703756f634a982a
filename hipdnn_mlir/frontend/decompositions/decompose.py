"""Replaces operators that are compositions of others, node by node in the graph's order, with types inferred on the way."""

import logging
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import Reject

from ...ops.evaluate import Array
from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from ..constant_folding import MAX_FOLDED_ELEMENTS
from ..shape_inference import infer_shapes, node_results
from ..subgraphs import all_nodes, subgraphs
from .call import Call
from .table import decomposition

logger = logging.getLogger(__name__)

MAX_DEPTH = 8
"""How deep functions stand in functions: a function that calls itself is no composition."""
_VALUE_ELEMENTS = 1024


class Decomposed(NamedTuple):
    """A model with operators decomposed.

    Attributes:
        model: the model.
        rejects: the nodes that stay because something about their operands is not known or not covered.
        large: constants too large for an initializer, which are inputs of the model.
        counts: of each node, how many it became; empty where none was decomposed.
    """

    model: onnx.ModelProto
    rejects: list[Reject]
    large: dict[str, Array]
    counts: list[int]


def decompose(model: onnx.ModelProto, *, has_one_size: bool = True) -> Decomposed:
    """Replace every operator that has a decomposition.

    Args:
        model: without large initializers; not modified.
        has_one_size: whether its sizes are those of every run, and not a sample of several.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
        SizesContradictError: those of one node's operands do not.
    """
    if not any(decomposition(node) for node in all_nodes(model.graph)):
        return Decomposed(model, [], {}, [])
    decomposer = _Decomposer(infer_shapes(model), has_one_size)
    return Decomposed(decomposer.run(), decomposer.rejects, decomposer.large, decomposer.counts)


def _opset(model: onnx.ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if not entry.domain), 1)


class _Decomposer:
    """The graph that decompositions write into; see call.Graph."""

    def __init__(self, model: onnx.ModelProto, has_one_size: bool) -> None:
        self._model = model
        self.has_one_size = has_one_size
        self.opset = _opset(model)
        self._imports = list(model.opset_import)
        self._nodes: list[onnx.NodeProto] = []
        self._types: dict[str, onnx.TypeProto] = {}
        self._constants: dict[str, onnx.TensorProto] = {}
        self._names = {name for node in all_nodes(model.graph) for name in (*node.input, *node.output)}
        self._pool: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._inputs = {value.name for value in model.graph.input} - {tensor.name for tensor in model.graph.initializer}
        self._depth = 0
        self._count = 0
        self.rejects: list[Reject] = []
        self.large: dict[str, Array] = {}
        self.counts: list[int] = []

    def run(self) -> onnx.ModelProto:
        """Decompose all nodes."""
        graph = self._model.graph
        self._declare(graph)
        for node in graph.node:
            before = len(self._nodes)
            self.emit(node)
            self.counts.append(len(self._nodes) - before)
        result = onnx.ModelProto()
        result.CopyFrom(self._model)
        del result.graph.node[:]
        result.graph.node.extend(self._nodes)
        if all(entry.domain != HIPDNN_DOMAIN for entry in self._imports) and any(
            node.domain == HIPDNN_DOMAIN for node in all_nodes(result.graph)
        ):
            result.opset_import.append(onnx.helper.make_opsetid(HIPDNN_DOMAIN, 1))
        used = {name for node in all_nodes(result.graph) for name in node.input}
        result.graph.initializer.extend(self._constants[name] for name in self._pool.values() if name in used)
        for name in self.large:
            result.graph.input.append(onnx.helper.make_value_info(name, self._types[name]))
        return result

    def _declare(self, graph: onnx.GraphProto) -> None:
        for value in (*graph.input, *graph.value_info, *graph.output):
            self._names.add(value.name)
            self._types[value.name] = value.type
        for tensor in graph.initializer:
            self._names.add(tensor.name)
            self._types[tensor.name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
            self._constants[tensor.name] = tensor

    def type(self, name: str) -> onnx.TypeProto | None:
        return self._types.get(name)

    def kind(self, name: str) -> int:
        kind = self._types.get(name)
        return int(kind.tensor_type.elem_type) if kind is not None else 0

    def dims(self, name: str) -> tuple[int | None, ...] | None:
        kind = self._types.get(name)
        if kind is None or not kind.tensor_type.HasField("shape"):
            return None
        return tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.tensor_type.shape.dim)

    def value(self, name: str) -> Array | None:
        tensor = self._small(name)
        return None if tensor is None else numpy_helper.to_array(tensor)

    def is_constant(self, name: str) -> bool:
        return name in self._constants

    def is_of_sizes(self, name: str) -> bool:
        makers = {output: node for node in self._nodes for output in node.output}
        wanted = [name]
        while wanted:
            node = makers.get(value := wanted.pop())
            if node is None and value not in self._constants:
                return False
            if node is not None and node.op_type not in ("Shape", "Size"):
                wanted += filter(None, node.input)
        return True

    def is_compared(self, name: str) -> bool:
        return self.has_one_size and name in self._inputs

    def _small(self, name: str) -> onnx.TensorProto | None:
        tensor = self._constants.get(name)
        return tensor if tensor is not None and math.prod(tensor.dims) <= _VALUE_ELEMENTS else None

    def constant(self, array: Array) -> str:
        if array.size > MAX_FOLDED_ELEMENTS:
            name = self.fresh("constant")
            self.large[name] = array
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            self._types[name] = onnx.helper.make_tensor_type_proto(kind, array.shape)
            return name
        key = (array.dtype.str + array.dtype.name, array.shape, array.tobytes())
        if key not in self._pool:
            name = self._pool[key] = self.fresh("constant")
            self._constants[name] = tensor = numpy_helper.from_array(
                np.ascontiguousarray(array).reshape(array.shape), name
            )
            self._types[name] = onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims)
        return self._pool[key]

    def fresh(self, base: str) -> str:
        while True:
            self._count += 1
            name = f"{base}.{self._count}"
            if name not in self._names:
                self._names.add(name)
                return name

    def emit(self, node: onnx.NodeProto) -> None:
        write = decomposition(node)
        if write is None or self._depth == MAX_DEPTH:
            self._append(node)
            return
        start, used = len(self._nodes), len(self._pool)
        self._depth += 1
        try:
            results = write(Call(self, node))
        except Refusal as refusal:
            del self._nodes[start:]
            self.rejects.append(Reject(node.op_type, refusal.rule, refusal.reason, node.name))
            self._append(node)
            return
        finally:
            self._depth -= 1
        if results is None:
            self._append(node)
            return
        logger.debug(
            "%s %s: %d nodes, %d constants", node.op_type, node.name, len(self._nodes) - start, len(self._pool) - used
        )
        self._bind(node, results, start)

    def _bind(self, node: onnx.NodeProto, results: Sequence[str | None], start: int) -> None:
        """Give results the names that the decomposed node's have."""
        made = {name for inner in self._nodes[start:] for name in inner.output}
        renamed: dict[str, str] = {}
        for output, value in zip(node.output, results, strict=False):
            if not output:
                continue
            if value is None:
                raise AssertionError(f"{node.op_type} gives no value for {output!r}")
            if value in made and value not in renamed:
                renamed[value] = output
                self._types[output] = self._types.get(value, onnx.TypeProto())
            else:
                self._append(onnx.helper.make_node("Identity", [renamed.get(value, value)], [output], node.name))
        for inner in self._nodes[start:]:
            _rename(inner, renamed)

    def _append(self, node: onnx.NodeProto) -> None:
        """Keep a node; its results' types are those of onnx's inference."""
        for graph in subgraphs(node):
            self._decompose_subgraph(graph)
        self._nodes.append(node)
        if any(name and not self._is_typed(name) for name in node.output):
            self._infer(node)
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].HasField("t"):
            self._constants[node.output[0]] = node.attribute[0].t

    def _is_typed(self, name: str) -> bool:
        kind = self._types.get(name)
        return kind is not None and kind.tensor_type.HasField("shape")

    def _decompose_subgraph(self, graph: onnx.GraphProto) -> None:
        outer, self._nodes = self._nodes, []
        self._declare(graph)
        for node in list(graph.node):
            self.emit(node)
        del graph.node[:]
        graph.node.extend(self._nodes)
        self._nodes = outer

    def _infer(self, node: onnx.NodeProto) -> None:
        data = {name: tensor for name in node.input if (tensor := self._small(name)) is not None}
        self._types.update(node_results(node, self._types, data, self._imports))


def _rename(node: onnx.NodeProto, names: dict[str, str]) -> None:
    for graph in subgraphs(node):
        for inner in graph.node:
            _rename(inner, names)
        for value in graph.output:
            value.name = names.get(value.name, value.name)
    if any(name in names for name in (*node.input, *node.output)):
        inputs, outputs = ([names.get(name, name) for name in part] for part in (node.input, node.output))
        del node.input[:], node.output[:]
        node.input.extend(inputs)
        node.output.extend(outputs)
