"""Pairs of 16-bit floats in words of 32 bits, the operands of matrix units: from memory, and from numbers of 4 and 8 bits."""

from dataclasses import dataclass

from torch_mlir import ir

from hipdnn_mlir_runtime.dtypes import I4, DType

from ..core.builder import KernelBuilder, Value
from ..core.elements import memory_type

_LOW, _HIGH = 0x0000FFFF, 0xFFFF0000


@dataclass(frozen=True)
class _Exponent:
    """A 16-bit float with an integer in its lowest bits: its bits, and its value where the integer is 0."""

    bits: int
    value: int


_EXPONENTS = {"f16": _Exponent(0x64006400, 1024), "bf16": _Exponent(0x43004300, 128)}


class Pairs:
    """Writes what pairs are made by; `dtype` is f16 or bf16."""

    def __init__(self, b: KernelBuilder, dtype: DType) -> None:
        self._b, self._dtype = b, dtype
        self._pair = ir.VectorType.get([2], memory_type(b, dtype))

    def numbers(self, word: Value, dtype: DType, factor: Value) -> list[Value]:
        """Pairs of numbers of a word times their scale: those half a word apart.

        With the sign bit turned they count from the least on, and are in the lowest bits of a float that is subtracted.
        """
        b, exponent = self._b, _EXPONENTS[self._dtype.name]
        bits = 4 if dtype is I4 else 8
        middle, lower = 1 << (bits - 1), (1 << bits) - 1
        turned = b.same("arith.xori", word, b.constant(sum(middle << at for at in range(0, 32, bits)), b.i32))
        least = self._known(exponent.value + middle)
        found = []
        for at in range(0, 16, bits):
            low = b.same("arith.shrui", turned, b.constant(at, b.i32)) if at else turned
            low = b.same("arith.andi", low, b.constant(lower | lower << 16, b.i32))
            code = self.of_word(b.same("arith.ori", low, b.constant(exponent.bits, b.i32)))
            found.append(b.same("arith.mulf", b.same("arith.subf", code, least), factor))
        return found

    def of_word(self, word: Value) -> Value:
        """What a word holds."""
        return self._b.op("llvm.bitcast", [word], self._pair)

    def _known(self, value: int) -> Value:
        splat = ir.DenseElementsAttr.get_splat(self._pair, ir.FloatAttr.get(self._pair.element_type, float(value)))
        return self._b.op("arith.constant", [], self._pair, value=splat)

    def splat(self, value: Value) -> Value:
        """A pair of one number."""
        b = self._b
        narrow = b.op("arith.truncf", [value], self._pair.element_type)
        made = b.op("llvm.mlir.poison", [], self._pair)
        for place in range(2):
            made = b.op("llvm.insertelement", [made, narrow, b.constant(place, b.i32)], self._pair)
        return made

    def mixed(self, first: Value, second: Value) -> list[Value]:
        """The lower halves of two words, and the upper ones."""
        b = self._b
        sixteen = b.constant(16, b.i32)
        low = b.same("arith.andi", first, b.constant(_LOW, b.i32))
        high = b.same("arith.andi", second, b.constant(_HIGH, b.i32))
        return [
            b.same("arith.ori", low, b.same("arith.shli", second, sixteen)),
            b.same("arith.ori", b.same("arith.shrui", first, sixteen), high),
        ]
