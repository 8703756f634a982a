"""Rows of a matmul in shared memory, in the order in which matrix units read them, behind a norm where there is one.

Lanes that share a column read adjacent vectors, and rows begin in different banks. Where sums are kept for each block of codes, what the
codes are off by is a product, too: of the row alone, so it is known here.
"""

from collections.abc import Sequence

from hipdnn_mlir_runtime.abi import Attribute as A

from ...ops.few_rows import FewRows, row_step
from ...ops.graph import Graph, Tensor
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type, rounded, to_memory
from .gemv import norm_factor

VECTOR = 8
"""Elements that a thread stores at once."""
_LANES = 4
"""That share a column."""
_LINE, _BANKS = 64, 128
"""Bytes of the lanes' vectors, and of all banks."""


class StagedRows:
    """Rows in shared memory.

    Args:
        graph, found: the matmuls.
        count: elements of a row that a lane takes at once.
        order: of the elements of each run of `len(order)`.
        offsets: what codes are off by, of the elements of each such run; none where no sums of blocks are wanted.
    """

    def __init__(
        self, graph: Graph, found: FewRows, count: int, order: Sequence[int], offsets: Sequence[int] = ()
    ) -> None:
        self._graph, self._found, self._count, self._order, self._offsets = graph, found, count, order, offsets
        self._left = graph.tensors[found.left]
        row_bytes = 2 * found.inner
        self._row_bytes = row_bytes + (_LINE if row_bytes % _BANKS == 0 else 0)
        self._zeros = found.rows * self._row_bytes
        self._zero_bytes = _LINE * (count // VECTOR) * bool(offsets)
        """What lanes read that have no row: as much as a step."""
        self._sums = self._zeros + self._zero_bytes
        self.steps = found.inner // count
        self.bytes = self._sums + 4 * found.rows * self.steps * bool(offsets)

    def scales(self, b: KernelBuilder, thread: Value, threads: int, bases: Sequence[Value]) -> list[list[Value]]:
        """The norm's scale as memory holds it, of each vector of this thread; `bases` are those of the row and the scale."""
        scale = self._norm_scale()
        return [] if scale is None else [_eight(b, bases[1], scale, at) for at, _ in self._vectors(b, thread, threads)]

    def stage(
        self, b: KernelBuilder, thread: Value, threads: int, bases: Sequence[Value], scales: Sequence[list[Value]]
    ) -> None:
        """Write the rows; all threads come here, and may read them afterwards. Shared memory behind them is used meanwhile."""
        found, vectors = self._found, self._vectors(b, thread, threads)
        step = row_step(self._left)
        raw = [
            [_eight(b, bases[0], self._left, b.add(row * step, place)) for place, _ in vectors]
            for row in range(found.rows)
        ]
        rows = [[[from_memory(b, value, self._left.dtype) for value in eight] for eight in row] for row in raw]
        scale = self._norm_scale()
        if scale is not None:
            factors = self._factors(b, thread, threads, rows, vectors)
            gains = [[from_memory(b, value, scale.dtype) for value in eight] for eight in scales]
            rows = [
                [[b.same("arith.mulf", b.same("arith.mulf", x, factor), g) for x, g in zip(*pair, strict=True)]
                 for pair in zip(row, gains, strict=True)]
                for row, factor in zip(rows, factors, strict=True)
            ]  # fmt: skip
        for row, eights in enumerate(rows):
            for (place, inside), eight in zip(vectors, eights, strict=True):
                self._store(b, row, place, inside, eight)
        if self._offsets:
            with b.when(b.less(thread, self._zero_bytes // 16)):
                b.store(b.shared(self._zeros), b.mul(thread, 4), [b.constant(0, b.i32)] * 4)
        b.barrier()

    def words(self, b: KernelBuilder, row: Value, step: Value) -> list[Value]:
        """Pairs of a row at a step, as words of 32 bits; `step` modulo the lanes is that of this lane."""
        at = b.add(b.mul(row, self._row_bytes // 16), self._vector(b, step, 0))
        vectors = [b.add(at, number * _LANES) for number in range(self._count // VECTOR)]
        return [w for vector in vectors for w in b.load(b.shared(0), b.mul(vector, 4), b.i32, 4)]

    def words_or_zeros(self, b: KernelBuilder, is_row: Value, row: Value, step: Value) -> list[Value]:
        """The same where the row is wanted, elsewhere zeros."""
        at = b.add(b.mul(row, self._row_bytes // 16), self._vector(b, step, 0))
        start = b.address(b.shared(0), b.mul(b.select(is_row, b.at(at), b.at(self._zeros // 16)), 4), b.i32)
        return [
            word for number in range(self._count // VECTOR) for word in b.load(start, 4 * number * _LANES, b.i32, 4)
        ]

    def sums(self, b: KernelBuilder, row: Value, step: Value) -> list[Value]:
        """What codes add to the products of a row at two adjacent steps, the first of which is even, negated."""
        return b.load(b.shared(self._sums), b.add(b.mul(row, self.steps), step), b.f32, 2)

    def _norm_scale(self) -> Tensor | None:
        norm = self._found.norm
        return None if norm is None else self._graph.tensors[norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]

    def _vectors(self, b: KernelBuilder, thread: Value, threads: int) -> list[tuple[Value, Value]]:
        """Where this thread's elements of a row are, and whether they are inside; None says that they are."""
        count, found = self._found.inner // VECTOR, []
        for first in range(0, count, threads):
            at = b.add(thread, first)
            inside = b.less(at, count) if first + threads > count else None
            found.append((b.mul(at if inside is None else b.least(at, count - 1), VECTOR), inside))
        return found

    def _vector(self, b: KernelBuilder, step: Value, number: int) -> Value:
        """Which vector of a row is one of a step's."""
        group, lane = b.div(step, _LANES), b.mod(step, _LANES)
        return b.add(b.mul(group, self._count // VECTOR * _LANES), number * _LANES, lane)

    def _factors(
        self,
        b: KernelBuilder,
        thread: Value,
        threads: int,
        rows: list[list[list[Value]]],
        vectors: list[tuple[Value, Value]],
    ) -> list[Value]:
        """What the norm multiplies each row by; rows become zero where they are not inside."""
        wave, waves, zero = 32, threads // 32, b.constant(0, b.f32)
        partial = b.shared(self.bytes)
        for number, row in enumerate(rows):
            total = zero
            for place, ((_, inside), eight) in enumerate(zip(vectors, row, strict=True)):
                if inside is not None:
                    row[place] = [b.select(inside, value, zero) for value in eight]
                for value in row[place]:
                    total = b.intrinsic("fma", value, value, total)
            offset = wave // 2
            while offset:
                total = b.same("arith.addf", total, b.shuffle(total, offset, wave))
                offset //= 2
            b.store(partial, b.add(b.div(thread, wave), number * waves), [total])
        b.barrier()
        found = []
        for number in range(len(rows)):
            parts = [p for at in range(0, waves, 4) for p in b.load(partial, number * waves + at, b.f32, 4)]
            square = parts[0]
            for part in parts[1:]:
                square = b.same("arith.addf", square, part)
            found.append(norm_factor(b, self._graph, self._found, square))
        return found

    def _store(self, b: KernelBuilder, row: int, place: Value, inside: Value, eight: list[Value]) -> None:
        """Write eight elements of a row in the order of the pairs, and what codes add to their products."""
        dtype, run = self._left.dtype, len(self._order)
        each = self._count // VECTOR
        vector = b.div(place, VECTOR)
        step, number = b.div(vector, each), b.mod(vector, each)
        to = b.add(self._vector(b, step, 0), b.mul(number, _LANES), row * self._row_bytes // 16)
        kept = [to_memory(b, value, dtype) for value in eight]
        mixed = [kept[first + at] for first in range(0, VECTOR, run) for at in self._order]
        total = None
        if self._offsets:
            total = b.constant(0, b.f32)
            for at, value in enumerate(eight):
                offset = b.constant(float(-self._offsets[at % run]), b.f32)
                total = b.intrinsic("fma", rounded(b, value, dtype), offset, total)
            offset = each // 2
            while offset:
                total = b.same("arith.addf", total, b.shuffle(total, offset, 32))
                offset //= 2

        def write() -> None:
            b.store(b.shared(0), b.mul(to, VECTOR), mixed)
            if total is not None:
                with b.when(b.compare("eq", b.at(number), b.at(0))):
                    b.store(b.shared(self._sums), b.add(step, row * self.steps), [total])

        if inside is None:
            write()
            return
        with b.when(inside):
            write()


def _eight(b: KernelBuilder, base: Value, tensor: Tensor, offset: Value) -> list[Value]:
    """Eight adjacent elements as memory holds them."""
    size = 16 // tensor.dtype.bytes
    kind = memory_type(b, tensor.dtype)
    return [v for at in range(0, VECTOR, size) for v in b.load(base, b.add(offset, at), kind, size)]
