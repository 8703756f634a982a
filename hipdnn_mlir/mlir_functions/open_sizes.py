"""What functions in MLIR decide by sizes that a model leaves open: told to the solver, and checked at sizes that are no samples."""

from collections.abc import Iterator, Sequence
from typing import Any

import onnx

from ..dynamic.facts import Assumption
from ..dynamic.solver import Solver
from ..errors import OpenSizeError
from ..frontend.shape_inference import attributes_of, known_types
from ..frontend.sizes.known_sizes import bounded
from ..ops.spec import Refusal
from .function import FUNCTIONS, line
from .specialize import Specialized, specialize


def function_facts(models: Sequence[onnx.ModelProto]) -> list[Assumption]:
    """Where the ends of slices in functions lie, inside or outside of what they cut.

    Args:
        models: the same model at several sizes of its inputs, types inferred.

    Raises:
        OpenSizeError: a function has other ops at other sizes, or slices that take all of a dim and need not.
    """
    facts: list[Assumption] = []
    for node, made in _specialized(models):
        if made[0].whole:
            place = line(made[0].whole[0])
            message = f"a slice in its function{place} ends behind a size: end it at torch.aten.size.int to take all"
            raise OpenSizeError(message, where=node.name)
        for cuts in zip(*(one.cuts for one in made), strict=True):
            size, *bounds = zip(*cuts, strict=True)
            for bound in bounds:
                facts += bounded(bound, size, node.name)
    return facts


def check_functions(
    models: Sequence[onnx.ModelProto], held_out: onnx.ModelProto, point: Sequence[int], solver: Solver
) -> None:
    """Check that the numbers and sizes in functions are what they seem at the sample points at one more point, too.

    Args:
        models: as for `function_facts`.
        held_out: the model at the other point.
        point: the values of the symbols there.
        solver: knows the sample points.

    Raises:
        OpenSizeError: they are not.
    """
    for node, made in _specialized([*models, held_out]):
        for *values, actual in zip(*(one.numbers for one in made), strict=True):
            size = solver.solve(tuple(values))
            if size is not None and solver.table.value(size, point) != actual:
                raise OpenSizeError(
                    "a number in its function is not what it seems at the sample sizes", where=node.name
                )


def _specialized(models: Sequence[onnx.ModelProto]) -> Iterator[tuple[onnx.NodeProto, list[Specialized]]]:
    """The nodes for which functions stand, with what these are in each of the models."""
    names = [f"{node.domain}.{node.op_type}" for node in models[0].graph.node]
    if not any(name in FUNCTIONS for name in names):
        return
    types = [known_types(model) for model in models]
    for node, name in zip(models[0].graph.node, names, strict=True):
        if name not in FUNCTIONS or not all(n in known for known in types for n in node.input if n):
            continue
        operands: list[list[Any]] = [[known.get(n) for n in node.input] for known in types]
        try:
            made = [specialize(FUNCTIONS[name], kinds, attributes_of(node)) for kinds in operands]
        except Refusal:  # which hipdnn-inline-functions reports
            continue
        if any(one.ops != made[0].ops for one in made):
            raise OpenSizeError("its function has other operations at other sizes", where=node.name)
        yield node, made
