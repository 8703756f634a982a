"""Functions of real numbers from arithmetic alone, for f32 and f64: no device library is called.

The same instructions run on every architecture, and on the CPU in tests; `short_functions.py` has those for results of 16 bits. Measured
errors: docs/gpu-kernels.md.
"""

import math

import numpy as np

from ..core.builder import KernelBuilder, Value
from .coefficients import COEFFICIENTS

_LN2 = {32: (0.693145751953125, 1.4286068203094172321e-6), 64: (0.69314718036912381649, 1.9082149292705877e-10)}
"""ln 2 as a number of few bits, whose products with exponents are exact, and the rest."""
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
"""pi / 2 as a sum of three doubles."""

_IS_OFF = (("ogt", 0.0), ("olt", math.inf))
_FULL, _LEAST, _GREATEST = 1 - 2.0**-24, 2.0**-64, 2.0**64


def has_quotient(divisor: float) -> bool:
    """Whether `Functions.quotient` divides an f32 by a number: one whose bits are not all set, and that is far from the limits."""
    return _LEAST <= abs(divisor) <= _GREATEST and abs(math.frexp(divisor)[0]) != _FULL


class Functions:
    """Functions of one float type: f32 (bits 32) or f64 (bits 64)."""

    def __init__(self, b: KernelBuilder, bits: int) -> None:
        self.b, self.bits = b, bits
        self.type = b.f32 if bits == 32 else b.f64
        self.int_type = b.i32 if bits == 32 else b.i64
        self.mantissa = 23 if bits == 32 else 52
        self.bias = 127 if bits == 32 else 1023

    # -- arithmetic -----------------------------------------------------------------------------------------------

    def number(self, value: float) -> Value:
        """A constant."""
        return self.b.constant(value, self.type)

    def integer(self, value: int) -> Value:
        """A constant integer of as many bits."""
        return self.b.constant(value, self.int_type)

    def add(self, x: Value, y: Value) -> Value:
        """X + y."""
        return self.b.same("arith.addf", x, y)

    def sub(self, x: Value, y: Value) -> Value:
        """X - y."""
        return self.b.same("arith.subf", x, y)

    def mul(self, x: Value, y: Value) -> Value:
        """X * y."""
        return self.b.same("arith.mulf", x, y)

    def div(self, x: Value, y: Value) -> Value:
        """X / y."""
        return self.b.same("arith.divf", x, y)

    def quotient(self, x: Value, divisor: float) -> Value:
        """X / divisor without a division, where `has_quotient`: one step from the product with the reciprocal is the nearest (Markstein).

        Where the quotient is subnormal, it may be its neighbour.
        """
        inverse, known = self.number(float(np.float32(1 / divisor))), self.number(divisor)
        near = self.mul(x, inverse)
        rest = self.fma(self.neg(near), known, x)
        # What is exact already keeps the sign of zero, and infinity.
        off = self.abs(rest)
        takes = self.b.same("arith.andi", *(self.b.compare(p, off, self.number(v)) for p, v in _IS_OFF))
        return self.b.select(takes, self.fma(rest, inverse, near), near)

    def neg(self, x: Value) -> Value:
        """-x."""
        return self.b.same("arith.negf", x)

    def fma(self, x: Value, y: Value, z: Value) -> Value:
        """X * y + z, rounded once."""
        return self.b.intrinsic("fma", x, y, z)

    def abs(self, x: Value) -> Value:
        """|x|."""
        return self.b.intrinsic("fabs", x)

    def sqrt(self, x: Value) -> Value:
        """The root, rounded once."""
        return self.b.intrinsic("sqrt", x)

    def reciprocal(self, x: Value) -> Value:
        """1 / x."""
        return self.div(self.number(1), x)

    def rsqrt(self, x: Value) -> Value:
        """1 / root of x."""
        return self.div(self.number(1), self.sqrt(x))

    def with_sign(self, x: Value, sign: Value) -> Value:
        """|x| with another's sign."""
        return self.b.intrinsic("copysign", x, sign)

    def bits_of(self, x: Value) -> Value:
        """The bits of a float."""
        return self.b.op("arith.bitcast", [x], self.int_type)

    def of_bits(self, x: Value) -> Value:
        """The float of bits."""
        return self.b.op("arith.bitcast", [x], self.type)

    def where(self, predicate: str, x: Value, y: float, then: Value, otherwise: Value) -> Value:
        """`then` where x compares with a number so, else `otherwise`."""
        return self.b.select(self.b.compare(predicate, x, self.number(y)), then, otherwise)

    def polynomial(self, x: Value, name: str, bits: int | None = None) -> Value:
        """A polynomial of the table, of this type's precision or another."""
        first, *rest = COEFFICIENTS[name][bits or self.bits]
        total = self.number(first)
        for coefficient in rest:
            total = self.fma(total, x, self.number(coefficient))
        return total

    def corrected(self, x: Value, name: str, bits: int | None = None) -> Value:
        """X + x z P(z), z = x * x: odd functions that begin like x."""
        z = self.mul(x, x)
        return self.fma(self.mul(x, z), self.polynomial(z, name, bits), x)

    # -- exponentials ---------------------------------------------------------------------------------------------

    def _nearest(self, x: Value) -> tuple[Value, Value]:
        """The nearest integer to a number below 2^(mantissa - 2), as float and as integer; without a conversion, which NaN has none of."""
        shift = self.number(1.5 * 2.0**self.mantissa)
        moved = self.add(x, shift)
        whole = self.b.same("arith.subi", self.bits_of(moved), self.bits_of(shift))
        return self.sub(moved, shift), whole

    def exp(self, x: Value) -> Value:
        """E to the x; 0 and infinity outside of the range."""
        low, high = (-104.0, 89.0) if self.bits == 32 else (-746.0, 710.0)
        x = self.where("olt", x, low, self.number(low), self.where("ogt", x, high, self.number(high), x))
        k, whole = self._nearest(self.mul(x, self.number(1 / math.log(2))))
        r = x
        for part in _LN2[self.bits]:
            r = self.fma(k, self.number(-part), r)
        p = self.fma(self.mul(r, r), self.polynomial(r, "EXP"), r)
        p = self.add(p, self.number(1))
        half = self.b.same("arith.shrsi", whole, self.integer(1))  # 2^k itself may be no number where the result is one
        for part in (half, self.b.same("arith.subi", whole, half)):
            p = self.mul(p, self._power_of_two(part))
        return p

    def _power_of_two(self, k: Value) -> Value:
        biased = self.b.same("arith.addi", k, self.integer(self.bias))
        return self.of_bits(self.b.same("arith.shli", biased, self.integer(self.mantissa)))

    def log(self, x: Value) -> Value:
        """Natural logarithm."""
        b, least = self.b, 2.0 ** (1 - self.bias)
        is_small = b.compare("olt", x, self.number(least))
        scaled = b.select(is_small, self.mul(x, self.number(2.0**self.mantissa)), x)
        bits = self.bits_of(scaled)
        below = 0x3F3504F3 if self.bits == 32 else 0x3FE6A09E667F3BCD  # the root of 1/2
        k = b.same("arith.shrsi", b.same("arith.subi", bits, self.integer(below)), self.integer(self.mantissa))
        f = self.of_bits(b.same("arith.subi", bits, b.same("arith.shli", k, self.integer(self.mantissa))))
        exponent = b.op("arith.sitofp", [k], self.type)
        exponent = b.select(is_small, self.sub(exponent, self.number(self.mantissa)), exponent)
        high, low = _LN2[self.bits]
        f = self.sub(f, self.number(1))
        s = self.div(f, self.add(f, self.number(2)))
        z = self.mul(s, s)
        inner = self.fma(s, self.fma(self.neg(z), self.polynomial(z, "LOG"), f), self.mul(exponent, self.number(-low)))
        result = self.fma(exponent, self.number(high), self.sub(f, inner))
        result = self.where("oeq", x, 0.0, self.number(-math.inf), result)
        result = self.where("olt", x, 0.0, self.number(math.nan), result)
        return b.select(
            b.compare("olt", self.abs(x), self.number(math.inf)), result, self.where("olt", x, 0.0, result, x)
        )

    def log1p(self, x: Value) -> Value:
        """log(1 + x) for x from 0 on, exact in what 1 + x loses."""
        w = self.add(x, self.number(1))
        lost = self.sub(x, self.sub(w, self.number(1)))
        result = self.add(self.log(w), self.div(lost, w))
        return self.where("olt", w, math.inf, result, w)

    # -- circular functions ---------------------------------------------------------------------------------------

    def _reduced(self, x: Value) -> tuple[Value, Value]:
        """X without its multiple of pi / 2, and that multiple's low bits; right for |x| to 2^30, in f64 where x is f32."""
        wide = self if self.bits == 64 else Functions(self.b, 64)
        y = x if self.bits == 64 else self.b.op("arith.extf", [x], self.b.f64)
        k, whole = wide._nearest(wide.mul(y, wide.number(2 / math.pi)))  # noqa: SLF001 - of the same class
        for part in _HALF_PI[: 2 if self.bits == 32 else 3]:
            y = wide.fma(k, wide.number(-part), y)
        if self.bits == 32:
            y, whole = self.b.op("arith.truncf", [y], self.b.f32), self.b.op("arith.trunci", [whole], self.b.i32)
        return y, whole

    def _has_bit(self, whole: Value, bit: int) -> Value:
        masked = self.b.same("arith.andi", whole, self.integer(bit))
        return self.b.compare("ne", masked, self.integer(0))

    def _sine(self, r: Value) -> Value:
        return self.corrected(r, "SIN")

    def _cosine(self, r: Value) -> Value:
        z = self.mul(r, r)
        half = self.fma(z, self.number(-0.5), self.number(1))
        lost = self.fma(z, self.number(-0.5), self.sub(self.number(1), half))
        return self.add(half, self.fma(self.mul(z, z), self.polynomial(z, "COS"), lost))

    def _turned(self, x: Value, quarter: int) -> Value:
        r, whole = self._reduced(x)
        if quarter:
            whole = self.b.same("arith.addi", whole, self.integer(quarter))
        result = self.b.select(self._has_bit(whole, 1), self._cosine(r), self._sine(r))
        return self.b.select(self._has_bit(whole, 2), self.neg(result), result)

    def sin(self, x: Value) -> Value:
        """Sine."""
        return self._turned(x, 0)

    def cos(self, x: Value) -> Value:
        """Cosine."""
        return self._turned(x, 1)

    def tan(self, x: Value) -> Value:
        """Tangent."""
        r, whole = self._reduced(x)
        sine, cosine = self._sine(r), self._cosine(r)
        is_turned = self._has_bit(whole, 1)
        return self.div(self.b.select(is_turned, self.neg(cosine), sine), self.b.select(is_turned, sine, cosine))

    def asin(self, x: Value) -> Value:
        """Inverse sine."""
        a = self.abs(x)
        root = self.sqrt(self.fma(a, self.number(-0.5), self.number(0.5)))
        far = self.fma(self.number(-2), self.corrected(root, "ASIN"), self.number(math.pi / 2))
        return self.with_sign(self.where("ogt", a, 0.5, far, self.corrected(a, "ASIN")), x)

    def acos(self, x: Value) -> Value:
        """Inverse cosine."""
        a = self.abs(x)
        root = self.sqrt(self.fma(a, self.number(-0.5), self.number(0.5)))
        far = self.mul(self.corrected(root, "ASIN"), self.number(2))
        far = self.where("olt", x, 0.0, self.sub(self.number(math.pi), far), far)
        return self.where("ogt", a, 0.5, far, self.sub(self.number(math.pi / 2), self.corrected(x, "ASIN")))

    def _arctangent(self, a: Value) -> Value:
        """Inverse tangent for 0 <= a <= 1."""
        one = self.number(1)
        is_far = self.b.compare("ogt", a, self.number(math.sqrt(2) - 1))
        t = self.b.select(is_far, self.div(self.sub(a, one), self.add(a, one)), a)
        near = self.corrected(t, "ATAN")
        return self.b.select(is_far, self.add(near, self.number(math.pi / 4)), near)

    def atan(self, x: Value) -> Value:
        """Inverse tangent."""
        a = self.abs(x)
        is_far = self.b.compare("ogt", a, self.number(1))
        near = self._arctangent(self.b.select(is_far, self.div(self.number(1), a), a))
        return self.with_sign(self.b.select(is_far, self.sub(self.number(math.pi / 2), near), near), x)

    def atan2(self, y: Value, x: Value) -> Value:
        """Angle of the point (x, y)."""
        b, p, q = self.b, self.abs(y), self.abs(x)
        is_steep = b.compare("ogt", p, q)
        above, below = b.select(is_steep, q, p), b.select(is_steep, p, q)
        ratio = self.div(above, below)
        ratio = b.select(b.compare("oeq", above, below), self.number(1), ratio)  # infinities
        ratio = self.where("oeq", below, 0.0, self.number(0), ratio)
        angle = self._arctangent(ratio)
        angle = b.select(is_steep, self.sub(self.number(math.pi / 2), angle), angle)
        is_left = b.compare("slt", self.bits_of(x), self.integer(0))
        angle = b.select(is_left, self.sub(self.number(math.pi), angle), angle)
        return self.with_sign(b.select(b.compare("uno", x, y), self.add(x, y), angle), y)

    # -- hyperbolic functions -------------------------------------------------------------------------------------

    def _growth(self, x: Value) -> tuple[Value, Value]:
        """exp(|x|) / 2 and exp(-|x|) / 2, finite as long as their sum is."""
        w = self.exp(self.mul(self.abs(x), self.number(0.5)))
        return self.mul(self.mul(w, self.number(0.5)), w), self.div(self.div(self.number(0.5), w), w)

    def sinh(self, x: Value) -> Value:
        """Hyperbolic sine."""
        grows, decays = self._growth(x)
        far = self.with_sign(self.sub(grows, decays), x)
        return self.where("olt", self.abs(x), 1.0, self.corrected(x, "SINH"), far)

    def cosh(self, x: Value) -> Value:
        """Hyperbolic cosine."""
        return self.add(*self._growth(x))

    def tanh(self, x: Value) -> Value:
        """Hyperbolic tangent."""
        a = self.abs(x)
        grown = self.exp(self.add(a, a))
        far = self.sub(self.number(1), self.div(self.number(2), self.add(grown, self.number(1))))
        return self.with_sign(self.where("olt", a, 0.6, self.corrected(a, "TANH"), far), x)

    def asinh(self, x: Value) -> Value:
        """Inverse hyperbolic sine."""
        a = self.abs(x)
        square = self.mul(a, a)
        root = self.add(self.sqrt(self.add(square, self.number(1))), self.number(1))
        near = self.log1p(self.add(a, self.div(square, root)))
        far = self.add(self.log(a), self.number(math.log(2)))
        return self.with_sign(self.where("ogt", a, 2.0 ** (self.mantissa // 2 + 2), far, near), x)

    def acosh(self, x: Value) -> Value:
        """Inverse hyperbolic cosine."""
        t = self.sub(x, self.number(1))
        near = self.log1p(self.add(t, self.sqrt(self.fma(t, t, self.add(t, t)))))
        far = self.add(self.log(x), self.number(math.log(2)))
        result = self.where("ogt", x, 2.0 ** (self.mantissa // 2 + 2), far, near)
        return self.where("olt", x, 1.0, self.number(math.nan), result)

    def atanh(self, x: Value) -> Value:
        """Inverse hyperbolic tangent."""
        a = self.abs(x)
        grown = self.log1p(self.div(self.add(a, a), self.sub(self.number(1), a)))
        grown = self.where("ogt", a, 1.0, self.number(math.nan), grown)
        return self.with_sign(self.mul(grown, self.number(0.5)), x)

    # -- others ---------------------------------------------------------------------------------------------------

    def erf(self, x: Value) -> Value:
        """Error function."""
        a = self.abs(x)
        near = self.mul(x, self.polynomial(self.mul(x, x), "ERF"))
        limit = 4.0 if self.bits == 32 else 6.0
        y = self.where("ogt", a, limit, self.number(limit), a)
        moved = self.add(y, self.number(1.5))
        t = self.div(self.sub(y, self.number(3.5)), moved)
        rest = self.mul(self.exp(self.neg(self.mul(y, y))), self.div(self.polynomial(t, "ERFC"), moved))
        far = self.with_sign(self.sub(self.number(1), rest), x)
        return self.where("olt", a, 1.0, near, far)

    def sigmoid(self, x: Value) -> Value:
        """1 / (1 + exp(-x))."""
        return self.reciprocal(self.add(self.exp(self.neg(x)), self.number(1)))

    def gelu(self, x: Value) -> Value:
        """X times the normal distribution's probability of less than x."""
        inner = self.add(self.erf(self.mul(x, self.number(math.sqrt(0.5)))), self.number(1))
        return self.mul(self.mul(x, self.number(0.5)), inner)

    def pow(self, x: Value, y: Value) -> Value:
        """X to the y as in C; for f32 computed in f64."""
        b = self.b
        if self.bits == 32:
            wide = Functions(b, 64)
            raised = wide._power(b.op("arith.extf", [self.abs(x)], b.f64), b.op("arith.extf", [y], b.f64))
            power = b.op("arith.truncf", [raised], b.f32)
        else:
            power = self._power(self.abs(x), y)
        whole = b.compare("oeq", b.intrinsic("floor", y), y)
        half = self.mul(y, self.number(0.5))
        odd = b.same("arith.andi", whole, b.compare("une", b.intrinsic("floor", half), half))
        is_negative = b.compare("slt", self.bits_of(x), self.integer(0))
        power = b.select(b.same("arith.andi", is_negative, odd), self.neg(power), power)
        known = self.where("oeq", x, 0.0, power, self.where("oeq", x, -math.inf, power, self.number(math.nan)))
        has_none = b.same(
            "arith.andi", b.compare("olt", x, self.number(0)), b.same("arith.xori", whole, b.constant(1, b.i1))
        )
        power = b.select(has_none, known, power)
        return self.where("oeq", x, 1.0, x, self.where("oeq", y, 0.0, self.number(1), power))

    def _power(self, a: Value, y: Value) -> Value:
        raised = self.exp(self.mul(y, self.log(a)))
        return self.where("oeq", a, 1.0, self.b.select(self.b.compare("uno", y, y), raised, a), raised)

    def fmod(self, x: Value, y: Value) -> Value:
        """Remainder with x's sign, exact where x / y is below 2^53; for f32 computed in f64."""
        b = self.b
        wide = Functions(b, 64)
        p, q = (
            value if self.bits == 64 else b.op("arith.extf", [value], b.f64) for value in (self.abs(x), self.abs(y))
        )
        whole = b.intrinsic("trunc", wide.div(p, q))
        rest = wide.fma(wide.neg(whole), q, p)
        rest = wide.where("olt", rest, 0.0, wide.add(rest, q), rest)
        rest = b.select(b.compare("oge", rest, q), wide.sub(rest, q), rest)
        rest = b.select(b.compare("olt", p, q), p, rest)
        return self.with_sign(rest if self.bits == 64 else b.op("arith.truncf", [rest], b.f32), x)


NAMES = frozenset({
    "add", "sub", "mul", "div", "neg", "abs", "exp", "log", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh",
    "acosh", "atanh", "erf", "sqrt", "rsqrt", "reciprocal", "log1p", "atan2", "pow", "fmod", "sigmoid", "gelu",
})  # fmt: skip
"""Functions that are instructions of an elementwise kernel or of the body of a graph, by the same name."""
