"""LSTM, GRU, RNN, and LSTM of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from int8_sums import random_weights

from .call import CONTRIB, Call
from .draws import F32, array_of, flag, generator, one_of
from .operators import Draw, operator

_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_ACTIVATIONS = {"LSTM": 3, "GRU": 2, "RNN": 1}
_LOOSE = 64.0
"""A state goes through all steps."""


@operator("LSTM", "GRU", "RNN")
def _recurrent(draw: Draw, op: str) -> Call:
    """Every direction, with and without biases, initial states, lengths of sequences, peepholes, clip and stated activations."""
    steps, batch, inner, hidden = (draw(st.integers(1, 4)) for _ in range(4))
    direction = one_of(draw, "forward", "reverse", "bidirectional")
    count, gates = 2 if direction == "bidirectional" else 1, _GATES[op]

    def optional(*dims: int) -> Any:
        return array_of(draw, F32, dims, low=-1, high=1) if draw(st.booleans()) else None

    x, weights, recurrence = (
        array_of(draw, F32, dims, low=-1, high=1)
        for dims in ((steps, batch, inner), (count, gates * hidden, inner), (count, gates * hidden, hidden))
    )
    lengths = np.array([draw(st.integers(1, steps)) for _ in range(batch)], np.int32) if draw(st.booleans()) else None
    operands = [x, weights, recurrence, optional(count, 2 * gates * hidden), lengths, optional(count, batch, hidden)]
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    if op == "LSTM":
        # ONNX Runtime takes both initial states or none.
        cell = None if operands[5] is None else array_of(draw, F32, (count, batch, hidden), low=-1, high=1)
        operands += [cell, optional(count, 3 * hidden)]
    if op == "GRU":
        attributes["linear_before_reset"] = flag(draw)
    if draw(st.booleans()):
        attributes["clip"] = 0.5
    if draw(st.booleans()):
        names = ("Sigmoid", "Tanh", "Relu", "HardSigmoid", "Softsign")
        attributes["activations"] = [one_of(draw, *names) for _ in range(_ACTIVATIONS[op] * count)]
    return Call(
        op, operands, attributes, (True,) * (3 if op == "LSTM" else 2), opset=one_of(draw, 14, 22), loose=_LOOSE
    )


@operator("DynamicQuantizeLSTM", domain=CONTRIB)
def _quantized(draw: Draw, op: str) -> Call:
    """Weights of either kind of bytes, with scales per tensor or per column.

    An input or a state halfway between two bytes may become either: that changes gates by a step of their range, 1/100, times a weight.
    """
    steps, batch, inner, hidden = (draw(st.integers(1, 5)) for _ in range(4))
    direction = one_of(draw, "forward", "reverse", "bidirectional")
    count, random = 2 if direction == "bidirectional" else 1, generator(draw)
    is_signed, is_per_column = draw(st.booleans()), draw(st.booleans())
    factors = (count, 4 * hidden) if is_per_column else (count,)

    def optional(*dims: int) -> Any:
        return array_of(draw, F32, dims, low=-1, high=1) if draw(st.booleans()) else None

    def weights(rows: int) -> list[Any]:
        dims = (count, rows, 4 * hidden)
        if is_signed:
            values, zero = random_weights(random, dims), np.zeros(factors, np.int8)
        else:
            values = random.integers(0, 255, dims, np.uint8, endpoint=True)
            zero = random.integers(100, 150, count, np.uint8)
            if is_per_column:  # ONNX Runtime wants one number then
                zero = np.full(factors, zero[0])
        return [values, random.uniform(0.002, 0.01, factors).astype(F32), zero]

    x = array_of(draw, F32, (steps, batch, inner), low=-1, high=1)
    lengths = random.integers(1, steps, batch, np.int32, endpoint=True) if draw(st.booleans()) else None
    state = optional(count, batch, hidden)
    cell = None if state is None else array_of(draw, F32, (count, batch, hidden), low=-1, high=1)
    (w, *of_w), (r, *of_r) = weights(inner), weights(hidden)
    attributes: dict[str, object] = {"hidden_size": hidden, "direction": direction}
    peepholes = None
    if draw(st.booleans()) and draw(st.booleans()):
        peepholes, attributes["clip"] = optional(count, 3 * hidden), 0.5
    operands = [x, w, r, optional(count, 8 * hidden), lengths, state, cell, peepholes, *of_w, *of_r]
    return Call(op, operands, attributes, (True,) * 3, domain=CONTRIB, atol=0.02, loose=_LOOSE)
