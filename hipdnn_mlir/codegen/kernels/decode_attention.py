"""`decode_attention`: the step of one new token of attention over a cache: rotation, new rows of the cache, attention on what is valid.

A block computes one head of one row of the batch, or several that share keys. Groups of adjacent lanes read one key and one value at a
time, a few ahead, and each keeps a running maximum, sum and result of its own; these are joined at the end. So the number of keys is read
when the kernel runs, and nothing is stored for each of them. The row that is new is computed by every block that needs it, and written by
one. A cache may lie in pages that a table names; or a bias is added to the scores.

Where heads are few and caches long, a cluster of blocks shares the keys of a head, and the first block joins what all have found.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I32

from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, rounded, store
from ..core.kernel import Operand
from ..core.space import ACCESS_BYTES, is_wide
from .places import Pages, nearest_place
from .running_softmax import LOWEST, RunningSoftmax, Sums, flat

_THREADS = 256
_AHEAD, _AHEAD_TOGETHER = 4, 2
"""Keys that a group of lanes reads at once, for one head and for several: two blocks have room on a multiprocessor then."""
_LEAST_ROWS = 256
"""Of a cache, for each of several blocks that share its keys: to join what they have found takes as long as these."""
_MOST_VALUES = 32
"""Elements of results that a thread keeps; and no block has more heads than groups of lanes, for each of these writes one."""
_LOG2_E = 1.4426950408889634


_Key = tuple[Value, list[Value], list[Value]]
"""Its place, and elements of it and of its value."""
_Scored = tuple[Value, Value, list[Value], list[Value]]
"""Whether it is visible, and the same."""


@dataclass(frozen=True)
class _Operands:
    """The tensors of the kernel; cos and sin may be missing, and so may the table of pages and the bias."""

    q: Operand
    k: Operand
    v: Operand
    cos: Operand | None
    sin: Operand | None
    caches: tuple[Operand, Operand]
    start: Operand
    keys: Operand
    y: Operand
    updated: tuple[Operand, Operand]
    table: Operand | None = None
    bias: Operand | None = None


def decode_attention_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`decode_attention`; raises Refusal."""
    q, k, v, keys, values, start, count, *angles, y, new_keys, new_values = operands
    last = angles.pop() if len(angles) % 2 else None
    table, bias = (last, None) if last is None or last.dtype is I32 else (None, last)
    cos, sin = angles or (None, None)
    named = _Operands(q, k, v, cos, sin, (keys, values), start, count, y, (new_keys, new_values), table, bias)
    if q.dtype not in (F32, F16, BF16):
        raise Refusal("dtype", f"attention of {q.dtype}")
    width = q.dims[3]
    lanes = ACCESS_BYTES // q.dtype.bytes
    while ceil(width / lanes) > architecture.wave_size:
        lanes *= 2
    half = cos.dims[3] if cos is not None else 0
    if width % lanes or half % lanes:
        raise Refusal("shape", f"heads of {width} of which {2 * half} are rotated, expected multiples of {lanes}")
    group = 1 << (width // lanes - 1).bit_length()
    together = _together(q, keys, min(_MOST_VALUES // lanes, _THREADS // group), architecture)
    blocks = q.dims[0] * q.dims[1] // together
    parts = _parts(blocks, keys.dims[2] * (table.dims[1] if table else 1), architecture)
    writer = _Writer(named, attributes, lanes, group, together, parts, architecture.wave_size)
    read_early = [keys, values, *([table] if table else [])]
    writer.early = architecture.waits_in_kernels and all(operand.is_settled for operand in read_early)
    lines = (_THREADS // architecture.wave_size + (parts if parts > 1 else 0)) * together
    wide = is_wide(operands, blocks * parts * _THREADS)
    return Launch(writer.write, blocks * parts, _THREADS, 4 * lines * writer.line, wide, cluster=parts)


def _parts(blocks: int, rows: int, architecture: Architecture) -> int:
    """How many blocks share the keys of a head: a power of two."""
    found = 1
    while found < architecture.cluster and 2 * found * blocks <= architecture.units and rows >= 2 * found * _LEAST_ROWS:
        found *= 2
    return found


def _together(q: Operand, keys: Operand, most: int, architecture: Architecture) -> int:
    """Heads of one block, up to `most`: those that share keys, where enough blocks are left."""
    found, shared_by = 1, q.dims[1] // keys.dims[1]
    for count in range(2, min(shared_by, most) + 1):
        if shared_by % count == 0 and q.dims[0] * q.dims[1] // count >= architecture.units:
            found = count
    return found


class _Writer:
    """Writes the kernel.

    Attributes:
        lanes: elements of a thread.
        group: threads of one key.
        together: heads of a block.
        parts: blocks that share the keys of the same heads.
        early: the first keys are loaded while the kernel in front still runs. What this one writes is none of them.
        line: floats that are known of a head: its greatest score, the sum of weights, and of weighted values.
    """

    def __init__(
        self, operands: _Operands, attributes: Any, lanes: int, group: int, together: int, parts: int, wave: int
    ) -> None:
        self.o, self.lanes, self.group, self.together, self.wave = operands, lanes, group, together, wave
        self.parts, self.line = parts, group * lanes + 2
        self.scale, self.left = float(attributes["scale"]), int(attributes["left"])
        pages = operands.table.dims[1] if operands.table else 1
        self.width, self.rows = operands.q.dims[3], operands.caches[0].dims[2] * pages
        self.waves, self.beside = _THREADS // wave, _THREADS // group
        self.ahead = _AHEAD if together == 1 else _AHEAD_TOGETHER
        self.at_once = self.ahead * self.beside
        """Keys that the block reads at once."""
        self.early = False

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        o = self.o
        self.b, self.softmax = b, RunningSoftmax(b)
        if self.parts > 1:
            b.cluster_arrive()  # `_join` waits, when all have long begun
        listed = [o.q, o.k, o.v, *o.caches, o.start, o.keys, o.cos, o.sin, o.table, o.bias, o.y, *o.updated]
        self.bases = {
            id(operand): b.arguments[place]
            for place, operand in enumerate(operand for operand in listed if operand is not None)
        }
        self.pages = Pages(o.caches[0], o.table, self.bases[id(o.table)]) if o.table else None
        thread = b.thread()
        self.part, self.slot = b.mod(thread, self.group), b.div(thread, self.group)
        self.thread = thread
        blocks, block = o.q.dims[1] // self.together, b.div(b.block(), self.parts)
        self.number = b.mod(b.block(), self.parts)
        self.batch, first = b.div(block, blocks), b.mul(b.mod(block, blocks), self.together)
        shared_by = o.q.dims[1] // o.caches[0].dims[1]
        kv = b.div(first, shared_by)
        self.own = b.less(self.part, self.width // self.lanes)
        self.first = b.mul(b.least(self.part, self.width // self.lanes - 1), self.lanes)
        # The first are read before it is known how many there are.
        ahead = [] if self._has_window() else self._some_keys(kv, b.mul(self.number, self.at_once))
        if self.early:
            b.await_kernel()
        start, count = self._number(o.start, self.rows - 1), self._number(o.keys, self.rows)
        self.heads = [b.add(first, number) for number in range(self.together)]
        queries = [self._query(head) for head in self.heads]
        new_key = [rounded(b, x, o.k.dtype) for x in self._head(o.k, kv, turned=True)]
        new_value = self._head(o.v, kv, turned=False)
        new = (self._sees_new(start, count), start, new_key, new_value)
        sums = self._attend(queries, kv, start, count, ahead, new)
        self._join(sums, first)
        writes = b.compare("eq", b.at(b.mod(first, shared_by)), b.at(0))
        with b.when(b.same("arith.andi", writes, self._is_first_part())):
            self._update(kv, start, (new_key, new_value))

    # -- operands -------------------------------------------------------------------------------------------------

    def _number(self, operand: Operand, most: int) -> Value:
        """A count of this row of the batch as a position, the nearest one from zero to `most`."""
        return nearest_place(self.b, operand, self.bases[id(operand)], self.batch, most)

    def _elements(self, operand: Operand, offset: Value) -> list[Value]:
        """This thread's elements from an offset on."""
        size = min(self.lanes, ACCESS_BYTES // operand.dtype.bytes) if operand.strides[-1] == 1 else 1
        while size > 1 and (
            operand.alignment % (size * operand.dtype.bytes) or any(s % size for s in operand.strides[:-1])
        ):
            size //= 2
        step = operand.strides[-1]
        return [
            value
            for at in range(0, self.lanes, size)
            for value in load(self.b, self.bases[id(operand)], self.b.add(offset, at * step), operand.dtype, size)
        ]

    def _query(self, head: Value) -> list[Value]:
        """This thread's elements of a query, scaled so that scores are exponents of 2."""
        b = self.b
        factor, zero = b.constant(self.scale * _LOG2_E, b.f32), b.constant(0, b.f32)
        return [
            b.select(self.own, b.same("arith.mulf", x, factor), zero) for x in self._head(self.o.q, head, turned=True)
        ]

    def _head(self, operand: Operand, head: Value, *, turned: bool) -> list[Value]:
        """This thread's elements of a head that is new, rotated where there are angles."""
        b = self.b
        start = b.add(b.mul(self.batch, operand.strides[0]), b.mul(head, operand.strides[1]))
        step = operand.strides[3]
        x = self._elements(operand, b.add(start, b.mul(self.first, step)))
        if not turned or self.o.cos is None or self.o.sin is None:
            return x
        half = self.o.cos.dims[3]
        is_real = b.less(self.first, half)
        is_turned = b.less(self.first, 2 * half)
        # Of the other half of the pair; where nothing is rotated, what is read is not used.
        below = b.select(b.less(self.first, half), b.at(0), b.at(half))
        angle = b.sub(self.first, below)
        angle = b.select(is_turned, b.at(angle), b.at(0))
        other = b.select(is_real, b.at(b.add(self.first, half)), b.at(angle))
        pair = self._elements(operand, b.add(start, b.mul(other, step)))
        cos, sin = (self._angles(table, angle) for table in (self.o.cos, self.o.sin))
        found = []
        for own, partner, c, s in zip(x, pair, cos, sin, strict=True):
            turn = b.same("arith.mulf", partner, s)
            turn = b.select(is_real, b.same("arith.negf", turn), turn)
            found.append(b.select(is_turned, b.intrinsic("fma", own, c, turn), own))
        return found

    def _angles(self, table: Operand, angle: Value) -> list[Value]:
        b = self.b
        row = b.mul(self.batch, table.strides[0] if table.dims[0] > 1 else 0)
        return self._elements(table, b.add(row, b.mul(angle, table.strides[3])))

    # -- the caches -----------------------------------------------------------------------------------------------

    def _update(self, kv: Value, start: Value, rows: tuple[list[Value], list[Value]]) -> None:
        """Write the new row; where the result does not lie in the cache's memory, the others as well."""
        b = self.b
        for cache, out, row in zip(self.o.caches, self.o.updated, rows, strict=True):
            source, target = self.bases[id(cache)], self.bases[id(out)]
            if self.pages:
                self._update_pages(cache, out, self.pages, (kv, start), row)
                continue
            place = b.add(b.mul(self.batch, out.strides[0]), b.mul(kv, out.strides[1]))
            from_ = b.add(b.mul(self.batch, cache.strides[0]), b.mul(kv, cache.strides[1]))
            is_other = b.compare("ne", b.integer_of(source), b.integer_of(target))
            with b.when(is_other):
                self._copy(cache, out, b.at(start), (from_, place))
            is_first = b.same("arith.andi", b.compare("eq", b.at(self.slot), b.at(0)), self.own)
            with b.when(is_first):
                self._store(out, b.add(place, b.mul(start, out.strides[2])), row)

    def _update_pages(
        self, cache: Operand, out: Operand, pages: Pages, place: tuple[Value, Value], row: list[Value]
    ) -> None:
        """The same of pages, of which the blocks of the first of the batch copy all; `place` is the head, and the row of the sequence."""
        b, (kv, start) = self.b, place
        is_other = b.compare("ne", b.integer_of(self.bases[id(cache)]), b.integer_of(self.bases[id(out)]))
        with b.when(b.same("arith.andi", is_other, b.compare("eq", b.at(self.batch), b.at(0)))):
            self._copy_pages(cache, out, pages, kv)
        is_first = b.same("arith.andi", b.compare("eq", b.at(self.slot), b.at(0)), self.own)
        with b.when(is_first):
            page, page_row = pages.find(b, self.batch, start)
            self._store(out, b.dot([page, kv, page_row], out.strides[:3]), row)

    def _copy_pages(self, cache: Operand, out: Operand, pages: Pages, kv: Value) -> None:
        """All rows of a head but those that are new."""
        b, start, base = self.b, self.o.start, self.bases[id(self.o.start)]

        def row(at: Value, _: list[Value]) -> list[Value]:
            page, page_row = b.div(at, pages.page_rows), b.mod(at, pages.page_rows)
            is_new = pages.has(b, (page, page_row), lambda of: nearest_place(b, start, base, of, self.rows - 1), 1)
            is_kept = b.same("arith.xori", is_new, b.constant(1, b.i1))
            with b.when(b.same("arith.andi", is_kept, self.own)):
                from_, to = (b.dot([page, kv, page_row], x.strides[:3]) for x in (cache, out))
                values = self._elements(cache, b.add(from_, b.mul(self.first, cache.strides[3])))
                self._store(out, to, values)
            return []

        b.loop(self.slot, cache.dims[0] * pages.page_rows, self.beside, [], row)

    def _copy(self, cache: Operand, out: Operand, start: Value, places: tuple[Value, Value]) -> None:
        """All rows but one of a head of the cache; `places` is where they begin."""
        b = self.b

        def row(at: Value, _: list[Value]) -> list[Value]:
            with b.when(b.same("arith.andi", b.compare("ne", at, start), self.own)):
                offset = b.add(places[0], b.mul(at, cache.strides[2]), b.mul(self.first, cache.strides[3]))
                values = self._elements(cache, offset)
                self._store(out, b.add(places[1], b.mul(at, out.strides[2])), values)
            return []

        b.loop(self.slot, self.rows, self.beside, [], row)

    def _store(self, out: Operand, row: Value, values: list[Value]) -> None:
        """This thread's elements of a row."""
        b = self.b
        size = min(self.lanes, ACCESS_BYTES // out.dtype.bytes) if out.strides[-1] == 1 else 1
        while size > 1 and (out.alignment % (size * out.dtype.bytes) or any(s % size for s in out.strides[:-1])):
            size //= 2
        for at in range(0, self.lanes, size):
            offset = b.add(row, b.mul(b.add(self.first, at), out.strides[3]))
            store(b, self.bases[id(out)], offset, values[at : at + size], out.dtype)

    # -- attention ------------------------------------------------------------------------------------------------

    def _some_keys(self, kv: Value, first: Value) -> list[_Key]:
        """This thread's elements of its keys and values from a place on."""
        b = self.b
        bases = [b.add(b.mul(self.batch, c.strides[0]), b.mul(kv, c.strides[1])) for c in self.o.caches]
        found = []
        for number in range(self.ahead):
            at = b.add(first, self.slot, number * self.beside)
            place = b.least(at, self.rows - 1)  # some row that exists
            where = self.pages.find(b, self.batch, place) if self.pages else place
            key, value = (
                self._elements(c, b.add(*self._row(c, base, kv, where), b.mul(self.first, c.strides[3])))
                for c, base in zip(self.o.caches, bases, strict=True)
            )
            found.append((at, key, value))
        return found

    def _row(self, cache: Operand, base: Value, kv: Value, where: Value) -> list[Value]:
        """Terms of the offset of a row: behind the base of the sequence, or of a page and its row."""
        b = self.b
        if self.pages is None:
            return [base, b.mul(where, cache.strides[2])]
        return [b.mul(at, step) for at, step in zip((where[0], kv, where[1]), cache.strides[:3], strict=True)]

    def _attend(
        self,
        queries: list[list[Value]],
        kv: Value,
        start: Value,
        count: Value,
        ahead: list[_Key],
        new: _Scored,
    ) -> list[Sums]:
        """Of the keys that are visible; each group of lanes takes some of the cache, at first those `ahead`, and one has the `new` one."""
        b, low = self.b, self._lowest(count)
        nothing = [self.softmax.nothing(self.lanes) for _ in queries]

        def added(keys: list[_Key], sums: list[Sums], more: Sequence[_Scored] = ()) -> list[Value]:
            shown = list(more)
            for at, key, value in keys:
                seen = b.same("arith.andi", b.less(at, count), b.compare("ne", b.at(at), b.at(start)))
                if low is not None:
                    seen = b.same("arith.andi", seen, b.compare("uge", b.at(at), b.at(low)))
                shown.append((seen, at, key, value))
            return flat([self._added(*part, shown) for part in zip(sums, queries, self.heads, strict=True)])

        def some(first: Value, carried: list[Value]) -> list[Value]:
            return added(self._some_keys(kv, first), self._unflat(carried))

        begin = added(ahead, nothing, [new])
        # Where the new key is the last one, the cache has one less.
        end = b.select(b.compare("eq", b.at(b.add(start, 1)), b.at(count)), b.at(start), b.at(count))
        step = self.at_once * self.parts
        first = b.add(b.mul(self.number, self.at_once), step if low is None else low)
        return self._unflat(b.loop(first, end, step, begin, some))

    def _added(self, sums: Sums, query: list[Value], head: Value, keys: Sequence[_Scored]) -> Sums:
        """With some more keys."""
        b, lowest = self.b, self.b.constant(LOWEST, self.b.f32)
        scores = [b.select(seen, self._biased(self._score(query, key), head, at), lowest) for seen, at, key, _ in keys]
        return self.softmax.added(sums, scores, [(seen, value) for seen, _, _, value in keys])

    def _biased(self, score: Value, head: Value, at: Value) -> Value:
        """A score with what is added to that of a key."""
        b, bias = self.b, self.o.bias
        if bias is None:
            return score
        places = [self.batch, head, b.at(0), b.least(at, self.rows - 1)]
        terms = [
            b.mul(place, step) for place, step, size in zip(places, bias.strides, bias.dims, strict=True) if size > 1
        ]
        (value,) = load(b, self.bases[id(bias)], b.add(b.at(0), *terms), bias.dtype)
        total = b.intrinsic("fma", value, b.constant(_LOG2_E, b.f32), score)
        lowest = b.constant(LOWEST, b.f32)
        return b.select(b.compare("ogt", total, lowest), total, lowest)

    def _sees_new(self, start: Value, count: Value) -> Value:
        """Whether the new key is visible; it is the first group's of the first block."""
        b, low = self.b, self._lowest(count)
        seen = b.same("arith.andi", b.compare("eq", b.at(self.slot), b.at(0)), b.less(start, count))
        seen = b.same("arith.andi", seen, self._is_first_part())
        return seen if low is None else b.same("arith.andi", seen, b.compare("uge", b.at(start), b.at(low)))

    def _is_first_part(self) -> Value:
        b = self.b
        return b.constant(1, b.i1) if self.parts == 1 else b.compare("eq", b.at(self.number), b.at(0))

    def _unflat(self, values: Sequence[Value]) -> list[Sums]:
        each = 2 + self.lanes
        parts = (values[at : at + each] for at in range(0, len(values), each))
        return [Sums(part[0], part[1], list(part[2:])) for part in parts]

    def _has_window(self) -> bool:
        return self.left > 0

    def _lowest(self, count: Value) -> Value:
        """The first key that is visible, or None where all are."""
        if not self._has_window():
            return None
        b = self.b
        return b.select(b.less(count, self.left), b.at(0), b.at(b.sub(count, self.left)))

    def _score(self, q: list[Value], key: list[Value]) -> Value:
        """Of one key, the same in all lanes of the group."""
        total = self.b.constant(0, self.b.f32)
        for x, y in zip(q, key, strict=True):
            total = self.b.intrinsic("fma", x, y, total)
        offset = self.group // 2
        while offset:
            total = self.b.same("arith.addf", total, self.b.shuffle(total, offset, self.wave))
            offset //= 2
        return total

    def _join(self, found: list[Sums], first: Value) -> None:
        """Join what all groups of lanes of the block have of the heads from `first` on, and write the result."""
        b = self.b
        base, wave = b.shared(0), b.div(self.thread, self.wave)
        for head, sums in enumerate(found):
            offset = self.group
            while offset < self.wave:
                (other,) = self._unflat([b.shuffle(value, offset, self.wave) for value in flat([sums])])
                sums = self.softmax.joined([sums, other])  # noqa: PLW2901
                offset *= 2
            start = b.mul(b.add(b.mul(wave, self.together), head), self.line)
            with b.when(b.less(b.mod(self.thread, self.wave), self.group)):
                self._keep(base, start, sums)
        b.barrier()
        of_block, lines = (
            self.waves * self.together * self.line,
            [w * self.together * self.line for w in range(self.waves)],
        )
        finishes = b.same("arith.andi", b.less(self.slot, self.together), self.own)

        def of_waves() -> Sums:
            return self.softmax.joined([self._kept(base, line) for line in lines])

        if self.parts == 1:
            with b.when(finishes):
                self._finish(first, of_waves())
            return
        each = self.together * self.line
        b.cluster_await()  # the first block has begun: others may write into its memory
        with b.when(finishes):
            place = b.add(b.mul(self.slot, self.line), b.mul(self.number, each), of_block)
            self._keep(b.shared_of(base, 0), place, of_waves())
        b.cluster_barrier()
        with b.when(b.same("arith.andi", finishes, self._is_first_part())):
            parts = [self._kept(base, of_block + part * each) for part in range(self.parts)]
            self._finish(first, self.softmax.joined(parts))

    def _keep(self, base: Value, start: Value, sums: Sums) -> None:
        """Write what is known of a head from `start` on."""
        b = self.b
        for at, value in enumerate(sums.result):
            b.store(base, b.add(start, 2, b.mul(self.part, self.lanes), at), [value])
        with b.when(b.compare("eq", b.at(self.part), b.at(0))):
            b.store(base, start, [sums.most])
            b.store(base, b.add(start, 1), [sums.total])

    def _kept(self, base: Value, start: int) -> Sums:
        """What `_keep` wrote of the head of this group of lanes, where that of the first head begins."""
        b = self.b
        at = b.add(b.mul(self.slot, self.line), start)
        place = b.add(b.mul(self.part, self.lanes), at, 2)
        result = [b.load(base, b.add(place, lane), b.f32)[0] for lane in range(self.lanes)]
        return Sums(b.load(base, at, b.f32)[0], b.load(base, b.add(at, 1), b.f32)[0], result)

    def _finish(self, first: Value, sums: Sums) -> None:
        """Write the result of one head, each group of lanes that of another."""
        b, y = self.b, self.o.y
        some = b.compare("ogt", sums.total, b.constant(0, b.f32))
        one = b.constant(1, b.f32)
        part = b.same("arith.divf", one, b.select(some, sums.total, one))
        row = b.add(b.mul(self.batch, y.strides[0]), b.mul(b.add(first, self.slot), y.strides[1]))
        self._store(y, row, [b.same("arith.mulf", value, part) for value in sums.result])
