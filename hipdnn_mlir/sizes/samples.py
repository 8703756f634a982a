"""The sizes at which a model with open sizes is compiled, to see how its program depends on them (adr/0007)."""

import math
from collections.abc import Iterator, Sequence

LOW, HIGH = 3, 4
"""Samples for one symbol, and for several: one more than the unknowns of the widest form that is tried."""
_FACTORS = (1, 2, 3, 4)
_FIRST = (59, 223, 13, 5)
"""Where the search for primes starts: a model may limit a size from above (a table of positions) or make a small part of it."""


def samples(count: int) -> Iterator[list[tuple[int, ...]]]:
    """Sets of sample points, to be tried in order until the model accepts one.

    A point has one value per symbol. Values are a prime times 1, 2, 3 or 4, no prime twice: sizes computed from different symbols differ,
    and a quotient rounded up differs from one rounded down.
    """
    points = LOW if count == 1 else HIGH
    for first in _FIRST:
        primes = _primes(first)
        yield [tuple(next(primes) * factor for _ in range(count)) for factor in _FACTORS[:points]]


def _primes(start: int) -> Iterator[int]:
    number = start
    while True:
        if all(number % divisor for divisor in range(2, math.isqrt(number) + 1)):
            yield number
        number += 1


def meaning(point: Sequence[int], symbols: Sequence[str]) -> str:
    """What the numbers of a sample stand for, for messages: `59 stands for 'batch'`."""
    return ", ".join(f"{value} stands for {name!r}" for value, name in zip(point, symbols, strict=True))
