"""The sizes at which a model with open sizes is compiled, to see how its program depends on them (adr/0008)."""

import math
from collections.abc import Iterator, Sequence

LOW, HIGH = 3, 4
"""Samples for one symbol, and for several: one more than the unknowns of the widest form that is tried."""
_FACTORS = (1, 2, 3, 4)
_ABOUT = (59, 223, 29, 13)
"""How large sizes are about: a model may limit them from above (a table of positions), or make a small part of them (an image's depths)."""


def samples(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Sets of sample points, to be tried in order until the model accepts one.

    A point has one value per symbol: different primes, all times 1, 2, 3 or 4. So sizes computed from different symbols differ, and a
    quotient rounded up differs from one rounded down.
    """
    factors = _FACTORS[: LOW if count == 1 else HIGH]
    for about in _ABOUT:
        yield [_point(about // factor, factor, count) for factor in factors]


def _point(start: int, factor: int, count: int) -> tuple[int, ...]:
    used: set[int] = set()
    return tuple(_prime(start, used) * factor for _ in range(count))


def _prime(start: int, used: set[int]) -> int:
    """The first prime from a number on that is not used, which is then."""
    number = max(start, 2)
    while number in used or any(number % divisor == 0 for divisor in range(2, math.isqrt(number) + 1)):
        number += 1
    used.add(number)
    return number


def meaning(point: Sequence[int], symbols: Sequence[str]) -> str:
    """What the numbers of a sample stand for, for messages: `59 stands for 'batch'`."""
    return ", ".join(f"{value} stands for {name!r}" for value, name in zip(point, symbols, strict=True))
