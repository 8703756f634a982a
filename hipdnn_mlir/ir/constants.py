"""Reads `@hipdnn_constants`, which is evaluated on the weights: not a pass, since its input is data."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch_mlir import ir

from ..ops.constant_plan import ConstantPlan
from ..ops.spec import TensorArg
from .blocks import body, functions
from .literals import literal_array
from .types import is_tensor
from .view import defining, is_constant, view


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


CONSTANT = "hipdnn.constant"
CONSTANTS_FUNCTION = "hipdnn_constants"
STAYS = "hipdnn.stays"
"""On a view that tells how a constant lies in memory: it is not made a constant of its own, which would lie in C order."""


def constant_name(value: Any) -> str | None:
    """The name of a constant argument, or None for any other value."""
    if not isinstance(value.owner, ir.Block):
        return None
    function = value.owner.owner.operation
    if function.name != "func.func":
        return None
    if "arg_attrs" not in function.attributes:
        return None
    attributes = ir.ArrayAttr(function.attributes["arg_attrs"])[ir.BlockArgument(value).arg_number]
    return str(ir.StringAttr(attributes[CONSTANT]).value) if CONSTANT in ir.DictAttr(attributes) else None


def constant_values(function: Any) -> set[Any]:
    """The values of a function that are constant: arguments, literals, and results of ops on nothing but those."""
    found = {a for a in function.regions[0].blocks[0].arguments if constant_name(a) is not None}
    for operation in body(function):
        if operation.name == "torch.vtensor.literal":
            found.add(operation.results[0])
        elif operation.name.startswith("torch.") and not is_constant(operation):
            tensors = tensor_operands(operation)
            if tensors and all(value in found for value in tensors):
                found.update(operation.results)
    return found


def tensor_operands(operation: Any) -> list[Any]:
    """Tensor operands, those inside a list operand included."""
    found = []
    for operand in operation.operands:
        source = defining(operand)
        if is_tensor(operand.type):
            found.append(operand)
        elif source is not None and source.name == "torch.prim.ListConstruct":
            found += [item for item in source.operands if is_tensor(item.type)]
    return found


VARIES = "hipdnn.varies"
