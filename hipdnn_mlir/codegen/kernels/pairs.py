"""Pairs of 16-bit floats in words of 32 bits, the operands of matrix units: from memory, and from numbers of 4 and 8 bits."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch_mlir import ir

from hipdnn_mlir_runtime.dtypes import F16, DType

from ..core.builder import KernelBuilder, Value
from ..core.elements import memory_type

_LOW, _HIGH = 0x0000FFFF, 0xFFFF0000


@dataclass(frozen=True)
class Code:
    """Where codes of a pair lie in a word, and the 16-bit float whose lowest bits they are put into.

    Attributes:
        shift: bits that the word is moved to the right before.
        bits: of the float, with a code of zero.
        low: the lowest of the code's bits.
        offset: what the number that the code stands for is less than that float.
    """

    shift: int
    bits: int
    low: int
    offset: int


_CODES = {
    ("f16", 4): [Code(0, 0x6400, 0, 1024 + 8), Code(0, 0x5400, 4, 64 + 8), Code(8, 0x6400, 0, 1024 + 8), Code(8, 0x5400, 4, 64 + 8)],
    ("bf16", 4): [Code(shift, 0x4300, 0, 128 + 8) for shift in (0, 4, 8, 12)],
    ("f16", 8): [Code(shift, 0x6400, 0, 1024 + 128) for shift in (0, 8)],
}  # fmt: skip
"""Of a float's type and the bits of a code. A float of 1024 counts by ones, one of 64 by sixteenths: there, codes need not be moved."""


def codes_of(dtype: DType, bits: int) -> list[Code]:
    """How the pairs of a word's numbers of 4 or 8 bits become floats; each pair is half a word apart."""
    return _CODES[dtype.name, bits]


class Pairs:
    """Writes what pairs are made by; `dtype` is f16 or bf16."""

    def __init__(self, b: KernelBuilder, dtype: DType) -> None:
        self._b, self._dtype = b, dtype
        self._pair = ir.VectorType.get([2], memory_type(b, dtype))

    def codes(self, word: Value, bits: int) -> list[Value]:
        """Pairs of a word's numbers, each more by its `Code.offset`: with the sign bit turned they count from the least on."""
        b, lower = self._b, (1 << bits) - 1
        found, moved = [], {0: word}
        for code in codes_of(self._dtype, bits):
            if code.shift not in moved:
                moved[code.shift] = b.same("arith.shrui", word, b.constant(code.shift, b.i32))
            sign = 1 << (bits - 1) << code.low
            made = b.masked_xor(moved[code.shift], _twice(lower << code.low), _twice(code.bits | sign))
            found.append(self.of_word(made))
        return found

    def numbers(self, word: Value, bits: int, factor: Value) -> list[Value]:
        """Pairs of a word's numbers times their scale."""
        b, codes = self._b, codes_of(self._dtype, bits)
        return [
            b.same("arith.mulf", b.same("arith.subf", pair, self._known(code.offset)), factor)
            for pair, code in zip(self.codes(word, bits), codes, strict=True)
        ]

    def of_word(self, word: Value) -> Value:
        """What a word holds."""
        return self._b.op("llvm.bitcast", [word], self._pair)

    def _known(self, value: int) -> Value:
        splat = ir.DenseElementsAttr.get_splat(self._pair, ir.FloatAttr.get(self._pair.element_type, float(value)))
        return self._b.op("arith.constant", [], self._pair, value=splat)

    def splat(self, value: Value) -> Value:
        """A pair of one number."""
        return self.joined(value, value)

    def joined(self, first: Value, second: Value) -> Value:
        """A pair of two numbers, rounded."""
        b, made = self._b, self._b.op("llvm.mlir.poison", [], self._pair)
        for place, value in enumerate((first, second)):
            narrow = b.op("arith.truncf", [value], self._pair.element_type)
            made = b.op("llvm.insertelement", [made, narrow, b.constant(place, b.i32)], self._pair)
        return made

    def multiplied(
        self, columns: Sequence[Sequence[Value]], row: Sequence[Value], sums: Sequence[Value]
    ) -> list[Value]:
        """Matrix units: pairs of two columns a lane times words of a row, 16 columns times 8 rows in all, and the sums so far."""
        found = list(sums)
        for at in range(0, len(row), 2):
            weights = [columns[0][at], columns[1][at], columns[0][at + 1], columns[1][at + 1]]
            found = self._multiplied_once(weights, row[at : at + 2], found)
        return found

    def _multiplied_once(self, weights: Sequence[Value], rows: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """The same along 16 inner positions."""
        b = self._b
        if self._dtype is F16:
            name, operands = "f32.f32", [*weights, *map(self.of_word, rows)]
        else:
            name, operands = "bf16", [*(b.op("llvm.bitcast", [w], b.i32) for w in weights), *rows]
        return b.units_products(f"m16n8k16.row.col.{name}", b.f32, operands, sums)

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


def _twice(half: int) -> int:
    """In both halves of a word."""
    return half | half << 16
