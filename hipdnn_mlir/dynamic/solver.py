"""Finds the expression over symbols that has given values at the sample points."""

import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from .facts import Assumption, Computed, Fact, Values
from .input_sizes import Multiple

MAX_DEGREE, MAX_PAIR_DEGREE = 4, 3
MAX_DIVISOR = 4096
RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
"""What an assumption may say of two sizes."""
_ROUNDING = 1e-9
_ELSEWHERE = (96, 127, 160, 225, 1000, 2049, 4099)
"""Sizes that are no samples."""
_MULTIPLE = 2**12 * 3**3 * 5**2 * 7 * 11
"""A size of which hardly a divisor leaves anything over."""


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
        multiples: the symbols that are multiples of a number, at the sample points and wherever the program holds.
    """

    def __init__(
        self,
        table: Expressions,
        points: Sequence[Sequence[int]],
        multiples: Mapping[str, Multiple] | None = None,
    ) -> None:
        self.table = table
        self.points = points
        self._values: dict[Values, dict[Size, int]] = {}
        self._found: dict[Values, Size | None] = {}
        self._atoms: dict[Values, Size] = {}
        self._monomials: list[tuple[Values, tuple[Size, ...]]] = []
        self._powers = np.empty((0, len(points)))
        self.conditions: dict[tuple[str, Size, Size], str] = {}
        self._units = [1] * len(table.symbols)
        for index, name in enumerate(table.symbols):
            if multiples and name in multiples:
                self._units[index] = multiples[name].of
                left = table.make("mod", table.symbol(name), multiples[name].of)
                self.conditions["==", left, 0] = multiples[name].node
        for name in table.symbols:
            self.tell(table.symbol(name))

    def learn(self, facts: Iterable[Fact]) -> None:
        """Make quotients atoms, and note assumptions as conditions of the program.

        Raises:
            DynamicDimensionError: something compared or divided is no expression of the symbols, a quotient is the same at all sample
                points, or an assumption is false at one.
        """
        for fact in dict.fromkeys(facts):
            if isinstance(fact, Assumption):
                if not all(map(RELATIONS[fact.relation], fact.a, fact.b)):
                    raise DynamicDimensionError(
                        "what the program assumes of sizes is false at a sample size", where=fact.node
                    )
                self.promise([fact])
            else:
                a, b = self._side(fact.a, fact), self._side(fact.b, fact)
                if fact.operator != "max":
                    self._check_quotient(fact, a, b)
                self.tell(self.table.make(fact.operator, a, b))

    def _check_quotient(self, fact: Computed, a: Size, b: Size) -> None:
        """Whether a quotient, and what it leaves, are different at some sample points, if they are elsewhere.

        Else a size cannot be told from what is left of it, or from its parts.

        Raises:
            DynamicDimensionError: one of them is not.
        """
        for part in ("ceildiv" if fact.operator == "ceildiv" else "floordiv", "mod"):
            size = self.table.make(part, a, b)
            values = self.values(size)
            if len(set(values)) > 1 or not self._differ(size, values[0]):
                continue
            reason = "a quotient of dynamic dimensions, or what it leaves, is the same at every sample size"
            error = DynamicDimensionError(reason, where=fact.node or None)
            error.beyond = 2 * b if isinstance(b, int) else 0
            raise error

    def promise(self, assumptions: Iterable[Assumption]) -> None:
        """Note conditions of the program, which need not hold at the sample points.

        Raises:
            DynamicDimensionError: something compared is no expression of the symbols.
        """
        for assumption in assumptions:
            relation, a, b = (
                assumption.relation,
                self._side(assumption.a, assumption),
                self._side(assumption.b, assumption),
            )
            if not self._is_certain(relation, a, b):
                self.conditions.setdefault((relation, a, b), assumption.node)

    def _is_certain(self, relation: str, a: Size, b: Size) -> bool:
        """Whether a condition holds for all sizes; False where that is not seen."""
        if isinstance(a, int) and isinstance(b, int):
            return True  # as at the sample points
        if relation == "!=":
            return any(isinstance(x, int) and x < 0 and self._is_never_negative(y) for x, y in ((a, b), (b, a)))
        if relation == "==" or a == b:
            return a == b
        try:
            gap = self.solve(tuple(y - x for x, y in zip(self.values(a), self.values(b), strict=True)))
        except DynamicDimensionError:
            return False
        least = 1 if relation == "<" else 0
        if gap is None or not self._is_never_negative(self.table.make("+", gap, -least)):
            return False
        return not self._differ(self.table.make("+", a, gap), b)

    def _is_never_negative(self, size: Size) -> bool:
        """Whether a size is 0 or more whatever the symbols are, as far as its form shows."""
        if isinstance(size, int):
            return size >= 0
        kind, *operands = self.table.entries[size.index]
        if kind == "symbol":
            return True
        return (any if kind == "max" else all)(map(self._is_never_negative, operands))

    def _side(self, values: Values, fact: Fact) -> Size:
        size = self.solve(values)
        if size is None:
            shown = ", ".join(map(str, values))
            raise DynamicDimensionError(
                "a number cannot be written as an expression of the dynamic dimensions",
                where=fact.node or None,
                got=f"{shown} at the sample sizes",
            )
        return size

    def values(self, size: Size) -> Values:
        """A size's values at the sample points."""
        return tuple(self._value(size, tuple(point)) for point in self.points)

    def _value(self, size: Size, point: Values) -> int:
        return self.table.value(size, point, self._values.setdefault(point, {}))

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
        """Whether two sizes are different somewhere that the program may hold."""
        count = len(self.table.symbols)
        points = [tuple(start + 3 * index for index in range(count)) for start in _ELSEWHERE]
        points.append(tuple(_MULTIPLE * (1 + index) for index in range(count)))
        points += [point[::-1] for point in points]  # whichever of two sizes is the larger
        points = [tuple(map(operator.mul, self._units, point)) for point in points]
        return any(self._value(a, point) != self._value(b, point) for point in points)

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
        with np.errstate(divide="ignore", invalid="ignore"):  # a product may be 0 at a sample point
            ratios = np.array(values, np.float64) / self._powers
            spread = ratios.max(1) - ratios.min(1)
        for index in np.flatnonzero(np.isfinite(spread) & (spread <= _ROUNDING * np.abs(ratios[:, 0]))):
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
