"""DynamicQuantizeLSTM: an LSTM whose weights are bytes, and whose inputs and states are rounded to bytes in each run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from ...ops.families.recurrence import GATES, PANEL, QUANTIZED_RECURRENCE, panels_of
from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .call import FLOAT, INT8, INT32, INT64, Call
from .quantized import centred
from .recurrent import first_state, panels, sizes_of
from .registry import CONTRIB, decomposes
from .steps import looped_cell

_OF_LSTM = 8
"""Operands that LSTM has, too; behind them the scales and zero points of both weights."""
_GATES = GATES["lstm"]
_MIDDLE = 128
"""Of unsigned bytes: less this they are signed ones."""


@dataclass(frozen=True)
class _Weights:
    """Weights of bytes.

    Attributes:
        values: [directions, gates * hidden, inputs].
        scale: [directions, gates * hidden].
        zero: [directions, 1], None for zeros.
    """

    values: str
    scale: str
    zero: str | None


@decomposes("DynamicQuantizeLSTM", domain=CONTRIB)
def dynamic_quantize_lstm(call: Call) -> Sequence[str | None]:
    """DynamicQuantizeLSTM: inputs are rounded as DynamicQuantizeLinear does, those of all steps together, and states in front of each step.

    States of a direction have one range in all rows of the batch. With clips, peepholes or other activations they stay f32.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.DynamicQuantizeLSTM; the ranges are those of its CPU provider on one thread.
    """
    weights, recurrence = _weights(call, 1, 8), _weights(call, 2, 10)
    directions, hidden, _ = sizes_of(call, weights.values, recurrence.values, _GATES)
    inputs = call.outs("DynamicQuantizeLinear", _counted(call, call.need(0), call.arg(4)), count=3)
    if not looped_cell(call.node):
        return _with_states_of_floats(call, inputs, weights, recurrence)
    made = call.outs(
        QUANTIZED_RECURRENCE,
        _rows(call, inputs, weights),
        panels(call, _signed(call, recurrence.values), _GATES, together=2),
        *(first_state(call, index, directions, hidden, FLOAT) for index in (5, 6)),
        _factors(call, recurrence.scale, directions, hidden),
        _shifts(call, recurrence, directions),
        call.arg(4),
        count=4,
        domain=HIPDNN_DOMAIN,
        reverse=int(call.attr("direction", "forward") == "reverse"),
    )
    return made[:3]


def _weights(call: Call, index: int, factors: int) -> _Weights:
    values, scale, zero = call.need(index), call.need(factors), call.need(factors + 1)
    directions, width = call.size(values, 0), call.size(values, 2)
    for factor in (scale, zero):
        if call.dims(factor) not in ((directions,), (directions, width)):
            dims = list(call.dims(factor))
            raise Refusal("shape", f"{factor!r} of dims {dims}, expected [{directions}] or [{directions}, {width}]")
    scale = call.op("Expand", call.reshape(scale, directions, -1), call.ints(directions, width))
    first = call.slice(call.reshape(zero, directions, -1), 1, 0, 1)  # those of one direction are equal
    return _Weights(call.transpose(values, 0, 2, 1), scale, None if call.is_zero(zero) else first)


def _counted(call: Call, x: str, lengths: str | None) -> str:
    """The inputs, zeros behind the end of all sequences: what lies there has no part in the range."""
    if lengths is None:
        return x
    places = call.reshape(call.range(call.length(x, 0)), -1, 1, 1)
    longest = call.reduce("ReduceMax", call.cast(lengths, INT64), [0])
    return call.op("Where", call.op("Less", places, longest), x, call.number(0, x))


def _rows(call: Call, inputs: Sequence[str], weights: _Weights) -> str:
    """The inputs' product for all steps, plus biases: [steps, batch, directions * gates * hidden]."""
    codes, scale, zero = inputs
    values, bias = weights.values, call.arg(3)
    directions, width = call.size(values, 0), call.size(values, 1)
    if bias is not None:
        bias = call.reshape(call.op("Add", *call.split(bias, 1, [width, width])), -1)
    of_columns = weights.zero and call.reshape(call.op("Expand", weights.zero, call.ints(directions, width)), -1)
    columns = call.transpose(call.reshape(values, directions * width, -1), 1, 0)
    factors = call.reshape(weights.scale, -1)
    return call.op("MatMulIntegerToFloat", codes, columns, scale, factors, zero, of_columns, bias, domain=CONTRIB)


def _signed(call: Call, values: str) -> str:
    if call.kind(values) == INT8:
        return values
    return call.cast(call.op("Sub", call.cast(values, INT32), call.const(_MIDDLE, INT32)), INT8)


def _shifts(call: Call, weights: _Weights, directions: int) -> str:
    """[directions]: what signed weights lack of what they stand for."""
    middle = call.const(np.full(directions, 0 if call.kind(weights.values) == INT8 else _MIDDLE), INT32)
    if weights.zero is None:
        return middle
    return call.op("Sub", middle, call.reshape(call.cast(weights.zero, INT32), -1))


def _factors(call: Call, scale: str, directions: int, hidden: int) -> str:
    """The scales of columns as the kernel reads them, a list of [directions, panels, gates, columns of a panel]."""
    columns = panels_of(hidden) * PANEL
    made = call.reshape(scale, directions, _GATES, hidden)
    if columns > hidden:
        made = call.concat(2, made, call.const(np.zeros((directions, _GATES, columns - hidden)), FLOAT))
    made = call.reshape(made, directions, _GATES, -1, PANEL)
    return call.reshape(call.transpose(made, 0, 2, 1, 3), -1)


def _with_states_of_floats(
    call: Call, inputs: Sequence[str], weights: _Weights, recurrence: _Weights
) -> Sequence[str | None]:
    """LSTM of what the bytes stand for."""
    operands = [call.arg(index) for index in range(_OF_LSTM)]
    operands[0] = call.op("DequantizeLinear", *inputs)
    operands[1:3] = [_floats(call, weights), _floats(call, recurrence)]
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in call.node.attribute}
    return list(call.outs("LSTM", *operands, count=3, **attributes))


def _floats(call: Call, weights: _Weights) -> str:
    values = centred(call, weights.values, None)
    if weights.zero is not None:
        values = call.op("Sub", values, call.unsqueeze(call.cast(weights.zero, FLOAT), 2))
    return call.op("Mul", values, call.unsqueeze(weights.scale, 2))
