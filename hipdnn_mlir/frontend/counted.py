"""Operators whose data decides how many rows they have: written so that they fill a bound, and say how many rows count (adr/0054)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx

from ..ops.registry import HIPDNN_DOMAIN
from .prepare import name_nodes
from .shape_inference import CHOSEN, DISTINCT, POSITIONS, SELECTED, attributes_of, infer_shapes, ints
from .subgraphs import drop_unused, reads

OPERATORS = {"NonZero": POSITIONS, "Compress": SELECTED, "NonMaxSuppression": CHOSEN, "Unique": DISTINCT}
"""Operators of ONNX -> what they become: the same at the largest size, and a result behind theirs, i64[1], with the number of rows."""
_RESULTS = {"Unique": 4}
"""How many results an operator has, where that is not one. The third one of Unique has as many rows as its operand."""

MAX_OPERATORS = 8
"""More of them make models with lists of lists, of which none has been met that could be followed; each is a dynamic dimension."""
MAX_BOXES = 1 << 16
"""How many boxes of a class are chosen where the number of boxes is not known."""


@dataclass(frozen=True)
class Rows:
    """The rows of one node's results.

    Attributes:
        node: its name.
        operator: as ONNX calls it.
        axes: result -> the dim that is the number of rows; None where it has that number of none.
        bound: the most there can be; None where that depends on dynamic dimensions.
        name: of the dim, and of the value that says how many there are, i64[1].
    """

    node: str
    operator: str
    axes: Mapping[str, int | None]
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


def counted(model: onnx.ModelProto, symbols: Collection[str]) -> Counted | None:
    """A model in two forms; None where it has no or too many such operators, one needs the rows of another, or there is no bound.

    Args:
        model: not modified.
        symbols: names of its dynamic dimensions, which a model may declare of rows, too, whatever their number is.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
    """
    model = _named(model)
    nodes = [node for node in model.graph.node if _is_taken(node)]
    if not 0 < len(nodes) <= MAX_OPERATORS or _meet(model.graph, nodes):
        return None
    most = {_key(node): _most(model, node) for node in nodes if node.op_type == "NonMaxSuppression"}
    if not all(most.values()):
        return None
    taken = {*symbols, *(name for node in model.graph.node for name in (*node.input, *node.output))}
    names = {_key(node): _fresh(_name(model.graph, node), taken) for node in nodes}
    bounded = _bounded(model, names, most)
    found = infer_shapes(bounded).graph
    values = (*found.input, *found.value_info, *found.output)
    types = {value.name: value for value in values if value.type.tensor_type.HasField("shape")}
    rows = []
    for node in nodes:
        if any(name not in types for name in _results(node)):
            return None
        axes = {name: _axis(node, name, types[name]) for name in _results(node)}
        dims = [types[name].type.tensor_type.shape.dim[axis] for name, axis in axes.items() if axis is not None]
        if not dims or any(dim.HasField("dim_value") and not dim.dim_value for dim in dims):
            return None
        rows.append(Rows(node.name, node.op_type, axes, int(dims[0].dim_value) or None, names[_key(node)]))
        if node.op_type == "Compress" and attributes_of(node).get("axis") is not None:
            # The other dims with their names, which our inference drops.
            types[node.output[0]].type.tensor_type.shape.CopyFrom(types[node.input[0]].type.tensor_type.shape)
    return Counted(tuple(rows), bounded, _behind(model, rows, types))


def _is_taken(node: onnx.NodeProto) -> bool:
    """Whether a node has such an operator; Unique along an axis, which compares slices, is not known here."""
    if node.domain or node.op_type not in OPERATORS:
        return False
    return node.op_type != "Unique" or "axis" not in attributes_of(node)


def _results(node: onnx.NodeProto) -> list[str]:
    return [name for name in node.output if name]


def _key(node: onnx.NodeProto) -> str:
    """What a node is known by."""
    return _results(node)[0]


def _named(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which every node has a name."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    name_nodes(made.graph)
    return made


def _axis(node: onnx.NodeProto, result: str, value: onnx.ValueInfoProto) -> int | None:
    """The dim of a result that is the number of rows, if any."""
    if node.op_type == "Unique":
        return None if list(node.output).index(result) == 2 else 0
    axis = 1 if node.op_type == "NonZero" else attributes_of(node).get("axis")
    return 0 if axis is None else int(axis) % len(value.type.tensor_type.shape.dim)


def _name(graph: onnx.GraphProto, node: onnx.NodeProto) -> str:
    """What the model calls the number of rows, or one made of the node's name."""
    for value in (*graph.value_info, *graph.output):
        dims = value.type.tensor_type.shape.dim
        axis = _axis(node, value.name, value) if value.name in _results(node) and dims else None
        if axis is not None:
            return str(dims[axis].dim_param) or f"{value.name}.rows"
    return f"{_key(node)}.rows"


def _meet(graph: onnx.GraphProto, nodes: Sequence[onnx.NodeProto]) -> bool:
    """Whether one of the nodes reads what follows from the rows of another."""
    following: set[str] = set()
    wanted = {name for node in nodes for name in _results(node)}
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
        key = next(iter(_results(node)), "")
        if key in names:
            if key in most:
                node.attribute.append(onnx.helper.make_attribute("most", most[key]))
            node.output.extend([""] * (_RESULTS.get(node.op_type, 1) - len(node.output)))
            node.output.append(names[key])
            node.op_type, node.domain = OPERATORS[node.op_type], HIPDNN_DOMAIN
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
    made_elsewhere = {name: (each, axis) for each in rows for name, axis in each.axes.items()}
    for name, (each, axis) in made_elsewhere.items():
        value = graph.input.add()
        value.CopyFrom(types[name])
        value.name = _fresh(f"{name}.given", taken)
        if axis is not None:
            value.type.tensor_type.shape.dim[axis].dim_param = each.name
        given.append(onnx.helper.make_node("Identity", [value.name], [name], each.node))
    others = [node for node in graph.node if made_elsewhere.keys().isdisjoint(node.output)]
    del graph.node[:]
    graph.node.extend([*given, *others])
    drop_unused(graph)
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
