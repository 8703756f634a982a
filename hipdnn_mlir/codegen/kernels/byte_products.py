"""Convolutions of one tap of signed bytes on NVIDIA's matrix units, with all that is computed on the sums.

A wave computes 32 pixels of up to 64 channels. Four lanes read 64 bytes of a pixel, and the same ones of a channel of the filter: these are
operands of matrix units as they lie in memory, since the order in which inner positions are multiplied is free. Images go from memory into
registers, for each byte is read by one wave of a block. The filter's part lies in shared memory, in the order in which lanes read it.
Channels are multiplied in such an order that a lane has adjacent ones.
"""

from collections.abc import Collection, Sequence
from math import ceil

from hipdnn_mlir_runtime.dtypes import F32, I8

from ...ops.byte_products import LINE, ByteProducts, byte_products
from ...ops.graph import Graph, Tensor
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.kernel import Operand
from ..core.space import Space, access_size, is_wide
from .evaluate import Evaluator
from .graph_body import graph_body

_WAVE, _LANES, _WAVES = 32, 4, 4
"""Threads of a wave, lanes that share a pixel, waves of a block."""
_ROWS, _COLUMNS = 32, 8
"""Pixels of a wave at a time, and channels of one multiplication."""
_PIECES = _ROWS * _LANES // _WAVE
"""Pixels of a lane."""
_CHUNK = _LANES * LINE
"""Bytes of a pixel that its lanes read at once."""
_WORDS = LINE // 4
_MOST_TILES = 8
"""Of 8 channels: their sums for all pixels are in registers."""
_RESIDENT = 3
"""Blocks of a multiprocessor."""


