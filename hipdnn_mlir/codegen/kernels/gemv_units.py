"""Matmuls of few rows on NVIDIA's matrix units: weights are read once for up to 32 rows, and those of 4 and 8 bits cost little arithmetic.

A block computes 16 columns. Its waves share the inner dim; four lanes read 64 bytes of each column, which are operands of matrix units as
they lie in memory: in which order the inner positions are multiplied is free as long as the rows have the same. Sums of waves meet in
shared memory.
"""

from collections.abc import Collection, Sequence
from math import ceil, prod

from torch_mlir import ir

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.dtypes import F16, I4

from ...ops.few_rows import UNITS_COLUMNS, FewRows, Product, few_rows, lane_elements, row_step
from ...ops.graph import Graph, Tensor
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type, to_memory
from ..core.space import Space, is_wide
from .body import Body
from .evaluate import Evaluator, Lanes
from .gemv import body_behind, norm_factor, reads_early
from .pairs import Pairs
from .stream import stream

_WAVE, _WAVES, _LANES = 32, 8, 4
"""Threads of a wave, waves of a block, lanes that share a column."""
_THREADS = _WAVE * _WAVES
_WORDS = 64
"""Of 32 bits that a thread has under way at once."""
_TILE = 8
"""Rows of one operand of matrix units."""


