"""Weighted sums of values under a softmax whose scores come one after the other: sums so far are scaled where a greater one comes."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.builder import KernelBuilder, Value

LOWEST = -1e30
"""Less than every score, and a number, so that differences of it are."""
Shown = tuple[Value, list[Value], list[Value]]
"""Whether a key is visible, elements of it, and of its value."""


@dataclass(frozen=True)
class Sums:
    """What a thread has: the greatest score, the sum of the weights, and elements of the weighted values."""

    most: Value
    total: Value
    result: list[Value]


def flat(sums: Sequence[Sums]) -> list[Value]:
    """All values."""
    return [value for s in sums for value in (s.most, s.total, *s.result)]


class RunningSoftmax:
    """Writes the arithmetic; scores are exponents of 2."""

    def __init__(self, b: KernelBuilder) -> None:
        self._b = b

    def nothing(self, lanes: int) -> Sums:
        """Of no keys."""
        zero = self._b.constant(0, self._b.f32)
        return Sums(self._b.constant(LOWEST, self._b.f32), zero, [zero] * lanes)

    def added(self, sums: Sums, scores: Sequence[Value], values: Sequence[tuple[Value, list[Value]]]) -> Sums:
        """With some more keys: the score of each, whether it is visible, and its value."""
        b, most = self._b, self._greatest([sums.most, *scores])
        moved = self._moved(sums, most)
        total, result = moved.total, moved.result
        for score, (seen, value) in zip(scores, values, strict=True):
            weight = b.select(seen, self._power(score, most), b.constant(0, b.f32))
            total = b.same("arith.addf", total, weight)
            # What is not visible may be any bytes, and zero times a NaN is one.
            result = [b.select(seen, b.intrinsic("fma", weight, x, r), r) for x, r in zip(value, result, strict=True)]
        return Sums(most, total, result)

    def joined(self, parts: Sequence[Sums]) -> Sums:
        """Of the keys of all parts."""
        b, most = self._b, self._greatest([part.most for part in parts])
        moved = [self._moved(part, most) for part in parts]
        total, result = moved[0].total, moved[0].result
        for part in moved[1:]:
            total = b.same("arith.addf", total, part.total)
            result = [b.same("arith.addf", x, y) for x, y in zip(result, part.result, strict=True)]
        return Sums(most, total, result)

    def _moved(self, sums: Sums, most: Value) -> Sums:
        """The same beside another greatest score."""
        b = self._b
        factor = self._power(sums.most, most)
        return Sums(
            most, b.same("arith.mulf", sums.total, factor), [b.same("arith.mulf", r, factor) for r in sums.result]
        )

    def _greatest(self, scores: Sequence[Value]) -> Value:
        b, most = self._b, scores[0]
        for score in scores[1:]:
            most = b.select(b.compare("ogt", most, score), most, score)
        return most

    def _power(self, score: Value, most: Value) -> Value:
        return self._b.approximate("exp2", self._b.same("arith.subf", score, most))
