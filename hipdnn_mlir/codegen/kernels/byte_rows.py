"""Rows of a matmul in shared memory as integers of 16 bits, for weights of 4 and 8 bits: bytes of both are operands of matrix units.

What a lane multiplies at a step are integers times a power of two of their own, which their greatest element says: 14 bits of it, and a
float of 16 bits has 11. The upper bytes are one column of an operand of matrix units, the lower ones the next, so sums are exact, and each
is multiplied by two numbers: that power, and the scale of the block of weights. A norm is a factor of the results.
"""

from collections.abc import Sequence

from ...ops.few_rows import FewRows
from ...ops.graph import Graph
from ..core.builder import KernelBuilder, Value
from .staged_rows import VECTOR, ReadRows, Vectors

_WAVE, _MOST_WAVES = 32, 8
_BITS = 13
"""Of the integers, below the bit of the greatest one's power of two."""
_MANTISSA, _EXPONENTS = 23, 0x7F800000
"""Bits of an f32, and where its exponent is."""
_ONE = 127
"""The exponent of 1.0."""
_LEAST = 2.0**-100
"""Smaller numbers count as zero."""
_WHOLE = 1.5 * 2**_MANTISSA
"""An f32 whose lowest bits count by ones, as those of a signed integer that is added."""
_LOW_BYTES, _HIGH_BYTES, _SIGNS = 0x5410, 0x7632, 0x80808080
_PAIRED = 0x5140
"""What `prmt` takes of two words: the lower halves, the upper ones, and the lower two bytes of each by turns."""


