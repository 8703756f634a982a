"""Conversions of types of few bits: from their codes by a table, to them by arithmetic on f32 and its bits."""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from ..onnx_types import CODED_BY_ONNX
from ..own_operators import BITS, CODES, OF_CODES
from .call import FLOAT, INT32, UINT8, Call

_INTEGER_BITS: dict[int, int] = {
    TensorProto.INT2: 2, TensorProto.UINT2: 2, TensorProto.INT4: 4, TensorProto.UINT4: 4,
}  # fmt: skip
INTEGERS: dict[int, tuple[int, int]] = {
    TensorProto.INT2: (-2, 1), TensorProto.UINT2: (0, 3), TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15),
}  # fmt: skip
"""ONNX's type -> its least and greatest number."""
_FRACTION_BITS, _BIAS = 23, 127
"""Of f32."""


@dataclass(frozen=True)
class _Float:
    """A float type of few bits without infinities.

    Attributes:
        fraction_bits, bias: where the parts lie.
        sign: its bit.
        greatest: the code of the greatest number.
        overflow: the code beyond that, under the sign.
        nan: the code of what is no number.
        has_negative_zero: whether 0 keeps its sign.
        largest: the greatest number.
    """

    fraction_bits: int
    bias: int
    sign: int
    greatest: int
    overflow: int
    nan: int
    has_negative_zero: bool
    largest: float


FLOATS: dict[int, _Float] = {
    TensorProto.FLOAT4E2M1: _Float(1, 1, 0x8, 0x7, 0x7, 0x8, True, 6.0),
    TensorProto.FLOAT8E4M3FNUZ: _Float(3, 8, 0x80, 0x7F, 0x80, 0x80, False, 240.0),
    TensorProto.FLOAT8E5M2FNUZ: _Float(2, 16, 0x80, 0x7F, 0x80, 0x80, False, 57344.0),
}
"""Source: OCP, microscaling formats (MX) 1.0; ONNX, technical details of float 8."""
_ROUNDED_UP = {"up": 0x7FFFFF, "nearest": 0x400000, "down": 0}
"""How `round_mode` makes a power of two of a number: what is added to its bits before the fraction is dropped."""


def decoded(call: Call, x: str) -> str:
    """Values of few bits as f32."""
    dtype = CODED_BY_ONNX[call.kind(x)].numpy
    bits = _INTEGER_BITS.get(call.kind(x)) or (4 if call.kind(x) == TensorProto.FLOAT4E2M1 else 8)
    table = np.arange(1 << bits, dtype=np.uint8).view(dtype).astype(np.float32)
    codes = call.cast(call.op(CODES, x, domain=HIPDNN_DOMAIN), INT32)
    if bits < 8:  # the others of a byte mean nothing
        codes = call.op("Mod", codes, call.const(1 << bits, INT32))
    return call.op("Gather", call.const(table), codes, axis=0)


def encoded(call: Call, x: str, kind: int, *, saturate: bool = True, round_mode: str = "up") -> str:
    """Numbers of any type in one of few bits, as ONNX's reference and ml_dtypes round and wrap them."""
    if kind in INTEGERS:
        whole = call.op("BitwiseAnd", call.cast(x, INT32), call.const((1 << _INTEGER_BITS[kind]) - 1, INT32))
        return _of_codes(call, whole, kind)
    x = call.cast(x, FLOAT)
    if kind in FLOATS:
        return _of_codes(call, _float_codes(call, x, FLOATS[kind], saturate=saturate), kind)
    if round_mode not in _ROUNDED_UP:
        raise Refusal("attribute", f"round_mode {round_mode!r}")
    return _of_codes(call, _exponents(call, x, _ROUNDED_UP[round_mode], saturate=saturate), kind)


def _of_codes(call: Call, codes: str, kind: int) -> str:
    return call.op(OF_CODES, call.cast(codes, UINT8), domain=HIPDNN_DOMAIN, to=kind)


def _bits(call: Call, x: str, kind: int) -> str:
    return call.op(BITS, x, domain=HIPDNN_DOMAIN, to=kind)


def _float_codes(call: Call, x: str, form: _Float, *, saturate: bool) -> str:
    """The codes of f32 in another float type, halves to even, as i32."""

    def number(n: int) -> str:
        return call.const(n, INT32)

    def powers(exponents: str) -> str:
        return _bits(call, exponents, FLOAT)

    all_bits = _bits(call, x, INT32)
    bits = call.op("BitwiseAnd", all_bits, number(0x7FFFFFFF))
    beyond = call.op("Greater", bits, _bits(call, call.const(np.float32(form.largest)), INT32))
    # What is beyond stays beyond when it is rounded, unless it is less than the half of a step more.
    magnitude = _bits(call, call.op("Min", bits, number((_BIAS + 30) << _FRACTION_BITS)), FLOAT)
    least = (_BIAS + 1 - form.bias) << _FRACTION_BITS
    exponent = call.op("Max", call.op("BitwiseAnd", _bits(call, magnitude, INT32), number(0x7F800000)), number(least))
    # The last place of the result becomes 1: in two factors, for neither may leave f32's numbers.
    half = 40
    scale = powers(call.op("Sub", number((2 * _BIAS + form.fraction_bits - half) << _FRACTION_BITS), exponent))
    scaled = call.op("Mul", call.op("Mul", magnitude, call.const(np.float32(2.0**half))), scale)
    places = call.cast(call.op("Round", scaled), INT32)
    above = call.op("Div", call.op("Sub", exponent, number(least)), number(1 << (_FRACTION_BITS - form.fraction_bits)))
    code = call.op("Add", places, above)
    if saturate:
        code = call.op("Where", beyond, number(form.greatest), code)
    is_more = call.op("Greater", code, number(form.greatest))
    is_negative = call.op("Less", all_bits, number(0))
    if not form.has_negative_zero:
        is_negative = call.op("And", is_negative, call.op("Greater", code, number(0)))
    sign = call.op("Where", is_negative, number(form.sign), number(0))
    code = call.op("BitwiseOr", call.op("Where", is_more, number(form.overflow), code), sign)
    return call.op("Where", call.op("Greater", bits, number(0x7F800000)), number(form.nan), code)


def _exponents(call: Call, x: str, added: int, *, saturate: bool) -> str:
    """The exponents of f32, whose signs are left out, as i32."""
    bits = call.op("BitwiseAnd", _bits(call, x, INT32), call.const(0x7FFFFFFF, INT32))
    up = call.op("Add", bits, call.const(added, INT32)) if added else bits
    if added == _ROUNDED_UP["nearest"]:  # a half of the least power is none of its own, in onnx's reference
        up = call.op("Sub", up, call.cast(call.op("Equal", bits, call.const(added, INT32)), INT32))
    if saturate:
        up = call.op("Min", up, call.const(0x7F7FFFFF, INT32))
    is_number = call.op("Less", bits, call.const(0x7F800000, INT32))
    return call.op(
        "Where", is_number, call.op("Div", up, call.const(1 << _FRACTION_BITS, INT32)), call.const(0xFF, INT32)
    )
