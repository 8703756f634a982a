"""Floats of 8 bits: from memory and to it, by arithmetic on f32 and its bits, which every architecture has, or by an instruction.

Source: OCP, 8-bit floating point specification (OFP8), revision 1.0.
"""

from dataclasses import dataclass

from hipdnn_mlir_runtime.dtypes import DType

from .builder import KernelBuilder, Value

_FRACTION_BITS, _BIAS = 23, 127
"""Of f32."""
_INFINITY = 0x7F800000


@dataclass(frozen=True)
class _Format:
    """Where the parts of a type lie, and the codes of its greatest number, of what is greater, and of NaN."""

    fraction_bits: int
    bias: int
    greatest: int
    overflow: int
    nan: int


_FORMATS = {"f8e4m3": _Format(3, 7, 0x7E, 0x7F, 0x7F), "f8e5m2": _Format(2, 15, 0x7B, 0x7C, 0x7E)}


def float8_to_f32(b: KernelBuilder, code: Value, dtype: DType) -> Value:
    """The number of a code, which is an i8."""
    form = _FORMATS[dtype.name]
    wide = b.op("arith.extui", [code], b.i32)
    magnitude = b.same("arith.andi", wide, b.constant(0x7F, b.i32))
    shifted = b.same("arith.shli", magnitude, b.constant(_FRACTION_BITS - form.fraction_bits, b.i32))
    # A product with a power of two gives the exponent its bias, and makes numbers of f32 of those that are denormal in 8 bits: not by way
    # of denormal numbers of f32, which a device may take for 0.
    scaled = b.same("arith.mulf", _float(b, shifted), b.constant(2.0 ** (_BIAS - form.bias), b.f32))
    fraction = b.op("arith.sitofp", [magnitude], b.f32)
    denormal = b.same("arith.mulf", fraction, b.constant(2.0 ** (1 - form.bias - form.fraction_bits), b.f32))
    is_denormal = b.compare("slt", magnitude, b.constant(1 << form.fraction_bits, b.i32))
    bits = _bits(b, b.select(is_denormal, denormal, scaled))
    special = b.same("arith.ori", shifted, b.constant(_INFINITY, b.i32))
    is_finite = b.compare("sle", magnitude, b.constant(form.greatest, b.i32))
    sign = b.same("arith.shli", b.same("arith.andi", wide, b.constant(0x80, b.i32)), b.constant(24, b.i32))
    return _float(b, b.same("arith.ori", b.select(is_finite, bits, special), sign))


def f32_to_float8(b: KernelBuilder, value: Value, dtype: DType) -> Value:
    """The code of the nearest number, halves to even, as an i8; beyond the greatest one infinity, or NaN where the type has none."""
    if b.rounds_to_float8:
        return _by_instruction(b, value, dtype)
    form = _FORMATS[dtype.name]
    shift = _FRACTION_BITS - form.fraction_bits
    least_normal = (_BIAS + 1 - form.bias) << _FRACTION_BITS
    unit = (_BIAS + 1 - form.bias + _FRACTION_BITS - form.fraction_bits) << _FRACTION_BITS

    def number(n: int) -> Value:
        return b.constant(n, b.i32)

    all_bits = _bits(b, value)
    bits = b.same("arith.andi", all_bits, number(0x7FFFFFFF))
    odd = b.same("arith.andi", b.same("arith.shrui", bits, number(shift)), number(1))
    offset = (1 << (shift - 1)) - 1 - ((_BIAS - form.bias) << _FRACTION_BITS)
    rounded = b.same("arith.addi", b.same("arith.addi", bits, number(offset)), odd)
    normal = b.same("arith.shrsi", rounded, number(shift))
    normal = b.select(b.compare("sgt", normal, number(form.greatest)), number(form.overflow), normal)
    # The sum's last place is that of denormal numbers, so that adding rounds.
    is_denormal = b.compare("slt", bits, number(least_normal))
    small = b.select(is_denormal, _float(b, bits), b.constant(0.0, b.f32))
    summed = b.same("arith.addf", small, _float(b, number(unit)))
    denormal = b.same("arith.subi", _bits(b, summed), number(unit))
    code = b.select(is_denormal, denormal, normal)
    code = b.select(b.compare("sgt", bits, number(_INFINITY)), number(form.nan), code)
    sign = b.same("arith.andi", b.same("arith.shrui", all_bits, number(24)), number(0x80))
    return b.op("arith.trunci", [b.same("arith.ori", code, sign)], b.i8)


def _by_instruction(b: KernelBuilder, value: Value, dtype: DType) -> Value:
    """As `f32_to_float8`: the instruction gives the greatest number for what is too great, and one code for NaN."""
    form = _FORMATS[dtype.name]
    code = b.nearest_float8(dtype.name.removeprefix("f8"), value)
    bits = b.same("arith.andi", _bits(b, value), b.constant(0x7FFFFFFF, b.i32))
    # Halfway to the number behind the greatest one, the even code is the greatest one's in E4M3, and infinity's in E5M2.
    half = 1 << (_FRACTION_BITS - form.fraction_bits - 1)
    greatest = (form.greatest << (_FRACTION_BITS - form.fraction_bits)) + ((_BIAS - form.bias) << _FRACTION_BITS)
    is_special = b.compare("sge", bits, b.constant(greatest + half + (form.greatest + 1) % 2, b.i32))
    special = b.select(
        b.compare("sgt", bits, b.constant(_INFINITY, b.i32)),
        b.constant(form.nan, b.i8),
        b.constant(form.overflow, b.i8),
    )
    sign = b.op("arith.trunci", [b.same("arith.shrui", _bits(b, value), b.constant(24, b.i32))], b.i8)
    sign = b.same("arith.andi", sign, b.constant(0x80, b.i8))
    return b.select(is_special, b.same("arith.ori", special, sign), code)


def _bits(b: KernelBuilder, value: Value) -> Value:
    return b.op("arith.bitcast", [value], b.i32)


def _float(b: KernelBuilder, bits: Value) -> Value:
    return b.op("arith.bitcast", [bits], b.f32)
