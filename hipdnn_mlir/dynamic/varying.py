"""Marks what depends on the dynamic dimensions of a model by comparing it at several sizes; no pass, since it sees several modules."""

from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.errors import DynamicDimensionError

from ..ir.blocks import functions, operations
from ..ir.constants import VARIES
from ..ir.types import is_tensor
from ..ir.view import node_name, op_name, producer


def mark_varying(modules: Sequence[ir.Operation]) -> None:
    """Set `hipdnn.varies` on ops whose results have other dims in one of the modules, literals of other values, and what they feed.

    Such ops are not evaluated at compile time, but literals are kept as constants, whose elements become expressions of the sizes.

    Args:
        modules: one model at several sizes of its inputs, in one context.

    Raises:
        DynamicDimensionError: the modules differ in more than numbers.
    """
    for parts in zip(*map(functions, modules), strict=True):
        bodies = [_body(function) for function in parts]
        if any(len(body) != len(bodies[0]) for body in bodies):
            for function in parts:
                _separate_literals(function)
            bodies = [_body(function) for function in parts]
        for number, same in enumerate(zip(*bodies, strict=False)):
            first = same[0]
            if any(op_name(op) != op_name(first) for op in same):
                raise DynamicDimensionError(
                    f"the operations differ between sizes of a dynamic dimension, from {op_name(first)} on",
                    where=node_name(first) or None,
                )
            if _varies(same):
                for op in same:
                    op.attributes[VARIES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _body(function: ir.OpView) -> list[ir.OpView]:
    return [op for op in operations(function) if _makes_tensors(op)]


def _separate_literals(function: ir.OpView) -> None:
    """Give each reader of a literal one of its own: MLIR merges those whose values are equal, at one size and not at another."""
    ops = list(operations(function))
    literals = [op for op in ops if isinstance(op, torch.ValueTensorLiteralOp)]
    for op in ops:
        for index, operand in enumerate(op.operands):
            literal = producer(operand)
            if isinstance(literal, torch.ValueTensorLiteralOp):
                with ir.InsertionPoint(op):
                    op.operands[index] = literal.operation.clone().results[0]
    for literal in literals:
        literal.operation.erase()


def _makes_tensors(op: ir.OpView) -> bool:
    """Numbers and lists come and go with what sizes happen to be equal."""
    return any(is_tensor(result.type) for result in op.results)


def _varies(same: Sequence[ir.OpView]) -> bool:
    """Whether an op depends on the dynamic dimensions, given it of each module."""
    first = same[0]
    if isinstance(first, torch.ValueTensorLiteralOp):
        return any(op.value != first.value for op in same)
    types = [[result.type for result in op.results] for op in same]
    feeds = (producer(operand) for operand in first.operands)
    return any(kinds != types[0] for kinds in types) or any(op is not None and VARIES in op.attributes for op in feeds)
