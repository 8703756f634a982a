"""Attention on NVIDIA's matrix units, for what cuDNN has none: masks of any number of keys and any strides, as windows of images have them.

A wave computes 16 queries of a head, 64 keys at a time, under a running softmax. Nothing goes through shared memory: operands are read as
matrix units want them. In which order features are multiplied is free as long as queries and keys have the same, so a lane reads adjacent
ones. The weights of keys are where the next product wants them. For it a lane reads adjacent features of four values, and mixes those of
two keys into words; so it has adjacent features of the result, too.
"""

import math
from collections.abc import Sequence
from math import ceil

from hipdnn_mlir_runtime.dtypes import BOOL

from ...ops.attention_graph import Attention, access_of, units_attention
from ...ops.graph import Graph, Tensor
from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, store
from ..core.kernel import Operand
from ..core.space import is_wide
from .pairs import Pairs
from .running_softmax import LOWEST

_WAVE, _LANES = 32, 4
"""Threads of a wave, lanes that share a row."""
_MOST_WAVES = 4
_QUERIES, _TILE = 16, 8
"""Of one multiplication: queries, and keys or features of the result."""
_KEYS = 64
"""At a time: their scores are in registers."""
_LOG2_E = 1.4426950408889634


def units_attention_launch(graph: Graph, architecture: Architecture) -> Launch:
    """The launch of a graph of `ops.attention_graph`; raises Refusal."""
    if architecture.vendor != "nvidia":
        raise Refusal("architecture", f"no code for attention on {architecture.name}")
    found = units_attention(graph)
    pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
    tasks = found.query.dims[0] * found.query.dims[1] * ceil(found.query.dims[2] / _QUERIES)
    waves = _MOST_WAVES
    while waves > 1 and (tasks % waves or tasks < waves * architecture.units):
        waves //= 2
    writer = _Writer(found, {id(tensor): place for place, tensor in enumerate(pointers)}, waves)
    operands = [Operand("in", t.dtype, t.dims, t.strides) for t in pointers]
    return Launch(writer.write, tasks // waves, waves * _WAVE, 0, is_wide(operands, tasks * _WAVE))


class _Writer:
    """Writes the kernel; `places` are numbers of arguments by tensor."""

    def __init__(self, found: Attention, places: dict[int, int], waves: int) -> None:
        self.found, self.places, self.waves = found, places, waves
        self.queries, self.keys = found.query.dims[2], found.key.dims[2]
        self.wide = found.value.dims[3] // _TILE
        """Adjacent features of a lane, and tiles of the result."""

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        self.b, heads, tiles = b, self.found.query.dims[1], ceil(self.queries / _QUERIES)
        self.pairs = Pairs(b, self.found.query.dtype)
        lane = b.mod(b.thread(), _WAVE)
        self.row, self.quad = b.div(lane, _LANES), b.mod(lane, _LANES)
        task = b.add(b.mul(b.block(), self.waves), b.div(b.thread(), _WAVE))
        head = b.div(task, tiles)
        self.batch, self.head = b.div(head, heads), b.mod(head, heads)
        self.own = [b.add(b.mul(b.mod(task, tiles), _QUERIES), self.row, more) for more in (0, _TILE)]
        read = [b.least(query, self.queries - 1) for query in self.own]
        query = self.found.query
        self.rows = [[self.pairs.of_word(word) for word in self._features(query, at)] for at in read]
        mask = self.found.mask
        self.masked = [] if mask is None else [self._row_of(mask, at) for at in read]
        zero, lowest = b.constant(0, b.f32), b.constant(LOWEST, b.f32)
        state = [lowest, lowest, zero, zero, *([zero] * 4 * self.wide)]
        whole = self.keys // _KEYS * _KEYS
        if whole > _KEYS:
            state = b.loop(0, whole, _KEYS, state, lambda start, carried: self._attend(start, _KEYS, carried))
        elif whole:
            state = self._attend(0, _KEYS, state)
        if self.keys > whole:
            state = self._attend(whole, self.keys - whole, state)
        self._finish(state)

    # -- memory ---------------------------------------------------------------------------------------------------

    def _row_of(self, tensor: Tensor, row: Value, unit: int = 1) -> Value:
        """Where a row of this wave's head begins, which several heads of queries may share; in so many elements."""
        b = self.b
        head = b.div(self.head, self.found.query.dims[1] // tensor.dims[1])
        steps = zip(tensor.dims[:3], tensor.strides[:3], strict=True)
        return b.dot([self.batch, head, row], [step // unit if size > 1 else 0 for size, step in steps])

    def _words(self, tensor: Tensor, start: Value, count: int) -> list[Value]:
        """Adjacent words; `start` is one's number."""
        b, size, words = self.b, access_of(tensor, 2 * count) // 2, []
        base = b.arguments[self.places[id(tensor)]]
        for at in range(0, count, size):
            words += b.load(base, b.add(start, at), b.i32, size)
        return words

    def _features(self, tensor: Tensor, row: Value) -> list[Value]:
        """This lane's words of a query or key: adjacent ones of every 32 features, or of every 16."""
        b, words = self.b, tensor.dims[3] // 2
        count = 4 if words % (4 * _LANES) == 0 else 2
        start = b.add(self._row_of(tensor, row, 2), b.mul(self.quad, count))
        return [w for at in range(0, words, count * _LANES) for w in self._words(tensor, b.add(start, at), count)]

    # -- attention ------------------------------------------------------------------------------------------------

    def _attend(self, start: Value, count: int, state: Sequence[Value]) -> list[Value]:
        """With `count` more keys from `start` on; the state is a greatest score and a sum for each of two rows, then the result's tiles."""
        b = self.b
        scores = [self._scores(b.add(start, at), min(count - at, _TILE)) for at in range(0, count, _TILE)]
        most = [self._greatest([state[r], *(x for tile in scores for x in tile[2 * r : 2 * r + 2])]) for r in range(2)]
        factors = [self._power(state[r], most[r]) for r in range(2)]
        weights = [[self._power(x, most[at // 2]) for at, x in enumerate(tile)] for tile in scores]
        totals = []
        for r in range(2):
            total = b.same("arith.mulf", state[2 + r], factors[r])
            for tile in weights:
                total = b.same("arith.addf", total, b.same("arith.addf", tile[2 * r], tile[2 * r + 1]))
            totals.append(total)
        result = [b.same("arith.mulf", x, factors[at % 4 // 2]) for at, x in enumerate(state[4:])]
        for at in range(0, count, _QUERIES):
            result = self._with_values(b.add(start, at), count - at, weights[at // _TILE :][:2], result)
        return [*most, *totals, *result]

    def _scores(self, start: Value, count: int) -> list[Value]:
        """Of this lane's two queries with two keys each, as exponents of 2."""
        b, key = self.b, self.found.key
        at = b.add(start, self.row)
        at = b.least(at, self.keys - 1) if count < _TILE else at
        sums = self.pairs.multiplied(self.rows, self._features(key, at), [b.constant(0, b.f32)] * 4)
        factor, hidden = b.constant(self.found.scale * _LOG2_E, b.f32), b.constant(-math.inf, b.f32)
        made = []
        for place, x in enumerate(sums):
            column = b.add(start, b.mul(self.quad, 2), place % 2)
            score, seen = self._masked(b.same("arith.mulf", x, factor), place // 2, column, is_cut=count < _TILE)
            for condition in seen:
                score = b.select(condition, score, hidden)
            made.append(score)
        return made

    def _masked(self, score: Value, row: int, column: Value, *, is_cut: bool) -> tuple[Value, list[Value]]:
        """The score with what the mask adds, and the conditions under which it counts."""
        b, mask = self.b, self.found.mask
        seen = [b.less(column, self.keys)] if is_cut else []
        if self.found.is_causal:
            seen.append(b.compare("ule", b.at(column), self.own[row]))
        if mask is None:
            return score, seen
        step = mask.strides[3] if mask.dims[3] > 1 else 0
        at = b.mul(b.least(column, self.keys - 1) if is_cut else column, step)
        (value,) = load(b, b.arguments[self.places[id(mask)]], b.add(self.masked[row], at), mask.dtype)
        if mask.dtype is BOOL:
            return score, [*seen, value]
        return b.intrinsic("fma", value, b.constant(_LOG2_E, b.f32), score), seen

    def _with_values(
        self, start: Value, count: int, weights: Sequence[Sequence[Value]], result: Sequence[Value]
    ) -> list[Value]:
        """The result with 16 more values, of which `count` are there, under their weights."""
        b, value, made = self.b, self.found.value, list(result)
        zero = b.constant(0, b.f32)
        tiles = [*weights, [zero] * 4][:2]
        columns = [[self.pairs.joined(*tile[2 * r : 2 * r + 2]) for tile in tiles] for r in range(2)]
        words = []
        for more in (0, 1, _TILE, _TILE + 1):
            key = b.add(start, b.mul(self.quad, 2), more)
            is_cut = count < _QUERIES
            row = self._row_of(value, b.least(key, self.keys - 1) if is_cut else key, 2)
            found = self._words(value, b.add(row, b.mul(self.row, self.wide // 2)), self.wide // 2)
            if is_cut:  # zero times a number that is none is none
                found = [b.select(b.less(key, self.keys), word, b.constant(0, b.i32)) for word in found]
            words.append(found)
        for number, (one, two, three, four) in enumerate(zip(*words, strict=True)):
            for part, row in enumerate(zip(self.pairs.mixed(one, two), self.pairs.mixed(three, four), strict=True)):
                place = 4 * (2 * number + part)
                made[place : place + 4] = self.pairs.multiplied(columns, row, made[place : place + 4])
        return made

    def _greatest(self, scores: Sequence[Value]) -> Value:
        """Of some scores of all lanes that share the row."""
        b, most = self.b, scores[0]
        for score in scores[1:]:
            most = self._greater(most, score)
        for offset in (1, 2):
            most = self._greater(most, b.shuffle(most, offset, _WAVE))
        return most

    def _greater(self, x: Value, y: Value) -> Value:
        return self.b.select(self.b.compare("ogt", x, y), x, y)

    def _power(self, score: Value, most: Value) -> Value:
        return self.b.approximate("exp2", self.b.same("arith.subf", score, most))

    # -- results --------------------------------------------------------------------------------------------------

    def _finish(self, state: Sequence[Value]) -> None:
        """Divide by the sums, and write; a query that attends no key gets 0."""
        b, output = self.b, self.found.output
        size = access_of(output, 2 * self.wide)
        for r in range(2):
            total, zero = state[2 + r], b.constant(0, b.f32)
            for offset in (1, 2):
                total = b.same("arith.addf", total, b.shuffle(total, offset, _WAVE))
            factor = b.select(b.compare("oeq", total, zero), zero, b.approximate("reciprocal", total))
            tiles = [state[4 + at : 8 + at] for at in range(0, 4 * self.wide, 4)]
            values = [b.same("arith.mulf", tile[2 * r + part], factor) for part in range(2) for tile in tiles]
            with b.when(b.less(self.own[r], self.queries)):
                start = b.add(self._row_of(output, self.own[r]), b.mul(self.quad, 2 * self.wide))
                for at in range(0, len(values), size):
                    base = b.arguments[self.places[id(output)]]
                    store(b, base, b.add(start, at), values[at : at + size], output.dtype)
