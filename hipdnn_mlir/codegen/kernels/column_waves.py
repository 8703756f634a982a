"""Matmuls of 9 to 32 rows with many columns on NVIDIA's matrix units: a wave has columns of its own, and a block reads the rows once.

In `gemv_units` each block of 16 columns reads all rows from the GPU's cache: for 32 rows as many bytes as the weights of two matrices. Here
a block has 64 columns or more. Its rows come in chunks through shared memory, two chunks ahead of the one that is multiplied; weights go
from memory to registers, and are operands as they lie. Two or four waves share columns, each with its part of every chunk.

There may be several matrices, each with rows of its own: parts of the inner dim of one matmul (`hipdnn-split-inner`).
"""

from collections.abc import Collection, Sequence
from math import ceil, prod

from ...ops.few_rows import (
    LEAST_WAVE_ROWS,
    UNITS_COLUMNS,
    WAVE_CHUNKS,
    WAVE_INNER,
    FewRows,
    few_rows,
    has_chunks,
    row_step,
)
from ...ops.graph import Graph, Tensor
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import memory_type
from ..core.space import Space, is_wide
from .body import Body
from .column_weights import ColumnWeights
from .evaluate import Evaluator
from .gemv import body_behind, reads_early
from .pairs import Pairs

_WAVE, _LANES, _TILE = 32, 4, 8
"""Threads of a wave, lanes that share a column, rows of one operand of matrix units."""
_WAVES, _TILES = 8, 2
"""Of a block, and operands of 16 columns of a wave: of two matrices, or beside each other."""
_CHUNK, _RING = WAVE_INNER, WAVE_CHUNKS
"""Elements of a row that are in shared memory together, and how many such chunks: 48 KiB for 32 rows."""
_VECTORS = _CHUNK // 8
"""Of 16 bytes, of a row of a chunk."""
_AHEAD = 2
"""Steps of a wave whose weights are under way."""
_RESIDENT = 2
"""Blocks of a multiprocessor."""


