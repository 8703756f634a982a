"""Depthwise convolutions, with what is computed behind them.

A thread computes some adjacent channels of some adjacent pixels of a row of the result. It reads each pixel of the image under them
once for each row of the filter, and multiplies it wherever it counts; what neighbours read again comes from the GPU's cache. All is read
as it lies: what is stored channels-last by accesses of several channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ...ops.depthwise import depthwise
from ...ops.graph import Graph, Tensor
from ...ops.one_convolution import Convolution
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type
from ..core.kernel import Operand
from ..core.space import Space, access_size, is_wide
from ..math.functions import Functions
from .evaluate import Evaluator, Lanes
from .graph_body import graph_body

_THREADS = 128
_WAYS = ((8, 4), (8, 2), (8, 1), (4, 1), (2, 1))
"""Channels and pixels of a thread, the best first where there are enough threads for the GPU."""
_ENOUGH = 2 * _THREADS
"""Threads of a multiprocessor."""
_UNROLLED_TAPS = 25
"""Of a filter whose rows are written one by one, else in a loop. It is a loop, too, where a branch decides what is stored: LLVM moves
what no loop has computed into the branch, and all that was read waits for it in more registers than there are."""
_ROW, _COLUMN = 0, 1


@dataclass(frozen=True)
class _Way:
    """How a launch shares the work.

    Attributes:
        lanes, pixels: channels and pixels of a thread.
        across: threads along a row of the result.
        threads: of all.
    """

    lanes: int
    pixels: int
    across: int
    threads: int


def depthwise_launch(graph: Graph, architecture: Architecture) -> Launch:
    """The launch of a graph of `ops.depthwise`; raises Refusal."""
    writer = _Writer(graph, depthwise(graph), architecture)
    blocks = ceil(writer.way.threads / _THREADS)
    wide = is_wide([*writer.body.operands, writer.image, writer.filter], (blocks + 1) * _THREADS)
    return Launch(writer.write, blocks, _THREADS, 0, wide)


def _in_order(tensor: Tensor, order: Sequence[int]) -> Operand:
    """A tensor with its dims in another order."""
    dims = tuple(tensor.dims[axis] for axis in order)
    strides = tuple(0 if tensor.dims[axis] == 1 else tensor.strides[axis] for axis in order)
    return Operand("in", tensor.dtype, dims, strides, tensor.alignment)


class _Writer:
    """Writes the kernel."""

    def __init__(self, graph: Graph, found: Convolution, architecture: Architecture) -> None:
        self.found = found
        self.body = graph_body(graph, given=[found.node])
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        n, channels, *self.sizes = found.result.dims
        self.image = _in_order(found.image, (0, 2, 3, 1))
        self.filter = _in_order(found.filter, (2, 3, 0))
        strides = [o.strides if len(o.strides) == len(found.result.dims) else (0,) * 4 for o in self.body.operands]
        self.space = Space((n, *self.sizes, channels), tuple((s[0], s[2], s[3], s[1]) for s in strides))
        ways = [self._way(lanes, pixels) for lanes, pixels in _WAYS if channels % lanes == 0 and self._reads(lanes)]
        ways = [way for way in ways if way.pixels <= self.sizes[_COLUMN]] or [self._way(1, 1)]
        wanted = _ENOUGH * architecture.units
        self.way = next((way for way in ways if way.threads >= wanted), ways[-1])
        self.columns = sorted(
            {self._column(pixel, tap) for pixel in range(self.way.pixels) for tap in range(self.filter.dims[1])}
        )
        """Of the image under a thread's pixels, counted from the first."""

    def _way(self, lanes: int, pixels: int) -> _Way:
        n, height, width, channels = self.space.dims
        across = ceil(width / pixels)
        return _Way(lanes, pixels, across, n * height * across * (channels // lanes))

    def _reads(self, lanes: int) -> bool:
        """Whether adjacent channels are read at once, or lie apart, where it does not matter how many."""
        return all(
            operand.strides[-1] != 1
            or access_size(operand, operand.strides, lanes) == min(lanes, 16 // operand.dtype.bytes)
            for operand in (self.image, self.filter)
        )

    def _column(self, pixel: int, tap: int) -> int:
        return pixel * self.found.strides[_COLUMN] + tap * self.found.dilations[_COLUMN]

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        self.b, self.f = b, Functions(b, 32)
        number = b.add(b.mul(b.block(), _THREADS), b.thread())
        if self.way.threads % _THREADS == 0:
            self._compute(number)
            return
        with b.when(b.less(number, self.way.threads)):
            self._compute(number)

    def _compute(self, number: Value) -> None:
        b, way, found = self.b, self.way, self.found
        n, height, width, channels = self.space.dims
        image, y, x, channel = b.coordinates(number, (n, height, way.across, channels // way.lanes))
        x, channel = b.mul(x, way.pixels), b.mul(channel, way.lanes)
        top = b.sub(b.mul(y, found.strides[_ROW]), found.padding[_ROW])
        left = b.sub(b.mul(x, found.strides[_COLUMN]), found.padding[_COLUMN])
        base = b.add(b.mul(image, self.image.strides[0]), b.mul(channel, self.image.strides[3]))
        across = [self._inside(b.add(left, column), _COLUMN, (way.across * way.pixels - 1)) for column in self.columns]
        sums = [self.f.number(0)] * (way.lanes * way.pixels)
        rows, taps, _ = self.filter.dims

        def one(row: Value, sums: list[Value]) -> list[Value]:
            down, down_is = self._inside(b.add(top, b.mul(row, found.dilations[_ROW])), _ROW, height - 1)
            line = b.add(base, b.mul(down, self.image.strides[1]))
            pixels = [
                self._pixel(line, place, [check for check in (down_is, is_there) if check])
                for place, is_there in across
            ]
            factors = b.add(b.mul(row, self.filter.strides[0]), b.mul(channel, self.filter.strides[2]))
            return self._multiplied(dict(zip(self.columns, pixels, strict=True)), factors, sums)

        if rows * taps <= _UNROLLED_TAPS and width % way.pixels == 0:
            for row in range(rows):
                sums = one(row, sums)
        else:
            sums = b.loop(0, rows, 1, sums, one)
        evaluator = Evaluator(b, self.body, self.space, way.lanes)
        for pixel in range(way.pixels):
            own, at = sums[pixel * way.lanes : (pixel + 1) * way.lanes], b.add(x, pixel)
            if width % way.pixels == 0:
                evaluator.run([own], [image, y, at, channel])
                continue
            with b.when(b.less(at, width)):
                evaluator.run([own], [image, y, at, channel])

    def _inside(self, place: Value, axis: int, last: int) -> tuple[Value, Value | None]:
        """A row or column of the image, another one where it has none, and whether it has; nothing where all are known to be there.

        Args:
            place: that is wanted.
            axis: of those of the image.
            last: the greatest position of a result that is computed.
        """
        b, found, size = self.b, self.found, self.found.image.dims[2 + axis]
        reach = last * found.strides[axis] + (self.filter.dims[axis] - 1) * found.dilations[axis] - found.padding[axis]
        if found.padding[axis] <= 0 and reach < size:
            return place, None
        is_there = b.less(place, size)  # what is negative is large
        return b.select(is_there, b.at(place), b.at(0)), is_there

    def _pixel(self, line: Value, column: Value, checks: Sequence[Value]) -> Lanes:
        """A thread's channels of a pixel of the image, zeros where there is none."""
        b = self.b
        values = self._loaded(self.found.image, self.image, b.add(line, b.mul(column, self.image.strides[2])))
        if not checks:
            return values
        is_there = checks[0] if len(checks) == 1 else b.same("arith.andi", *checks)
        return [b.select(is_there, value, self.f.number(0)) for value in values]

    def _multiplied(self, pixels: dict[int, Lanes], factors: Value, sums: Sequence[Value]) -> list[Value]:
        """The sums with those of a row of the filter."""
        made, lanes = list(sums), self.way.lanes
        for tap in range(self.filter.dims[1]):
            factor = self._loaded(self.found.filter, self.filter, self.b.add(factors, tap * self.filter.strides[1]))
            for pixel in range(self.way.pixels):
                values = pixels[self._column(pixel, tap)]
                for lane in range(lanes):
                    place = pixel * lanes + lane
                    made[place] = self.f.fma(values[lane], factor[lane], made[place])
        return made

    def _loaded(self, tensor: Tensor, operand: Operand, offset: Value) -> Lanes:
        """A thread's channels of a tensor, from an element on."""
        b, step = self.b, operand.strides[-1]
        size = max(access_size(operand, operand.strides, self.way.lanes), 1)
        kind, base = memory_type(b, operand.dtype), b.arguments[self.places[id(tensor)]]
        raw = [
            value
            for lane in range(0, self.way.lanes, size)
            for value in b.load(base, b.add(offset, lane * step), kind, size)
        ]
        return [from_memory(b, value, operand.dtype) for value in raw]
