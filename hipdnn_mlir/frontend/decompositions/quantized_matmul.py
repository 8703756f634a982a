"""Matmuls and convolutions of quantized values, in f32 that holds the integers exactly."""

from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .call import FLOAT, INT32, Call
from .quantized import centred, rounded
from .registry import CONTRIB, decomposes

_MATRIX = 2
"""Dims."""
EXACT = 1 << 24
"""Integers up to this are exact in f32."""
_LOW = 16
"""Where sums would not be exact, an operand is split into multiples of this and what remains."""
_MIDDLES = 0x88
"""The middle of 4 bits, twice."""
_ROUNDS = 4
"""The accuracy level from which on the first operand may be rounded to 8 bits."""
_NAMES: dict[int, str] = {TensorProto.UINT8: "u8", TensorProto.INT8: "i8", FLOAT: "f32"}
_FP4 = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""Numbers of 3 bits; the fourth bit is the sign."""
_NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
        -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
        0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)  # fmt: skip
_NAMED = {0: (*_FP4, *(-number for number in _FP4)), 1: _NF4}
"""By quant_type, what 4 bits name."""
_CONV = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def _bound(call: Call, x: str, zero: str | None) -> int:
    """The largest magnitude of x - zero."""
    return 255 if zero or call.kind(x) == TensorProto.UINT8 else 128


def _exact(call: Call, a: str, b: str, terms: int, bound: int, product: Callable[[str, str], str]) -> str:
    """The product in int32: of the whole operands, or of the high and low parts of the first, whose sums are exact in f32."""
    if terms * bound <= EXACT:
        return call.cast(product(a, b), INT32)
    if terms * _LOW * 255 > EXACT:
        raise Refusal("shape", f"a sum of {terms} products is not exact in f32")
    base = call.const(_LOW, FLOAT)
    high = call.op("Floor", call.op("Div", a, base))
    low = call.op("Sub", a, call.op("Mul", high, base))
    parts = (call.cast(product(part, b), INT32) for part in (high, low))
    return call.op("Add", call.op("Mul", next(parts), call.const(_LOW, INT32)), next(parts))


@decomposes("MatMulInteger")
def matmul_integer(call: Call) -> Sequence[str | None]:
    """MatMulInteger: zero points per tensor, per row of the first operand or per column of the second.

    Source: ONNX, MatMulInteger-10.
    """
    a, b, a_zero, b_zero = call.need(0), call.need(1), call.arg(2), call.arg(3)
    left, right = _rows_centred(call, a, a_zero), centred(call, b, b_zero, -1)
    bound = _bound(call, a, a_zero) * _bound(call, b, b_zero)
    return [_exact(call, left, right, call.size(a, -1), bound, lambda x, y: call.op("MatMul", x, y))]


def _rows_centred(call: Call, a: str, zero: str | None) -> str:
    if zero and call.rank(zero) > 1:  # [..., m, 1] as it is
        return call.op("Sub", call.cast(a, FLOAT), call.cast(zero, FLOAT))
    return centred(call, a, zero, -2)


@decomposes("ConvInteger")
def conv_integer(call: Call) -> Sequence[str | None]:
    """ConvInteger: the zero point of w per tensor or per result channel.

    Source: ONNX, ConvInteger-10.
    """
    x, w, x_zero, w_zero = call.need(0), call.need(1), call.arg(2), call.arg(3)
    left, right = centred(call, x, x_zero), centred(call, w, w_zero, 0)
    bound = _bound(call, x, x_zero) * _bound(call, w, w_zero)
    return [_exact(call, left, right, _terms(call, w), bound, lambda a, b: _conv(call, a, b, None))]


def _terms(call: Call, w: str) -> int:
    return int(np.prod([call.size(w, axis) for axis in range(1, call.rank(w))]))


def _conv(call: Call, x: str, w: str, bias: str | None) -> str:
    return call.op("Conv", x, w, bias, **{name: call.attr(name) for name in _CONV})


def _is_integer(call: Call, x: str, w: str, x_zero: str, w_zero: str | None) -> bool:
    """Whether x has one zero point, and w is of signed integers without any, as rows of the table take them."""
    shift = call.value(w_zero) if w_zero else np.zeros(1)
    is_signed = call.kind(w) == TensorProto.INT8 and shift is not None and not shift.any()
    one = call.dims(x_zero) in ((), (1,))
    return is_signed and one and call.kind(x) in (TensorProto.UINT8, TensorProto.INT8)


def _is_integer_product(call: Call, a: str, b: str, a_zero: str, b_zero: str | None) -> bool:
    """The same of a product of matrices with one matrix."""
    return call.rank(a) >= _MATRIX and call.rank(b) == _MATRIX and _is_integer(call, a, b, a_zero, b_zero)


def _channels(call: Call, ratio: str, bias: str | None, y_zero: str, count: int) -> tuple[str, str]:
    """Factors and offsets of the sums of channels."""
    factor, zero = _wide(call, ratio, count), _wide(call, call.cast(y_zero, FLOAT), count)
    if bias is None:
        return factor, zero
    return factor, call.op("Add", call.op("Mul", _wide(call, call.cast(bias, FLOAT), count), factor), zero)


def _wide(call: Call, value: str, count: int) -> str:
    """One number, or one per channel, as a vector of all channels."""
    return call.op("Expand", call.reshape(value, -1), call.ints(count))


def _integers(call: Call, a: str, b: str, a_zero: str, channels: tuple[str, str], kind: int) -> str:
    zero = call.reshape(call.cast(a_zero, INT32), -1)
    return call.op("QuantizedMatMul", a, b, zero, *channels, domain=HIPDNN_DOMAIN, to=_NAMES[kind])


def _ratio(call: Call, a_scale: str, b_scale: str, y_scale: str) -> str:
    return call.op("Div", call.op("Mul", a_scale, b_scale), y_scale)


@decomposes("QLinearConv")
def qlinear_conv(call: Call) -> Sequence[str | None]:
    """QLinearConv: sums of up to 2^24 are exact, larger ones are rounded as f32 is.

    Source: ONNX, QLinearConv-10.
    """
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (call.need(index) for index in range(8))
    bias = call.arg(8)
    if _is_integer(call, x, w, x_zero, w_zero) and call.attr("auto_pad", "NOTSET") in ("NOTSET", b"NOTSET"):
        channels = _channels(call, _ratio(call, x_scale, w_scale, y_scale), bias, y_zero, call.size(w, 0))
        stated = {name: call.attr(name) for name in ("dilations", "group", "pads", "strides")}
        to = _NAMES[call.kind(y_zero)]
        return [
            call.op("QuantizedConv", x, w, call.cast(x_zero, INT32), *channels, domain=HIPDNN_DOMAIN, to=to, **stated)
        ]
    left, right = centred(call, x, x_zero), centred(call, w, w_zero, 0)
    y = _conv(call, left, right, call.cast(bias, FLOAT) if bias else None)
    ratio = _ratio(call, x_scale, w_scale, y_scale)
    if call.rank(w_scale) == 1 and call.dims(w_scale)[0] != 1:
        ratio = call.reshape(ratio, -1, *[1] * (call.rank(x) - 2))
    return [rounded(call, call.op("Mul", y, ratio), y_zero, call.kind(y_zero))]


@decomposes("QLinearMatMul")
def qlinear_matmul(call: Call) -> Sequence[str | None]:
    """QLinearMatMul: sums of up to 2^24 are exact, larger ones are rounded as f32 is.

    Source: ONNX, QLinearMatMul-21.
    """
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (call.need(index) for index in range(8))
    if _is_integer_product(call, a, b, a_zero, b_zero) and call.dims(a_scale) in ((), (1,)):
        ratio = _ratio(call, call.cast(a_scale, FLOAT), call.cast(b_scale, FLOAT), call.cast(y_scale, FLOAT))
        return [_integers(call, a, b, a_zero, _channels(call, ratio, None, y_zero, call.size(b, 1)), call.kind(y_zero))]
    if call.rank(a_scale) == 1 and call.dims(a_scale)[0] != 1:
        a_scale = call.unsqueeze(a_scale, 1)
    y = call.op("MatMul", _rows_centred(call, a, a_zero), centred(call, b, b_zero, -1))
    ratio = _ratio(call, call.cast(a_scale, FLOAT), call.cast(b_scale, FLOAT), call.cast(y_scale, FLOAT))
    return [rounded(call, call.op("Mul", y, ratio), y_zero, call.kind(y_zero))]


@decomposes("QLinearMatMulWithBias", domain=HIPDNN_DOMAIN)
def qlinear_matmul_with_bias(call: Call) -> Sequence[str | None]:
    """QLinearMatMul of weights that have no zero point, and a bias of floats per column: one rounding behind the sum.

    Source: ONNX, QLinearMatMul-21.
    """
    a, a_scale, a_zero, b, b_scale, _, y_scale, y_zero, bias = (call.need(index) for index in range(9))
    columns, rank = call.size(b, 1), max(call.rank(a), call.rank(bias))
    factor = _wide(call, _ratio(call, a_scale, b_scale, y_scale), columns)
    offset = call.op("Add", call.op("Div", _wide(call, bias, columns), y_scale), call.cast(y_zero, FLOAT))
    rows = call.unsqueeze(a, 0) if call.rank(a) < _MATRIX else a
    y = _integers(call, rows, b, a_zero, (factor, offset), call.kind(y_zero))
    if rank < _MATRIX:
        return [call.reshape(y, -1)]
    return [call.unsqueeze(y, *range(rank - call.rank(rows))) if rank > call.rank(rows) else y]


def _is_row(call: Call, bias: str) -> bool:
    """Whether a bias is one number, or one per column."""
    return all(size == 1 for size in call.dims(bias)[:-1])


@decomposes("QGemm", domain=CONTRIB)
def qgemm(call: Call) -> Sequence[str | None]:
    """QGemm: alpha * A x B + C on integers, scaled; f32 without a scale of the result.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QGemm.
    """
    a, a_scale, a_zero, b, b_scale, b_zero = (call.need(index) for index in range(6))
    bias, y_scale, y_zero = call.arg(6), call.arg(7), call.arg(8)
    has_alpha = call.attr("alpha", 1.0) != 1.0
    if (
        _is_integer_product(call, a, b, a_zero, b_zero)
        and (bias is None or _is_row(call, bias))
        and y_scale
        and y_zero
        and not call.attr("transA", 0)
        and not has_alpha
    ):
        weights = call.transpose(b, 1, 0) if call.attr("transB", 0) else b
        channels = _channels(call, _ratio(call, a_scale, b_scale, y_scale), bias, y_zero, call.size(weights, 1))
        return [_integers(call, a, weights, a_zero, channels, call.kind(y_zero))]
    left = centred(call, a, a_zero)
    right = centred(call, b, b_zero, 0 if call.attr("transB", 0) else 1)
    left = call.transpose(left, 1, 0) if call.attr("transA", 0) else left
    right = call.transpose(right, 1, 0) if call.attr("transB", 0) else right
    y = call.op("MatMul", left, right)
    if bias:
        y = call.op("Add", y, call.cast(bias, FLOAT))
    scale = call.op("Mul", a_scale, b_scale)
    if has_alpha:
        scale = call.op("Mul", scale, call.const(call.attr("alpha"), FLOAT))
    if y_scale is None:
        return [call.op("Mul", y, scale)]
    kind = call.kind(y_zero) if y_zero else call.kind(a)
    return [rounded(call, call.op("Mul", y, call.op("Div", scale, y_scale)), y_zero, kind)]


@decomposes("MatMulIntegerToFloat", domain=CONTRIB)
def matmul_integer_to_float(call: Call) -> Sequence[str | None]:
    """MatMulIntegerToFloat: the matmul of the values that the integers stand for, plus a bias.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.MatMulIntegerToFloat.
    """
    a, b, a_scale, b_scale = (call.need(index) for index in range(4))
    a_zero, b_zero, bias = call.arg(4), call.arg(5), call.arg(6)
    if a_zero and _is_integer_product(call, a, b, a_zero, b_zero) and call.dims(a_scale) in ((), (1,)):
        columns = call.size(b, 1)
        factor = _wide(call, call.op("Mul", a_scale, b_scale), columns)
        offset = bias or call.const(np.zeros(columns, np.float32))
        return [_integers(call, a, b, a_zero, (factor, offset), FLOAT)]
    return [
        _to_float(
            call, centred(call, a, call.arg(4), -2), b, call.op("Mul", a_scale, b_scale), call.arg(5), call.arg(6)
        )
    ]


@decomposes("DynamicQuantizeMatMul", domain=CONTRIB)
def dynamic_quantize_matmul(call: Call) -> Sequence[str | None]:
    """DynamicQuantizeMatMul: the first operand is quantized as DynamicQuantizeLinear does.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.DynamicQuantizeMatMul.
    """
    a, b, b_scale = (call.need(index) for index in range(3))
    quantized, scale, zero = call.outs("DynamicQuantizeLinear", a, count=3)
    left = call.op("Sub", call.cast(quantized, FLOAT), call.cast(zero, FLOAT))
    return [_to_float(call, left, b, call.op("Mul", scale, b_scale), call.arg(3), call.arg(4))]


def _to_float(call: Call, left: str, b: str, scale: str, b_zero: str | None, bias: str | None) -> str:
    y = call.op("Mul", call.op("MatMul", left, centred(call, b, b_zero, -1)), scale)
    return call.op("Add", y, bias) if bias else y


@decomposes("MatMulNBits", domain=CONTRIB)
def matmul_nbits(call: Call) -> Sequence[str | None]:
    """MatMulNBits of 4 and 8 bits: weights [n, blocks, bytes] with a scale, and a zero point, per block.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.MatMulNBits. From accuracy level 4 on its CPU provider quantizes a as well.
    """
    a, packed, scales, zeros = call.need(0), call.need(1), call.need(2), call.arg(3)
    bits, k, n, block = (call.count(name) for name in ("bits", "K", "N", "block_size"))
    if bits not in (4, 8) or call.arg(4):
        raise Refusal("attribute", f"weights of {bits} bits or with g_idx, expected 4 or 8 bits and no g_idx")
    blocks = -(-k // block)
    scale = call.reshape(scales, n, blocks)
    bytes_ = call.reshape(packed, n, -1)
    if zeros is None:
        numbers, kept = _signed(call, bytes_, bits), bits
        offset = None
    elif bits == 4 and call.kind(zeros) == TensorProto.UINT8:
        rows = call.slice(halves(call, call.reshape(zeros, n, -1)), 1, 0, blocks)
        codes = call.reshape(halves(call, bytes_), n, blocks, block)
        numbers, kept = call.reshape(call.op("Sub", codes, call.unsqueeze(rows, 2)), n, blocks * block), 8
        offset = None
    else:
        numbers, kept = _signed(call, bytes_, bits), bits
        middle = call.const(1 << (bits - 1), FLOAT)
        offset = call.op("Mul", call.op("Sub", _zeros(call, zeros, bits, n, blocks), middle), call.cast(scale, FLOAT))
    stated = {"block_size": block, "bits": kept, "rounds": int(call.attr("accuracy_level", 0) >= _ROUNDS)}
    y = call.op("BlockScaleMatMul", a, numbers, scale, domain=HIPDNN_DOMAIN, **stated)
    if offset:
        y = call.op("Sub", y, _times_offsets(call, a, offset, k, block))
    bias = call.arg(5)
    return [call.op("Add", y, bias) if bias else y]


@decomposes("MatMulBnb4", domain=CONTRIB)
def matmul_bnb4(call: Call) -> Sequence[str | None]:
    """MatMulBnb4: weights [n, k] whose codes of 4 bits name one of 16 numbers, times a scale for each block in the order of memory.

    The numbers are no multiples of one, so the weights become floats when the model is compiled.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.MatMulBnb4; bitsandbytes for the numbers.
    """
    a, packed, scales = (call.need(index) for index in range(3))
    k, n, block = (call.count(name) for name in ("K", "N", "block_size"))
    if call.attr("quant_type", 1) not in _NAMED or k * n % 2:
        raise Refusal("attribute", f"quant_type {call.attr('quant_type', 1)}, or an odd number of weights")
    high = call.op("BitShift", packed, call.const(4, TensorProto.UINT8), direction="RIGHT")
    low = call.op("BitwiseAnd", packed, call.const(_LOW - 1, TensorProto.UINT8))
    codes = call.reshape(call.concat(1, call.unsqueeze(high, 1), call.unsqueeze(low, 1)), -1)
    named = call.op(
        "Gather", call.const(_NAMED[call.attr("quant_type", 1)], FLOAT), call.cast(codes, TensorProto.INT64)
    )
    count, blocks = k * n, -(-k * n // block)
    if rest := blocks * block - count:
        named = call.op("Pad", named, call.ints(0, rest))
    scaled = call.op("Mul", call.reshape(named, blocks, block), call.unsqueeze(call.cast(scales, FLOAT), 1))
    weights = call.reshape(call.slice(call.reshape(scaled, -1), 0, 0, count), n, k)
    right = call.transpose(weights, 1, 0) if call.attr("transB", 1) else weights
    return [call.op("MatMul", a, call.cast(right, call.kind(a)))]


def _signed(call: Call, codes: str, bits: int) -> str:
    """Bytes of codes with the middle at 0, as two's complement."""
    if bits == 4:
        return call.op("BitwiseXor", codes, call.const(_MIDDLES, TensorProto.UINT8))
    return call.op("Sub", call.cast(codes, TensorProto.INT8), call.const(-128, TensorProto.INT8))


