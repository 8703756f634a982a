"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from .call import Call
from .draws import F32, array_of, flag, one_of
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
