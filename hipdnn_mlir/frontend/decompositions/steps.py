"""Operators that are written out step by step, once for each number of steps."""

from collections.abc import Container

import onnx

MAX_STEPS = 256
"""More steps would make too large a program."""
_ACTIVATIONS: dict[str, list[list[bytes]]] = {
    "LSTM": [[b"Sigmoid", b"Tanh", b"Tanh"]],
    "DynamicQuantizeLSTM": [[b"Sigmoid", b"Tanh", b"Tanh"]],
    "GRU": [[b"Sigmoid", b"Tanh"]],
    "RNN": [[b"Tanh"], [b"Relu"]],
}
"""Recurrent operators -> activations of a direction that a kernel with the loop inside has; the first ones where none are stated."""
_CELLS = {(b"Sigmoid", 3): "lstm", (b"Sigmoid", 2): "gru", (b"Tanh", 1): "tanh", (b"Relu", 1): "relu"}
"""The first activation, and how many there are -> the kernel's name of what a step computes."""
_PEEPHOLES = 7


def looped_cell(node: onnx.NodeProto) -> str | None:
    """What a step computes, where a kernel with the loop over steps inside does: what frameworks export. None for others."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type not in _ACTIVATIONS or attributes.get("clip") or attributes.get("input_forget"):
        return None
    if len(node.input) > _PEEPHOLES and node.input[_PEEPHOLES]:
        return None
    if node.op_type == "GRU" and not attributes.get("linear_before_reset"):
        return None
    known = _ACTIVATIONS[node.op_type]
    named = attributes.get("activations", known[0])
    own = next((each for each in known if named in (each, each * 2)), None)
    return None if own is None else _CELLS[own[0], len(own)]


def steps_along(node: onnx.NodeProto) -> list[tuple[str, int]]:
    """The operands that a node takes step by step, with the dims that are numbers of steps; none for other operators."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type in _ACTIVATIONS:
        if looped_cell(node):
            return []
        return [(node.input[0], int(attributes.get("layout", 0)))]
    if node.op_type != "Scan":
        return []
    count = attributes["num_scan_inputs"]
    return list(zip(node.input[-count:], attributes.get("scan_input_axes", [0] * count), strict=True))


def has_known_steps(node: onnx.NodeProto, constants: Container[str]) -> bool:
    """Whether a node is a Loop whose number of steps is a constant, and whose condition is none of a run.

    Args:
        node: the node.
        constants: names of the values around it that are constants.
    """
    trips, condition = (*node.input[:2], "", "")[:2]
    return node.op_type == "Loop" and trips in constants and (not condition or condition in constants)
