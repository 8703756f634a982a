"""Convolutions of images of few channels on NVIDIA's matrix units, with what is computed in front and behind: the first of most networks.

Libraries want channels by eights or more, and the image brought into that form. Here a block computes a tile of the result. The part of the
image under it comes through shared memory once, each pixel with its channels filled up to four: the inner positions of a lane. Four lanes
read four taps of a row of the filter. The filter is rearranged in shared memory, too, once for each block. Channels of
the result are multiplied in such an order that a lane has adjacent ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import ceil, prod

from ...ops.few_channels import COLUMNS, TAPS, FewChannels, few_channels
from ...ops.graph import Graph
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import to_memory
from ..core.kernel import Operand
from ..core.space import Space, is_wide
from .body import Body
from .evaluate import Evaluator
from .graph_body import graph_body
from .pairs import Pairs

_WAVE, _LANES = 32, 4
"""Threads of a wave, lanes that share a pixel."""
_WAVES = (8, 4, 2)
"""Of a block."""
_RESIDENT = 2
"""Blocks of a multiprocessor."""
_PIXELS, _HALVES = 32, 4
"""Of the result, of a wave at a time, and how many of them a lane has."""
_APART = _PIXELS // _HALVES
_WIDTHS = (32, 16, 8)
"""Of a tile."""
_SHARED_BYTES = 48 << 10
_MOST_TILES = 8
"""Of 8 channels of the result: their sums for all pixels are in registers."""
_WORDS, _PIXEL_BYTES = 2, 8
"""Of the channels of a pixel, filled up."""
_MOST_LANES = 8
_AT_ONCE = 6
"""Pixels that a thread loads before it stores the first."""


@dataclass(frozen=True)
class _Tile:
    """Pixels of the result that a block computes together.

    Attributes:
        waves: of the block.
        height, width: of the tile.
        rows, columns: of the image under it.
        down, across: tiles of a result.
    """

    waves: int
    height: int
    width: int
    rows: int
    columns: int
    down: int
    across: int

    @property
    def pixels(self) -> int:
        """Of the image."""
        return self.rows * self.columns


def _tiles(found: FewChannels, waves: int, room: int) -> Iterator[_Tile]:
    """Those of a block of so many waves that fit into so many bytes."""
    taps = found.steps[0], found.steps[1] * TAPS
    for width in _WIDTHS:
        sides = waves * _PIXELS // width, width
        rows, columns = ((sides[i] - 1) * found.strides[i] + taps[i] for i in range(2))
        down, across = (ceil(found.result.dims[2 + i] / sides[i]) for i in range(2))
        if rows * columns * _PIXEL_BYTES <= room:
            yield _Tile(waves, *sides, rows, columns, down, across)


def few_channels_launch(graph: Graph, architecture: Architecture) -> Launch:
    """The launch of a graph of `ops.few_channels`, on an NVIDIA GPU; raises Refusal."""
    found = few_channels(graph)
    writer = _Writer(graph, found, architecture)
    read = [Operand("in", t.dtype, t.dims, t.strides) for t in (found.image, found.filter)]
    wide = is_wide([*writer.body.operands, *read], writer.blocks * writer.rounds * writer.tile.pixels)
    threads = writer.tile.waves * _WAVE
    return Launch(writer.write, writer.blocks * writer.parts, threads, writer.shared_bytes, wide, resident=_RESIDENT)


class _Writer:
    """Writes the kernel."""

    def __init__(self, graph: Graph, found: FewChannels, architecture: Architecture) -> None:
        self.found = found
        self.body = graph_body(graph, given=[found.node], before=found.ahead)
        self.ahead = _body_ahead(graph, found)
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        n, channels, *self.sizes = found.result.dims
        tiles = channels // COLUMNS
        self.tiles = next(count for count in range(_MOST_TILES, 0, -1) if tiles % count == 0)
        """Of a block; others compute other channels of the same pixels."""
        self.lanes = min(2 * self.tiles & -2 * self.tiles, _MOST_LANES)
        """Adjacent channels of a lane."""
        self.parts = tiles // self.tiles
        self.slots = prod(found.steps) * self.tiles * _WAVE
        self.filter_bytes = _PIXEL_BYTES * self.slots
        units = _RESIDENT * architecture.units
        for waves in _WAVES:
            fitting = _tiles(found, waves, _SHARED_BYTES - self.filter_bytes)
            best = min(fitting, key=lambda tile: (tile.down * tile.across, tile.pixels), default=None)
            if best is not None and (n * best.down * best.across * self.parts >= units or waves == _WAVES[-1]):
                self.tile = best
                break
        self.count = n * self.tile.down * self.tile.across
        self.rounds = ceil(self.count / max(1, units // self.parts))
        self.blocks = ceil(self.count / self.rounds)
        self.shared_bytes = self.filter_bytes + _PIXEL_BYTES * self.tile.pixels
        rank = len(found.result.dims)
        strides = [o.strides if len(o.strides) == rank else (0,) * rank for o in self.body.operands]
        self.space = Space((n, *self.sizes, channels), tuple((s[0], s[2], s[3], s[1]) for s in strides))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        self.b, self.pairs = b, Pairs(b, self.found.dtype)
        self.thread, block = b.thread(), b.block()
        lane, self.wave = b.mod(self.thread, _WAVE), b.div(self.thread, _WAVE)
        self.lane, self.row, self.quad = lane, b.div(lane, _LANES), b.mod(lane, _LANES)
        part, block = b.mod(block, self.parts), b.div(block, self.parts)
        self.first = b.mul(part, self.tiles * COLUMNS)
        self._arrange_filter()
        if self.rounds == 1:
            self._compute(block)
            return

        def one(number: Value, _: list[Value]) -> list[Value]:
            b.barrier()
            self._compute(b.add(b.mul(number, self.blocks), block))
            return []

        b.loop(0, self.rounds, 1, [], one)

    # -- the filter -----------------------------------------------------------------------------------------------

    def _arrange_filter(self) -> None:
        """A slot of shared memory for each lane, tile and step: the channels of a tap."""
        self.b.share_out(self.slots, self.thread, self.tile.waves * _WAVE, self._fill)

    def _fill(self, slot: Value) -> None:
        b, weights = self.b, self.found.filter
        lane, rest = b.mod(slot, _WAVE), b.div(slot, _WAVE)
        tile, step = b.mod(rest, self.tiles), b.div(rest, self.tiles)
        row, chunk = b.div(step, self.found.steps[1]), b.mod(step, self.found.steps[1])
        column, tap = b.div(lane, _LANES), b.add(b.mul(chunk, TAPS), b.mod(lane, _LANES))
        inside = b.less(tap, weights.dims[3])
        channel = self._channel(b.div(tile, self.lanes // 2), b.div(column, 2))
        channel = b.add(channel, b.mul(b.mod(tile, self.lanes // 2), 2), b.mod(column, 2))
        steps = weights.strides
        offset = b.dot([channel, row, b.least(tap, weights.dims[3] - 1)], [steps[0], steps[2], steps[3]])
        base = b.arguments[self.places[id(weights)]]
        halves = [b.load(base, b.add(offset, c * steps[1]), b.i16)[0] for c in range(weights.dims[1])]
        b.store(b.shared(0), b.mul(slot, _WORDS), self._words(halves, inside))

    def _channel(self, group: Value, quad: Value) -> Value:
        """The first of a lane's adjacent channels of the result; those of four lanes are a group."""
        return self.b.add(self.first, self.b.mul(group, _LANES * self.lanes), self.b.mul(quad, self.lanes))

    def _words(self, halves: Sequence[Value], inside: Value) -> list[Value]:
        """The channels of a pixel as words, zeros where there is none."""
        b, zero, words = self.b, self.b.constant(0, self.b.i32), []
        wide = [b.op("arith.extui", [half], b.i32) for half in halves]
        for low, *high in (wide[at : at + 2] for at in range(0, len(wide), 2)):
            upper = [b.same("arith.shli", half, b.constant(16, b.i32)) for half in high]
            words.append(b.select(inside, b.same("arith.ori", low, *upper) if upper else low, zero))
        return [*words, zero][:_WORDS]

    # -- the image ------------------------------------------------------------------------------------------------

    def _fetch(self, image: Value, top: Value, left: Value) -> None:
        """The part of an image under the tile into shared memory, zeros around it."""
        b, threads, tile = self.b, self.tile.waves * _WAVE, self.tile
        own = [b.least(b.add(self.thread, start), tile.pixels - 1) for start in range(0, tile.pixels, threads)]
        for places in (own[at : at + _AT_ONCE] for at in range(0, len(own), _AT_ONCE)):
            loaded = [self._pixel(image, top, left, place) for place in places]
            for place, words in zip(places, loaded, strict=True):
                b.store(b.shared(self.filter_bytes), b.mul(place, _WORDS), words)

    def _pixel(self, image: Value, top: Value, left: Value, place: Value) -> list[Value]:
        b, found = self.b, self.found
        y, x = b.add(top, b.div(place, self.tile.columns)), b.add(left, b.mod(place, self.tile.columns))
        sizes = found.image.dims[2:]
        inside = b.same("arith.andi", b.less(y, sizes[0]), b.less(x, sizes[1]))  # what is negative is large
        y, x = (b.select(inside, b.at(at), b.at(0)) for at in (y, x))
        halves = []
        space = Space(self.ahead.dims, tuple(operand.strides for operand in self.ahead.operands))
        evaluator = Evaluator(b, self.ahead, space, 1)
        for channel in range(found.image.dims[1]):
            values: list[list[Value]] = []
            for step in self.ahead.code[:-1]:  # the last one would store
                operands = [values[operand] for operand in step.operands]
                values.append(evaluator.value(step, operands, [image, channel, y, x]))
            (value,) = values[self.ahead.code[-1].operands[0]]
            halves.append(b.op("llvm.bitcast", [to_memory(b, value, found.dtype)], b.i16))
        return self._words(halves, inside)

    # -- sums -----------------------------------------------------------------------------------------------------

    def _compute(self, number: Value) -> None:
        """A tile of the result; nothing is written for one behind the last."""
        b, tile, found = self.b, self.tile, self.found
        existing = [] if self.count % self.blocks == 0 else [b.less(number, self.count)]
        image, down, across = b.coordinates(
            b.least(number, self.count - 1), (self.space.dims[0], tile.down, tile.across)
        )
        first = b.mul(down, tile.height), b.mul(across, tile.width)
        top, left = (b.sub(b.mul(first[i], found.strides[i]), found.padding[i]) for i in range(2))
        self._fetch(image, top, left)
        b.barrier()
        own = []
        for half in range(_HALVES):
            pixel = b.add(b.mul(self.wave, _PIXELS), self.row, _APART * half)
            own.append((b.div(pixel, tile.width), b.mod(pixel, tile.width)))
        starts = [
            b.add(b.mul(y, found.strides[0] * tile.columns), b.mul(x, found.strides[1]), self.quad) for y, x in own
        ]
        sums = [b.constant(0, b.f32)] * (4 * self.tiles * (_HALVES // 2))
        rows, chunks = found.steps
        for row in range(rows):
            for chunk in range(chunks):
                pixels = [self._tap(start, row, chunk) for start in starts]
                sums = self._multiplied(row * chunks + chunk, pixels, sums)
        for half, (y, x) in enumerate(own):
            at = b.add(first[0], y), b.add(first[1], x)
            sides = zip(at, self.sizes, (tile.height, tile.width), strict=True)
            checks = [*existing, *(b.less(place, size) for place, size, side in sides if size % side)]
            if not checks:
                self._finish(half, [image, *at], sums)
                continue
            with b.when(reduce(lambda one, other: b.same("arith.andi", one, other), checks)):
                self._finish(half, [image, *at], sums)

    def _tap(self, start: Value, row: int, chunk: int) -> list[Value]:
        """This lane's pixel of four taps of a row of the filter; one beside the filter is zero, whatever lies there."""
        b, missing = self.b, (chunk + 1) * TAPS - self.found.filter.dims[3]
        place = b.mul(b.add(start, row * self.tile.columns + chunk * TAPS), _WORDS)
        words = b.load(b.shared(self.filter_bytes), place, b.i32, _WORDS)
        if missing > 0:
            inside = b.less(self.quad, TAPS - missing)
            words = [b.select(inside, word, b.constant(0, b.i32)) for word in words]
        return [self.pairs.of_word(word) for word in words]

    def _multiplied(self, step: int, pixels: Sequence[Sequence[Value]], sums: list[Value]) -> list[Value]:
        """The sums with those of four taps of a row of the filter."""
        b, made = self.b, list(sums)
        for tile in range(self.tiles):
            slot = b.add(self.lane, (step * self.tiles + tile) * _WAVE)
            column = b.load(b.shared(0), b.mul(slot, _WORDS), b.i32, _WORDS)
            for pair in range(_HALVES // 2):
                place = 4 * (pair * self.tiles + tile)
                some = pixels[2 * pair : 2 * pair + 2]
                made[place : place + 4] = self.pairs.multiplied(some, column, made[place : place + 4])
        return made

    def _finish(self, half: int, at: Sequence[Value], sums: Sequence[Value]) -> None:
        """Compute what follows on this lane's channels of a pixel, and write it."""
        b, lanes = self.b, self.lanes
        evaluator = Evaluator(b, self.body, self.space, lanes)
        base = 4 * self.tiles * (half // 2) + 2 * (half % 2)
        own = [sums[base + 4 * tile + more] for tile in range(self.tiles) for more in range(2)]
        for group in range(len(own) // lanes):
            given = own[group * lanes : (group + 1) * lanes]
            evaluator.run([given], [*at, self._channel(group, self.quad)])


def _body_ahead(graph: Graph, found: FewChannels) -> Body:
    """What makes an element of the image one that is multiplied, stored at the end."""
    if not found.ahead:
        whole = [Operand(role, found.dtype, found.image.dims, found.image.strides) for role in ("in", "out")]
        body = Body(found.image.dims, whole)
        body.append("store", found.dtype, body.append("load", found.dtype, data=0), data=1)
        return body
    (last,) = found.ahead[-1].outputs.values()
    tensors = list(graph.tensors)
    tensors[last] = replace(tensors[last], result=0)
    return graph_body(Graph(graph.compute, tensors, list(found.ahead)))
