"""Reads `@hipdnn_constants`, which is evaluated on the weights: not a pass, since its input is data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch_mlir import ir

from hipdnn_mlir.ir_types import tensor_type
from hipdnn_mlir.ir_view import is_constant, splat_number, view
from hipdnn_mlir.ops.constant_plan import ConstantPlan
from hipdnn_mlir.ops.evaluate import Array
from hipdnn_mlir.ops.spec import TensorArg

from .outline_constants import CONSTANT, CONSTANTS_FUNCTION
from .registration import body, functions


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
    if 0 in dims:  # of some dtypes there is no array to be had
        return np.empty(dims, kind.dtype.numpy)
    attribute = operation.attributes["value"]
    if ir.DenseElementsAttr(attribute).is_splat:
        return np.full(dims, splat_number(ir.DenseElementsAttr(attribute)), kind.dtype.numpy)
    return np.array(ir.DenseElementsAttr(attribute)).astype(kind.dtype.numpy, copy=False).reshape(dims)