def halves(call: Call, packed: str) -> str:
    """[rows, bytes] -> twice as many i8 in a row: the lower half of each byte, then the upper one."""
    low = call.op("BitwiseAnd", packed, call.const(_LOW - 1, TensorProto.UINT8))
    high = call.op("BitShift", packed, call.const(4, TensorProto.UINT8), direction="RIGHT")
    both = call.concat(-1, call.unsqueeze(low, -1), call.unsqueeze(high, -1))
    return call.cast(call.reshape(both, 0, -1), TensorProto.INT8)


def _zeros(call: Call, zeros: str, bits: int, n: int, blocks: int) -> str:
    """Zero points as f32 [n, blocks]."""
    if bits == 4 and call.kind(zeros) == TensorProto.UINT8:
        zeros = call.slice(halves(call, call.reshape(zeros, n, -1)), 1, 0, blocks)
    return call.reshape(call.cast(zeros, FLOAT), n, blocks)


def _times_offsets(call: Call, a: str, offset: str, k: int, block: int) -> str:
    """What a constant added to all weights of a block adds to the product: the sum of the block of a, times that constant."""
    kind, blocks = call.kind(a), -(-k // block)
    wide = call.cast(a, FLOAT)
    rest = blocks * block - k
    if rest:
        wide = call.op("Pad", wide, call.ints(*[0] * (2 * call.rank(a) - 1), rest), call.const(0, FLOAT))
    parts = call.op("Reshape", wide, call.ints(*[0] * (call.rank(a) - 1), blocks, block))
    sums = call.reduce("ReduceSum", parts, [call.rank(a)], keepdims=False)
    return call.cast(call.op("MatMul", sums, call.transpose(offset, 1, 0)), kind)


@decomposes("GatherBlockQuantized", domain=CONTRIB)
def gather_block_quantized(call: Call) -> Sequence[str | None]:
    """GatherBlockQuantized of bytes, which hold 4 or 8 bits: rows of an embedding with a scale, and a zero point, per block.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.GatherBlockQuantized.
    """
    data, indices, scales, zeros = call.need(0), call.need(1), call.need(2), call.arg(3)
    bits, block = call.attr("bits", 4), call.count("block_size", 128)
    last = call.rank(data) - 1
    if call.attr("gather_axis", 0) != 0 or last != 1 or call.axis(data, call.attr("quantize_axis", 1)) != last:
        raise Refusal("attribute", "a gather of other than rows, or blocks along other than rows")
    if call.kind(data) != TensorProto.UINT8 or bits not in (4, 8):
        raise Refusal("dtype", f"{bits} bits in elements of type {call.kind(data)}, expected 4 or 8 in uint8")
    blocks = call.size(scales, 1)
    if call.size(data, 1) * 8 != blocks * block * bits:
        raise Refusal("shape", f"rows of {call.size(data, 1)} bytes for {blocks} blocks of {block}")

    def rows(table: str, width: int) -> str:
        picked = call.op("Gather", table, indices, axis=0)
        codes = halves(call, call.reshape(picked, -1, call.size(table, 1))) if bits == 4 else picked
        if bits == 4 and width == 1:  # the last byte of an odd number of zero points has one of them
            codes = call.slice(codes, 1, 0, blocks)
        return call.reshape(call.cast(codes, FLOAT), -1, blocks, width)

    middle = rows(zeros, 1) if zeros else call.const(1 << (bits - 1), FLOAT)
    scale = call.reshape(call.cast(call.op("Gather", scales, indices, axis=0), FLOAT), -1, blocks, 1)
    values = call.op("Mul", call.op("Sub", rows(data, block), middle), scale)
    shape = call.concat(0, call.op("Shape", indices), call.ints(blocks * block))
    return [call.cast(call.op("Reshape", values, shape), call.kind(scales))]