def column_waves_launch(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch | None:
    """The launch of a graph that matrix units take (`takes_units`), or None where `gemv_units` is for it; raises Refusal."""
    found = few_rows(graph)
    is_plain = found.norm is None and all(product.scales is None for product in found.products)
    if not is_plain or found.rows < LEAST_WAVE_ROWS or not has_chunks(found):
        return None
    sharing = _sharing(found, architecture)
    if sharing is None:
        return None
    body = body_behind(graph, found)
    writer = _Writer(graph, found, body, sharing, early=reads_early(graph, found, architecture, constants))
    wide = is_wide(body.operands, max(writer.blocks * _WAVES * _WAVE, 2 * found.inner))
    return Launch(writer.write, writer.blocks, _WAVES * _WAVE, writer.shared_bytes, wide, resident=_RESIDENT)


def _block_columns(found: FewRows, sharing: int) -> int:
    """Columns of a block, of each matrix."""
    return UNITS_COLUMNS * _WAVES // sharing * _TILES // len(found.products)


def _sharing(found: FewRows, architecture: Architecture) -> int | None:
    """How many waves share columns: as few as leave two blocks for most multiprocessors; None where none do."""
    if len(found.products) > _TILES:
        return None
    for sharing in (2, 4):
        columns = _block_columns(found, sharing)
        blocks = found.matrices * ceil(found.columns / columns)
        is_whole = found.matrices == 1 or found.columns % columns == 0
        if is_whole and 4 * blocks >= 3 * _RESIDENT * architecture.units:
            return sharing
    return 4 if found.matrices > 1 else None


class _Writer:
    """Writes the kernel; `early`: the first weights are loaded while the kernel in front still runs."""

    def __init__(self, graph: Graph, found: FewRows, body: Body, sharing: int, *, early: bool) -> None:
        self.graph, self.found, self.body, self.sharing, self.early = graph, found, body, sharing, early
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        self.left = graph.tensors[found.left]
        self.row_tiles = ceil(found.rows / _TILE)
        self.beside = _TILES // len(found.products)
        """Operands of columns beside each other."""
        self.columns = _block_columns(found, sharing)
        self.blocks = found.matrices * ceil(found.columns / self.columns)
        self.sums = 4 * self.row_tiles * _TILES
        """Of a thread."""
        self.chunks = found.inner // _CHUNK
        self.chunk_steps = _VECTORS // _LANES // sharing
        """Of a wave."""
        self.chunk_bytes = 2 * _CHUNK * found.rows
        self.shared_bytes = max(_RING * self.chunk_bytes, 4 * _WAVES * _WAVE * self.sums)
        self.space = Space(body.dims, tuple(operand.strides for operand in body.operands))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        self.b, self.pairs = b, Pairs(b, self.left.dtype)
        self.thread = b.thread()
        lane, wave = b.mod(self.thread, _WAVE), b.div(self.thread, _WAVE)
        self.lane, self.wave, self.row, self.quad = lane, wave, b.div(lane, _LANES), b.mod(lane, _LANES)
        groups = _WAVES // self.sharing
        self.part = b.div(wave, groups)
        blocks = self.blocks // self.found.matrices
        self.matrix, self.first = b.div(b.block(), blocks), b.mul(b.mod(b.block(), blocks), self.columns)
        own = b.add(self.first, b.mul(b.mod(wave, groups), UNITS_COLUMNS * self.beside), self.row)
        self.weights = [self._columns_from(b.add(own, UNITS_COLUMNS * tile)) for tile in range(self.beside)]
        ahead = [word for step in range(_AHEAD) for word in self._weights_of(step)]
        if self.early:
            b.await_kernel()
        for chunk in range(_RING - 1):
            self._fetch(chunk)
        sums = [b.constant(0, b.f32)] * self.sums

        def one(chunk: Value, carried: Sequence[Value]) -> list[Value]:
            b.await_copies(_RING - 2)
            b.barrier()
            self._fetch(b.add(chunk, _RING - 1))
            return self._multiplied(chunk, carried, self.chunk_steps)

        last = self.chunks - 1
        carried = b.loop(0, self.chunks - (_RING - 1), 1, [*sums, *ahead], one)
        for chunk in range(self.chunks - (_RING - 1), self.chunks):
            b.await_copies(last - chunk)
            b.barrier()
            loads = self.chunk_steps if chunk < last else self.chunk_steps - _AHEAD
            carried = self._multiplied(chunk, carried, loads)
        self._finish(carried[: self.sums])

    def _base(self, tensor: Tensor) -> Value:
        """Of this block's matrix, or of the rows that are multiplied by it."""
        base = self.b.arguments[self.places[id(tensor)]]
        if self.found.matrices == 1:
            return base
        return self.b.address(base, self.b.mul(self.matrix, tensor.strides[0]), memory_type(self.b, tensor.dtype))

    # -- what is read ---------------------------------------------------------------------------------------------

    def _columns_from(self, column: Value) -> ColumnWeights:
        """Two columns of this lane; the last one where they are not there."""
        b, found = self.b, self.found
        columns = [b.add(column, more) for more in (0, _TILE)]
        if found.columns % self.columns:
            columns = [b.least(c, found.columns - 1) for c in columns]
        return ColumnWeights(b, self.graph, found, self._base, columns, 8, 0, self.pairs)

    def _weights_of(self, step: Value) -> list[Value]:
        """This lane's words of all operands of columns at a step of this wave."""
        b = self.b
        place = b.add(b.mul(b.add(b.mul(step, self.sharing), self.part), _LANES), self.quad)
        return [word for weights in self.weights for word in weights.raw(place)]

    def _fetch(self, chunk: Value) -> None:
        """Begin to copy a chunk of all rows into its place of the ring. Odd rows have their halves of 64 bytes exchanged: other banks."""
        b, found, threads = self.b, self.found, _WAVES * _WAVE
        to = b.mul(b.mod(chunk, _RING), self.chunk_bytes // 16)
        vectors = found.rows * _VECTORS
        for first in range(0, vectors, threads):
            at = b.add(self.thread, first)
            row, vector = b.div(at, _VECTORS), b.mod(at, _VECTORS)
            source = b.add(b.mul(row, row_step(self.left, found.matrices) // 8), b.mul(chunk, _VECTORS), vector)

            def copy(row: Value = row, vector: Value = vector, source: Value = source) -> None:
                place = b.add(to, b.mul(row, _VECTORS), self._exchanged(row, vector))
                b.copy_ahead(b.shared(0), place, self._base(self.left), source)

            if first + threads <= vectors:
                copy()
                continue
            with b.when(b.less(at, vectors)):
                copy()
        b.end_copies()

    def _exchanged(self, row: Value, vector: Value) -> Value:
        return self.b.same("arith.xori", vector, self.b.at(self.b.mul(self.b.mod(row, 2), _LANES)))

    def _rows_at(self, chunk: Value, step: int) -> list[list[Value]]:
        """This lane's words of its row of each tile at a step of a chunk."""
        b, found = self.b, []
        vector = b.add(b.mul(b.add(self.part, step * self.sharing), _LANES), self.quad)
        start = b.mul(b.mod(chunk, _RING), self.chunk_bytes // 16)
        for tile in range(self.row_tiles):
            row = b.add(self.row, tile * _TILE)
            if tile == self.row_tiles - 1 and self.found.rows % _TILE:
                row = b.least(row, self.found.rows - 1)
            place = b.add(start, b.mul(row, _VECTORS), self._exchanged(row, vector))
            found.append(b.load(b.shared(0), b.mul(place, 4), b.i32, 4))
        return found

    # -- sums -----------------------------------------------------------------------------------------------------

    def _multiplied(self, chunk: Value, carried: Sequence[Value], loads: int) -> list[Value]:
        """The sums with those of a chunk, and the weights ahead; `loads` steps of it load some."""
        b, sums, ahead = self.b, list(carried[: self.sums]), list(carried[self.sums :])
        each = len(ahead) // _AHEAD
        for step in range(self.chunk_steps):
            words, ahead = ahead[:each], ahead[each:]
            rows = self._rows_at(chunk, step)
            for number in range(_TILES):
                raw = words[number * 8 : number * 8 + 8]
                columns = [[self.pairs.of_word(word) for word in raw[at : at + 4]] for at in (0, 4)]
                for tile, row in enumerate(rows):
                    place = 4 * (number * self.row_tiles + tile)
                    sums[place : place + 4] = self.pairs.multiplied(columns, row, sums[place : place + 4])
            if step < loads:
                ahead += self._weights_of(b.add(b.mul(chunk, self.chunk_steps), step + _AHEAD))
        return [*sums, *ahead]

    # -- results --------------------------------------------------------------------------------------------------

    def _finish(self, sums: Sequence[Value]) -> None:
        """Add what the waves have of a column, compute what follows and write it."""
        b, found, threads = self.b, self.found, _WAVES * _WAVE
        b.barrier()
        for number, value in enumerate(sums):
            b.store(b.shared(0), b.add(b.mul(b.add(b.mul(self.wave, self.sums), number), _WAVE), self.lane), [value])
        b.barrier()
        evaluator = Evaluator(b, self.body, self.space, 1)
        total = self.columns * found.rows
        for first in range(0, total, threads):
            at = b.add(self.thread, first)
            column, row = b.mod(at, self.columns), b.div(at, self.columns)
            checks = [b.less(at, total)] if first + threads > total else []
            if found.columns % self.columns:
                checks.append(b.less(b.add(self.first, column), found.columns))
            if not checks:
                self._write(evaluator, row, column)
                continue
            with b.when(checks[0] if len(checks) == 1 else b.same("arith.andi", *checks)):
                self._write(evaluator, row, column)

    def _write(self, evaluator: Evaluator, row: Value, column: Value) -> None:
        """One element of each result."""
        b = self.b
        tile, inner = b.div(column, UNITS_COLUMNS), b.mod(column, UNITS_COLUMNS)
        lane = b.add(b.mul(b.mod(inner, _TILE), _LANES), b.div(b.mod(row, _TILE), 2))
        register = b.add(b.mul(b.div(inner, _TILE), 2), b.mod(row, 2), b.mul(b.div(row, _TILE), 4))
        wave, number = b.div(tile, self.beside), b.mod(tile, self.beside)
        given = []
        for product in range(len(self.found.products)):
            operand = b.mul(b.add(number, product), 4 * self.row_tiles)
            at = b.add(b.mul(b.add(b.mul(wave, self.sums), operand, register), _WAVE), lane)
            apart = _WAVES // self.sharing * self.sums * _WAVE
            parts = [b.load(b.shared(0), b.add(at, other * apart), b.f32)[0] for other in range(self.sharing)]
            sum_ = parts[0]
            for part in parts[1:]:
                sum_ = b.same("arith.addf", sum_, part)
            given.append([sum_])
        dims = self.body.dims[:-1]
        row = b.add(row, b.mul(self.matrix, self.found.rows))
        before = b.coordinates(row, dims) if prod(dims) > 1 else [0] * len(dims)
        evaluator.run(given, [*before, b.add(self.first, column)], {})
