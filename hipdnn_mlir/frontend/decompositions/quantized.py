"""Quantized operators in floating-point arithmetic: subtract zero points, compute, scale, round, clip."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from ..onnx_types import CODED_BY_ONNX
from .call import FLOAT, Call
from .codes import FLOATS, INTEGERS, encoded
from .float8 import FLOAT8, as_float, narrowed
from .registry import CONTRIB, decomposes

BYTES: dict[int, str] = {TensorProto.UINT8: "u8", TensorProto.INT8: "i8"}
_INTEGERS = frozenset({TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32})

_WINDOWS = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_SOFTMAX_OF_ONE_AXIS = 13
"""The opset from which on Softmax is along one axis."""


def _along(call: Call, factor: str, rank: int, axis: int) -> str:
    """A scale or zero point of one axis, with dims for all."""
    if call.rank(factor) != 1 or call.dims(factor)[0] == 1 or rank == 0:
        return factor
    _check_axis(axis, rank)
    dims = [1] * rank
    dims[axis] = -1
    return call.reshape(factor, *dims)


def _check_axis(axis: int, rank: int) -> None:
    if not -rank <= axis < rank:
        raise Refusal("attribute", f"axis {axis} of an operand of rank {rank}")


def _spread(call: Call, factor: str, x: str, axis: int, block: int) -> str:
    """A scale or zero point of blocks of an axis, repeated for each of its elements."""
    rank = call.rank(x)
    _check_axis(axis, rank)
    axis %= rank
    wide = call.op(
        "Expand", call.unsqueeze(factor, axis + 1), call.ints(*[1] * (axis + 1), block, *[1] * (rank - axis - 1))
    )
    size = call.size_if_known(x, axis)
    if size is not None and size % block:  # the last block is cut short
        spread = [call.size(x, dim) for dim in range(rank)]
        spread[axis] = -(-size // block) * block
        return call.op("Slice", call.reshape(wide, *spread), call.ints(0), call.ints(size), call.ints(axis))
    dims = [0] * rank
    if axis + 1 < rank:  # 0 would take the size of another dim behind the one that is merged
        return call.op("Reshape", wide, call.op("Shape", x))
    dims[axis] = -1
    return call.reshape(wide, *dims)


def _factor(call: Call, factor: str, x: str, axis: int) -> str:
    block = call.attr("block_size", 0)
    return _spread(call, factor, x, axis, block) if block else _along(call, factor, call.rank(x), axis)


def dequantized(call: Call, x: str, scale: str, zero: str | None, axis: int = 1) -> str:
    """(x - zero) * scale as f32."""
    return call.op("Mul", centred(call, x, zero, axis), _factor(call, call.cast(scale, FLOAT), x, axis))


def centred(call: Call, x: str, zero: str | None, axis: int = 1) -> str:
    """The difference x - zero as f32."""
    if call.kind(x) not in {*_INTEGERS, *FLOAT8, *CODED_BY_ONNX}:
        raise Refusal("dtype", f"quantized values of type {TensorProto.DataType.Name(call.kind(x))}")
    value = as_float(call, x)
    if zero is None or call.is_zero(zero):
        return value
    return call.op("Sub", value, _factor(call, as_float(call, zero), x, axis))


def rounded(call: Call, x: str, zero: str | None, kind: int, axis: int = 1) -> str:
    """Scaled f32 values to the nearest integers, ties to even, shifted by zero and clipped."""
    if kind not in _INTEGERS and kind not in INTEGERS:
        raise Refusal("dtype", f"quantized values of type {TensorProto.DataType.Name(kind)}")
    limits = INTEGERS.get(kind)
    if limits is None:
        wide = np.iinfo(onnx.helper.tensor_dtype_to_np_dtype(kind))
        limits = wide.min, wide.max
    y = call.op("Round", x)
    if zero:
        y = call.op("Add", y, _factor(call, as_float(call, zero), x, axis))
    y = call.op("Clip", y, call.const(limits[0], FLOAT), call.const(limits[1], FLOAT))
    return encoded(call, y, kind) if kind in INTEGERS else call.cast(y, kind)


def _quantized(call: Call, x: str, scale: str, zero: str | None) -> str:
    """Values of f32 in the type of the zero point, u8 without one."""
    return rounded(call, call.op("Div", x, scale), zero, call.kind(zero) if zero else TensorProto.UINT8)


def _one_of_bytes(call: Call, scale: str, zero: str | None, kind: int) -> tuple[float, int] | None:
    """Scale and zero point of bytes, where all have the same and both are known."""
    factor, shift = call.value(scale), call.value(zero) if zero else np.zeros(1)
    if kind not in BYTES or factor is None or shift is None or factor.size != 1 or shift.size != 1:
        return None
    return float(factor.item()), int(shift.item())


@decomposes("QuantizeLinear")
@decomposes("QuantizeLinear", domain=CONTRIB)
def quantize_linear(call: Call) -> Sequence[str | None]:
    """QuantizeLinear per tensor, axis or block, to integers of 2 to 16 bits and floats of 4 and 8.

    Source: ONNX, QuantizeLinear-21.
    """
    x, scale, zero = call.need(0), call.need(1), call.arg(2)
    axis = call.attr("axis", 1)
    kind = call.kind(zero) if zero else call.attr("output_dtype", 0) or TensorProto.UINT8
    one = _one_of_bytes(call, scale, zero, kind)
    if one is not None and not call.is_constant(x):
        stated = {"scale": one[0], "zero": one[1], "to": BYTES[kind]}
        return [call.op("Quantize", call.cast(x, FLOAT), domain=HIPDNN_DOMAIN, **stated)]
    scaled = call.op("Div", call.cast(x, FLOAT), _factor(call, call.cast(scale, FLOAT), x, axis))
    if kind in FLOAT8 or kind in FLOATS:
        if zero and not call.is_zero(zero):
            scaled = call.op("Add", scaled, _factor(call, as_float(call, zero), x, axis))
        write = narrowed if kind in FLOAT8 else encoded
        return [write(call, scaled, kind, saturate=bool(call.attr("saturate", 1)))]
    return [rounded(call, scaled, zero, kind, axis)]


@decomposes("DequantizeLinear")
@decomposes("DequantizeLinear", domain=CONTRIB)
def dequantize_linear(call: Call) -> Sequence[str | None] | None:
    """DequantizeLinear per tensor, axis or block, of types of up to 16 bits; blocks of computed i8 without zero point have a row.

    Source: ONNX, DequantizeLinear-21.
    """
    x, scale, zero = call.need(0), call.need(1), call.arg(2)
    kind = call.attr("output_dtype", 0) or call.kind(scale)
    if call.kind(x) in CODED_BY_ONNX and all(call.value(name) is not None for name in filter(None, (x, scale, zero))):
        return None  # a constant
    one = _one_of_bytes(call, scale, zero, call.kind(x))
    if one is not None and kind == FLOAT and not call.is_constant(x):
        return [call.op("Dequantize", x, domain=HIPDNN_DOMAIN, scale=one[0], zero=one[1])]
    if zero is None and (call.kind(x), call.kind(scale)) == (TensorProto.INT8, FLOAT) and not call.is_constant(x):
        block, size = call.attr("block_size", 0), call.size_if_known(x, call.attr("axis", 1))
        if block and size is not None and size % block == 0:
            return None
    return [call.cast(dequantized(call, x, scale, zero, call.attr("axis", 1)), kind)]


@decomposes("QLinearAdd", "QLinearMul", domain=CONTRIB)
def qlinear_binary(call: Call) -> Sequence[str | None]:
    """QLinearAdd, QLinearMul.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QLinearAdd and QLinearMul.
    """
    a = dequantized(call, call.need(0), call.need(1), call.arg(2))
    b = dequantized(call, call.need(3), call.need(4), call.arg(5))
    y = call.op(call.node.op_type.removeprefix("QLinear"), a, b)
    return [_quantized(call, y, call.need(6), call.arg(7) or call.arg(2))]


@decomposes("QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearSigmoid", domain=CONTRIB)
def qlinear_unary(call: Call) -> Sequence[str | None]:
    """QLinearLeakyRelu, QLinearSigmoid, QLinearGlobalAveragePool.

    Source: ONNX Runtime, ContribOperators.md, the operators of com.microsoft with these names.
    """
    op = call.node.op_type.removeprefix("QLinear")
    x = dequantized(call, call.need(0), call.need(1), call.arg(2))
    if op == "GlobalAveragePool":
        rank = call.rank(x)
        y = call.reduce("ReduceMean", x, [*(range(1, rank - 1) if call.attr("channels_last", 0) else range(2, rank))])
    else:
        y = call.op(op, x, alpha=call.attr("alpha"))
    return [_quantized(call, y, call.need(3), call.arg(4) or call.arg(2))]


@decomposes("QLinearAveragePool", domain=CONTRIB)
def qlinear_average_pool(call: Call) -> Sequence[str | None]:
    """QLinearAveragePool, of channels first or last.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QLinearAveragePool.
    """
    x = dequantized(call, call.need(0), call.need(1), call.arg(2))
    spatial, is_last = range(2, call.rank(x)), bool(call.attr("channels_last", 0))
    if is_last:
        x = call.transpose(x, 0, call.rank(x) - 1, *range(1, call.rank(x) - 1))
    y = call.op("AveragePool", x, **{name: call.attr(name) for name in _WINDOWS})
    if is_last:
        y = call.transpose(y, 0, *spatial, 1)
    return [_quantized(call, y, call.need(3), call.arg(4) or call.arg(2))]


@decomposes("QLinearSoftmax", domain=CONTRIB)
def qlinear_softmax(call: Call) -> Sequence[str | None]:
    """QLinearSoftmax along one axis, or before opset 13 along all from one on.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QLinearSoftmax.
    """
    x = dequantized(call, call.need(0), call.need(1), call.arg(2))
    axis = call.attr("axis", -1)
    if call.attr("opset", 0) >= _SOFTMAX_OF_ONE_AXIS:
        y = call.op("Softmax", x, axis=axis)
    else:
        y = call.op("Softmax", call.op("Flatten", x, axis=axis), axis=-1)
        y = call.op("Reshape", y, call.op("Shape", x))
    return [_quantized(call, y, call.need(3), call.arg(4) or call.arg(2))]


@decomposes("QLinearWhere", domain=CONTRIB)
def qlinear_where(call: Call) -> Sequence[str | None]:
    """QLinearWhere: of each operand and of the result a triple.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QLinearWhere.
    """
    x, y = (dequantized(call, call.need(i), call.need(i + 1), call.arg(i + 2)) for i in (1, 4))
    return [_quantized(call, call.op("Where", call.need(0), x, y), call.need(7), call.arg(8))]


@decomposes("QLinearConcat", domain=CONTRIB)
def qlinear_concat(call: Call) -> Sequence[str | None]:
    """QLinearConcat: operands after the result's scale and zero point are triples.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QLinearConcat.
    """
    triples = range(2, len(call.node.input), 3)
    parts = [dequantized(call, call.need(i), call.need(i + 1), call.arg(i + 2)) for i in triples]
    return [_quantized(call, call.concat(call.attr("axis"), *parts), call.need(0), call.arg(1))]
