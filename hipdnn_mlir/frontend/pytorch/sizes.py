"""What an exported module says of its sizes: its symbols are those of PyTorch, which has an expression for every size."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch import Tensor, fx
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

from hipdnn_mlir_runtime.errors import DynamicDimensionError

from ...dynamic.facts import Assumption, Computed, Fact, Values
from ...dynamic.solver import Solver
from ...ops.strides import Dims
from ..sizes.known_sizes import MAX_ATOMS
from .exported import Exported
from .specialize import StaticGraph

_QUOTIENTS = {FloorDiv: "floordiv", Mod: "mod", PythonMod: "mod"}
_WINDOWED = ("convolution", "conv", "max_pool", "avg_pool", "upsample")
_FEW = 2
"""Up to this size PyTorch's lower bounds say how it traced, and not what the module takes."""


def has_windows(exported: Exported) -> bool:
    """Whether the module has convolutions or pools, which make sizes small."""
    names = (str(node.target) for node in exported.graph.graph.nodes if node.op == "call_function")
    return any(part in name for name in names for part in _WINDOWED)


def tell_sizes(exported: Exported, points: Sequence[Mapping[str, Dims]], solver: Solver) -> None:
    """Enter the sizes of a module's values, in order.

    Args:
        exported: the module.
        points: the dims of its inputs at each of the solver's points.
        solver: told of sizes and of the ranges that the user gave.
    """
    meanings = [symbols_at(exported, dims) for dims in points]
    solver.promise(_ranges(exported, meanings))
    atoms, seen = len(solver.table.symbols), set[Any]()
    for expression in _expressions(exported.graph.graph):
        if expression in seen:
            continue
        seen.add(expression)
        solver.learn(_quotients(expression, meanings))
        size = solver.solve(_values(expression, meanings))
        if size is None or isinstance(size, int) or atoms >= MAX_ATOMS:
            continue
        if solver.table.entries[size.index][0] == "+":
            solver.tell(size)
            atoms += 1


def check_sizes(models: Sequence[StaticGraph], held_out: StaticGraph, point: Sequence[int], solver: Solver) -> None:
    """The sizes of a module's results at one more point are those that the expressions found give.

    Raises:
        DynamicDimensionError: an expression that holds at the sample points only.
    """
    for name, node in held_out.outputs.items():
        shapes = [tuple(model.outputs[name].meta["val"].shape) for model in (*models, held_out)]
        for *values, actual in zip(*shapes, strict=True):
            size = solver.solve(tuple(values))
            if size is not None and solver.table.value(size, point) != actual:
                raise DynamicDimensionError(
                    f"a size of {name!r} does not follow the expression found at the sample sizes", where=node.name
                )


def symbols_at(exported: Exported, dims: Mapping[str, Dims]) -> dict[Any, int]:
    """PyTorch's symbols where the inputs have the given dims."""
    return {
        size.node.expr: known
        for name, node in exported.inputs.items()
        for size, known in zip(node.meta["val"].shape, dims[name], strict=True)
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol
    }


def _expressions(graph: fx.Graph) -> Iterator[sympy.Expr]:
    """The expressions of all sizes, in the order in which they are computed."""
    for node in graph.nodes:
        found = node.meta.get("val")
        for value in found if isinstance(found, (list, tuple)) else [found]:
            sizes = value.shape if isinstance(value, Tensor) else [value]
            yield from (size.node.expr for size in sizes if isinstance(size, torch.SymInt))


def _quotients(expression: sympy.Expr, meanings: Sequence[Mapping[Any, int]]) -> list[Fact]:
    """The quotients in an expression, inner ones first."""
    parts = [part for part in sympy.postorder_traversal(expression) if type(part) in _QUOTIENTS]
    return [
        Computed(_QUOTIENTS[type(part)], _values(part.args[0], meanings), _values(part.args[1], meanings))
        for part in parts
    ]


def _values(expression: sympy.Expr, meanings: Sequence[Mapping[Any, int]]) -> Values:
    return tuple(int(expression.xreplace(dict(meaning))) for meaning in meanings)


def _ranges(exported: Exported, meanings: Sequence[Mapping[Any, int]]) -> list[Assumption]:
    """The ranges of the user's dynamic dimensions."""
    facts: list[Assumption] = []
    for symbol, (low, high) in exported.ranges.items():
        if symbol not in meanings[0]:
            continue
        values = _values(symbol, meanings)
        if high is not None:
            facts.append(Assumption("<=", values, (high,) * len(values), "the range of its torch.export.Dim"))
        if low > _FEW:
            facts.append(Assumption("<=", (low,) * len(values), values, "the range of its torch.export.Dim"))
    return facts
