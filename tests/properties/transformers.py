"""Attention, rotary embedding and what else transformers are made of, of ONNX and of com.microsoft."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from .call import CONTRIB, Array, Call, Known
from .draws import F32, MATMUL_FLOATS, Dims, array_of, dims_of, flag, generator, ints, one_of
from .operators import Draw, operator

LOOSE = 32.0
BOTH = (True, True)
_BIAS, _SINK = 10, 11
"""Operands of GroupQueryAttention."""


def _f32(draw: Draw, *dims: int) -> Array:
    return array_of(draw, F32, dims, low=-1.5, high=1.5)


@operator("Attention")
def _attention(draw: Draw, op: str) -> Call:
    """Heads as a dim or packed, groups of them, masks of booleans and numbers, causal, with a softcap, with a past."""
    b, kv, s, t, d, e = (draw(st.integers(1, 2)), draw(st.integers(1, 2)), *(one_of(draw, 1, 3, 5) for _ in range(2)),
                         one_of(draw, 2, 4, 8), one_of(draw, 2, 4, 8))  # fmt: skip
    heads = kv * draw(st.integers(1, 2))
    dtype = one_of(draw, F32, F32, *MATMUL_FLOATS)
    past = one_of(draw, 0, 0, 3)
    attributes: dict[str, object] = {"is_causal": flag(draw)}
    if draw(st.booleans()):
        attributes["scale"] = 0.5
    if draw(st.booleans()):
        attributes["softcap"] = 2.0
    shapes: list[Dims] = [(b, heads, s, d), (b, kv, t, d), (b, kv, t, e)]
    q, k, v = (array_of(draw, dtype, dims, low=-1.5, high=1.5) for dims in shapes)
    if draw(st.booleans()):
        attributes |= {"q_num_heads": heads, "kv_num_heads": kv}
        q, k, v = (x.transpose(0, 2, 1, 3).reshape(b, x.shape[2], -1) for x in (q, k, v))
    mask = _mask(draw, dtype, one_of(draw, (s, t + past), (b, 1, s, t + past), (1, heads, s, t + past)))
    earlier = [array_of(draw, dtype, (b, kv, past, size), low=-1.5, high=1.5) for size in (d, e)] if past else []
    operands = [q, k, v, mask, *earlier]
    while operands[-1] is None:
        operands.pop()
    # ONNX counts what is visible from the end of the past on, ONNX Runtime from the first key.
    reference = "onnx" if past and attributes["is_causal"] else "onnxruntime"
    results = (True, True, True) if past else (True,)
    return Call(op, operands, attributes, results, opset=23, loose=LOOSE, reference=reference)


def _mask(draw: Draw, dtype: np.dtype, dims: Dims) -> Array | None:
    """Of booleans (every query sees the first key), of numbers, or none."""
    kind = one_of(draw, "none", "bool", "number")
    if kind == "none":
        return None
    if kind == "number":
        return array_of(draw, dtype, dims, low=-2, high=2)
    mask = array_of(draw, np.dtype(np.bool_), dims)
    mask[..., 0] = True
    return mask


@operator("FlexAttention", domain="ai.onnx.preview")
def _flex_attention(draw: Draw, op: str) -> Call:
    b, heads, s, d = 1, draw(st.integers(1, 2)), one_of(draw, 2, 5), one_of(draw, 4, 8)
    return Call(op, [_f32(draw, b, heads, s, d) for _ in range(3)], domain="ai.onnx.preview", opset=26, loose=LOOSE)


@operator("Attention", domain=CONTRIB)
def _contrib_attention(draw: Draw, op: str) -> Call:
    b, s, heads, d = draw(st.integers(1, 2)), one_of(draw, 1, 3, 5), draw(st.integers(1, 3)), one_of(draw, 4, 8)
    hidden = heads * d
    operands: list[Array | None] = [_f32(draw, b, s, hidden), _f32(draw, hidden, 3 * hidden), _f32(draw, 3 * hidden)]
    attributes = {"num_heads": heads, "unidirectional": flag(draw)}
    if draw(st.booleans()):
        operands.append(generator(draw).integers(1, s + 1, b).astype(np.int32))
    return Call(op, operands, attributes, domain=CONTRIB, loose=LOOSE)


@operator("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", domain=CONTRIB)
def _multi_head(draw: Draw, op: str) -> Call:
    """Keys of another length, a bias of the projections, a mask of keys, a past."""
    b, heads, d, t = draw(st.integers(1, 2)), draw(st.integers(1, 3)), one_of(draw, 4, 8), one_of(draw, 1, 4, 6)
    hidden = heads * d
    if op == "DecoderMaskedMultiHeadAttention":  # ONNX Runtime takes one token, and keys that are split
        q, k, v = _f32(draw, b, 1, hidden), _f32(draw, b, heads, t, d), _f32(draw, b, heads, t, d)
        return Call(op, [q, k, v], {"num_heads": heads}, domain=CONTRIB, loose=LOOSE)
    past = one_of(draw, 0, 0, 3)
    s = t if past else one_of(draw, 1, 3, 5)
    operands: list[Array | None] = [_f32(draw, b, s, hidden), _f32(draw, b, t, hidden), _f32(draw, b, t, hidden)]
    operands.append(_f32(draw, 3 * hidden) if draw(st.booleans()) else None)
    mask = generator(draw).integers(0, 2, (b, t)).astype(np.int32)
    mask[:, 0] = 1
    operands.append(mask if draw(st.booleans()) and not past else None)
    if past:
        operands += [None, _f32(draw, b, heads, past, d), _f32(draw, b, heads, past, d)]
    while operands[-1] is None:
        operands.pop()
    attributes = {"num_heads": heads, "unidirectional": flag(draw) if s == t else 0}
    return Call(op, operands, attributes, (True, True, True) if past else (True,), domain=CONTRIB, loose=LOOSE)


@operator("GroupQueryAttention", domain=CONTRIB)
def _group_query(draw: Draw, op: str) -> Call:
    """A prompt, or one token after a past; rotary embedding, a window, a softcap, a bias, a sink."""
    b, kv, d = draw(st.integers(1, 2)), draw(st.integers(1, 2)), 16  # which rotary embedding needs in ONNX Runtime
    heads = kv * draw(st.integers(1, 2))
    past = one_of(draw, 0, 3, 5)
    s = 1 if past else one_of(draw, 1, 4)
    total = past + s
    operands: list[Array | None] = [_f32(draw, b, s, heads * d), _f32(draw, b, s, kv * d), _f32(draw, b, s, kv * d)]
    operands += [_f32(draw, b, kv, past, d), _f32(draw, b, kv, past, d)] if past else [None, None]
    operands += [np.full(b, total - 1, np.int32), np.array(total, np.int32)]
    attributes: dict[str, object] = {"num_heads": heads, "kv_num_heads": kv}
    if draw(st.booleans()):
        operands += [_f32(draw, 16, d // 2), _f32(draw, 16, d // 2)]
        attributes |= {"do_rotary": 1, "rotary_interleaved": flag(draw)}
    if draw(st.booleans()):
        attributes["local_window_size"] = draw(st.integers(1, 4))
    if draw(st.booleans()):
        attributes["softcap"] = 2.0
    if draw(st.booleans()):
        operands += [None] * (_BIAS - len(operands)) + [_f32(draw, one_of(draw, 1, b), heads, s, total)]
    if draw(st.booleans()):
        operands += [None] * (_SINK - len(operands)) + [_f32(draw, heads)]
    return Call(op, operands, attributes, (True, True, True), domain=CONTRIB, loose=LOOSE)


@operator("RotaryEmbedding")
def _rotary(draw: Draw, op: str) -> Call:
    b, heads, s, d = draw(st.integers(1, 2)), draw(st.integers(1, 3)), one_of(draw, 1, 3, 5), one_of(draw, 4, 8)
    dtype = one_of(draw, *MATMUL_FLOATS)
    width = one_of(draw, 0, d // 2)
    half = (width or d) // 2
    attributes = {"interleaved": flag(draw), "rotary_embedding_dim": width}
    x = array_of(draw, dtype, (b, heads, s, d))
    if draw(st.booleans()):
        x, attributes["num_heads"] = array_of(draw, dtype, (b, s, heads * d)), heads
    positions = generator(draw).integers(0, 9, (b, s)) if draw(st.booleans()) else None
    caches = [
        array_of(draw, dtype, (9, half) if positions is not None else (b, s, half), low=-1, high=1) for _ in range(2)
    ]
    operands = [x, *caches, *([positions] if positions is not None else [])]
    return Call(op, operands, attributes, opset=23, loose=4.0)


@operator("RotaryEmbedding", domain=CONTRIB)
def _contrib_rotary(draw: Draw, op: str) -> Call:
    b, heads, s, d = draw(st.integers(1, 2)), draw(st.integers(1, 3)), one_of(draw, 1, 3, 5), one_of(draw, 4, 8)
    x = _f32(draw, b, s, heads * d) if draw(st.booleans()) else _f32(draw, b, heads, s, d)
    positions = generator(draw).integers(0, 9, (b, s)) if draw(st.booleans()) else ints(draw(st.integers(0, 4)))
    caches = [_f32(draw, 12, d // 2) for _ in range(2)]
    return Call(op, [x, positions, *caches], {"interleaved": flag(draw)}, domain=CONTRIB, loose=4.0)


@operator("EmbedLayerNormalization", domain=CONTRIB)
def _embed(draw: Draw, op: str) -> Call:
    b, s, hidden = draw(st.integers(1, 3)), draw(st.integers(1, 6)), one_of(draw, 4, 8)
    ids, segments = (generator(draw).integers(0, high, (b, s)).astype(np.int32) for high in (9, 2))
    tables = [_f32(draw, rows, hidden) for rows in (9, 8, 2)]
    scales = [_f32(draw, hidden), _f32(draw, hidden)]
    return Call(op, [ids, segments, *tables, *scales], {"epsilon": 1e-5}, (True, True), domain=CONTRIB, loose=LOOSE)


@operator("Gelu", "FastGelu", "QuickGelu", "BiasGelu", domain=CONTRIB)
def _gelu(draw: Draw, op: str) -> Call:
    x = array_of(draw, F32, dims_of(draw, 1, 4))
    bias = {"BiasGelu": True, "FastGelu": draw(st.booleans())}.get(op, False)
    attributes = {"alpha": one_of(draw, 1.702, 1.0)} if op == "QuickGelu" else {}
    return Call(
        op, [x, array_of(draw, F32, x.shape[-1:])] if bias else [x], attributes, domain=CONTRIB, atol=1e-6, loose=4.0
    )


@operator("SwiGLU")
def _swiglu(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 4, limit=400)
    return Call(
        op, [array_of(draw, F32, dims) for _ in range(2)], {"alpha": one_of(draw, 1.0, 1.5)}, opset=28, loose=4.0
    )


@operator("LinearAttention")
def _linear_attention(draw: Draw, op: str) -> Call:
    b, heads, s, d = draw(st.integers(1, 2)), draw(st.integers(1, 2)), draw(st.integers(1, 4)), one_of(draw, 2, 4)
    q, k, v = (_f32(draw, b, s, heads * d) for _ in range(3))
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "update_rule": "linear"}
    return Call(op, [q, k, v], attributes, BOTH, opset=27, loose=LOOSE)


@operator("CausalConvWithState")
def _causal_conv(draw: Draw, op: str) -> Call:
    b, c, length, k = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 7)), draw(st.integers(2, 4))
    operands = [_f32(draw, b, c, length), _f32(draw, c, 1, k), *([_f32(draw, c)] if draw(st.booleans()) else [])]
    return Call(op, operands, results=BOTH, opset=27, loose=8.0)


@operator("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _loss(draw: Draw, op: str) -> Call:
    n, c, *spatial = draw(st.integers(1, 4)), draw(st.integers(2, 5)), *dims_of(draw, 0, 2, limit=20)
    target = generator(draw).integers(0, c, (n, *spatial))
    weight = [array_of(draw, F32, (c,), low=0.25, high=1)] if draw(st.booleans()) else []
    attributes = {"reduction": one_of(draw, "none", "sum", "mean")}
    return Call(op, [_f32(draw, n, c, *spatial), target, *weight], attributes, opset=13, loose=8.0)


@operator("Dropout")
def _dropout(draw: Draw, op: str) -> Call:
    if draw(st.booleans()):
        return Call(op, [array_of(draw, F32, dims_of(draw))])
    ratio, training = np.array(one_of(draw, 0.0, 0.25, 0.7), np.float32), np.array(draw(st.integers(0, 3)) > 0)
    rest = [Known(ratio) if draw(st.booleans()) else ratio, Known(training) if draw(st.booleans()) else training]
    x = array_of(draw, F32, dims_of(draw))
    return Call(op, [x, *rest], {"seed": draw(st.integers(0, 2**31 - 1))}, results=(True, True), reference="bits")
