"""Operators on quantized numbers. ONNX rounds halves to even; a product that is computed in another order may fall to either side."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from int8_sums import random_weights

from .call import CONTRIB, Array, Call, Known
from .draws import F32, array_of, axis_of, dims_of, flag, generator, one_of
from .operators import Draw, operator

_BYTES = (np.uint8, np.int8)


def _integers(draw: Draw, dtype: Any, dims: tuple[int, ...]) -> Array:
    info = np.iinfo(dtype)
    return generator(draw).integers(info.min, info.max, dims, dtype, endpoint=True)


def _weights(draw: Draw, dims: tuple[int, ...]) -> Array:
    return random_weights(generator(draw), dims)


def _scale(draw: Draw, dims: tuple[int, ...] = ()) -> Array:
    return np.asarray(generator(draw).uniform(0.02, 0.3, dims), np.float32)


def _zero(draw: Draw, dtype: Any, dims: tuple[int, ...] = ()) -> Array:
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return np.asarray(generator(draw).integers(low, 20, dims), dtype)


def _triple(draw: Draw, dtype: Any, dims: tuple[int, ...]) -> list[Array]:
    return [_integers(draw, dtype, dims), _scale(draw), _zero(draw, dtype)]


@operator("QuantizeLinear", "DequantizeLinear")
def _linear(draw: Draw, op: str) -> Call:
    """Per tensor, per axis or in blocks of an axis."""
    dtype = one_of(draw, np.uint8, np.int8, np.uint16, np.int16)
    dims = dims_of(draw, 1, 4, limit=600)
    axis = axis_of(draw, len(dims))
    attributes: dict[str, object] = {"axis": axis}
    factor: tuple[int, ...] = ()
    way = one_of(draw, "tensor", "axis", "block")
    if way == "axis":
        factor = (dims[axis],)
    elif way == "block":
        block = draw(st.integers(1, 3))
        place = axis % len(dims)
        dims = (*dims[:place], dims[place] * block, *dims[place + 1 :])
        factor = (*dims[:place], dims[place] // block, *dims[place + 1 :])
        attributes["block_size"] = block
    operands = [_scale(draw, factor), _zero(draw, dtype, factor)]
    if op == "QuantizeLinear":
        return Call(op, [array_of(draw, F32, dims, low=-30, high=30), *operands], attributes)
    return Call(op, [_integers(draw, dtype, dims), *operands], attributes)


@operator("QuantizeLinear", "DequantizeLinear", domain=CONTRIB)
def _contrib_linear(draw: Draw, op: str) -> Call:
    """What ONNX Runtime's quantizer writes of 16 bits in older opsets."""
    dtype, dims = one_of(draw, np.uint8, np.int8, np.uint16, np.int16), dims_of(draw, 1, 4, limit=600)
    axis = axis_of(draw, len(dims))
    factor = (dims[axis],) if draw(st.booleans()) else ()
    operands = [_scale(draw, factor), _zero(draw, dtype, factor)]
    x = array_of(draw, F32, dims, low=-30, high=30) if op == "QuantizeLinear" else _integers(draw, dtype, dims)
    return Call(op, [x, *operands], {"axis": axis}, domain=CONTRIB)


@operator("DynamicQuantizeLinear")
def _dynamic(draw: Draw, op: str) -> Call:
    return Call(op, [array_of(draw, F32, dims_of(draw, 1, 4), low=-9, high=9)], results=(True, True, True), atol=1.0)


@operator("MatMulInteger")
def _matmul_integer(draw: Draw, op: str) -> Call:
    m, k, n = (one_of(draw, 1, 2, 5, 17) for _ in range(3))
    a, b = one_of(draw, *_BYTES), one_of(draw, *_BYTES)
    zeros = [_zero(draw, a), _zero(draw, b, one_of(draw, (), (n,)))][: draw(st.integers(0, 2))]
    batch = dims_of(draw, 0, 2, limit=10)
    right = _weights(draw, (k, n)) if b is np.int8 else _integers(draw, b, (k, n))
    return Call(op, [_integers(draw, a, (*batch, m, k)), right, *zeros])


