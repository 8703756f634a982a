"""Finds the expression over symbols that has given values at the sample points."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from .facts import Assumption, Fact, Values

MAX_DEGREE, MAX_PAIR_DEGREE = 4, 3
MAX_DIVISOR = 4096
_ROUNDING = 1e-9
_ELSEWHERE = (96, 127, 160, 225, 1000, 2049, 4099)
"""Sizes that are no samples."""


class Solver:
    """Expressions by their values at sample points: products of atoms, and sums of two of them with a constant.

    Atoms are the symbols, and sizes that were told (`tell`).

    Attributes:
        table: the expressions found.
        points: the sample points, one value per symbol each.
        conditions: (relation, a, b) -> the node that needs it.

    Args:
        table: where found expressions are entered.
        points: the sample points, one value per symbol each.
    """

    def __init__(self, table: Expressions, points: Sequence[Sequence[int]]) -> None:
        self.table = table
        self.points = points
        self._found: dict[Values, Size | None] = {}
        self._atoms: dict[Values, Size] = {}
        self._monomials: list[tuple[Values, tuple[Size, ...]]] = []
        self._powers = np.empty((0, len(points)))
        self.conditions: dict[tuple[str, Size, Size], str] = {}
        for name in table.symbols:
            self.tell(table.symbol(name))

    def learn(self, facts: Iterable[Fact]) -> None:
        """Make quotients atoms, and note assumptions as conditions of the program.

        Raises:
            DynamicDimensionError: something compared or divided is no expression of the symbols.
        """
        for fact in dict.fromkeys(facts):
            a, b = (self._side(side, fact) for side in (fact.a, fact.b))
            if not isinstance(fact, Assumption):
                self.tell(self.table.make(fact.operator, a, b))
            elif not _is_certain(fact.relation, a, b):
                self.conditions.setdefault((fact.relation, a, b), fact.node)

    def _side(self, values: Values, fact: Fact) -> Size:
        size = self.solve(values)
        if size is None:
            node = fact.node if isinstance(fact, Assumption) else None
            shown = ", ".join(map(str, values))
            raise DynamicDimensionError(
                "a number cannot be written as an expression of the dynamic dimensions",
                where=node,
                got=f"{shown} at the sample sizes",
            )
        return size

    def values(self, size: Size) -> Values:
        """A size's values at the sample points."""
        return tuple(self.table.value(size, point) for point in self.points)

    def tell(self, size: Size) -> None:
        """Make a size an atom: what has its values is this expression, and products may contain it.

        Raises:
            DynamicDimensionError: at the sample points it cannot be told from a number, or from another size.
        """
        values = self.values(size)
        known = self._atoms.get(values, values[0] if len(set(values)) == 1 else None)
        if known is not None:
            if self._differ(size, known):
                raise DynamicDimensionError("two sizes are equal at every sample size but not in general")
            return
        if len(set(values)) > 1:
            self._atoms[values] = self._found[values] = size
            self._monomials = sorted(self._products(), key=lambda product: len(product[1]))
            self._found = {known: found for known, found in self._found.items() if found is not None}

    def _differ(self, a: Size, b: Size) -> bool:
        """Whether two sizes are different somewhere."""
        count = len(self.table.symbols)
        points = (tuple(start + 3 * index for index in range(count)) for start in _ELSEWHERE)
        return any(self.table.value(a, point) != self.table.value(b, point) for point in points)

    def _products(self) -> list[tuple[Values, tuple[Size, ...]]]:
        atoms = list(self._atoms.items())
        chosen = (
            combination
            for degree in range(1, MAX_DEGREE + 1)
            for combination in itertools.combinations_with_replacement(atoms, degree)
        )
        return [
            (
                tuple(math.prod(column) for column in zip(*(v for v, _ in combination), strict=True)),
                tuple(s for _, s in combination),
            )
            for combination in chosen
        ]

    def solve(self, values: Values) -> Size | None:
        """The expression with these values, the number where they are all the same, or None."""
        if len(set(values)) == 1:
            return values[0]
        if values not in self._found:
            self._found[values] = self._product(values) or self._affine(values) or self._sum_of_two(values)
        return self._found[values]

    def solve_numbers(self, column: Sequence[Any]) -> Size | None:
        """The same of numbers that need not be whole; None where one is not."""
        whole = [int(number) for number in column if isinstance(number, int) or float(number).is_integer()]
        return self.solve(tuple(whole)) if len(whole) == len(column) else None

    def _product(self, values: Values) -> Size | None:
        """A product with a whole factor, else with a quotient: the one of fewest atoms.

        Raises:
            DynamicDimensionError: several such products, which differ elsewhere.
        """
        found = [(len(factors), *ratio, factors) for ratio, factors in self._multiples(values)]
        whole = [entry for entry in found if entry[2] == 1]
        candidates = whole or found
        shortest = min((entry[0] for entry in candidates), default=0)
        sizes = [
            self.table.make("floordiv", self._multiplied(factors, factor), divisor)
            for length, factor, divisor, factors in candidates
            if length == shortest
        ]
        if any(self._differ(size, sizes[0]) for size in sizes[1:]):
            raise DynamicDimensionError("two sizes are equal at every sample size but not in general")
        return sizes[0] if sizes else None

    def _multiples(self, values: Values) -> Iterator[tuple[tuple[int, int], tuple[Size, ...]]]:
        """The products of which these values are multiples: factor and divisor, and the product's atoms."""
        if self._powers.shape[0] != len(self._monomials):
            self._powers = np.array([powers for powers, _ in self._monomials], np.float64)
        ratios = np.array(values, np.float64) / self._powers
        spread = ratios.max(1) - ratios.min(1)
        for index in np.flatnonzero(spread <= _ROUNDING * np.abs(ratios[:, 0])):
            powers, factors = self._monomials[index]
            divisor = powers[0] // math.gcd(powers[0], values[0])
            factor = values[0] * divisor // powers[0]
            is_exact = all(v * divisor == p * factor for v, p in zip(values, powers, strict=True))
            if factor > 0 and divisor <= MAX_DIVISOR and is_exact:
                yield (factor, divisor), factors

    def _affine(self, values: Values) -> Size | None:
        for powers, factors in self._monomials:
            run, rise = powers[1] - powers[0], values[1] - values[0]
            if run == 0 or rise == 0 or rise % run:
                continue
            factor = rise // run
            constant = values[0] - factor * powers[0]
            if all(v == factor * p + constant for v, p in zip(values, powers, strict=True)):
                return self.table.make("+", self._multiplied(factors, factor), constant)
        return None

    def _sum_of_two(self, values: Values) -> Size | None:
        """Two products with factors, and a constant where samples suffice: one of them has to be left to tell right from wrong."""
        short = [entry for entry in self._monomials if len(entry[1]) <= MAX_PAIR_DEGREE]
        for (a, left), (b, right) in itertools.combinations(short, 2):
            for constant in (0,) if len(values) < 4 else (0, None):
                found = _solved(values, a, b, constant)
                if found is not None:
                    x, y, rest = found
                    return self.table.make(
                        "+", self.table.make("+", self._multiplied(left, x), self._multiplied(right, y)), rest
                    )
        return None

    def _multiplied(self, factors: Sequence[Size], number: int) -> Size:
        result: Size = 1
        for factor in factors:
            result = self.table.make("*", result, factor)
        return self.table.make("*", result, number)


