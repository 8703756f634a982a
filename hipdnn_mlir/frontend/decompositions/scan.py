"""Scan and Loop written out step by step, and Hardmax."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from ...ops.spec import Refusal
from .branches import chosen
from .call import Call
from .registry import decomposes
from .schema_body import instantiate, own_constants
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
    constants = own_constants(call, body)
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


@decomposes("Loop")
def loop(call: Call) -> Sequence[str | None]:
    """Loop of at most a known number of steps: its body once per step. Behind the step that ends it, its states stay as they are.

    Source: ONNX, Loop-13.
    """
    body, trips, condition = call.attr("body"), call.arg(0), call.arg(1)
    states = [call.need(index) for index in range(2, len(call.node.input))]
    if trips is None or call.value(trips) is None:
        raise Refusal("operand", "the number of steps is not known at compile time")
    steps, active = call.known_number(trips), None
    if condition is not None and call.value(condition) is None:
        active = condition
    elif condition is not None and not call.known_number(condition):
        steps = 0
    goes_on, results = _goes_on(body), len(body.output) - 1
    if len(body.input) != len(states) + 2 or results < len(states):
        raise Refusal("operand", f"{len(states)} states for a body of {len(body.input)} operands and {results} results")
    if results > len(states) and (active or not goes_on):
        raise Refusal("operand", "the run computes how many steps there are, and so the size of what it collects")
    if steps > MAX_STEPS or (steps <= 0 and results > len(states)):
        raise Refusal("shape", f"{steps} steps, expected 1 to {MAX_STEPS}")
    constants = own_constants(call, body)
    given = [value.name for value in body.input]
    always = call.const(np.bool_(True))
    collected: list[list[str]] = []
    for step in range(steps):
        names = constants | dict(zip(given, [call.const(np.int64(step)), always, *states], strict=True))
        instantiate(call, body.node, names, {})
        again, *found = (names.get(value.name, value.name) for value in body.output)
        made = found[: len(states)]
        states = made if active is None else [chosen(call, active, *pair) for pair in zip(made, states, strict=True)]
        if not goes_on:
            active = again if active is None else call.op("And", active, again)
        collected.append(found[len(states) :])
    parts = [[call.unsqueeze(value, 0) for value in values] for values in zip(*collected, strict=True)]
    return [*states, *(call.concat(0, *values) for values in parts)]


def _goes_on(body: onnx.GraphProto) -> bool:
    """Whether a body of a Loop leaves the condition as it is, or says that it holds."""
    makers = {name: node for node in body.node for name in node.output}
    constants = {tensor.name: tensor for tensor in body.initializer}
    name = body.output[0].name
    while name in makers and makers[name].op_type in ("Identity", "Cast"):
        name = makers[name].input[0]
    if name in makers and makers[name].op_type == "Constant":
        constants.update((name, attribute.t) for attribute in makers[name].attribute if attribute.name == "value")
    return name == body.input[1].name or (name in constants and bool(numpy_helper.to_array(constants[name]).all()))


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
