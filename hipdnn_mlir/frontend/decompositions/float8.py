"""Casts to and from floats of 8 bits and types of fewer, and products of values that were quantized to them."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from ..onnx_types import BY_ONNX, CODED_BY_ONNX
from .call import FLOAT, Call
from .codes import decoded, encoded
from .registry import decomposes

FLOAT8: dict[int, float] = {TensorProto.FLOAT8E4M3FN: 448.0, TensorProto.FLOAT8E5M2: 57344.0}
"""ONNX's types of them that are supported -> their greatest number."""


@decomposes("Cast")
def cast(call: Call) -> Sequence[str | None] | None:
    """Cast to or from a float of 8 bits or a type of few bits; others stay.

    Source: ONNX, Cast-25.
    """
    x, to = call.need(0), call.attr("to", 0)
    if {call.kind(x), to}.isdisjoint({*FLOAT8, *CODED_BY_ONNX}):
        return None
    if call.kind(x) == to:
        return [x]
    saturate = bool(call.attr("saturate", 1))
    if to in CODED_BY_ONNX:
        known = as_float(call, x) if call.kind(x) in {*FLOAT8, *CODED_BY_ONNX} else x
        return [encoded(call, known, to, saturate=saturate, round_mode=call.attr("round_mode", "up"))]
    wide = as_float(call, x)
    return [narrowed(call, wide, to, saturate=saturate)] if to in FLOAT8 else [call.cast(wide, to)]


def as_float(call: Call, x: str) -> str:
    """Numbers of any type as f32."""
    if call.kind(x) in CODED_BY_ONNX:
        return decoded(call, x)
    return (
        call.op("ConvertFloat8", x, domain=HIPDNN_DOMAIN, to="f32") if call.kind(x) in FLOAT8 else call.cast(x, FLOAT)
    )


def narrowed(call: Call, x: str, kind: int, *, saturate: bool) -> str:
    """Values of f32 as floats of 8 bits; what is beyond the greatest one becomes that where they saturate."""
    if saturate:
        x = call.op("Clip", x, call.const(-FLOAT8[kind], FLOAT), call.const(FLOAT8[kind], FLOAT))
    return call.op("ConvertFloat8", x, domain=HIPDNN_DOMAIN, to=BY_ONNX[kind].name)


@decomposes("DequantizedMatMul", domain=HIPDNN_DOMAIN)
def dequantized_matmul(call: Call) -> Sequence[str | None]:
    """(x, w, scale of x, scale of w, bias; transposed): the product of both, dequantized; w is constant, and may have a scale per column.

    Source: ONNX, DequantizeLinear-25, MatMul-13 and Gemm-13.
    """
    of_x, of_w, bias = call.value(call.need(2)), call.value(call.need(3)), call.arg(4)
    if of_x is None or of_w is None:
        raise Refusal("operand", "scales that are not known")
    kind = call.kind(call.need(2))
    weights = call.need(1) if call.attr("transposed", 0) else call.transpose(call.need(1), 1, 0)
    scales = of_w.astype(np.float32).reshape(-1)
    greatest = float(scales.max())
    stated = {"scale": float(of_x.astype(np.float32).item()) * greatest, "to": BY_ONNX[kind].name}
    y = call.op("Float8MatMul", call.need(0), weights, domain=HIPDNN_DOMAIN, **stated)
    if scales.size > 1:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
        y = call.op("Mul", y, call.const((scales / greatest).astype(dtype)))
    return [call.op("Add", y, bias) if bias else y]
