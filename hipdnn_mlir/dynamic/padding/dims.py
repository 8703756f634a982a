"""Dims with padding in them: which parts of a dim are longer than asked for, and what reshaping makes of them.

Sizes are columns: one number per sample point of the symbols (adr/0008).
"""

from collections.abc import Sequence
from dataclasses import dataclass

Column = tuple[int, ...]
"""A size at each sample point."""


@dataclass(frozen=True)
class Factor:
    """A part of a dim: `symbol` names the dynamic dimension whose padding lies at its end; None where there is none."""

    sizes: Column
    symbol: str | None = None

    @property
    def is_one(self) -> bool:
        """Whether it makes no difference."""
        return all(size == 1 for size in self.sizes)


Dim = tuple[Factor, ...]
"""A dim as a product, outermost factor first: without ones, and of two neighbours at least one padded, so that equal dims compare equal."""


def plain(sizes: Column) -> Dim:
    """A dim without padding."""
    return joined([Factor(sizes)])


def joined(factors: Sequence[Factor]) -> Dim:
    """The dim that has these factors."""
    made: list[Factor] = []
    for factor in factors:
        if factor.is_one:
            continue
        if made and made[-1].symbol is None and factor.symbol is None:
            made[-1] = Factor(_product(made[-1].sizes, factor.sizes))
        else:
            made.append(factor)
    return tuple(made)


def padded_by(dim: Dim) -> str | None:
    """The symbol of a dim's first padded factor."""
    return next((factor.symbol for factor in dim if factor.symbol is not None), None)


def is_prefix(dim: Dim) -> bool:
    """Whether all padding of a dim lies at its end, so that what was asked for keeps its positions."""
    return all(factor.symbol is None for factor in dim[1:])


def reshaped(dims: Sequence[Dim], targets: Sequence[Column]) -> list[Dim] | None:
    """The same elements in C order under other dims, or None where a new dim has a part of a padded factor.

    Example: with padding of `b`, (b, 6, 4) as (b * 6, 4) is ((b, 6), (4,)).
    """
    left = list(joined([factor for dim in dims for factor in dim]))
    found = []
    for target in targets:
        run: list[Factor] = []
        missing = target
        while any(size != 1 for size in missing):
            if not left:
                return None
            factor = left.pop(0)
            taken = factor if _divides(factor.sizes, missing) else Factor(missing)
            if taken is not factor:
                if factor.symbol is not None or not _divides(missing, factor.sizes):
                    return None
                left.insert(0, Factor(_quotient(factor.sizes, missing)))
            run.append(taken)
            missing = _quotient(missing, taken.sizes)
        found.append(joined(run))
    return found if not left else None


def _product(a: Column, b: Column) -> Column:
    return tuple(x * y for x, y in zip(a, b, strict=True))


def _divides(a: Column, b: Column) -> bool:
    return all(x != 0 and y % x == 0 for x, y in zip(a, b, strict=True))


def _quotient(a: Column, b: Column) -> Column:
    return tuple(x // y for x, y in zip(a, b, strict=True))
