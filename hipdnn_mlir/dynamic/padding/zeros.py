"""Sizes that inputs may be filled up to with zeros, since a model only sums along them.

Decoders read the number of valid tokens as the sum of a mask. The mask's length is one more with each token, and its only other use is that
a cache is as long as the larger of it and of the cache before: `max(past, total)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Ref, Size

from ...ir.blocks import functions
from ...ops.spec import OpView
from ..solver import Solver
from .check import Follower, Mixed, mixed
from .dims import padded_by, plain


def filled_sizes(modules: Sequence[ir.Operation], inputs: int, outputs: Sequence[str], solver: Solver) -> list[Size]:
    """Per symbol the size up to which inputs may be filled with zeros; the symbol itself where they may not.

    A size S is filled up to `max(other, S)`, where nothing but this very expression and sums of inputs depend on it.

    Args:
        modules: one model at the solver's points, in one context, in the torch dialect.
        inputs: number of the model's inputs: the first arguments.
        outputs: the model's outputs.
        solver: for those points.
    """
    table = solver.table
    found = []
    for name in table.symbols:
        symbol = table.symbol(name)
        larger = [Ref(index) for index, entry in enumerate(table.entries) if _is_larger(table, entry, symbol)]
        fits = (size for size in larger if _fills(modules, inputs, outputs, FilledSize(solver, name, size)))
        found.append(next(fits, symbol))
    return found


def _is_larger(table: Expressions, entry: Sequence[Any], symbol: Size) -> bool:
    """Whether an entry is the larger of a symbol and of what does not depend on it."""
    kind, *operands = entry
    others = [operand for operand in operands if operand != symbol]
    return kind == "max" and len(others) == 1 and not table.names(symbol) & table.names(others[0])


def _fills(modules: Sequence[ir.Operation], inputs: int, outputs: Sequence[str], size: FilledSize) -> bool:
    try:
        for parts in zip(*map(functions, modules), strict=True):
            _ZeroFollower(size).function(parts, inputs, outputs)
    except (Mixed, DynamicDimensionError):
        return False
    return True


class FilledSize:
    """What numbers at the sample points say of a size that is filled up to another.

    Args:
        solver: for those points.
        name: the size.
        filled: the larger one, which stays what it is.
    """

    def __init__(self, solver: Solver, name: str, filled: Size) -> None:
        self._solver, self._name, self._filled = solver, name, filled
        self._values = solver.values(solver.table.symbol(name))

    def symbol_in(self, column: Sequence[Any]) -> str | None:
        """The size, where a number depends on it otherwise than through the larger one, or it is not known on what it depends."""
        if all(number == column[0] for number in column):
            return None
        size = self._solver.solve_numbers(column)
        if size is None:
            return self._name
        return self._name if self._name in self._solver.table.names(size, but=self._filled) else None

    def symbol_of(self, column: tuple[int, ...]) -> str | None:
        """The size, where a number is it."""
        return self._name if column == self._values else None


class _ZeroFollower(Follower):
    """Knows which values are zero behind their data: inputs, and casts of such."""

    def __init__(self, sizes: FilledSize) -> None:
        super().__init__(sizes)
        self._zero: set[ir.Value] = set()

    def _bind(self, arguments: Sequence[ir.Value], *, is_input: bool) -> None:
        super()._bind(arguments, is_input=is_input)
        if is_input:
            self._zero.add(arguments[0])

    def _follow(self, first: ir.OpView, views: Sequence[OpView], keys: Sequence[ir.Value], symbol: str) -> None:
        try:
            super()._follow(first, views, keys, symbol)
        except Mixed:
            if not isinstance(first, torch.AtenSumDimIntListOp) or first.self_ not in self._zero:
                raise
            columns = list(zip(*(view.results[0].static_dims() for view in views), strict=True))
            if any(map(self._sizes.symbol_in, columns)):
                raise
            self._dims[first.result] = [plain(column) for column in columns]
        if isinstance(first, torch.AtenToDtypeOp) and first.self_ in self._zero:
            self._zero.add(first.result)

    def _outputs(self, returned: func.ReturnOp, names: Sequence[str]) -> None:
        super()._outputs(returned, names)
        for name, value in zip(names, returned.operands, strict=False):
            symbol = next(filter(None, map(padded_by, self._dims[value])), None)
            if symbol is not None:
                raise mixed(symbol, "it would be longer", f"output {name!r}", "")
