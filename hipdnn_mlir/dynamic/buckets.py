"""Buckets of dynamic dimensions, as a user gives them, and what numbers say of the sizes that have such."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.expressions import Ref
from hipdnn_mlir_runtime.limits import MAX_SIZE

from .input_sizes import Buckets, InputSizes, check_is_dict
from .solver import Solver

MAX_BUCKETS = 1024
MAX_COMBINATIONS = 64
"""Programs in one file."""


def check_buckets(buckets: Buckets, sizes: InputSizes) -> None:
    """Whether buckets fit a model's inputs.

    Args:
        buckets: what the user gives.
        sizes: the model's inputs.

    Raises:
        ModelError: a size that is not open, buckets that do not rise, or an input whose dim is computed from a size with buckets.
    """
    check_names(buckets, sizes)
    found = computed_from(buckets, sizes)
    if found:
        symbol, place = next(iter(found.items()))
        hint = f"leave out the buckets of {symbol!r}"
        raise ModelError(
            f"{place} is computed from {symbol!r}",
            expected="a dimension with a name of its own",
            hint=hint,
        )


def check_names(buckets: Buckets, sizes: InputSizes) -> None:
    """Whether buckets are of dynamic dimensions, and ascend.

    Raises:
        ModelError: they are not.
    """
    check_is_dict("buckets", buckets, "{dynamic dimension: sizes}")
    known = ", ".join(sizes.table.symbols) or "there is none"
    for name, chosen in buckets.items():
        if name not in sizes.table.symbols:
            hint = "make it dynamic with --shape, or leave its buckets out"
            raise ModelError(
                f"no dynamic dimension named {name!r}",
                expected=f"a dynamic dimension ({known})",
                hint=hint,
            )
        check_sizes_rise(name, chosen)


def computed_from(buckets: Buckets, sizes: InputSizes) -> dict[str, str]:
    """Sizes with buckets -> the dim of an input that is computed from it; padding such inputs is not known."""
    found: dict[str, str] = {}
    for name, dims in sizes.inputs.items():
        for axis, size in enumerate(dims):
            if not isinstance(size, Ref) or sizes.table.entries[size.index][0] == "symbol":
                continue
            for symbol in sizes.table.symbols:
                if symbol in buckets and symbol in sizes.table.names(size):
                    found.setdefault(symbol, f"dimension {axis} of input {name!r}")
    return found


def combinations(buckets: Buckets, sizes: InputSizes) -> list[tuple[int, ...]]:
    """Every combination of buckets, a value per dynamic dimension of a model.

    Args:
        buckets: as `check_names` takes them.
        sizes: the model's inputs.

    Raises:
        ModelError: a dynamic dimension has no buckets, or there are more than MAX_COMBINATIONS.
    """
    check_names(buckets, sizes)
    missing = [name for name in sizes.table.symbols if name not in buckets]
    if missing:
        name = missing[0]
        raise ModelError(
            f"no buckets for {', '.join(map(repr, missing))}",
            expected="buckets for every dynamic dimension, since code for GPUs is made for exact sizes",
            hint=f"add --bucket {name}=1,8,32, or make it static with --shape {name}=1",
        )
    count = math.prod(len(buckets[name]) for name in sizes.table.symbols)
    if count > MAX_COMBINATIONS:
        raise ModelError(
            "too many combinations of buckets",
            expected=f"at most {MAX_COMBINATIONS} (code is made for each)",
            got=str(count),
            hint="list fewer sizes",
        )
    return list(itertools.product(*(buckets[name] for name in sizes.table.symbols)))


def check_sizes_rise(name: str, chosen: Sequence[int]) -> None:
    """Whether buckets are numbers of at least 1, in ascending order.

    Raises:
        ModelError: they are not.
    """
    if isinstance(chosen, (int, str)):
        raise ModelError(f"invalid buckets for {name!r}", expected="a list of numbers", got=repr(chosen))
    is_right = 0 < len(chosen) <= MAX_BUCKETS and all(
        isinstance(size, int) and not isinstance(size, bool) and 1 <= size < MAX_SIZE for size in chosen
    )
    if not is_right or any(a >= b for a, b in itertools.pairwise(chosen)):
        expected = f"1 to {MAX_BUCKETS} numbers from 1 to {MAX_SIZE - 1}, in ascending order"
        shown = ",".join(map(str, chosen)) or "none"
        raise ModelError(f"invalid buckets for {name!r}", expected=expected, got=shown)


class BucketedSizes:
    """What numbers at the sample points say of the sizes with buckets.

    Args:
        solver: for those sample points.
        buckets: whose sizes matter.
    """

    def __init__(self, solver: Solver, buckets: Buckets) -> None:
        self._solver = solver
        self._names = [name for name in solver.table.symbols if name in buckets]

    def symbol_in(self, column: Sequence[Any]) -> str | None:
        """A size with buckets on which a number depends; any of them where no expression gives the number."""
        if all(number == column[0] for number in column):
            return None
        size = self._solver.solve_numbers(column)
        if size is None:
            return self._names[0]
        used = self._solver.table.names(size)
        return next((name for name in self._names if name in used), None)

    def symbol_of(self, column: tuple[int, ...]) -> str | None:
        """The size with buckets that a number is."""
        table = self._solver.table
        return next((name for name in self._names if self._solver.values(table.symbol(name)) == column), None)
