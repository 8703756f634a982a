"""Evaluates `@hipdnn_constants` on the weights: not a pass, since its input is data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch_mlir import ir

from hipdnn_mlir.errors import PassError, Reject
from hipdnn_mlir.ir_types import tensor_type
from hipdnn_mlir.ir_view import is_constant, splat_number, view
from hipdnn_mlir.ops.evaluate import Array, evaluate

from .outline_constants import CONSTANT, CONSTANTS_FUNCTION
from .registration import body, functions


def split_constants(module: ir.Module) -> ir.Module:
    """A module of its own with a copy of `@hipdnn_constants`, which later steps erase from the program's module."""
    with ir.Location.unknown(module.context):
        copy = ir.Module.create()
        with ir.InsertionPoint(copy.body):
            for function in functions(module.operation):
                if _is_constants(function):
                    function.clone()
    return copy


def evaluate_constants(module: Any, weights: Mapping[str, Array]) -> dict[str, Array]:
    """The weights with the results of `@hipdnn_constants` added under their names.

    Args:
        module: the module operation after hipdnn-outline-constants.
        weights: name -> array for each constant argument.
    """
    found = dict(weights)
    for function in functions(module):
        if _is_constants(function):
            found.update(_run(function, weights))
    return found


def _is_constants(function: Any) -> bool:
    return bool(ir.StringAttr(function.attributes["sym_name"]).value == CONSTANTS_FUNCTION)


def _names(function: Any, attribute: str) -> list[str]:
    return [
        str(ir.StringAttr(ir.DictAttr(entry)[CONSTANT]).value) for entry in ir.ArrayAttr(function.attributes[attribute])
    ]


def _run(function: Any, weights: Mapping[str, Array]) -> dict[str, Array]:
    arguments = function.regions[0].blocks[0].arguments
    names = _names(function, "arg_attrs") if len(arguments) else []
    values: dict[Any, Array] = {argument: weights[name] for argument, name in zip(arguments, names, strict=True)}
    for operation in body(function):
        if operation.name == "func.return":
            results = [np.ascontiguousarray(values[value]) for value in operation.operands]
            return dict(zip(_names(function, "res_attrs"), results, strict=True))
        if operation.name == "torch.vtensor.literal":
            values[operation.results[0]] = literal_array(operation)
        elif not is_constant(operation):
            values[operation.results[0]] = _evaluate(operation, values)
    return {}


def _evaluate(operation: Any, values: Mapping[Any, Array]) -> Array:
    result = evaluate(view(operation), values)
    if isinstance(result, Reject):
        raise PassError(f"a constant is not evaluated: {result}", pass_name="evaluate-constants")
    return result


def literal_array(operation: Any) -> Array:
    """The data of a `torch.vtensor.literal`."""
    kind = tensor_type(operation.results[0].type)
    dims = kind.static_dims()
    attribute = operation.attributes["value"]
    if ir.DenseElementsAttr(attribute).is_splat:
        return np.full(dims, splat_number(ir.DenseElementsAttr(attribute)), kind.dtype.numpy)
    return np.array(ir.DenseElementsAttr(attribute)).astype(kind.dtype.numpy, copy=False).reshape(dims)
