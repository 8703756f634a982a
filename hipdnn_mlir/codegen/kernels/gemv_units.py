"""Matmuls of few rows on NVIDIA's matrix units: weights are read once for up to 32 rows, and those of 4 and 8 bits cost little arithmetic.

A block computes 16 columns. Its waves share the inner dim; four lanes read 64 bytes of each column, which are operands of matrix units as
they lie in memory: in which order the inner positions are multiplied is free as long as the rows have the same. Sums of waves meet in
shared memory.

With one or two rows, most of an operand of rows would be empty. For weights of 4 and 8 bits, each of the four lanes then has two columns of
its own there, zero where the others multiply: sums of different blocks stay apart, and scales are for sums instead of for weights. The two
columns are bytes of the row's elements (`byte_rows`), so codes are operands without becoming floats.
"""

from collections.abc import Collection, Sequence
from math import ceil, prod

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.dtypes import I4

from ...ops.few_rows import UNITS_COLUMNS, FewRows, few_rows, is_staged, lane_elements, row_step
from ...ops.graph import Graph, Tensor
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory
from ..core.space import Space, is_wide
from .body import Body
from .byte_rows import ByteRows
from .column_weights import ColumnWeights
from .evaluate import Evaluator, Lanes
from .gemv import body_behind, reads_early
from .pairs import Pairs
from .staged_rows import VECTOR, StagedRows
from .stream import stream

_WAVE, _LANES = 32, 4
"""Threads of a wave, lanes that share a column."""
_FEW_WAVES, _WAVES, _MOST_WAVES = 4, 8, 16
"""Of a block: where a multiprocessor has several, each of which stages rows and normalizes them; else; and where blocks are few, and rows
come from afar."""
_MOST_SHARED_BYTES = 48 * 1024
_MOST_THREADS = 1024
"""Of a multiprocessor, where each needs 64 registers."""
_WORDS = 64
"""Of 32 bits that a thread has under way at once."""
_TILE = 8
"""Rows of one operand of matrix units."""
_APART_ROWS = 2
"""Rows of which the lanes' sums stay apart: each is multiplied by itself."""
_LAST_WORD = -3
"""Of the codes that a thread has asked for, in front of their two scales."""
_UPPER_HALVES = 0xF0F0F0F0
"""Of bytes."""


