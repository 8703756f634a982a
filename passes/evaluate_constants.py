"""Evaluates `@hipdnn_constants` on the weights: not a pass, since its input is data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch_mlir import ir

from hipdnn_mlir.errors import PassError, Reject
from hipdnn_mlir.ir_types import tensor_type
from hipdnn_mlir.ir_view import is_constant, splat_number, view
from hipdnn_mlir.ops.evaluate import Array, evaluate
from hipdnn_mlir.ops.spec import OpView, TensorArg

from .outline_constants import CONSTANT, CONSTANTS_FUNCTION
from .registration import body, functions


@dataclass
class ConstantPlan:
    """The arithmetic on weights that is done at compile time, seen without MLIR: later passes erase the function, weights may come later.

    Attributes:
        arguments: weight -> number of its value.
        literals: number of a value -> array.
        ops: operations in order, each with the number of its result; the keys of their operands are such numbers.
        results: constant -> number of its value.
    """

    arguments: dict[str, int] = field(default_factory=dict)
    literals: dict[int, Array] = field(default_factory=dict)
    ops: list[tuple[OpView, int]] = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)

    def evaluate(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """The weights with the results added under their names.

        Raises:
            PassError: an operation is not evaluated, which is a defect.
        """
        values = self.literals | {number: weights[name] for name, number in self.arguments.items()}
        for op, number in self.ops:
            result = evaluate(op, values)
            if isinstance(result, Reject):
                raise PassError(f"a constant is not evaluated: {result}", pass_name="evaluate-constants")
            values[number] = result
        return dict(weights) | {name: np.ascontiguousarray(values[n]) for name, n in self.results.items()}

    def stored_literals(self) -> dict[str, Array]:
        """The constants that are literals of the model: all that may depend on open sizes."""
        return {name: self.literals[number] for name, number in self.results.items() if number in self.literals}


def plan_constants(module: Any) -> ConstantPlan:
    """Read `@hipdnn_constants`; the plan is empty where there is none.

    Args:
        module: the module operation after hipdnn-outline-constants.
    """
    plan = ConstantPlan()
    for function in functions(module):
        if ir.StringAttr(function.attributes["sym_name"]).value == CONSTANTS_FUNCTION:
            _read(function, plan)
    return plan


def _read(function: Any, plan: ConstantPlan) -> None:
    arguments = function.regions[0].blocks[0].arguments
    numbers: dict[Any, int] = {argument: number for number, argument in enumerate(arguments)}
    if numbers:
        plan.arguments.update(zip(_names(function, "arg_attrs"), numbers.values(), strict=True))
    for operation in body(function):
        if operation.name == "func.return":
            results = [numbers[value] for value in operation.operands]
            plan.results.update(zip(_names(function, "res_attrs"), results, strict=True))
        elif operation.name == "torch.vtensor.literal":
            number = numbers.setdefault(operation.results[0], len(numbers))
            plan.literals[number] = literal_array(operation)
        elif not is_constant(operation):
            op = view(operation)
            number = numbers.setdefault(operation.results[0], len(numbers))
            plan.ops.append((replace(op, args=[_numbered(argument, numbers) for argument in op.args]), number))


def _numbered(argument: Any, numbers: Mapping[Any, int]) -> Any:
    """An argument with the number of its value as key, in lists too."""
    if isinstance(argument, list):
        return [_numbered(item, numbers) for item in argument]
    return replace(argument, key=numbers[argument.key]) if isinstance(argument, TensorArg) else argument


def _names(function: Any, attribute: str) -> list[str]:
    return [
        str(ir.StringAttr(ir.DictAttr(entry)[CONSTANT]).value) for entry in ir.ArrayAttr(function.attributes[attribute])
    ]


def literal_array(operation: Any) -> Array:
    """The data of a `torch.vtensor.literal`."""
    kind = tensor_type(operation.results[0].type)
    dims = kind.static_dims()
    attribute = operation.attributes["value"]
    if ir.DenseElementsAttr(attribute).is_splat:
        return np.full(dims, splat_number(ir.DenseElementsAttr(attribute)), kind.dtype.numpy)
    return np.array(ir.DenseElementsAttr(attribute)).astype(kind.dtype.numpy, copy=False).reshape(dims)
