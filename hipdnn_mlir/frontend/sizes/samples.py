"""The sizes at which a model with dynamic dimensions is compiled, to see how its program depends on them (adr/0008)."""

import math
import operator
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import onnx

from ...dynamic.input_sizes import InputSizes
from ..subgraphs import all_nodes
from .windows import WINDOWED

LOW, HIGH = 3, 4
"""Samples for one symbol, and for several or for quotients of one: one more than the unknowns of the widest form that is tried."""
_FACTORS = (1, 2, 3, 4)
_HELD_OUT_FACTOR = 5
_ABOUT = (59, 223, 29, 13)
"""How large sizes are about: a model may limit them from above (a table of positions)."""
MAX_BEYOND = 1500
"""Samples are a few times as large at most: what two of them make is still small."""
_IMAGES = (700, 2000)
_HALVINGS = 6
_PARTS = 4
CACHED = frozenset({"GroupQueryAttention"})
"""Operators with buffers that hold what is valid or more."""


@dataclass(frozen=True)
class Samples:
    """Points at which a model is compiled, and one more at which its sizes have to be what the others say."""

    points: list[tuple[int, ...]]
    held_out: tuple[int, ...]


def samples(
    count: int, *, has_windows: bool, has_caches: bool = False, beyond: int = 0, unit: int = 1
) -> Iterator[Samples]:
    """Sets of sample points, to be tried in order until the model accepts one.

    A point has one value per symbol: different primes, all times 1, 2, 3 or 4. So sizes computed from different symbols differ, and a
    quotient rounded up differs from one rounded down. Windows make small parts of sizes, so their first set has large ones.

    Args:
        count: number of symbols.
        has_windows: whether the model has convolutions or pools, which make sizes small.
        has_caches: whether the model has buffers that hold what is valid or more: which of two sizes is the larger differs between points.
        beyond: gives one set alone, of sizes larger than this and further apart, so that their quotients differ, too.
        unit: what sizes are multiplied by afterwards at most: large ones become no larger by it.
    """
    factors = _FACTORS[: LOW if count == 1 else HIGH]
    if beyond:
        yield _beyond(-(-beyond // unit), _FACTORS[:HIGH], count, is_falling=has_caches)
        return
    if has_windows:
        columns = [_varied(len(factors) + 1, seed, unit) for seed in range(count)]
        *points, held_out = zip(*columns, strict=True)
        yield Samples(points, held_out)
    for about in _ABOUT:
        points = [
            _point(about // factor, factor, count, is_falling=has_caches and place % 2 == 1)
            for place, factor in enumerate(factors)
        ]
        yield Samples(points, _point(about // _HELD_OUT_FACTOR, _HELD_OUT_FACTOR, count))


def samples_for(proto: onnx.ModelProto, sizes: InputSizes, beyond: int = 0) -> Iterator[Samples]:
    """Sets of sample points for a model's symbols, to be tried in order; with `beyond` one of sizes that are larger."""
    has_windows = any(node.op_type in WINDOWED for node in all_nodes(proto.graph))
    has_caches = any(node.op_type in CACHED for node in proto.graph.node)
    count, units = len(sizes.table.symbols), sizes.units

    def multiplied(point: Sequence[int]) -> tuple[int, ...]:
        return tuple(map(operator.mul, units, point))

    unit = max(units, default=1)
    for chosen in samples(count, has_windows=has_windows, has_caches=has_caches, beyond=beyond, unit=unit):
        yield Samples([*map(multiplied, chosen.points)], multiplied(chosen.held_out))


def _beyond(number: int, factors: Sequence[int], count: int, *, is_falling: bool) -> Samples:
    """Sizes larger than a number; at one point they are multiples of it, of which nothing is left over."""
    *kept, last = (
        _point(
            number * (_PARTS + place + 1) // _PARTS // factor + 1,
            factor,
            count,
            is_falling=is_falling and place % 2 == 1,
        )
        for place, factor in enumerate((*factors[:-1], _HELD_OUT_FACTOR))
    )
    used: set[int] = set()
    multiples = tuple(_prime(2, used) * number for _ in range(count))
    return Samples([*kept, multiples], last)


def _varied(count: int, seed: int, unit: int) -> list[int]:
    """Sizes that strides of 2, one after the other, halve evenly at some points and unevenly at others."""
    rng = random.Random(seed)  # noqa: S311 - the same ones each time
    low, high = (limit // unit for limit in _IMAGES)
    halvings = max(_HALVINGS - unit.bit_length() + 1, 2)
    while True:
        sizes = rng.sample(range(low, high), count)
        bits = [{(size - less) >> level & 1 for size in sizes[:-1]} for level in range(halvings) for less in (0, 1)]
        if all(len(seen) == 2 for seen in bits):
            return sizes


def _point(start: int, factor: int, count: int, *, is_falling: bool = False) -> tuple[int, ...]:
    used: set[int] = set()
    # Apart from each other, so that what strides make of two sizes differs too.
    sizes = [_prime(start + start * index // 3, used) * factor for index in range(count)]
    return tuple(reversed(sizes) if is_falling else sizes)


def _prime(start: int, used: set[int]) -> int:
    """The first prime from a number on that is not used, which is then."""
    number = max(start, 2)
    while number in used or any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    used.add(number)
    return number