def gemv_units_launch(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch:
    """The launch of a graph of `few_rows` that matrix units take (`takes_units`); raises Refusal. For `constants` see `generate_graph`."""
    found = few_rows(graph)
    body = body_behind(graph, found)
    writer = _Writer(graph, found, body, early=reads_early(graph, found, architecture, constants))
    blocks = ceil(found.columns / UNITS_COLUMNS)
    writer.share_out(blocks, architecture.units)
    wide = is_wide(body.operands, max(blocks * writer.threads, 2 * found.inner))
    shared = writer.staged_bytes + writer.sums_bytes
    return Launch(writer.write, blocks, writer.threads, shared, wide, resident=writer.resident)


class _Writer:
    """Writes the kernel.

    Attributes:
        early: the first weights are loaded while the kernel in front still runs.
        resident: blocks of a multiprocessor, where all have room at once and sums of blocks of codes stay apart: such a thread does with
            few registers. Blocks that come later cannot read their weights before the kernel in front has ended. Each asks for a step's
            weights when it has those in front: what the kernel in front writes, and what others read of that, waits behind all that is
            asked for.
    """

    def __init__(self, graph: Graph, found: FewRows, body: Body, *, early: bool) -> None:
        self.graph, self.found, self.body, self.early = graph, found, body, early
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        self.left = graph.tensors[found.left]
        self.count = lane_elements(graph, found)
        self.steps = found.inner // self.count
        self.tiles = ceil(found.rows / _TILE)
        is_4 = graph.tensors[found.products[0].weights].dtype is I4
        self.bits = 0 if found.products[0].scales is None else 4 if is_4 else 8
        few = bool(self.bits) and found.rows <= _APART_ROWS
        self.apart = few and is_staged(found) and all(p.block % self.count == 0 for p in found.products)
        self.staged = self._staged_rows() if is_staged(found) and not self.apart else None
        self.as_bytes = ByteRows(graph, found, self.count, self.bits) if self.apart else None
        self.each = 2 * found.rows if self.apart else 4 * self.tiles
        """Sums of a thread for each matrix."""
        self.sums = self.each * len(found.products)
        kept = self.as_bytes or self.staged
        self.staged_bytes = 0 if kept is None else kept.bytes
        self.waves = _WAVES
        self.resident: int | None = None
        self.space = Space(body.dims, tuple(operand.strides for operand in body.operands))

    @property
    def threads(self) -> int:
        """Of a block."""
        return _WAVE * self.waves

    @property
    def sums_bytes(self) -> int:
        """Of shared memory, where the waves' sums meet."""
        return 4 * self.threads * self.sums

    def share_out(self, blocks: int, units: int) -> None:
        """Choose waves, and whether multiprocessors have several blocks at once.

        Rows are staged by few waves where blocks are many; else waves hide more of the time that rows take to come, where sums have room.
        """
        if self.apart:
            self.waves = _FEW_WAVES if blocks > units else _WAVES
            wanted = ceil(blocks / units)
            self.resident = wanted if 1 < wanted <= _MOST_THREADS // self.threads else None
            return
        is_long = self.steps >= _LANES * _MOST_WAVES
        has_room = 4 * _WAVE * _MOST_WAVES * self.sums <= _MOST_SHARED_BYTES
        if self.staged is None and blocks <= 2 * units and is_long and has_room:
            self.waves = _MOST_WAVES

    def _staged_rows(self) -> StagedRows:
        """The rows in the order of the weights' pairs."""
        if not self.bits:
            return StagedRows(self.graph, self.found, self.count, range(VECTOR))
        half = 16 // self.bits
        return StagedRows(
            self.graph, self.found, self.count, [at for pair in range(half) for at in (pair, pair + half)]
        )

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        found = self.found
        self.b = b
        self.pairs = Pairs(b, self.left.dtype)
        self.thread = b.thread()
        self.lane, self.wave = b.mod(self.thread, _WAVE), b.div(self.thread, _WAVE)
        self.row, self.quad = b.div(self.lane, _LANES), b.mod(self.lane, _LANES)
        self.column = b.mul(b.block(), UNITS_COLUMNS)
        last = found.columns - 1
        columns = [b.add(self.column, self.row, more) for more in (0, _TILE)]
        self.read = [b.least(c, last) if found.columns % UNITS_COLUMNS else c for c in columns]
        self.weights = ColumnWeights(b, self.graph, found, self._base, self.read, self.count, self.bits, self.pairs)
        part = b.add(b.mul(self.wave, _LANES), self.quad)
        together = _LANES * self.waves
        unrolled = max(1, min(self._unrolled(), self.steps // together))
        chunk = together * unrolled
        whole = self.steps // chunk * chunk
        rest = range(whole, self.steps, together)

        def of_chunk(start: Value) -> list[Value]:
            return [b.add(start, part, number_ * together) for number_ in range(unrolled)]

        def weights(start: Value) -> list[Value]:
            found: list[Value] = []
            for step in of_chunk(start):
                is_later = self.resident is not None and found
                found += self.weights.raw(b.once_read(step, found[_LAST_WORD]) if is_later else step)
            return found

        def rows(start: Value) -> list[Value]:
            return [word for step in of_chunk(start) for word in self._far_words(step)]

        def use(start: Value, loaded: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
            near = len(loaded) - self._row_count() * unrolled
            raw, words = _parted(loaded[:near], unrolled), _parted(loaded[near:], unrolled)
            for number_, step in enumerate(of_chunk(start)):
                sums = self._add(raw[number_], words[number_], step, None, sums)
            return list(sums)

        first = weights(0) if whole else []
        bases = self._bases_of_rows()
        kept = self.as_bytes or self.staged
        scales = [] if kept is None else kept.read.scales(b, self.thread, self.threads, bases)
        if self.early:
            b.await_kernel()
        self.evaluator = Evaluator(b, self.body, self.space, 1)
        self.known = self._known()
        if kept is not None:
            kept.stage(b, self.thread, self.threads, bases, scales)
        self.factors = [] if self.as_bytes is None else self.as_bytes.factors(b, self.threads)
        sums = [b.constant(0, b.f32)] * self.sums
        if whole:
            first += rows(0)
            sums = stream(b, lambda start: [*weights(start), *rows(start)], use, first, sums, chunk, whole)
        for start in rest:
            step = b.add(part, start)
            inside = b.less(step, self.steps) if start + together > self.steps else None
            step = step if inside is None else b.add(b.least(b.sub(step, self.quad), self.steps - _LANES), self.quad)
            sums = self._add(self.weights.raw(step), self._far_words(step), step, inside, sums)
        self._finish([self._over_lanes(value) for value in sums] if self.apart else sums)

    def _unrolled(self) -> int:
        """Steps of a thread whose loads are under way together: a power of two."""
        words = 8 * len(self.found.products) + self._row_count()
        return 1 << max(_WORDS // words, 1).bit_length() - 1

    def _row_count(self) -> int:
        """Words of all rows of a step that come from afar."""
        return 0 if self.staged_bytes else self.tiles * self.count // 2

    def _base(self, tensor: Tensor) -> Value:
        return self.b.arguments[self.places[id(tensor)]]

    def _bases_of_rows(self) -> list[Value]:
        """Of the rows, and of the norm's scale."""
        norm = self.found.norm
        scale = [] if norm is None else [self.graph.tensors[norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]]
        return [self._base(tensor) for tensor in (self.left, *scale)]

    # -- rows -----------------------------------------------------------------------------------------------------

    def _near_words(self, step: Value) -> list[Value]:
        """Words of this lane's row of each tile at a step, in shared memory."""
        assert self.staged is not None
        return [w for tile in range(self.tiles) for w in self.staged.words(self.b, self._row_of(tile), step)]

    def _far_words(self, step: Value) -> list[Value]:
        """The same of rows that are not in shared memory; none of those that are."""
        b, words = self.b, []
        for tile in range(self.tiles) if self._row_count() else ():
            offset = b.add(b.mul(self._row_of(tile), row_step(self.left) // 8), b.mul(step, self.count // 8))
            for at in range(self.count // 8):
                words += b.load(self._base(self.left), b.mul(b.add(offset, at), 4), b.i32, 4)
        return words

    def _row_of(self, tile: int) -> Value:
        """This lane's row of a tile; the last one where it is not there."""
        row = self.b.add(self.row, tile * _TILE)
        is_short = self.found.rows % _TILE and tile == self.tiles - 1
        return self.b.least(row, self.found.rows - 1) if is_short else row

    def _row_pairs(self, words: Sequence[Value], inside: Value) -> list[Value]:
        """Pairs of a row in the order of the weights' pairs; zero where they are not inside."""
        b = self.b
        if inside is not None:
            words = [b.select(inside, word, b.constant(0, b.i32)) for word in words]
        if not self.bits or self.staged is not None:
            return list(words)
        apart = 8 // self.bits
        found = []
        for at in range(0, len(words), 2 * apart):
            for place in range(at, at + apart):
                found += self.pairs.mixed(words[place], words[place + apart])
        return found

    # -- sums -----------------------------------------------------------------------------------------------------

    def _add(
        self, raw: Sequence[Value], far: Sequence[Value], step: Value, inside: Value, sums: Sequence[Value]
    ) -> list[Value]:
        """Add the products of a step; those that are not inside are zero. `far` is what `_far_words` gives."""
        made, each = list(sums), len(raw) // len(self.found.products)
        parts = [raw[number_ * each : (number_ + 1) * each] for number_ in range(len(self.found.products))]
        if self.apart:
            return self._add_apart(parts, step, inside, made)
        words = self._near_words(step) if self.staged is not None else far
        rows = [self._row_pairs(part, inside) for part in _parted(words, self.tiles)]
        for number_, (product, part) in enumerate(zip(self.found.products, parts, strict=True)):
            columns = self.weights.numbers(product, part)
            for tile, row in enumerate(rows):
                place = 4 * (number_ * self.tiles + tile)
                made[place : place + 4] = self.pairs.multiplied(columns, row, made[place : place + 4])
        return made

    def _add_apart(
        self, parts: Sequence[Sequence[Value]], step: Value, inside: Value, sums: Sequence[Value]
    ) -> list[Value]:
        """The same where lane l of four has its products in columns 2 l and 2 l + 1: those of upper and of lower bytes."""
        b, rows, kept = self.b, self.found.rows, self.as_bytes
        assert kept is not None
        is_own = b.compare("eq", b.at(b.div(self.row, 2)), b.at(self.quad))
        if inside is not None:
            is_own = b.same("arith.andi", is_own, inside)
        bytes_of_rows = [kept.words(b, row, step, b.mod(self.row, 2), is_own) for row in range(rows)]
        units = [kept.unit(b, row, step) for row in range(rows)]
        made = list(sums)
        for number_, (product, raw) in enumerate(zip(self.found.products, parts, strict=True)):
            columns = [self._code_bytes(raw[at : at + 4]) for at in (0, 4)]
            assert product.scales is not None
            dtype = self.graph.tensors[product.scales].dtype
            scales = [from_memory(b, scale, dtype) for scale in raw[8:]]
            for row, (words, unit) in enumerate(zip(bytes_of_rows, units, strict=True)):
                for column, total in enumerate(self._products_of_bytes(columns, words)):
                    place = number_ * self.each + 2 * row + column
                    factor = b.same("arith.mulf", scales[column], unit)
                    made[place] = b.intrinsic("fma", total, factor, made[place])
        return made

    def _code_bytes(self, words: Sequence[Value]) -> list[Value]:
        """Codes as bytes; those of 4 bits are the upper bits of one, the lower halves of bytes first."""
        b = self.b
        if self.bits == 8:
            return list(words)
        moved = [part for word in words for part in (b.same("arith.shli", word, b.constant(4, b.i32)), word)]
        return [b.same("arith.andi", part, b.constant(_UPPER_HALVES, b.i32)) for part in moved]

    def _products_of_bytes(self, columns: Sequence[Sequence[Value]], row: Sequence[Value]) -> list[Value]:
        """Of a row with each of this lane's two columns, as f32."""
        b, sums = self.b, [self.b.constant(0, self.b.i32)] * 4
        for at in range(0, len(row), 2):
            weights = [columns[0][at], columns[1][at], columns[0][at + 1], columns[1][at + 1]]
            sums = b.units_products("m16n8k32.row.col.s8", b.i32, [*weights, *row[at : at + 2]], sums)
        wholes = [
            b.same("arith.addi", b.same("arith.muli", upper, b.constant(256, b.i32)), lower)
            for upper, lower in (sums[:2], sums[2:])
        ]
        return [b.op("arith.sitofp", [whole], b.f32) for whole in wholes]

    # -- results --------------------------------------------------------------------------------------------------

    def _over_lanes(self, value: Value) -> Value:
        """The sum of those of the lanes that share a column."""
        for offset in (1, 2):
            value = self.b.same("arith.addf", value, self.b.shuffle(value, offset, _WAVE))
        return value

    def _finish(self, sums: Sequence[Value]) -> None:
        """Add what the waves have, compute what follows and write it."""
        b, found = self.b, self.found
        shared = b.shared(self.staged_bytes)
        for number_, value in enumerate(sums):
            b.store(shared, b.add(b.mul(self.wave, self.sums * _WAVE), number_ * _WAVE, self.lane), [value])
        b.barrier()
        total = UNITS_COLUMNS * found.rows
        for first in range(0, total, self.threads):
            at = b.add(self.thread, first)
            column, row = b.mod(at, UNITS_COLUMNS), b.div(at, UNITS_COLUMNS)
            checks = [b.less(at, total)] if first + self.threads > total else []
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
        lane, half = b.mul(b.mod(column, _TILE), _LANES), b.div(column, _TILE)
        if self.apart:
            register = b.add(b.mul(row, 2), half)
        else:
            lane = b.add(lane, b.div(b.mod(row, _TILE), 2))
            register = b.add(b.mul(half, 2), b.mod(row, 2), b.mul(b.div(row, _TILE), 4))
        given = []
        for number_ in range(len(found.products)):
            at = b.add(b.mul(b.add(number_ * self.each, register), _WAVE), lane)
            parts = [b.load(shared, b.add(at, wave * self.sums * _WAVE), b.f32)[0] for wave in range(self.waves)]
            total = parts[0]
            for part in parts[1:]:
                total = b.same("arith.addf", total, part)
            given.append([self._normalized(total, row)])
        self.evaluator.run(given, self._at(row, b.add(self.column, column)), self.known)

    def _normalized(self, total: Value, row: Value) -> Value:
        """A result times what a norm multiplies its row by, where that is not in the row already."""
        b = self.b
        if not self.factors:
            return total
        factor = self.factors[0]
        for number_, other in enumerate(self.factors[1:], 1):
            factor = b.select(b.compare("eq", b.at(row), b.at(number_)), other, factor)
        return b.same("arith.mulf", total, factor)

    def _at(self, row: Value, column: Value) -> list[Value]:
        """Coordinates of an element of the results."""
        dims = self.body.dims[:-1]
        return [*(self.b.coordinates(row, dims) if prod(dims) > 1 else [0] * len(dims)), column]

    def _known(self) -> dict[int, Lanes]:
        """What the epilogue reads, where a thread computes one element of the results: it comes while the matrix does."""
        b, found = self.b, self.found
        if UNITS_COLUMNS * found.rows > self.threads:
            return {}
        row = b.least(b.div(self.thread, UNITS_COLUMNS), found.rows - 1)
        column = b.least(b.add(self.column, b.mod(self.thread, UNITS_COLUMNS)), found.columns - 1)
        return self.evaluator.loads(self._at(row, column))


def _parted(values: Sequence[Value], count: int) -> list[Sequence[Value]]:
    """Some values in equal parts."""
    each = len(values) // count
    return [values[number_ * each : (number_ + 1) * each] for number_ in range(count)]