@operator("ConvInteger")
def _conv_integer(draw: Draw, op: str) -> Call:
    """Unsigned operands: ONNX Runtime has no others."""
    c, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    x, w = _integers(draw, np.uint8, (1, c, 6, 6)), _integers(draw, np.uint8, (m, c, 3, 3))
    zeros = [_zero(draw, np.uint8), _zero(draw, np.uint8)][: draw(st.integers(0, 2))]
    return Call(
        op,
        [x, w, *zeros],
        {"pads": [draw(st.integers(0, 1)) for _ in range(4)], "strides": [draw(st.integers(1, 2))] * 2},
    )


@operator("QLinearMatMul")
def _qlinear_matmul(draw: Draw, op: str) -> Call:
    m, k, n = (one_of(draw, 1, 2, 5, 17) for _ in range(3))
    dtype = one_of(draw, *_BYTES)
    result = [np.float32(one_of(draw, 1.0, 3.0)), _zero(draw, dtype)]
    return Call(op, [*_triple(draw, dtype, (m, k)), *_triple(draw, dtype, (k, n)), *map(np.asarray, result)], atol=1.0)


@operator("QLinearConv")
def _qlinear_conv(draw: Draw, op: str) -> Call:
    c, m = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    x = _triple(draw, np.uint8, (1, c, 6, 6))
    w = [_weights(draw, (m, c, 3, 3)), _scale(draw, (m,)), np.zeros(m, np.int8)]
    y = [np.asarray(one_of(draw, 3.0, 20.0), np.float32), _zero(draw, np.uint8)]
    bias = [generator(draw).integers(-99, 99, m).astype(np.int32)] if draw(st.booleans()) else []
    attributes = {"pads": [draw(st.integers(0, 1)) for _ in range(4)], "strides": [draw(st.integers(1, 2))] * 2}
    return Call(op, [*x, *w, *y, *bias], attributes, atol=1.0)


@operator("QLinearAdd", "QLinearMul", domain=CONTRIB)
def _qlinear_binary(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 1, 3, limit=600)
    dtype = one_of(draw, *_BYTES)
    operands = [*_triple(draw, dtype, dims), *_triple(draw, dtype, dims[-1:] if draw(st.booleans()) else dims)]
    return Call(op, [*operands, _scale(draw), _zero(draw, dtype)], domain=CONTRIB, atol=1.0)