def gemv_units_launch(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch:
    """The launch of a graph of `few_rows` that matrix units take (`takes_units`); raises Refusal. For `constants` see `generate_graph`."""
    found = few_rows(graph)
    body = body_behind(graph, found)
    writer = _Writer(graph, found, body, early=reads_early(graph, found, architecture, constants))
    blocks = ceil(found.columns / UNITS_COLUMNS)
    wide = is_wide(body.operands, max(blocks * _THREADS, 2 * found.inner))
    return Launch(writer.write, blocks, _THREADS, writer.staged_bytes + writer.sums_bytes, wide)


class _Writer:
    """Writes the kernel; `early`: the first weights are loaded while the kernel in front still runs."""

    def __init__(self, graph: Graph, found: FewRows, body: Body, *, early: bool) -> None:
        self.graph, self.found, self.body, self.early = graph, found, body, early
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        self.left = graph.tensors[found.left]
        self.count = lane_elements(graph, found)
        self.steps = found.inner // self.count
        self.tiles = ceil(found.rows / _TILE)
        self.sums = 4 * len(found.products) * self.tiles
        self.staged_bytes = 2 * found.rows * found.inner if found.norm is not None else 0
        self.sums_bytes = 4 * _THREADS * self.sums
        self.space = Space(body.dims, tuple(operand.strides for operand in body.operands))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        found = self.found
        self.b = b
        self.pairs = Pairs(b, self.left.dtype)
        self.thread = b.thread()
        self.lane, self.wave = b.mod(self.thread, _WAVE), b.div(self.thread, _WAVE)
        self.row, quad = b.div(self.lane, _LANES), b.mod(self.lane, _LANES)
        self.column = b.mul(b.block(), UNITS_COLUMNS)
        last = found.columns - 1
        columns = [b.add(self.column, self.row, more) for more in (0, _TILE)]
        self.read = [b.least(c, last) if found.columns % UNITS_COLUMNS else c for c in columns]
        part = b.add(b.mul(self.wave, _LANES), quad)
        together = _LANES * _WAVES
        unrolled = max(1, min(self._unrolled(), self.steps // together))
        chunk = together * unrolled
        whole = self.steps // chunk * chunk
        rest = range(whole, self.steps, together)

        def of_chunk(start: Value) -> list[Value]:
            return [b.add(start, part, number_ * together) for number_ in range(unrolled)]

        def weights(start: Value) -> list[Value]:
            return [word for step in of_chunk(start) for word in self._raw(step)]

        def rows(start: Value) -> list[Value]:
            if found.norm is not None:  # they are near
                return []
            return [word for step in of_chunk(start) for word in self._row_words(step)]

        def use(start: Value, loaded: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            near = len(loaded) - (self._row_count() * unrolled if found.norm is None else 0)
            raw, words = _parted(loaded[:near], unrolled), _parted(loaded[near:], unrolled)
            for number_, step in enumerate(of_chunk(start)):
                sums = self._add(raw[number_], words[number_] or self._row_words(step), None, sums)
            return list(sums)

        first = weights(0) if whole else []
        scales = self._scales() if found.norm is not None else []
        if self.early:
            b.await_kernel()
        self.evaluator = Evaluator(b, self.body, self.space, 1)
        self.known = self._known()
        if found.norm is not None:
            self._stage(scales)
        sums = [b.constant(0, b.f32)] * self.sums
        if whole:
            first += rows(0)
            sums = stream(b, lambda start: [*weights(start), *rows(start)], use, first, sums, chunk, whole)
        for start in rest:
            step = b.add(part, start)
            inside = b.less(step, self.steps) if start + together > self.steps else None
            step = step if inside is None else b.least(step, self.steps - 1)
            sums = self._add(self._raw(step), self._row_words(step), inside, sums)
        self._finish(sums)

    def _unrolled(self) -> int:
        """Steps of a thread whose loads are under way together: a power of two."""
        rows = self._row_count() if self.found.norm is None else 0
        words = 8 * len(self.found.products) + rows
        return 1 << max(_WORDS // words, 1).bit_length() - 1

    def _row_count(self) -> int:
        """Words of all rows of a step."""
        return self.tiles * self.count // 2

    def _base(self, tensor: Tensor) -> Value:
        return self.b.arguments[self.places[id(tensor)]]

    # -- weights --------------------------------------------------------------------------------------------------

    def _raw(self, step: Value) -> list[Value]:
        """This lane's words of 32 bits of its columns of each matrix at a step, and behind those of each matrix their scales."""
        return [value for product in self.found.products for value in self._raw_of(product, step)]

    def _raw_of(self, product: Product, step: Value) -> list[Value]:
        b, weights = self.b, self.graph.tensors[product.weights]
        base, stride = self._base(weights), weights.strides[-1] // self.count
        found = [w for c in self.read for w in b.load(base, b.mul(b.add(b.mul(c, stride), step), 4), b.i32, 4)]
        if product.scales is None:
            return found
        scales = self.graph.tensors[product.scales]
        kind, blocks = memory_type(b, scales.dtype), max(1, self.count // product.block)
        for c in self.read:
            block = b.mul(step, blocks) if blocks > 1 else b.div(step, product.block // self.count)
            at = b.add(b.mul(c, scales.strides[-1]), b.mul(block, scales.strides[-2]))
            found += [b.load(self._base(scales), b.add(at, n * scales.strides[-2]), kind)[0] for n in range(blocks)]
        return found

    def _pairs(self, product: Product, raw: Sequence[Value]) -> list[list[Value]]:
        """Pairs of 16-bit floats, of each of the two columns."""
        words = [list(raw[:4]), list(raw[4:8])]
        if product.scales is None:
            return [[self.pairs.of_word(word) for word in column] for column in words]
        dtype, scale_dtype = (self.graph.tensors[i].dtype for i in (product.weights, product.scales))
        each = (len(raw) - 8) // 2
        scales = [raw[8 : 8 + each], raw[8 + each :]]
        made = []
        for column, some in zip(words, scales, strict=True):
            factors = [self.pairs.splat(from_memory(self.b, scale, scale_dtype)) for scale in some]
            made.append(
                [
                    pair
                    for at, word in enumerate(column)
                    for pair in self.pairs.numbers(word, dtype, factors[at * each // 4])
                ]
            )
        return made

    # -- rows -----------------------------------------------------------------------------------------------------

    def _row_words(self, step: Value) -> list[Value]:
        """Words of this lane's row of each tile at a step; of a row that is not there, those of the last one."""
        b = self.b
        if self.found.norm is not None:
            base, stride = b.shared(0), self.found.inner
        else:
            base, stride = self._base(self.left), row_step(self.left)
        words = []
        for tile in range(self.tiles):
            row = b.add(self.row, tile * _TILE)
            row = b.least(row, self.found.rows - 1) if self.found.rows % _TILE and tile == self.tiles - 1 else row
            offset = b.add(b.mul(row, stride // 8), b.mul(step, self.count // 8))
            words += [w for at in range(self.count // 8) for w in b.load(base, b.mul(b.add(offset, at), 4), b.i32, 4)]
        return words

    def _row_pairs(self, words: Sequence[Value], inside: Value) -> list[Value]:
        """Pairs of a row in the order of the weights' pairs; zero where they are not inside."""
        b, (product, *_) = self.b, self.found.products
        if inside is not None:
            words = [b.select(inside, word, b.constant(0, b.i32)) for word in words]
        if product.scales is None:
            return list(words)
        apart = 2 if self.graph.tensors[product.weights].dtype is I4 else 1
        found = []
        for at in range(0, len(words), 2 * apart):
            for place in range(at, at + apart):
                found += self.pairs.mixed(words[place], words[place + apart])
        return found

    def _vectors(self) -> list[tuple[Value, Value]]:
        """Where this thread's elements of a row are, by eights, and whether they are inside."""
        b, vectors, found = self.b, self.found.inner // 8, []
        for first in range(0, vectors, _THREADS):
            at = b.add(self.thread, first)
            inside = b.less(at, vectors) if first + _THREADS > vectors else None
            found.append((b.mul(at if inside is None else b.least(at, vectors - 1), 8), inside))
        return found

    def _scales(self) -> list[list[Value]]:
        """The norm's scale as memory holds it, of each of this thread's vectors."""
        assert self.found.norm is not None
        scale = self.graph.tensors[self.found.norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]
        return [self._eight(scale, place) for place, _ in self._vectors()]

    def _stage(self, scales: list[list[Value]]) -> None:
        """Write the normalized rows into shared memory."""
        b, found = self.b, self.found
        assert found.norm is not None
        scale_dtype = self.graph.tensors[found.norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]].dtype
        sums = b.shared(self.staged_bytes)
        for row in range(found.rows):
            kept = []
            total = b.constant(0, b.f32)
            for place, inside in self._vectors():
                raw = self._eight(self.left, b.add(row * row_step(self.left), place))
                x = [from_memory(b, value, self.left.dtype) for value in raw]
                if inside is not None:
                    x = [b.select(inside, value, b.constant(0, b.f32)) for value in x]
                for value in x:
                    total = b.intrinsic("fma", value, value, total)
                kept.append((place, inside, x))
            offset = _WAVE // 2
            while offset:
                total = b.same("arith.addf", total, b.shuffle(total, offset, _WAVE))
                offset //= 2
            b.store(sums, b.add(self.wave, row * _WAVES), [total])
            b.barrier()
            parts = b.load(sums, row * _WAVES, b.f32, 4) + b.load(sums, row * _WAVES + 4, b.f32, 4)
            square = parts[0]
            for part in parts[1:]:
                square = b.same("arith.addf", square, part)
            factor = norm_factor(b, self.graph, found, square)
            for (place, inside, x), raw in zip(kept, scales, strict=True):
                g = [from_memory(b, value, scale_dtype) for value in raw]
                y = [b.same("arith.mulf", b.same("arith.mulf", v, factor), s) for v, s in zip(x, g, strict=True)]
                rounded = [to_memory(b, value, self.left.dtype) for value in y]
                if inside is None:
                    b.store(b.shared(0), b.add(place, row * found.inner), rounded)
                    continue
                with b.when(inside):
                    b.store(b.shared(0), b.add(place, row * found.inner), rounded)
        b.barrier()

    def _eight(self, tensor: Tensor, offset: Value) -> list[Value]:
        """Eight adjacent elements as memory holds them."""
        b, size = self.b, 16 // tensor.dtype.bytes
        kind, base = memory_type(b, tensor.dtype), self._base(tensor)
        return [v for at in range(0, 8, size) for v in b.load(base, b.add(offset, at), kind, size)]

    # -- sums -----------------------------------------------------------------------------------------------------

    def _add(self, raw: Sequence[Value], words: Sequence[Value], inside: Value, sums: Sequence[Value]) -> list[Value]:
        """Add the products of a step; those that are not inside are zero."""
        made = list(sums)
        rows = [self._row_pairs(part, inside) for part in _parted(words, self.tiles)]
        each = len(raw) // len(self.found.products)
        for number_, product in enumerate(self.found.products):
            columns = self._pairs(product, raw[number_ * each : (number_ + 1) * each])
            for tile, row in enumerate(rows):
                place = 4 * (number_ * self.tiles + tile)
                for at in range(0, len(row), 2):
                    weights = [columns[0][at], columns[1][at], columns[0][at + 1], columns[1][at + 1]]
                    made[place : place + 4] = self._multiplied(weights, row[at : at + 2], made[place : place + 4])
        return made

    def _multiplied(self, weights: Sequence[Value], rows: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """16 columns times 8 rows along 16 inner positions, and the sums so far."""
        b = self.b
        if self.left.dtype is F16:
            name, operands = "f32.f32", [*weights, *map(self.pairs.of_word, rows)]
        else:
            name, operands = "bf16", [*(b.op("llvm.bitcast", [w], b.i32) for w in weights), *rows]
        kind = ir.Type.parse("!llvm.struct<(f32, f32, f32, f32)>")
        made = b.op(
            "llvm.call_intrinsic",
            [*operands, *sums],
            kind,
            intrin=ir.StringAttr.get(f"llvm.nvvm.mma.m16n8k16.row.col.{name}"),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([10, 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
        return [b.op("llvm.extractvalue", [made], b.f32, position=ir.DenseI64ArrayAttr.get([i])) for i in range(4)]

    def _finish(self, sums: Sequence[Value]) -> None:
        """Add what the waves have, compute what follows and write it."""
        b, found = self.b, self.found
        shared = b.shared(self.staged_bytes)
        if found.norm is not None:
            b.barrier()
        for number_, value in enumerate(sums):
            b.store(shared, b.add(b.mul(self.wave, self.sums * _WAVE), number_ * _WAVE, self.lane), [value])
        b.barrier()
        total = UNITS_COLUMNS * found.rows
        for first in range(0, total, _THREADS):
            at = b.add(self.thread, first)
            column, row = b.mod(at, UNITS_COLUMNS), b.div(at, UNITS_COLUMNS)
            checks = [b.less(at, total)] if first + _THREADS > total else []
            if found.columns % UNITS_COLUMNS:
                checks.append(b.less(b.add(self.column, column), found.columns))
            if not checks:
                self._write(shared, row, column)
                continue
            with b.when(checks[0] if len(checks) == 1 else b.same("arith.andi", *checks)):
                self._write(shared, row, column)

    def _write(self, shared: Value, row: Value, column: Value) -> None:
        """One element of each result."""
        b, found = self.b, self.found
        lane = b.add(b.mul(b.mod(column, _TILE), _LANES), b.div(b.mod(row, _TILE), 2))
        register = b.add(b.mul(b.div(column, _TILE), 2), b.mod(row, 2))
        given = []
        for number_ in range(len(found.products)):
            place = b.add(b.mul(b.add(number_ * self.tiles, b.div(row, _TILE)), 4), register)
            at = b.add(b.mul(place, _WAVE), lane)
            parts = [b.load(shared, b.add(at, wave * self.sums * _WAVE), b.f32)[0] for wave in range(_WAVES)]
            total = parts[0]
            for part in parts[1:]:
                total = b.same("arith.addf", total, part)
            given.append([total])
        self.evaluator.run(given, self._at(row, b.add(self.column, column)), self.known)

    def _at(self, row: Value, column: Value) -> list[Value]:
        """Coordinates of an element of the results."""
        dims = self.body.dims[:-1]
        return [*(self.b.coordinates(row, dims) if prod(dims) > 1 else [0] * len(dims)), column]

    def _known(self) -> dict[int, Lanes]:
        """What the epilogue reads, where a thread computes one element of the results: it comes while the matrix does."""
        b, found = self.b, self.found
        if UNITS_COLUMNS * found.rows > _THREADS:
            return {}
        row = b.least(b.div(self.thread, UNITS_COLUMNS), found.rows - 1)
        column = b.least(b.add(self.column, b.mod(self.thread, UNITS_COLUMNS)), found.columns - 1)
        return self.evaluator.loads(self._at(row, column))


def _parted(values: Sequence[Value], count: int) -> list[Sequence[Value]]:
    """Some values in equal parts."""
    each = len(values) // count
    return [values[number_ * each : (number_ + 1) * each] for number_ in range(count)]
