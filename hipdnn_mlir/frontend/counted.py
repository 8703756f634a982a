"""Operators whose data decides how many rows they have: written so that they fill a bound, and say how many rows count (adr/0054)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx

from ..ops.registry import HIPDNN_DOMAIN
from .prepare import name_nodes
from .shape_inference import CHOSEN, POSITIONS, SELECTED, attributes_of, infer_shapes, ints
from .subgraphs import reads

OPERATORS = {"NonZero": POSITIONS, "Compress": SELECTED, "NonMaxSuppression": CHOSEN}
"""Operators of ONNX -> what they become: the same at the largest size, and a result behind theirs, i64[1], with the number of rows."""

MAX_OPERATORS = 8
"""More of them make models with lists of lists, of which none has been met that could be followed; each is a dynamic dimension."""
MAX_BOXES = 1 << 16
"""How many boxes of a class are chosen where the number of boxes is not known."""


@dataclass(frozen=True)
class Rows:
    """The rows of one node's result.

    Attributes:
        node: its name.
        value: its result.
        axis: the dim that is the number of rows.
        bound: the most there can be; None where that depends on dynamic dimensions.
        name: of the dim, and of the value that says how many there are, i64[1].
    """

    node: str
    value: str
    axis: int
    bound: int | None
    name: str


@dataclass(frozen=True)
class Counted:
    """A model with such operators, in two forms.

    Attributes:
        rows: their results.
        bounded: the model where each fills its bound; the numbers of rows are its last outputs.
        behind: what is behind the results: they are inputs, whose numbers of rows are dynamic dimensions.
    """

    rows: tuple[Rows, ...]
    bounded: onnx.ModelProto
    behind: onnx.ModelProto


def counted(model: onnx.ModelProto) -> Counted | None:
    """A model in two forms; None where it has no or too many such operators, one needs the rows of another, or there is no bound.

    Args:
        model: not modified.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
    """
    model = _named(model)
    nodes = [node for node in model.graph.node if not node.domain and node.op_type in OPERATORS]
    if not 0 < len(nodes) <= MAX_OPERATORS or _meet(model.graph, nodes):
        return None
    most = {node.output[0]: _most(model, node) for node in nodes if node.op_type == "NonMaxSuppression"}
    if not all(most.values()):
        return None
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)}
    names = {node.output[0]: _fresh(_name(model.graph, node), taken) for node in nodes}
    bounded = _bounded(model, names, most)
    found = infer_shapes(bounded).graph
    types = {value.name: value for value in (*found.input, *found.value_info, *found.output)}
    rows = []
    for node in nodes:
        value = node.output[0]
        shape = types[value].type.tensor_type.shape if value in types else None
        if shape is None:
            return None
        axis = _axis(node, len(shape.dim))
        dim = shape.dim[axis]
        if dim.HasField("dim_value") and not dim.dim_value:
            return None
        bound = dim.dim_value if dim.HasField("dim_value") else None
        rows.append(Rows(node.name, value, axis, bound, names[value]))
        if (
            node.op_type == "Compress" and len(shape.dim) > 1
        ):  # the other dims with their names, which our inference drops
            types[value].type.tensor_type.shape.CopyFrom(types[node.input[0]].type.tensor_type.shape)
    return Counted(tuple(rows), bounded, _behind(model, rows, types))


def _named(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every node has a name."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    name_nodes(made.graph)
    return made


def _axis(node: onnx.NodeProto, rank: int) -> int:
    axis = 1 if node.op_type == "NonZero" else attributes_of(node).get("axis")
    return 0 if axis is None else int(axis) % rank


def _name(graph: onnx.GraphProto, node: onnx.NodeProto) -> str:
    """What the model calls the number of rows, or one made of the node's name."""
    for value in (*graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name == node.output[0] and dims:
            return str(dims[_axis(node, len(dims))].dim_param) or f"{value.name}.rows"
    return f"{node.output[0]}.rows"


def _meet(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> bool:
    """Whether one of the nodes reads what follows from the rows of another."""
    following: set[str] = set()
    wanted = {node.output[0] for node in nodes}
    for node in graph.node:
        if not following.isdisjoint(reads(node)):
            if wanted.intersection(node.output):
                return True
            following.update(node.output)
        following.update(wanted.intersection(node.output))
    return False


def _bounded(model: onnx.ModelProto, names: Mapping[str, str], most: Mapping[str, int]) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _forget_sizes(made.graph)
    for node in made.graph.node:
        if node.output and node.output[0] in names:
            if node.output[0] in most:
                node.attribute.append(onnx.helper.make_attribute("most", most[node.output[0]]))
            node.op_type, node.domain = OPERATORS[node.op_type], HIPDNN_DOMAIN
            node.output.append(names[node.output[0]])
    counts = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [1]) for name in names.values())
    made.graph.output.extend(counts)
    made.opset_import.append(onnx.helper.make_opsetid(HIPDNN_DOMAIN, 1))
    return made


def _most(model: onnx.ModelProto, node: onnx.NodeProto) -> int:
    """How many boxes of a class a NonMaxSuppression may choose; 0 where that is not known, or without end."""
    name = node.input[2] if len(node.input) > 2 else ""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    makers = (made for made in model.graph.node if made.op_type == "Constant" and name in made.output)
    constants.update(
        (name, attribute.t) for each in makers for attribute in each.attribute if attribute.name == "value"
    )
    most = max(0, *(ints(constants[name]) or (0,))) if name in constants else 0
    values = infer_shapes(model).graph.value_info
    scores = next((v for v in (*model.graph.input, *values) if v.name == node.input[1]), onnx.ValueInfoProto())
    dims = scores.type.tensor_type.shape.dim
    if len(dims) == 3 and dims[2].HasField("dim_value"):
        return min(most, int(dims[2].dim_value))
    return most if most <= MAX_BOXES else 0


def _behind(model: onnx.ModelProto, rows: Sequence[Rows], types: Mapping[str, onnx.ValueInfoProto]) -> onnx.ModelProto:
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    given = []
    for each in rows:
        value = graph.input.add()
        value.CopyFrom(types[each.value])
        value.name = _fresh(f"{each.value}.given", taken)
        value.type.tensor_type.shape.dim[each.axis].dim_param = each.name
        given.append(onnx.helper.make_node("Identity", [value.name], [each.value], each.node))
    wanted = {value.name for value in graph.output}
    made_elsewhere = {each.value for each in rows}
    kept = []
    for node in reversed(graph.node):
        if wanted.intersection(node.output) and not made_elsewhere.intersection(node.output):
            wanted.update(reads(node))
            kept.append(node)
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in reversed(kept)]
    del graph.node[:]
    graph.node.extend([*given, *nodes])
    _forget_sizes(graph)
    return made


def _forget_sizes(graph: onnx.GraphProto) -> None:
    """Drop what is declared of sizes behind the inputs, which may be those of one run."""
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
