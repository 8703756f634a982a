"""A model's main graph as numbered nodes and the values between them, without the data of large weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import ModelError

from ..frontend.onnx_types import BY_ONNX
from ..frontend.prepare import name_nodes
from ..frontend.subgraphs import subgraphs

INLINE_BYTES = 1024
"""Float initializers of more bytes are left out: what is placed may not depend on their values, which a host sends only to compile."""


@dataclass(frozen=True)
class OnnxGraph:
    """Nodes in topological order, and who writes and reads what.

    Attributes:
        model: the graph, large initializers external, constants of nodes made initializers.
        nodes: with unique names.
        reads: per node the values it reads, constants left out; what its subgraphs read counts.
        writer: value -> the node that computes it.
        readers: value -> the nodes that read it, in order.
        inputs, outputs: of the graph.
        constants: initializers by name.
        declared: types as the model states them.
    """

    model: onnx.ModelProto
    nodes: list[onnx.NodeProto]
    reads: list[list[str]]
    writer: dict[str, int]
    readers: dict[str, list[int]]
    inputs: dict[str, onnx.ValueInfoProto]
    outputs: list[str]
    constants: dict[str, onnx.TensorProto]
    declared: dict[str, onnx.ValueInfoProto]

    def sources(self, node: int) -> set[int]:
        """The nodes whose results a node reads."""
        return {self.writer[name] for name in self.reads[node] if name in self.writer}

    def writes(self, node: int) -> list[str]:
        """The results of a node."""
        return [name for name in self.nodes[node].output if name]


def read_graph(model: onnx.ModelProto) -> OnnxGraph:
    """Number a model's nodes.

    Args:
        model: not modified; external initializers need no data.

    Raises:
        ModelError: a value is computed twice or depends on itself.
    """
    light = _light_copy(model)
    graph = light.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    writer = _writers(graph.node)
    reads = [list(dict.fromkeys(name for name in _read(node) if name not in constants)) for node in graph.node]
    order = _sorted([{writer[name] for name in names if name in writer} for names in reads])
    nodes = [graph.node[index] for index in order]
    reads = [reads[index] for index in order]
    readers: dict[str, list[int]] = {}
    for index, names in enumerate(reads):
        for name in names:
            readers.setdefault(name, []).append(index)
    values = (*graph.value_info, *graph.input, *graph.output)
    return OnnxGraph(
        light,
        nodes,
        reads,
        _writers(nodes),
        readers,
        {value.name: value for value in graph.input},
        [value.name for value in graph.output],
        constants,
        {value.name: value for value in values},
    )


def captured(node: onnx.NodeProto) -> Iterable[str]:
    """Names that the subgraphs of a node take from outside."""
    for graph in subgraphs(node):
        inside = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        inside |= {name for inner in graph.node for name in inner.output}
        found = [name for inner in graph.node for name in _read(inner)] + [value.name for value in graph.output]
        yield from (name for name in found if name not in inside)


def _read(node: onnx.NodeProto) -> list[str]:
    return [name for name in (*node.input, *captured(node)) if name]


def _writers(nodes: Iterable[onnx.NodeProto]) -> dict[str, int]:
    writer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in writer:
                raise ModelError(f"value {name!r} is computed twice", hint="run onnx.checker on the model")
            writer[name] = index
    return writer


def _sorted(sources: list[set[int]]) -> list[int]:
    """Indices such that every one comes after its sources, otherwise in the order they have."""
    order: list[int] = []
    state = [0] * len(sources)  # 0 new, 1 waiting for its sources, 2 placed
    for root in range(len(sources)):
        stack = [root]
        while stack:
            index = stack[-1]
            waiting = [source for source in sorted(sources[index]) if state[source] != 2]
            if state[index] == 0 and waiting:
                state[index] = 1
                stack += reversed(waiting)
                continue
            if waiting:
                raise ModelError("a node depends on its own result", hint="run onnx.checker on the model")
            if state[index] != 2:
                state[index] = 2
                order.append(index)
            stack.pop()
    return order


def _light_copy(model: onnx.ModelProto) -> onnx.ModelProto:
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    graph = light.graph
    graph.name = model.graph.name
    graph.initializer.extend(map(_light, model.graph.initializer))
    graph.node.extend(model.graph.node)
    name_nodes(graph)  # constants among them, so that names are those of messages and of compiled steps
    tensors = [_constant(node) for node in graph.node]
    kept = [node for node, tensor in zip(graph.node, tensors, strict=True) if tensor is None]
    graph.initializer.extend(_light(tensor) for tensor in tensors if tensor is not None)
    del graph.node[:]
    graph.node.extend(kept)
    initialized = {tensor.name for tensor in graph.initializer}  # before IR version 4 they had to be inputs too
    graph.input.extend(value for value in model.graph.input if value.name not in initialized)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    return light


def _light(tensor: onnx.TensorProto) -> onnx.TensorProto:
    """The tensor; a large one of floats without its data."""
    kind = BY_ONNX.get(tensor.data_type)
    if kind is None or not kind.is_float or prod(tensor.dims) * kind.bytes <= INLINE_BYTES:
        return tensor
    return onnx.TensorProto(
        name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=onnx.TensorProto.EXTERNAL
    )


_SPELLINGS: dict[str, Any] = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
}


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a Constant node holds, as an initializer: the form that ONNX Runtime gives it when it loads a model."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.name == "value":
        tensor = onnx.TensorProto()
        tensor.CopyFrom(attribute.t)
        tensor.name = node.output[0]
        return tensor
    dtype = _SPELLINGS.get(attribute.name)
    if dtype is None:
        return None
    return numpy_helper.from_array(np.asarray(onnx.helper.get_attribute_value(attribute), dtype), node.output[0])
