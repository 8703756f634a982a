"""Scan written out step by step, and Hardmax."""

from collections.abc import Sequence

from onnx import numpy_helper

from ...ops.spec import Refusal
from .call import Call
from .registry import decomposes
from .schema_body import instantiate
from .steps import MAX_STEPS


@decomposes("Scan")
def scan(call: Call) -> Sequence[str | None]:
    """Scan over a length that is known: its body once per step.

    Source: ONNX, Scan-9.
    """
    body, count = call.attr("body"), call.count("num_scan_inputs")
    operands = [call.need(index) for index in range(len(call.node.input))]
    split = len(operands) - count
    if split < 0 or len(body.input) != len(operands) or len(body.output) < split:
        raise Refusal("operand", f"{count} scanned operands of {len(operands)} for a body of {len(body.input)}")
    states, scanned = operands[:split], operands[split:]
    axes, directions = (call.attr(f"scan_input_{name}", [0] * count) for name in ("axes", "directions"))
    axes = [call.axis(x, axis) for x, axis in zip(scanned, axes, strict=True)]
    lengths = {call.size(x, axis) for x, axis in zip(scanned, axes, strict=True)}
    steps = lengths.pop()
    if lengths or not 0 < steps <= MAX_STEPS:
        raise Refusal("shape", f"{steps} steps, expected the same number, 1 to {MAX_STEPS}, for all operands")
    constants = {tensor.name: call.const(numpy_helper.to_array(tensor)) for tensor in body.initializer}
    collected: list[list[str]] = []
    for step in range(steps):
        places = [steps - 1 - step if is_reverse else step for is_reverse in directions]
        parts = [
            call.squeeze(call.slice(x, axis, place, place + 1), axis)
            for x, axis, place in zip(scanned, axes, places, strict=True)
        ]
        names = constants | dict(zip((value.name for value in body.input), [*states, *parts], strict=True))
        instantiate(call, body.node, names, {})
        results = [names.get(value.name, value.name) for value in body.output]
        states = results[:split]
        collected.append(results[split:])
    return [*states, *_joined(call, collected)]


def _joined(call: Call, collected: Sequence[Sequence[str]]) -> list[str]:
    """What each step gave, along an axis of its own per result."""
    count = len(collected[0])
    axes, directions = (call.attr(f"scan_output_{name}", [0] * count) for name in ("axes", "directions"))
    joined = []
    for values, axis, is_reverse in zip(zip(*collected, strict=True), axes, directions, strict=True):
        parts = [call.unsqueeze(value, axis) for value in values]
        joined.append(call.concat(axis, *(parts[::-1] if is_reverse else parts)))
    return joined


@decomposes("Hardmax")
def hardmax(call: Call) -> Sequence[str | None]:
    """Hardmax: one where the position is that of the first maximum.

    Source: ONNX, Hardmax-13.
    """
    x = call.need(0)
    axis = call.axis(x, call.attr("axis", -1))
    largest = call.op("ArgMax", x, axis=axis, keepdims=1)
    positions = call.reshape(call.range(call.length(x, axis)), -1, *[1] * (call.rank(x) - 1 - axis))
    return [call.cast(call.op("Equal", positions, largest), call.kind(x))]
