"""A region of a graph as a model of its own, in the form in which a host later asks to compile it."""

from collections.abc import Sequence
from dataclasses import dataclass

import onnx

from ..frontend.shape_inference import static_dims
from ..ops.strides import Dims
from .graph import OnnxGraph, captured
from .shapes import Types


@dataclass(frozen=True)
class Region:
    """Some nodes of a graph.

    Attributes:
        members: numbers of the nodes, in order.
        model: inputs are the values from outside, outputs those used outside, with types as the whole model declares them.
        shapes: input -> dims to compile for, for its dynamic dimensions.
    """

    members: tuple[int, ...]
    model: onnx.ModelProto
    shapes: dict[str, Dims]

    @property
    def is_dynamic(self) -> bool:
        """Whether it is compiled for shapes that only a run knows."""
        return any(static_dims(value) is None for value in self.model.graph.input)


def extract(graph: OnnxGraph, types: Types, members: Sequence[int]) -> Region:
    """The region of the given nodes; every value it reads from outside has an element type."""
    inside = set(members)
    written = [name for member in members for name in graph.writes(member)]
    read = list(dict.fromkeys(name for member in members for name in graph.reads[member]))
    inputs = [name for name in read if graph.writer.get(name, -1) not in inside]
    outputs = [name for name in written if _is_used_outside(graph, name, inside)]
    model = onnx.ModelProto(ir_version=graph.model.ir_version)
    model.opset_import.extend(graph.model.opset_import)
    model.functions.extend(graph.model.functions)
    target = model.graph
    target.name = graph.model.graph.name or "model"
    target.node.extend(graph.nodes[member] for member in members)
    used = {name for node in target.node for name in (*node.input, *captured(node))}
    target.initializer.extend(tensor for name, tensor in graph.constants.items() if name in used)
    target.input.extend(_typed(graph, types, name) for name in inputs)
    target.output.extend(_typed(graph, types, name) for name in outputs)
    inner = set(written) - set(outputs)
    target.value_info.extend(graph.declared[name] for name in written if name in inner and name in graph.declared)
    shapes = {
        value.name: types.dims[value.name]
        for value in target.input
        if static_dims(value) is None and value.name in types.dims
    }
    return Region(tuple(members), model, shapes)


def _is_used_outside(graph: OnnxGraph, name: str, inside: set[int]) -> bool:
    return name in graph.outputs or any(reader not in inside for reader in graph.readers.get(name, ()))


def _typed(graph: OnnxGraph, types: Types, name: str) -> onnx.ValueInfoProto:
    """The declared type; where there is none, only the element type is stated."""
    declared = graph.declared.get(name)
    if declared is not None and declared.type.tensor_type.elem_type:
        return declared
    return onnx.helper.make_tensor_value_info(name, types.kinds.get(name, 0), None)
