"""`suppress_boxes`: of boxes that overlap, those of the greatest scores, a block for each batch and class.

A round looks for the box of the greatest score that is left. On the way each thread marks those of its boxes that overlap the one found
last, so a round goes once through all boxes, and there are as many rounds as boxes that are chosen, and one more.
"""

from collections.abc import Sequence
from typing import Any

from ..core.arch import Architecture
from ..core.assemble import EMPTY, Launch
from ..core.builder import KernelBuilder, Value
from ..core.kernel import Operand
from ..core.space import is_wide
from .best import Element, best_of_block, best_of_wave

_FEWEST, _MOST = 256, 1024
"""Threads of a block."""
_BOXES = 8
"""Of a thread in a round, where the block is not the largest."""
_NONE = -1
"""The position of no box."""


def suppress_boxes_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """The only launch."""
    batches, classes, boxes = operands[1].dims
    if not batches * classes:
        return EMPTY
    threads = _FEWEST
    while threads < _MOST and boxes > _BOXES * threads:
        threads *= 2
    writer = _Writer(operands, attributes["center"], threads, architecture.wave_size)
    shared_bytes = 16 * (threads // architecture.wave_size)
    wide = is_wide(operands, batches * classes * max(boxes, threads))
    return Launch(writer.write, batches * classes, threads, shared_bytes, wide)


class _Writer:
    def __init__(self, operands: Sequence[Operand], is_center: bool, threads: int, wave: int) -> None:
        self.boxes, self.scores, _, _, self.chosen, self.counts, self.marks = operands
        self.is_center, self.threads, self.wave = is_center, threads, wave
        self.count, self.most = self.scores.dims[2], self.chosen.dims[2]

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b = b
        self.part = b.thread()
        self.batch, of_class = b.coordinates(b.block(), self.scores.dims[:2])
        place = [self.batch, of_class]
        self.score_start, self.chosen_start, self.mark_start = (
            b.dot(place, operand.strides[:2]) for operand in (self.scores, self.chosen, self.marks)
        )
        self.limit, self.least = (b.load(b.arguments[number], 0, b.f32)[0] for number in (2, 3))
        unmarked = b.constant(0, b.i32)
        b.loop(self.part, self.count, self.threads, [], lambda at, _: self._mark(at, unmarked))
        none = [b.constant(0, b.f32)] * 4
        found = [*none, b.constant(_NONE, b.i32), b.constant(0, b.i32)]
        found = b.loop(0, self.most, 1, found, self._round)
        with b.when(self._is_first()):
            b.store(b.arguments[5], b.dot(place, self.counts.strides), [b.op("arith.extui", [found[5]], b.i64)])

    def _round(self, number: Value, carried: list[Value]) -> list[Value]:
        """The box found last, its position, and how many there are -> the same with the next one, if there is any."""
        b = self.b
        *last, position, found = carried
        is_open = b.same("arith.ori", b.compare("eq", b.at(number), b.at(0)), self._is_some(position))

        def look() -> list[Value]:
            _, best = self._next(last, position)
            is_some = self._is_some(best)
            start = b.select(is_some, self._position(best), b.at(0))
            return [*self._box(start), best, b.same("arith.addi", found, b.op("arith.extui", [is_some], b.i32))]

        made = b.choose(is_open, look, lambda: [*last, b.constant(_NONE, b.i32), found], [v.type for v in carried])
        with b.when(self._is_first()):
            shown = b.select(self._is_some(made[4]), made[4], b.constant(0, b.i32))
            at = b.add(self.chosen_start, b.mul(number, self.chosen.strides[2]))
            b.store(b.arguments[4], at, [b.op("arith.extui", [shown], b.i64)])
        return made

    def _next(self, last: list[Value], position: Value) -> Element:
        """The best box that is left, for all threads; those that overlap the last one are marked."""
        b = self.b

        def body(at: Value, best: list[Value]) -> list[Value]:
            score = b.load(b.arguments[1], b.add(self.score_start, b.mul(at, self.scores.strides[2])), b.f32)[0]
            mark = b.load(b.arguments[6], b.add(self.mark_start, b.mul(at, self.marks.strides[2])), b.i32)[0]
            unmarked = b.compare("eq", mark, b.constant(0, b.i32))
            is_left = b.same("arith.andi", b.compare("ogt", score, self.least), unmarked)

            def compared() -> list[Value]:
                number = self._number(at)
                goes = b.same("arith.ori", self._overlap(last, self._box(at)), b.compare("eq", number, position))
                goes = b.same("arith.andi", goes, self._is_some(position))
                with b.when(goes):
                    self._mark(at, b.constant(1, b.i32))
                better = self._better(best, [score, number])
                return [b.select(goes, old, new) for old, new in zip(best, better, strict=True)]

            return b.choose(is_left, compared, lambda: best, [value.type for value in best])

        nothing = [b.constant(0, b.f32), b.constant(_NONE, b.i32)]
        best = b.loop(self.part, self.count, self.threads, nothing, body)
        best = best_of_wave(b, best, self.threads, self.wave, self._better)
        return best_of_block(b, self.part, best, self.wave, self.threads // self.wave, self._better)

    def _better(self, x: Element, y: Element) -> Element:
        """The one of the greater score; of equal ones the earlier one."""
        b = self.b
        equal = b.same("arith.andi", b.compare("oeq", y[0], x[0]), b.compare("slt", y[1], x[1]))
        first = b.same("arith.ori", b.compare("ogt", y[0], x[0]), equal)
        is_none = b.compare("eq", x[1], b.constant(_NONE, b.i32))
        takes_y = b.same("arith.andi", b.same("arith.ori", is_none, first), self._is_some(y[1]))
        return [b.select(takes_y, new, old) for new, old in zip(y, x, strict=True)]

    def _box(self, at: Value) -> list[Value]:
        """The least and the greatest corner of a box."""
        b = self.b
        start = b.add(b.mul(self.batch, self.boxes.strides[0]), b.mul(at, self.boxes.strides[1]))
        x = [b.load(b.arguments[0], b.add(start, d * self.boxes.strides[2]), b.f32)[0] for d in range(4)]
        if not self.is_center:
            return [
                *(self._least(x[d], x[d + 2]) for d in range(2)),
                *(self._greatest(x[d], x[d + 2]) for d in range(2)),
            ]
        half = [b.same("arith.mulf", x[d + 2], b.constant(0.5, b.f32)) for d in range(2)]
        return [b.same(op, x[d], half[d]) for op in ("arith.subf", "arith.addf") for d in range(2)]

    def _overlap(self, one: list[Value], other: list[Value]) -> Value:
        """Whether what both cover is more than the limit of what either covers; boxes without an area overlap nothing."""
        b = self.b
        sides = [
            b.same("arith.subf", self._least(one[d + 2], other[d + 2]), self._greatest(one[d], other[d]))
            for d in range(2)
        ]
        both, *areas = b.same("arith.mulf", *sides), self._area(one), self._area(other)
        either = b.same("arith.subf", b.same("arith.addf", *areas), both)
        share = b.same("arith.divf", both, either)
        met = b.compare("ogt", share, self.limit)
        for positive in (*sides, *areas, either):
            met = b.same("arith.andi", met, b.compare("ogt", positive, b.constant(0, b.f32)))
        return met

    def _area(self, box: list[Value]) -> Value:
        b = self.b
        return b.same("arith.mulf", *(b.same("arith.subf", box[d + 2], box[d]) for d in range(2)))

    def _least(self, x: Value, y: Value) -> Value:
        return self.b.select(self.b.compare("olt", y, x), y, x)

    def _greatest(self, x: Value, y: Value) -> Value:
        return self.b.select(self.b.compare("olt", x, y), y, x)

    def _mark(self, at: Value, mark: Value) -> list[Value]:
        b = self.b
        b.store(b.arguments[6], b.add(self.mark_start, b.mul(at, self.marks.strides[2])), [mark])
        return []

    def _is_first(self) -> Value:
        return self.b.compare("eq", self.b.at(self.part), self.b.at(0))

    def _is_some(self, position: Value) -> Value:
        return self.b.compare("ne", position, self.b.constant(_NONE, self.b.i32))

    def _number(self, at: Value) -> Value:
        """A position of any width as i32."""
        return at if at.type == self.b.i32 else self.b.op("arith.trunci", [at], self.b.i32)

    def _position(self, number: Value) -> Value:
        """An i32 as a position."""
        kind = self.b.position_type
        return number if kind == self.b.i32 else self.b.op("arith.extui", [number], kind)
