"""Rows of a matmul in shared memory, in the order in which matrix units read them, behind a norm where there is one.

Lanes that share a column read adjacent vectors, and rows begin in different banks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hipdnn_mlir_runtime.abi import Attribute as A

from ...ops.few_rows import FewRows, row_step
from ...ops.graph import Graph, Tensor
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type, to_memory
from .gemv import norm_factor

VECTOR = 8
"""Elements that a thread stores at once."""
_LANES = 4
"""That share a column."""
_WAVE = 32
_LINE, _BANKS = 64, 128
"""Bytes of the lanes' vectors, and of all banks."""
Vectors = list[tuple[Value, Value]]
"""Where a thread's elements of a row are, and whether they are inside; None says that they are."""


@dataclass(frozen=True)
class ReadRows:
    """Reads rows, and the norm's scale with them."""

    graph: Graph
    found: FewRows

    def scales(self, b: KernelBuilder, thread: Value, threads: int, bases: Sequence[Value]) -> list[list[Value]]:
        """The norm's scale as memory holds it, of each vector of this thread; `bases` are those of the row and the scale."""
        scale = self._norm_scale()
        return [] if scale is None else [_eight(b, bases[1], scale, at) for at, _ in self.vectors(b, thread, threads)]

    def rows(self, b: KernelBuilder, vectors: Vectors, bases: Sequence[Value]) -> list[list[list[Value]]]:
        """This thread's vectors of each row, as f32."""
        left = self.graph.tensors[self.found.left]
        raw = [
            [_eight(b, bases[0], left, b.add(row * row_step(left), place)) for place, _ in vectors]
            for row in range(self.found.rows)
        ]
        return [[[from_memory(b, value, left.dtype) for value in eight] for eight in row] for row in raw]

    def gains(self, b: KernelBuilder, scales: Sequence[list[Value]]) -> list[list[Value]]:
        """What `scales` gave, as f32."""
        scale = self._norm_scale()
        return [] if scale is None else [[from_memory(b, value, scale.dtype) for value in eight] for eight in scales]

    def vectors(self, b: KernelBuilder, thread: Value, threads: int) -> Vectors:
        """Those of this thread."""
        count, found = self.found.inner // VECTOR, []
        for first in range(0, count, threads):
            at = b.add(thread, first)
            inside = b.less(at, count) if first + threads > count else None
            found.append((b.mul(at if inside is None else b.least(at, count - 1), VECTOR), inside))
        return found

    def keep_squares(
        self, b: KernelBuilder, thread: Value, threads: int, rows: list[list[list[Value]]], vectors: Vectors, to: Value
    ) -> None:
        """Write each wave's sum of the squares of each row; `factors` reads them behind a barrier."""
        zero = b.constant(0, b.f32)
        for number, row in enumerate(rows):
            total = zero
            for (_, inside), eight in zip(vectors, row, strict=True):
                for value in eight:
                    inner = value if inside is None else b.select(inside, value, zero)
                    total = b.intrinsic("fma", inner, inner, total)
            offset = _WAVE // 2
            while offset:
                total = b.same("arith.addf", total, b.shuffle(total, offset, _WAVE))
                offset //= 2
            b.store(to, b.add(b.div(thread, _WAVE), number * (threads // _WAVE)), [total])

    def factors(self, b: KernelBuilder, threads: int, from_: Value) -> list[Value]:
        """What the norm multiplies each row by."""
        found, waves = [], threads // _WAVE
        for number in range(self.found.rows):
            parts = [p for at in range(0, waves, 4) for p in b.load(from_, number * waves + at, b.f32, 4)]
            square = parts[0]
            for part in parts[1:]:
                square = b.same("arith.addf", square, part)
            found.append(norm_factor(b, self.graph, self.found, square))
        return found

    def _norm_scale(self) -> Tensor | None:
        norm = self.found.norm
        return None if norm is None else self.graph.tensors[norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]


class StagedRows:
    """Rows in shared memory.

    Args:
        graph, found: the matmuls.
        count: elements of a row that a lane takes at once.
        order: of the elements of each run of `len(order)`.
    """

    def __init__(self, graph: Graph, found: FewRows, count: int, order: Sequence[int]) -> None:
        self.read = ReadRows(graph, found)
        self._found, self._count, self._order = found, count, order
        self._left = graph.tensors[found.left]
        row_bytes = 2 * found.inner
        self._row_bytes = row_bytes + (_LINE if row_bytes % _BANKS == 0 else 0)
        self.bytes = found.rows * self._row_bytes

    def stage(
        self, b: KernelBuilder, thread: Value, threads: int, bases: Sequence[Value], scales: Sequence[list[Value]]
    ) -> None:
        """Write the rows; all threads come here, and may read them afterwards. Shared memory behind them is used meanwhile."""
        read, vectors = self.read, self.read.vectors(b, thread, threads)
        rows = read.rows(b, vectors, bases)
        if scales:
            partial = b.shared(self.bytes)
            read.keep_squares(b, thread, threads, rows, vectors, partial)
            b.barrier()
            gains = read.gains(b, scales)
            rows = [
                [[b.same("arith.mulf", b.same("arith.mulf", x, factor), g) for x, g in zip(*pair, strict=True)]
                 for pair in zip(row, gains, strict=True)]
                for row, factor in zip(rows, read.factors(b, threads, partial), strict=True)
            ]  # fmt: skip
        for row, eights in enumerate(rows):
            for (place, inside), eight in zip(vectors, eights, strict=True):
                self._store(b, row, place, inside, eight)
        b.barrier()

    def words(self, b: KernelBuilder, row: Value, step: Value) -> list[Value]:
        """Pairs of a row at a step, as words of 32 bits; `step` modulo the lanes is that of this lane."""
        at = b.add(b.mul(row, self._row_bytes // 16), self._vector(b, step, 0))
        vectors = [b.add(at, number * _LANES) for number in range(self._count // VECTOR)]
        return [w for vector in vectors for w in b.load(b.shared(0), b.mul(vector, 4), b.i32, 4)]

    def _vector(self, b: KernelBuilder, step: Value, number: int) -> Value:
        """Which vector of a row is one of a step's."""
        group, lane = b.div(step, _LANES), b.mod(step, _LANES)
        return b.add(b.mul(group, self._count // VECTOR * _LANES), number * _LANES, lane)

    def _store(self, b: KernelBuilder, row: int, place: Value, inside: Value, eight: list[Value]) -> None:
        """Write eight elements of a row in the order of the pairs."""
        run, each = len(self._order), self._count // VECTOR
        vector = b.div(place, VECTOR)
        step, number = b.div(vector, each), b.mod(vector, each)
        to = b.add(self._vector(b, step, 0), b.mul(number, _LANES), row * self._row_bytes // 16)
        kept = [to_memory(b, value, self._left.dtype) for value in eight]
        mixed = [kept[first + at] for first in range(0, VECTOR, run) for at in self._order]
        if inside is None:
            b.store(b.shared(0), b.mul(to, VECTOR), mixed)
            return
        with b.when(inside):
            b.store(b.shared(0), b.mul(to, VECTOR), mixed)


def _eight(b: KernelBuilder, base: Value, tensor: Tensor, offset: Value) -> list[Value]:
    """Eight adjacent elements as memory holds them."""
    size = 16 // tensor.dtype.bytes
    kind = memory_type(b, tensor.dtype)
    return [v for at in range(0, VECTOR, size) for v in b.load(base, b.add(offset, at), kind, size)]
