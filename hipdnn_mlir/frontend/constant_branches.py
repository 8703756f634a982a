"""An If that computes nothing: a choice between two values.

Decoders for long prompts choose so between two tables of angles, by the length of the text.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.strides import Dims
from .shape_inference import attributes_of, infer_shapes, static_dims
from .subgraphs import subgraphs


def computes_nothing(node: onnx.NodeProto) -> bool:
    """Whether a node is an If whose branches only hold constants, or name values of the main graph."""
    return node.op_type == "If" and all(
        inner.op_type == "Constant" and inner.attribute[0].name == "value"
        for graph in subgraphs(node)
        for inner in graph.node
    )


def write_choices(model: onnx.ModelProto) -> onnx.ModelProto:
    """Replace every If that computes nothing. What reads rows of it reads them of both values: whole tables are not copied.

    Before: Gather(If(c, long, short), i). After: Where(c, Gather(long, i), Gather(short, i)), with positions kept within the shorter.
    What reads it otherwise reads Where(c, long, short). Where the two have different sizes then, the If stays.

    Args:
        model: with the types of its values, and no If whose condition is known; modified.

    Returns:
        The model, with types inferred again where something was replaced.
    """
    graph = model.graph
    if not any(map(computes_nothing, graph.node)):
        return model
    choices = {
        choice.result: choice for node in graph.node if computes_nothing(node) for choice in _choices(node, graph)
    }
    known = {value.name: static_dims(value) for value in (*graph.input, *graph.value_info)}
    dims = {name: sizes for name, sizes in known.items() if sizes is not None}
    dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    choices = {name: choice for name, choice in choices.items() if choice.is_of_rows(dims)}
    whole = {value.name for value in graph.output}
    for node in graph.node:
        reads_rows = _reads_rows(node) and node.input[0] in choices
        whole.update(node.input[1:] if reads_rows else node.input)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        read = [choices.get(name) for name in node.output if name in whole]
        if computes_nothing(node) and all(choice and dims[choice.then] == dims[choice.otherwise] for choice in read):
            nodes += [choice.between(choice.then, choice.otherwise, choice.result) for choice in read if choice]
        elif _reads_rows(node) and node.input[0] in choices:
            nodes += _rows(node, choices[node.input[0]], dims, graph)
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    return infer_shapes(model)


@dataclass(frozen=True)
class _Choice:
    """A result of an If, the values it may be, and the condition: their names. `node` is that of the If."""

    node: str
    condition: str
    then: str
    otherwise: str
    result: str

    def is_of_rows(self, dims: Mapping[str, Dims]) -> bool:
        """Whether the two values are known to differ in their number of rows at most."""
        then, otherwise = (dims.get(name) for name in (self.then, self.otherwise))
        return then is not None and otherwise is not None and then[1:] == otherwise[1:] and len(then) == len(otherwise)

    def between(self, then: str, otherwise: str, result: str) -> onnx.NodeProto:
        return onnx.helper.make_node("Where", [self.condition, then, otherwise], [result], name=self.node)


def _choices(node: onnx.NodeProto, graph: onnx.GraphProto) -> Iterator[_Choice]:
    """What an If chooses between; constants of its branches are initializers of the graph afterwards."""
    branches = {attribute.name: attribute.g for attribute in node.attribute}
    for index, result in enumerate(node.output):
        sides = []
        for side in ("then_branch", "else_branch"):
            name = branches[side].output[index].name
            tensors = {inner.output[0]: inner.attribute[0].t for inner in branches[side].node}
            tensors |= {tensor.name: tensor for tensor in branches[side].initializer}
            if name in tensors:
                graph.initializer.add().CopyFrom(tensors[name])
                name = graph.initializer[-1].name = f"{result}.{side}"
            sides.append(name)
        yield _Choice(node.name, node.input[0], sides[0], sides[1], result)


def _reads_rows(node: onnx.NodeProto) -> bool:
    return node.op_type == "Gather" and not attributes_of(node).get("axis", 0)


def _rows(
    node: onnx.NodeProto, choice: _Choice, dims: Mapping[str, Dims], graph: onnx.GraphProto
) -> Iterator[onnx.NodeProto]:
    """A Gather of rows of a choice: of both values."""
    rows = [dims[table][0] for table in (choice.then, choice.otherwise)]
    found = []
    for table, count in zip((choice.then, choice.otherwise), rows, strict=True):
        found.append(f"{node.output[0]}.{table}")
        positions = node.input[1]
        if count < max(rows):  # of the value that is not chosen, rows beyond its end may be asked for
            positions = f"{found[-1]}.position"
            bounds = [f"{positions}.{side}" for side in ("first", "last")]
            for bound, number in zip(bounds, (-count, count - 1), strict=True):
                graph.initializer.append(numpy_helper.from_array(np.array(number, np.int64), bound))
            yield onnx.helper.make_node(
                "Cast", [node.input[1]], [f"{positions}.i64"], name=node.name, to=onnx.TensorProto.INT64
            )
            yield onnx.helper.make_node("Clip", [f"{positions}.i64", *bounds], [positions], name=node.name)
        yield onnx.helper.make_node("Gather", [table, positions], [found[-1]], name=node.name, axis=0)
    yield choice.between(found[0], found[1], node.output[0])
