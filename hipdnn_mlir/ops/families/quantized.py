"""Bytes that stand for floats, convolutions and matmuls of them: operators of the domain `hipdnn`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import DType

from ..emitter import Emitter, Value
from ..registry import of_hipdnn
from ..spec import OpView, Refusal, TensorType
from ..strides import Dims
from .convolution import spatial_attributes
from .pointwise import clamp_to, round_half_even_of

_BYTES = frozenset({dtypes.U8, dtypes.I8})
_RESULTS = {"u8": dtypes.U8, "i8": dtypes.I8, "f32": dtypes.F32}
_OPERANDS = 5
Operands = Sequence[TensorType | None]


def result_type(attributes: Mapping[str, Any]) -> DType:
    """The dtype that the attribute `to` names."""
    name = attributes.get("to", "u8")
    if name not in _RESULTS:
        raise Refusal("attribute", f"result of {name}, expected one of {', '.join(_RESULTS)}")
    return _RESULTS[name]


def _bytes_of(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    kind = result_type(attributes)
    if kind not in _BYTES or len(operands) != 1 or operands[0] is None:
        raise Refusal("attribute", f"{kind} from {len(operands)} operands, expected u8 or i8 from one")
    return [TensorType(operands[0].dims, kind)]


@of_hipdnn(
    "Quantize",
    becomes="pointwise DIV, those of aten.round, ADD, MAX, MIN, IDENTITY",
    results=_bytes_of,
    source="ONNX, QuantizeLinear-21",
    precision="wide",
)
def quantize(e: Emitter, op: OpView) -> Value:
    """(x; scale, zero, to): the nearest bytes to x / scale, halves to even, plus zero, clamped."""
    x, kind = e.value(op.args[0]), op.results[0].dtype
    if x.dtype is not dtypes.F32:
        raise Refusal("dtype", f"bytes of {x.dtype}")
    limits = np.iinfo(kind.numpy)
    scaled = e.pointwise(P.DIV, x, e.scalar(op.attributes["scale"], x.dtype))
    moved = e.pointwise(P.ADD, round_half_even_of(e, scaled), e.scalar(float(op.attributes["zero"]), x.dtype))
    return e.pointwise(P.IDENTITY, clamp_to(e, moved, float(limits.min), float(limits.max)), dtype=kind)


def _floats_of(operands: Operands, _: Mapping[str, Any]) -> list[TensorType]:
    if len(operands) != 1 or operands[0] is None:
        raise Refusal("operand", f"{len(operands)} operands, expected one")
    return [TensorType(operands[0].dims, dtypes.F32)]


@of_hipdnn(
    "Dequantize",
    becomes="pointwise IDENTITY, SUB, MUL",
    results=_floats_of,
    source="ONNX, DequantizeLinear-21",
    precision="wide",
)
def dequantize(e: Emitter, op: OpView) -> Value:
    """(x; scale, zero): (x - zero) * scale in f32, of bytes."""
    x = e.value(op.args[0])
    if x.dtype not in _BYTES:
        raise Refusal("dtype", f"floats of {x.dtype}")
    wide = e.pointwise(P.IDENTITY, x, dtype=dtypes.F32)
    centred = e.pointwise(P.SUB, wide, e.scalar(float(op.attributes["zero"]), dtypes.F32))
    return e.pointwise(P.MUL, centred, e.scalar(op.attributes["scale"], dtypes.F32))


def _needed(operands: Operands) -> list[TensorType]:
    if len(operands) != _OPERANDS or None in operands:
        raise Refusal("operand", f"{len(operands)} operands, expected {_OPERANDS}, none omitted")
    return [kind for kind in operands if kind is not None]


def _sides(attributes: Mapping[str, Any], spatial: int) -> tuple[Dims, Dims, Dims, Dims, int]:
    """Padding before and after, strides, dilations and groups."""
    pads = tuple(attributes.get("pads") or (0,) * 2 * spatial)
    strides = tuple(attributes.get("strides") or (1,) * spatial)
    dilations = tuple(attributes.get("dilations") or (1,) * spatial)
    if len(pads) != 2 * spatial or len(strides) != spatial or len(dilations) != spatial:
        raise Refusal(
            "attribute", f"pads {pads}, strides {strides} and dilations {dilations} of {spatial} spatial dims"
        )
    return pads[:spatial], pads[spatial:], strides, dilations, attributes.get("group", 1)


def _conv_dims(x: Dims, w: Dims, attributes: Mapping[str, Any]) -> Dims:
    spatial = len(x) - 2
    if spatial not in (1, 2, 3) or len(w) != len(x):
        raise Refusal("rank", f"{spatial} spatial dims, expected 1 to 3")
    low, high, strides, dilations, groups = _sides(attributes, spatial)
    if x[1] != w[1] * groups or w[0] % groups:
        raise Refusal("shape", f"x {x} and w {w} in {groups} groups do not fit")
    size = tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, a, b, s, d in zip(x[2:], w[2:], low, high, strides, dilations, strict=True)
    )
    if min(size) < 1:
        raise Refusal("shape", f"x {x} is smaller than w {w}")
    return (x[0], w[0], *size)


def _conv_types(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    x, w, *_ = _needed(operands)
    return [TensorType(_conv_dims(x.static_dims(), w.static_dims(), attributes), result_type(attributes))]


@of_hipdnn(
    "QuantizedConv",
    becomes="pointwise SUB, convolution forward, pointwise MUL and ADD",
    results=_conv_types,
    source="ONNX, QLinearConv-10",
    keeps=(2, 3, 4),
)
def quantized_conv(e: Emitter, op: OpView) -> Value:
    """(x, w, zero, factor, offset; pads, strides, dilations, group, to): conv(x - zero, w) * factor + offset, per result channel.

    Integers of 8 bits are summed exactly. The result is of type `to`: u8 or i8, to the nearest even and clamped, or f32. Zero is an i32.
    """
    x, w = e.value(op.args[0]), _weights(e, op)
    dims = _conv_dims(x.dims, w.dims, op.attributes)
    low, high, strides, dilations, _ = _sides(op.attributes, x.rank - 2)
    attributes = [
        entry for entry in spatial_attributes(low, high, strides, dilations) if entry[0] != A.CONVOLUTION_COMP_TYPE
    ]
    sums = e.node(
        Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        {A.OPERATION_CONVOLUTION_FORWARD_X: _centred(e, x, op), A.OPERATION_CONVOLUTION_FORWARD_W: w},
        {A.OPERATION_CONVOLUTION_FORWARD_Y: (dims, dtypes.I32)},
        [*attributes, (A.CONVOLUTION_COMP_TYPE, T.DATA_TYPE, [int(DataType.INT32)])],
    )[0]
    return _scaled(e, op, sums, (1, w.dims[0], *(1,) * (x.rank - 2)))


def _matmul_types(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    a, b, *_ = _needed(operands)
    return [TensorType((*a.dims[:-1], b.dims[-1]), result_type(attributes))]


@of_hipdnn(
    "QuantizedMatMul",
    becomes="pointwise SUB, matmul, pointwise MUL and ADD",
    results=_matmul_types,
    source="ONNX, QLinearMatMul-21",
    keeps=(2, 3, 4),
)
def quantized_matmul(e: Emitter, op: OpView) -> Value:
    """(a, b, zero, factor, offset; to): (a - zero) b * factor + offset, per column, for one matrix b; otherwise as QuantizedConv."""
    a, b = e.value(op.args[0]), _weights(e, op)
    if a.rank < 2 or b.rank != 2 or a.dims[-1] != b.dims[0]:
        raise Refusal("shape", f"{a.dims} and {b.dims} do not multiply")
    outer = (1,) * (a.rank - 2)
    sums = e.node(
        Descriptor.OPERATION_MATMUL_DESCRIPTOR,
        {A.OPERATION_MATMUL_ADESC: _centred(e, a, op), A.OPERATION_MATMUL_BDESC: e.view(b, (*outer, *b.dims))},
        {A.OPERATION_MATMUL_CDESC: ((*a.dims[:-1], b.dims[1]), dtypes.I32)},
        [(A.MATMUL_COMP_TYPE, T.DATA_TYPE, [int(DataType.INT32)])],
    )[0]
    return _scaled(e, op, sums, (*outer, 1, b.dims[1]))


def _weights(e: Emitter, op: OpView) -> Value:
    x, w = e.value(op.args[0]), e.value(op.args[1])
    if x.dtype not in _BYTES or w.dtype is not dtypes.I8:
        raise Refusal("dtype", f"{x.dtype} with weights of {w.dtype}")
    if not e.is_operand(x) or not e.is_operand(w):
        raise Refusal("virtual-view", "integers that are computed in the graph")
    return w


def _centred(e: Emitter, x: Value, op: OpView) -> Value:
    zero = e.value(op.args[2])
    if zero.dtype is not dtypes.I32 or any(size != 1 for size in zero.dims):
        raise Refusal("dtype", f"zero point of {zero.dtype}{list(zero.dims)}")
    return e.pointwise(P.SUB, x, e.view(zero, (1,) * x.rank), dtype=dtypes.I32)


def _scaled(e: Emitter, op: OpView, sums: Value, channels: Dims) -> Value:
    """The sums times factors, with offsets, each one number or one per channel."""
    factor, offset = (_of_channels(e, e.value(arg), channels) for arg in op.args[3:5])
    return e.pointwise(
        P.ADD, e.pointwise(P.MUL, sums, factor, dtype=dtypes.F32), offset, dtype=result_type(op.attributes)
    )


def _of_channels(e: Emitter, value: Value, channels: Dims) -> Value:
    count = max(value.dims)
    if value.dtype is not dtypes.F32 or value.dims != (count,) or count not in (1, max(channels)):
        raise Refusal("shape", f"{value.dtype}{list(value.dims)} for {max(channels)} channels")
    return e.view(value, channels if count > 1 else (1,) * len(channels))