def byte_products_launch(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch:
    """The launch of a graph of `ops.byte_products`, on an NVIDIA GPU; raises Refusal. For `constants` see `generate_graph`."""
    found = byte_products(graph)
    writer = _Writer(graph, found, architecture)
    writer.early = architecture.waits_in_kernels and found.filter.operand in constants
    read = [Operand("in", t.dtype, t.dims, t.strides) for t in (found.image, found.filter)]
    wide = is_wide([*writer.body.operands, *read], writer.blocks * _WAVES * _ROWS * (writer.rounds + 1))
    threads = _WAVES * _WAVE
    return Launch(writer.write, writer.blocks, threads, writer.shared_bytes, wide, resident=_RESIDENT)


class _Writer:
    """Writes the kernel.

    Attributes:
        early: the filter is read while the kernel in front still runs.
    """

    def __init__(self, graph: Graph, found: ByteProducts, architecture: Architecture) -> None:
        self.found, self.early = found, False
        self.body = graph_body(graph, given=[found.node], before=found.ahead)
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        n, channels, *sizes = found.result.dims
        self.dims = (n, *sizes)
        self.inner = found.filter.dims[1]
        self.chunks = ceil(self.inner / _CHUNK)
        tiles = channels // _COLUMNS
        self.tiles = next(count for count in range(_MOST_TILES, 0, -1) if tiles % count == 0)
        """Of a block; others compute other channels of the same pixels."""
        self.lanes = 2 * self.tiles & -2 * self.tiles
        """Adjacent channels of a lane."""
        self.parts = tiles // self.tiles
        self.slots = self.chunks * self.tiles * _WAVE
        self.shared_bytes = LINE * self.slots
        self.pixels = n * sizes[0] * sizes[1]
        count = ceil(self.pixels / (_WAVES * _ROWS))
        at_once = max(1, _RESIDENT * architecture.units // self.parts)
        self.rounds = ceil(count / at_once)
        self.beside = ceil(count / self.rounds)
        self.blocks = self.beside * self.parts
        rank = len(found.result.dims)
        strides = [o.strides if len(o.strides) == rank else (0,) * rank for o in self.body.operands]
        self.space = Space((*self.dims, channels), tuple((s[0], s[2], s[3], s[1]) for s in strides))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        self.b = b
        thread, block = b.thread(), b.block()
        self.thread, self.lane, self.wave = thread, b.mod(thread, _WAVE), b.div(thread, _WAVE)
        self.row, self.quad = b.div(self.lane, _LANES), b.mod(self.lane, _LANES)
        part, block = b.mod(block, self.parts), b.div(block, self.parts)
        self.first = b.mul(part, self.tiles * _COLUMNS)
        self._arrange_filter()
        if self.early:
            b.await_kernel()
        b.barrier()

        def one(number: Value, begun: list[Value]) -> list[Value]:
            tile = b.add(b.mul(number, self.beside), block)
            later = self._lines(b.add(tile, self.beside))
            self._compute(tile, begun)
            return later

        begun = self._lines(block)
        if self.rounds == 1:
            self._compute(block, begun)
        else:
            b.loop(0, self.rounds, 1, begun, one)

    # -- the filter -----------------------------------------------------------------------------------------------

    def _arrange_filter(self) -> None:
        """A slot of shared memory for each chunk, tile and lane."""
        self.b.share_out(self.slots, self.thread, _WAVES * _WAVE, self._fill)

    def _fill(self, slot: Value) -> None:
        b, weights = self.b, self.found.filter
        lane, rest = b.mod(slot, _WAVE), b.div(slot, _WAVE)
        tile, chunk = b.mod(rest, self.tiles), b.div(rest, self.tiles)
        column = b.div(lane, _LANES)
        channel = self._channel(b.div(tile, self.lanes // 2), b.div(column, 2))
        channel = b.add(channel, b.mul(b.mod(tile, self.lanes // 2), 2), b.mod(column, 2))
        at = b.add(b.mul(chunk, _CHUNK), b.mul(b.mod(lane, _LANES), LINE))
        words = self._line(weights, b.mul(channel, weights.strides[0]), at)
        b.store(b.shared(0), b.mul(slot, _WORDS), words)

    def _channel(self, group: Value, quad: Value) -> Value:
        """The first of a lane's adjacent channels of the result; those of four lanes are a group."""
        return self.b.add(self.first, self.b.mul(group, _LANES * self.lanes), self.b.mul(quad, self.lanes))

    def _line(self, tensor: Tensor, start: Value, at: Value) -> list[Value]:
        """The words of some adjacent bytes along the channels from `at` on; zeros where there are none."""
        b, base, step = self.b, self.b.arguments[self.places[id(tensor)]], tensor.strides[1]
        is_cut = self.inner % _CHUNK != 0
        inside = b.less(at, self.inner) if is_cut else None
        at = b.select(inside, b.at(at), b.at(0)) if is_cut else at
        others = [s for size, s in zip(tensor.dims, tensor.strides, strict=True) if size > 1 and s != step]
        if step == 1 and tensor.alignment % LINE == 0 and all(s % LINE == 0 for s in others):
            words = b.load(base, b.div(b.add(start, at), 4), b.i32, _WORDS)
        else:
            words = [self._word(base, b.add(start, b.mul(b.add(at, 4 * word), step)), step) for word in range(_WORDS)]
        return [b.select(inside, word, b.constant(0, b.i32)) for word in words] if is_cut else words

    def _word(self, base: Value, start: Value, step: int) -> Value:
        """Four bytes that do not lie beside each other."""
        b, made = self.b, self.b.constant(0, self.b.i32)
        for place in range(4):
            (byte,) = b.load(base, b.add(start, place * step), b.i8)
            wide = b.op("arith.extui", [byte], b.i32)
            made = b.same("arith.ori", made, b.same("arith.shli", wide, b.constant(8 * place, b.i32)))
        return made

    # -- sums -----------------------------------------------------------------------------------------------------

    def _places(self, number: Value) -> list[tuple[Value, list[Value]]]:
        """This lane's pixels of a tile, and where they lie in the result; the last one for those behind."""
        b = self.b
        first = b.add(b.mul(number, _WAVES * _ROWS), b.mul(self.wave, _ROWS), self.row)
        rows = [b.add(first, _COLUMNS * piece) for piece in range(_PIECES)]
        return [(row, b.coordinates(b.least(row, self.pixels - 1), self.dims)) for row in rows]

    def _lines(self, number: Value) -> list[Value]:
        """The words of this lane's pixels of a tile."""
        b, image = self.b, self.found.image
        steps = [image.strides[0], *(image.strides[2 + i] * self.found.strides[i] for i in range(2))]
        starts = [b.dot(place, steps) for _, place in self._places(number)]
        return [
            word
            for chunk in range(self.chunks)
            for start in starts
            for word in self._line(image, start, b.add(b.mul(self.quad, LINE), chunk * _CHUNK))
        ]

    def _compute(self, number: Value, words: Sequence[Value]) -> None:
        """Pixels of the result; nothing is written for one behind the last."""
        b, each = self.b, _PIECES * _WORDS
        places = self._places(number)
        evaluator = Evaluator(b, self.body, self.space, self.lanes, of_integers=True)
        channels = [self._channel(group, self.quad) for group in range(2 * self.tiles // self.lanes)]
        of_pixels = [[self._words([*place, c]) for c in channels] for _, place in places]
        sums = [b.constant(0, b.i32)] * (2 * _PIECES * self.tiles)
        for chunk in range(self.chunks):
            sums = self._multiplied(chunk, words[chunk * each : (chunk + 1) * each], sums)
        known = [evaluator.loads([0, 0, 0, c], is_same=True) for c in channels]
        for piece, (row, place) in enumerate(places):

            def finish(piece: int = piece, place: list[Value] = place) -> None:
                for group, channel in enumerate(channels):
                    floats = self._floats(of_pixels[piece][group])
                    evaluator.run([self._own(piece, group, sums)], [*place, channel], known[group] | floats)

            if self.pixels % (self.beside * self.rounds * _WAVES * _ROWS):
                with b.when(b.less(row, self.pixels)):
                    finish()
            else:
                finish()

    def _words(self, at: Sequence[Value]) -> dict[int, list[Value]]:
        """Bytes that are read there and become f32, by the number of that instruction."""
        b, found = self.b, dict[int, list[Value]]()
        for index, step in enumerate(self.body.code):
            source = self.body.code[step.operands[0]] if step.name == "cast" and step.dtype is F32 else step
            if source is step or source.name != "load" or source.dtype is not I8:
                continue
            operand, strides = self.body.operands[source.data], self.space.strides[source.data]
            size = access_size(operand, strides, self.lanes)
            if size % 4 == 0 and size > 0:
                start = b.dot(at, strides)
                found[index] = [
                    word
                    for lane in range(0, self.lanes, size)
                    for word in b.load(b.arguments[source.data], b.div(b.add(start, lane), 4), b.i32, size // 4)
                ]
        return found

    def _floats(self, words: dict[int, list[Value]]) -> dict[int, list[Value]]:
        """The bytes as f32."""
        b = self.b
        return {
            index: [b.op("arith.sitofp", [b.byte_of(word, place)], b.f32) for word in some for place in range(4)]
            for index, some in words.items()
        }

    def _own(self, piece: int, group: int, sums: Sequence[Value]) -> list[Value]:
        """This lane's channels of a pixel, of one group."""
        base = 4 * self.tiles * (piece // 2) + 2 * (piece % 2)
        own = [sums[base + 4 * tile + more] for tile in range(self.tiles) for more in range(2)]
        return own[group * self.lanes : (group + 1) * self.lanes]

    def _multiplied(self, chunk: Value, words: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """The sums with those of a chunk."""
        b, made = self.b, list(sums)
        lines = [words[at : at + _WORDS] for at in range(0, len(words), _WORDS)]
        for tile in range(self.tiles):
            slot = b.add(b.mul(b.add(b.mul(chunk, self.tiles), tile), _WAVE), self.lane)
            column = b.load(b.shared(0), b.mul(slot, _WORDS), b.i32, _WORDS)
            for pair in range(_PIECES // 2):
                place = 4 * (pair * self.tiles + tile)
                upper, lower = lines[2 * pair], lines[2 * pair + 1]
                for at in range(0, _WORDS, 2):
                    rows = [upper[at], lower[at], upper[at + 1], lower[at + 1]]
                    made[place : place + 4] = b.units_products(
                        "m16n8k32.row.col.s8", b.i32, [*rows, *column[at : at + 2]], made[place : place + 4]
                    )
        return made