def _is_certain(relation: str, a: Size, b: Size) -> bool:
    """Whether a condition holds for all sizes: numbers, a size against itself, or against a negative number."""
    if (isinstance(a, int) and isinstance(b, int)) or (a == b and relation in ("<=", "==")):
        return True
    is_below = isinstance(a, int) and a < 0
    is_above = isinstance(b, int) and b < 0 and relation == "!="
    return relation != "==" and (is_below or is_above)


def _solved(values: Values, a: Values, b: Values, constant: int | None) -> tuple[int, int, int] | None:
    """Whole x, y, rest with values = x * a + y * b + rest at every sample; rest is `constant` where that is given."""
    v, p, q = values, a, b
    if constant is None:
        v, p, q = (tuple(n - row[0] for n in row[1:]) for row in (values, a, b))
    determinant = p[0] * q[1] - p[1] * q[0]
    if determinant == 0:
        return None
    x, x_rest = divmod(v[0] * q[1] - v[1] * q[0], determinant)
    y, y_rest = divmod(p[0] * v[1] - p[1] * v[0], determinant)
    if x_rest or y_rest or x == 0 or y == 0:
        return None
    rest = values[0] - x * a[0] - y * b[0]
    fits = all(n == x * m + y * k + rest for n, m, k in zip(values, a, b, strict=True))
    return (x, y, rest) if fits and (constant is None or rest == constant) else None