class ByteRows:
    """Rows as bytes.

    Args:
        graph, found: the matmuls.
        count: elements of a row that a lane takes at once.
        bits: of the codes, whose words of 4 bits have every second element in their upper halves of bytes.
    """

    def __init__(self, graph: Graph, found: FewRows, count: int, bits: int) -> None:
        self.read = ReadRows(graph, found)
        self._found, self._count, self._bits = found, count, bits
        self._steps = found.inner // count
        self._zeros = 2 * found.rows * found.inner
        self._units = self._zeros + max(16, count)
        """Behind what lanes read that have no row: half a step."""
        self._squares = self._units + 4 * found.rows * self._steps
        self.bytes = self._squares + 4 * found.rows * _MOST_WAVES * (found.norm is not None)

    def stage(
        self, b: KernelBuilder, thread: Value, threads: int, bases: Sequence[Value], scales: Sequence[list[Value]]
    ) -> None:
        """Write the rows; all threads come here, and may read them afterwards."""
        read, vectors = self.read, self.read.vectors(b, thread, threads)
        rows = read.rows(b, vectors, bases)
        if scales:
            read.keep_squares(b, thread, threads, rows, vectors, b.shared(self._squares))
            gains = read.gains(b, scales)
            rows = [
                [[b.same("arith.mulf", x, g) for x, g in zip(*pair, strict=True)] for pair in zip(row, gains, strict=True)]
                for row in rows
            ]  # fmt: skip
        for number, row in enumerate(rows):
            self._store(b, number, row, vectors)
        with b.when(b.less(thread, (self._units - self._zeros) // 4)):
            b.store(b.shared(self._zeros), thread, [b.constant(0, b.i32)])
        b.barrier()

    def words(self, b: KernelBuilder, row: int, step: Value, half: Value, is_own: Value) -> list[Value]:
        """Words of the upper bytes (`half` 0) or the lower ones (1) of a row at a step where it is this lane's own; zeros elsewhere.

        Their order is that of the weights' words, of 4 bits each as two: what is in the lower halves of bytes, and in the upper ones.
        """
        count = self._count
        at = b.add(b.mul(step, count // 2), b.mul(half, count // 4), row * self._found.inner // 2)
        start = b.address(b.shared(0), b.select(is_own, b.at(at), b.at(self._zeros // 4)), b.i32)
        return [word for first in range(0, count // 4, 4) for word in b.load(start, first, b.i32, 4)]

    def unit(self, b: KernelBuilder, row: int, step: Value) -> Value:
        """What one of the integers of a row at a step stands for, over 16 where codes have 4 bits."""
        (value,) = b.load(b.shared(self._units), b.add(step, row * self._steps), b.f32)
        return value

    def factors(self, b: KernelBuilder, threads: int) -> list[Value]:
        """What the norm multiplies the results of each row by; none without a norm."""
        return [] if self._found.norm is None else self.read.factors(b, threads, b.shared(self._squares))

    def _store(self, b: KernelBuilder, row: int, eights: list[list[Value]], vectors: Vectors) -> None:
        """Write this thread's elements of a row."""
        each = self._count // VECTOR
        for eight, (place, inside) in zip(eights, vectors, strict=True):
            vector = b.div(place, VECTOR)
            step, number = b.div(vector, each), b.mod(vector, each)
            greatest = self._greatest(b, eight)
            exponent = b.same("arith.andi", b.op("arith.bitcast", [greatest], b.i32), b.constant(_EXPONENTS, b.i32))
            upper, lower = self._bytes(b, eight, exponent)
            unit = self._unit(b, greatest, exponent)
            at = b.add(b.mul(step, self._count // 2), b.mul(number, 2), row * self._found.inner // 2)

            def write(
                at: Value = at, words: Sequence[list[Value]] = (upper, lower), step: Value = step, unit: Value = unit
            ) -> None:
                for half, two in enumerate(words):
                    b.store(b.shared(0), b.add(at, half * self._count // 4), two)
                b.store(b.shared(self._units), b.add(step, row * self._steps), [unit])

            if inside is None:
                write()
                continue
            with b.when(inside):
                write()

    def _greatest(self, b: KernelBuilder, eight: Sequence[Value]) -> Value:
        """The greatest magnitude of a step, NaN where an element is."""
        some = [b.intrinsic("fabs", value) for value in eight]
        while len(some) > 1:
            some = [b.intrinsic("maximum", *pair) for pair in zip(some[::2], some[1::2], strict=True)]
        found = b.intrinsic("maximum", some[0], b.constant(_LEAST, b.f32))
        offset = self._count // VECTOR // 2
        while offset:
            found = b.intrinsic("maximum", found, b.shuffle(found, offset, _WAVE))
            offset //= 2
        return found

    def _unit(self, b: KernelBuilder, greatest: Value, exponent: Value) -> Value:
        """As of `unit`; NaN where the greatest is no number."""
        less = _BITS + (4 if self._bits == 4 else 0)
        bits = b.same("arith.subi", exponent, b.constant(less << _MANTISSA, b.i32))
        return b.intrinsic("fma", greatest, b.constant(0, b.f32), b.op("arith.bitcast", [bits], b.f32))

    def _bytes(self, b: KernelBuilder, eight: Sequence[Value], exponent: Value) -> tuple[list[Value], list[Value]]:
        """Two words of upper bytes and two of lower ones."""
        most = b.constant(2 * _ONE + _BITS << _MANTISSA, b.i32)
        factor = b.op("arith.bitcast", [b.same("arith.subi", most, exponent)], b.f32)
        # The lower byte is signed, too: 128 is added, and its sign turned.
        whole = b.constant(_WHOLE + 128, b.f32)
        numbers = [b.op("arith.bitcast", [b.intrinsic("fma", x, factor, whole)], b.i32) for x in eight]
        if self._bits == 4:
            numbers = numbers[0::2] + numbers[1::2]
        upper, lower = [], []
        for first in (0, 4):
            near, far = (b.bytes_of(numbers[at], numbers[at + 1], _PAIRED) for at in (first, first + 2))
            upper.append(b.bytes_of(near, far, _HIGH_BYTES))
            lower.append(b.same("arith.xori", b.bytes_of(near, far, _LOW_BYTES), b.constant(_SIGNS, b.i32)))
        return upper, lower
