"""Operators that are written out step by step, once for each number of steps."""

from collections.abc import Container

import onnx

MAX_STEPS = 256
"""More steps would make too large a program."""
_RECURRENT = ("LSTM", "GRU", "RNN")


def steps_along(node: onnx.NodeProto) -> list[tuple[str, int]]:
    """The operands that a node takes step by step, with the dims that are numbers of steps; none for other operators."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type in _RECURRENT:
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