@operator("QLinearLeakyRelu", "QLinearSigmoid", "QLinearGlobalAveragePool", domain=CONTRIB)
def _qlinear_unary(draw: Draw, op: str) -> Call:
    dtype = np.uint8 if op == "QLinearGlobalAveragePool" else one_of(draw, *_BYTES)
    dims = (1, draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    result = [np.asarray(1 / 64, np.float32), _zero(draw, dtype)]
    # ONNX Runtime looks results up in a table that it makes from known scales.
    operands = [Known(array) for array in (*_triple(draw, dtype, ())[1:], *result)]
    attributes = {"alpha": 0.25} if op == "QLinearLeakyRelu" else {}
    return Call(op, [_integers(draw, dtype, dims), *operands], attributes, domain=CONTRIB, atol=1.0)


@operator("QLinearAveragePool", domain=CONTRIB)
def _qlinear_pool(draw: Draw, op: str) -> Call:
    dtype, is_last = one_of(draw, *_BYTES), draw(st.integers(0, 1))
    dims = (2, 6, 7, 3) if is_last else (2, 3, 6, 7)
    attributes = {
        "channels_last": is_last,
        "kernel_shape": [draw(st.integers(2, 3)) for _ in range(2)],
        "pads": [draw(st.integers(0, 1)) for _ in range(4)],
        "strides": [draw(st.integers(1, 2))] * 2,
        "count_include_pad": draw(st.integers(0, 1)),
    }
    operands = [*_triple(draw, dtype, dims), _scale(draw), _zero(draw, dtype)]
    return Call(op, operands, attributes, domain=CONTRIB, atol=1.0)


@operator("QLinearSoftmax", domain=CONTRIB)
def _qlinear_softmax(draw: Draw, op: str) -> Call:
    dtype, dims = one_of(draw, *_BYTES), dims_of(draw, 2, 3, limit=600)
    # ONNX Runtime looks exponentials up in a table that it makes from known scales.
    operands = [*_triple(draw, dtype, ())[1:], np.asarray(1 / 256, np.float32), _zero(draw, dtype)]
    attributes = {"axis": axis_of(draw, len(dims)), "opset": one_of(draw, 12, 13)}
    return Call(op, [_integers(draw, dtype, dims), *map(Known, operands)], attributes, domain=CONTRIB, atol=1.0)


@operator("QLinearWhere", domain=CONTRIB)
def _qlinear_where(draw: Draw, op: str) -> Call:
    dtype, dims = one_of(draw, *_BYTES), dims_of(draw, 1, 3, limit=600)
    triples = [Known(array) if not array.ndim else array for _ in range(2) for array in _triple(draw, dtype, dims)]
    result = [Known(_scale(draw)), Known(_zero(draw, dtype))]
    chosen = generator(draw).integers(0, 2, dims).astype(bool)
    return Call(op, [chosen, *triples, *result], domain=CONTRIB, atol=1.0)


@operator("QLinearConcat", domain=CONTRIB)
def _qlinear_concat(draw: Draw, op: str) -> Call:
    dims = dims_of(draw, 2, 2, limit=100)
    parts = [_triple(draw, np.uint8, (size, dims[1])) for size in (dims[0], draw(st.integers(1, 4)))]
    operands = [_scale(draw), _zero(draw, np.uint8), *(array for part in parts for array in part)]
    known = [array if array.ndim else Known(array) for array in operands]
    return Call(op, known, {"axis": 0}, domain=CONTRIB, atol=1.0)


@operator("QGemm", domain=CONTRIB)
def _qgemm(draw: Draw, op: str) -> Call:
    m, k, n = (one_of(draw, 1, 3, 8) for _ in range(3))
    flags = {"transA": flag(draw), "transB": flag(draw), "alpha": one_of(draw, 1.0, 0.5)}
    a = _triple(draw, np.uint8, (k, m) if flags["transA"] else (m, k))
    b = [_weights(draw, (n, k) if flags["transB"] else (k, n)), _scale(draw), _zero(draw, np.int8)]
    bias = generator(draw).integers(-99, 99, n).astype(np.int32) if draw(st.booleans()) else None
    result = [np.asarray(3.0, np.float32), _zero(draw, np.uint8)] if draw(st.booleans()) else []
    return Call(op, [*a, *b, bias, *result], flags, domain=CONTRIB, atol=1.0 if result else 0.0, loose=8.0)


@operator("MatMulIntegerToFloat", domain=CONTRIB)
def _to_float(draw: Draw, op: str) -> Call:
    m, k, n = (one_of(draw, 1, 3, 8) for _ in range(3))
    operands = [
        _integers(draw, np.uint8, (m, k)),
        _weights(draw, (k, n)),
        _scale(draw),
        _scale(draw, one_of(draw, (), (n,))),
    ]
    zeros = [_zero(draw, np.uint8), _zero(draw, np.int8)]
    bias = [array_of(draw, F32, (n,))] if draw(st.booleans()) else []
    return Call(op, [*operands, *zeros, *bias], domain=CONTRIB, loose=8.0)


@operator("DynamicQuantizeMatMul", domain=CONTRIB)
def _dynamic_matmul(draw: Draw, op: str) -> Call:
    """A number that falls on the edge of two integers may go to either: one step of its scale times one weight."""
    m, k, n = (one_of(draw, 1, 3, 8) for _ in range(3))
    b = [_weights(draw, (k, n)), np.asarray(0.05, np.float32), _zero(draw, np.int8)]
    return Call(op, [array_of(draw, F32, (m, k)), *b], domain=CONTRIB, atol=0.4, loose=8.0)


@operator("MatMulNBits", domain=CONTRIB)
def _nbits(draw: Draw, op: str) -> Call:
    bits, block, n = one_of(draw, 4, 8), one_of(draw, 16, 32, 128), draw(st.integers(1, 20))
    k = one_of(draw, 16, 32, 40, 64)
    blocks = -(-k // block)
    x = array_of(draw, F32, (*dims_of(draw, 0, 2, limit=10), draw(st.integers(1, 3)), k))
    weights = [Known(_integers(draw, np.uint8, (n, blocks, block * bits // 8))), Known(_scale(draw, (n, blocks)))]
    zeros: list[Known | None] = [None]
    if draw(st.booleans()):
        zeros = [Known(_integers(draw, np.uint8, (n, -(-blocks * bits // 8))))]
    elif bits == 4 and draw(st.booleans()):  # ONNX Runtime has no floats for 8 bits
        zeros = [Known(generator(draw).uniform(0, 15, (n, blocks)).astype(np.float32))]
    bias = [None, array_of(draw, F32, (n,))] if draw(st.booleans()) else []
    attributes = {"bits": bits, "block_size": block, "K": k, "N": n, "accuracy_level": one_of(draw, 0, 1)}
    return Call(op, [x, *weights, *zeros, *bias], attributes, domain=CONTRIB, loose=64.0)


@operator("GatherBlockQuantized", domain=CONTRIB)
def _gather_block_quantized(draw: Draw, op: str) -> Call:
    bits, block, blocks = one_of(draw, 4, 8), one_of(draw, 16, 32, 128), one_of(draw, 2, 3, 4)
    rows = draw(st.integers(1, 20))
    table = Known(_integers(draw, np.uint8, (rows, blocks * block * bits // 8)))
    indices = generator(draw).integers(0, rows, dims_of(draw, 0, 3, limit=20))
    zeros = [Known(_integers(draw, np.uint8, (rows, -(-blocks * bits // 8))))] if draw(st.booleans()) else []
    attributes = {"bits": bits, "block_size": block, "gather_axis": 0, "quantize_axis": 1}
    return Call(op, [table, indices, Known(_scale(draw, (rows, blocks))), *zeros], attributes, domain=CONTRIB)


@operator("QMoE", domain=CONTRIB)
def _qmoe(draw: Draw, op: str) -> Call:
    """Experts of 4 bits, since ONNX Runtime rounds rows to 8 bits for those of 8."""
    experts, block, rows = draw(st.integers(2, 5)), one_of(draw, 16, 32), draw(st.integers(1, 6))
    hidden, inner = one_of(draw, 32, 64), 32
    x, router = array_of(draw, F32, (rows, hidden), low=-1, high=1), _apart(draw, rows, experts)
    operands: list[Array | Known | None] = [x, router]
    for n, depth in ((2 * inner, hidden), (hidden, inner)):
        operands.append(Known(_integers(draw, np.uint8, (experts, n, depth // 2))))
        operands.append(Known(_scale(draw, (experts, n, depth // block))))
        operands.append(Known(array_of(draw, F32, (experts, n), low=-1, high=1)) if draw(st.booleans()) else None)
    attributes = {
        "k": draw(st.integers(1, experts)),
        "block_size": block,
        "normalize_routing_weights": draw(st.integers(0, 1)),
        "activation_type": "swiglu",
        "swiglu_fusion": 1,
        "activation_alpha": 1.702,
        "activation_beta": 1.0,
        "swiglu_limit": 7.0,
    }
    return Call(op, operands, attributes, domain=CONTRIB, loose=64.0)


@operator("MoE", domain=CONTRIB)
def _moe(draw: Draw, op: str) -> Call:
    experts, rows, hidden, inner = draw(st.integers(2, 5)), draw(st.integers(1, 6)), one_of(draw, 4, 16, 24), 8
    operands: list[Array | Known | None] = [
        array_of(draw, F32, (rows, hidden), low=-1, high=1),
        _apart(draw, rows, experts),
    ]
    for n, depth in ((inner, hidden), (hidden, inner)):
        operands.append(Known(array_of(draw, F32, (experts, n, depth), low=-1, high=1)))
        operands.append(array_of(draw, F32, (experts, n), low=-1, high=1) if draw(st.booleans()) else None)
    attributes = {
        "k": draw(st.integers(1, experts)),
        "normalize_routing_weights": draw(st.integers(0, 1)),
        "activation_type": one_of(draw, "relu", "gelu", "silu", "identity"),
    }
    return Call(op, operands, attributes, domain=CONTRIB, loose=64.0)


def _apart(draw: Draw, rows: int, experts: int) -> Array:
    """Scores of experts in any order, far enough apart that rounding chooses none of them."""
    random = generator(draw)
    return np.stack([random.permutation(experts) for _ in range(rows)]).astype(np.float32)


@operator("MatMulBnb4", domain=CONTRIB)
def _bnb4(draw: Draw, op: str) -> Call:
    block, n, k = one_of(draw, 16, 32, 128), draw(st.integers(1, 12)), one_of(draw, 16, 32, 40)
    x = array_of(draw, F32, (*dims_of(draw, 0, 2, limit=10), draw(st.integers(1, 3)), k))
    operands = [x, Known(_integers(draw, np.uint8, (n * k // 2,))), Known(_scale(draw, (-(-n * k // block),)))]
    attributes = {"block_size": block, "K": k, "N": n, "quant_type": draw(st.integers(0, 1))}
    return Call(op, operands, attributes, domain=CONTRIB, loose=64.0)
