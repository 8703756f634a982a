"""Linear attention: a state per head that every token updates and reads."""

from collections.abc import Sequence

import numpy as np

from ...ops.spec import Refusal
from .attention import merge_heads, repeat_heads, scale_of_heads, split_heads
from .call import FLOAT, Call
from .registry import decomposes

_RULES = ("linear", "gated", "delta", "gated_delta")
MAX_STEPS = 256
"""Tokens are written out one by one; longer sequences would make too large a program."""


@decomposes("LinearAttention")
def linear_attention(call: Call) -> Sequence[str | None]:
    """LinearAttention in f32, token by token.

    Source: ONNX, LinearAttention-27.
    """
    q_heads, kv_heads = call.count("q_num_heads"), call.count("kv_num_heads")
    rule = call.one_of(_RULES, "update_rule", "gated_delta")
    query, steps = call.need(0), call.size(call.need(0), 1)
    if not 0 < steps <= MAX_STEPS:
        raise Refusal("shape", f"{steps} tokens, expected 1 to {MAX_STEPS}")
    kind, d = call.kind(query), call.size(query, 2) // q_heads
    q, k, v = (
        split_heads(call, call.cast(call.need(index), FLOAT), heads)
        for index, heads in enumerate((q_heads, kv_heads, kv_heads))
    )
    past, decay, beta = call.arg(3), call.arg(4), call.arg(5)
    gate = call.unsqueeze(call.op("Exp", split_heads(call, call.cast(decay, FLOAT), kv_heads)), 4) if decay else None
    rate = split_heads(call, call.cast(beta, FLOAT), call.size(beta, 2)) if beta and "delta" in rule else None
    state = call.cast(past, FLOAT) if past else None
    outputs = []
    for step in range(steps):
        q_t, k_t, v_t, gate_t, rate_t = (call.slice(x, 2, step, step + 1) if x else None for x in (q, k, v, gate, rate))
        state = _updated(call, state, call.transpose(k_t or "", 0, 1, 3, 2), v_t or "", gate_t, rate_t)
        outputs.append(call.op("MatMul", q_t, repeat_heads(call, state, q_heads)))
    scale = scale_of_heads(call, d)
    y = call.op("Mul", call.concat(2, *outputs), call.const(np.float32(scale)))
    return [call.cast(merge_heads(call, y), kind), call.cast(state or "", call.kind(past) if past else kind)]


def _updated(call: Call, state: str | None, k: str, v: str, gate: str | None, rate: str | None) -> str:
    """The state [b, heads, d_k, d_v] after a key [b, heads, d_k, 1] and a value [b, heads, 1, d_v]; None is a state of zeros."""
    if state and gate:
        state = call.op("Mul", state, call.squeeze(gate, 2))
    if rate:
        if state:
            v = call.op("Sub", v, call.op("MatMul", call.transpose(k, 0, 1, 3, 2), state))
        v = call.op("Mul", v, rate)
    written = call.op("MatMul", k, v)
    return call.op("Add", state, written) if state else written
