"""Functions of f32 whose results are stored in 16 bits: few instructions, with the approximations that GPUs have.

Their errors are well below those of f16, and above those of f32 by little, so that differences of them may be stored too
(docs/gpu-kernels.md).
"""

import math

from ..core.builder import KernelBuilder, Value
from .functions import Functions

_LEAST = 2.0**-126
"""Below it approximations take operands for 0, and their results are 0."""
_FAR = 2.0**64
_NORMAL_SLOPE = 0.31
"""Of the variable of the polynomial NORMAL; bench/gpu/fit_functions.py has it too."""
_NORMAL_END = 13.5
"""From here on what is left of the normal distribution is below the least normal number."""


class ShortFunctions(Functions):
    """Functions of f32; those that are not here are the long ones, made of these where they use them."""

    def __init__(self, b: KernelBuilder) -> None:
        super().__init__(b, 32)

    def div(self, x: Value, y: Value) -> Value:
        """X / y."""
        inverse, scale = self._inverse(y)
        return self.mul(self.mul(x, inverse), scale)

    def reciprocal(self, x: Value) -> Value:
        """1 / x."""
        return self.mul(*self._inverse(x))

    def _inverse(self, y: Value) -> tuple[Value, Value]:
        """Factors of 1 / y: y is scaled so that neither it nor its inverse is subnormal."""
        a = self.abs(y)
        scale = self.where("ogt", a, _FAR, self.number(1 / _FAR), self.number(1))
        scale = self.where("olt", a, 1 / _FAR, self.number(_FAR), scale)
        return self.b.approximate("reciprocal", self.mul(y, scale)), scale

    def rsqrt(self, x: Value) -> Value:
        """1 / root of x."""
        is_small = self.b.compare("olt", x, self.number(1 / _FAR))
        root = self.b.approximate("rsqrt", self.b.select(is_small, self.mul(x, self.number(_FAR)), x))
        return self.b.select(is_small, self.mul(root, self.number(math.sqrt(_FAR))), root)

    def exp(self, x: Value) -> Value:
        """E to the x, subnormal results too."""
        power = self.mul(x, self.number(math.log2(math.e)))
        is_small = self.b.compare("olt", power, self.number(-126))
        power = self.b.select(is_small, self.add(power, self.number(64)), power)
        raised = self.b.approximate("exp2", power)
        return self.b.select(is_small, self.mul(raised, self.number(1 / _FAR)), raised)

    def log(self, x: Value) -> Value:
        """Natural logarithm; near 1, where the approximation's error is large beside the result, a polynomial."""
        b = self.b
        is_small = b.compare("olt", x, self.number(_LEAST))
        power = b.approximate("log2", b.select(is_small, self.mul(x, self.number(_FAR)), x))
        power = b.select(is_small, self.sub(power, self.number(64)), power)
        f = self.sub(x, self.number(1))
        near = self.mul(f, self.polynomial(f, "NEAR_LOG", 16))
        return self.where("olt", self.abs(f), 1 / 16, near, self.mul(power, self.number(math.log(2))))

    def tanh(self, x: Value) -> Value:
        """Hyperbolic tangent."""
        grown = self.b.approximate("exp2", self.mul(x, self.number(2 * math.log2(math.e))))
        inverse = self.b.approximate("reciprocal", self.add(grown, self.number(1)))
        far = self.fma(self.number(-2), inverse, self.number(1))
        return self.where("olt", self.abs(x), 0.25, self.corrected(x, "TANH", 16), far)

    def sigmoid(self, x: Value) -> Value:
        """1 / (1 + exp(-x)) as exp(x) / (1 + exp(x)), which is not 0 too early; exp(x) must not be infinite."""
        raised = self.exp(self.where("ogt", x, 32.0, self.number(32), x))
        return self.mul(raised, self.b.approximate("reciprocal", self.add(raised, self.number(1))))

    def erf(self, x: Value) -> Value:
        """Error function: 1 - 2 Q(sqrt(2) x)."""
        a = self.abs(x)
        end = _NORMAL_END / math.sqrt(2)
        y = self.where("ogt", a, end, self.number(end), a)
        rest = self.mul(self._normal_rest(self.mul(y, self.number(math.sqrt(2)))), self.number(-2))
        one = self.with_sign(self.number(1), x)  # the sign of a 16-bit result would take LLVM six instructions
        near = self.mul(x, self.polynomial(self.mul(x, x), "ERF", 16))
        return self.where("olt", a, 0.5, near, self.fma(rest, one, one))

    def gelu(self, x: Value) -> Value:
        """X (1 - Q(x)), which is -|x| Q(|x|) below 0: nothing cancels there."""
        a = self.b.intrinsic("minnum", self.abs(x), self.number(_NORMAL_END))
        return self.fma(self.neg(a), self._normal_rest(a), self.where("olt", x, 0.0, self.number(0), x))

    def _normal_rest(self, a: Value) -> Value:
        """Q(a), the probability of more than a in the normal distribution, a from 0 to its end: exp(-a^2 / 2) t P(t), t = 1 / (1 + p a)."""
        power = self.mul(self.mul(a, a), self.number(-0.5 * math.log2(math.e)))
        t = self.b.approximate("reciprocal", self.fma(a, self.number(_NORMAL_SLOPE), self.number(1)))
        return self.mul(self.mul(self.b.approximate("exp2", power), t), self.polynomial(t, "NORMAL", 16))
