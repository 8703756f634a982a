"""Reads `@hipdnn_constants`, which is evaluated on the weights: not a pass, since its input is data."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import ModelError

from ..ops.constant_plan import ConstantPlan
from ..ops.spec import TensorArg
from .blocks import functions, operations
from .literals import literal_array
from .types import is_tensor, tensor_type
from .view import is_constant, producer, view

MAX_SPLAT_BYTES = 1 << 31
"""What a program stores of constants of one number: a model of a few bytes can ask for any size."""


def kept(value: ir.Value) -> ir.Value:
    """The value; what computes it stays in the program even if all that it reads is constant."""
    made = producer(value)
    if made is not None and not is_constant(made):
        made.attributes[STAYS] = ir.UnitAttr.get()
    return value


def plan_constants(module: ir.Operation) -> ConstantPlan:
    """Read `@hipdnn_constants`; the plan is empty where there is none.

    Args:
        module: the module operation after hipdnn-outline-constants.

    Raises:
        ModelError: constants of one number are too large, all together.
    """
    plan = ConstantPlan()
    for function in functions(module):
        if function.name.value == CONSTANTS_FUNCTION:
            _read(function, plan)
    return plan


def _read(function: func.FuncOp, plan: ConstantPlan) -> None:
    numbers: dict[ir.Value, int] = {argument: number for number, argument in enumerate(function.arguments)}
    plan.arguments.update(zip(_names(function.arg_attrs), numbers.values(), strict=True))
    splat_bytes = 0
    for op in operations(function):
        if isinstance(op, func.ReturnOp):
            results = [numbers[value] for value in op.operands]
            plan.results.update(zip(_names(function.result_attrs), results, strict=True))
        elif isinstance(op, torch.ValueTensorLiteralOp):
            splat_bytes += _splat_bytes(op)
            if splat_bytes > MAX_SPLAT_BYTES:
                message = f"its constants of one number everywhere take {splat_bytes} bytes or more"
                raise ModelError(message, expected="at most 2^31", hint="check the sizes that it fills")
            plan.literals[numbers.setdefault(op.result, len(numbers))] = literal_array(op)
        elif not is_constant(op):
            seen = view(op)
            number = numbers.setdefault(op.results[0], len(numbers))
            plan.ops.append((replace(seen, args=[_numbered(argument, numbers) for argument in seen.args]), number))


def _splat_bytes(literal: torch.ValueTensorLiteralOp) -> int:
    kind = tensor_type(literal.result.type)
    return math.prod(kind.static_dims()) * kind.dtype.bytes if literal.value.is_splat else 0


def _numbered(argument: Any, numbers: Mapping[ir.Value, int]) -> Any:
    """An argument with the number of its value as key, in lists too."""
    if isinstance(argument, list):
        return [_numbered(item, numbers) for item in argument]
    return replace(argument, key=numbers[argument.key]) if isinstance(argument, TensorArg) else argument


def _names(attributes: ir.ArrayAttr) -> list[str]:
    return [entry[CONSTANT].value for entry in attributes]


CONSTANT = "hipdnn.constant"
CONSTANTS_FUNCTION = "hipdnn_constants"
STAYS = "hipdnn.stays"
"""On an op on constants whose result is not made a constant: a view that tells how one lies in memory, since its copy would lie in C order;
what makes weights of 4 or 8 bits wide."""


def constant_name(value: ir.Value) -> str | None:
    """The name of a constant argument, or None for any other value."""
    attributes = argument_attributes(value)
    return attributes[CONSTANT].value if attributes is not None and CONSTANT in attributes else None


def argument_attributes(value: ir.Value) -> ir.DictAttr | None:
    """The attributes of a function's argument; None for any other value, and where no argument has any."""
    if not isinstance(value, ir.BlockArgument):
        return None
    function = value.owner.owner
    if not isinstance(function, func.FuncOp) or "arg_attrs" not in function.attributes:
        return None
    return function.arg_attrs[value.arg_number]


def constant_values(function: func.FuncOp) -> set[ir.Value]:
    """The values of a function that are constant: arguments, literals, and results of torch ops on nothing but those, without STAYS."""
    found = {argument for argument in function.arguments if constant_name(argument) is not None}
    for op in operations(function):
        if isinstance(op, torch.ValueTensorLiteralOp):
            found.add(op.result)
        elif not is_constant(op) and STAYS not in op.attributes:
            tensors = _tensors(op)  # of most ops the first one tells
            if next(tensors, None) in found and all(value in found for value in tensors):
                found.update(op.results)
    return found


def tensor_operands(op: ir.OpView) -> list[ir.Value]:
    """Tensor operands, those inside a list operand included."""
    return list(_tensors(op))


def _tensors(op: ir.OpView) -> Iterator[ir.Value]:
    for operand in op.operands:
        if is_tensor(operand.type):
            yield operand
        elif isinstance(source := producer(operand), torch.PrimListConstructOp):
            yield from (item for item in source.elements if is_tensor(item.type))


VARIES = "hipdnn.varies"
