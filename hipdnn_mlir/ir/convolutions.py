"""Convolutions: those whose filters are constant, and one made like another."""

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from .blocks import operations
from .constants import constant_values

_OPERANDS = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups")


def convolutions_of_constants(function: func.FuncOp) -> list[torch.AtenConvolutionOp]:
    """The convolutions of a function whose filters are constant."""
    found = [op for op in operations(function) if isinstance(op, torch.AtenConvolutionOp)]
    constants = constant_values(function) if found else set()
    return [op for op in found if op.weight in constants]


def with_operands(op: torch.AtenConvolutionOp, **operands: ir.Value) -> torch.AtenConvolutionOp:
    """The convolution with other operands, by their names, made at the current insertion point."""
    given = {name: operands.get(name, getattr(op, name)) for name in _OPERANDS}
    return torch.AtenConvolutionOp(op.result.type, **given, loc=op.location)


def change_operands(op: torch.AtenConvolutionOp, **operands: ir.Value) -> None:
    """Put a convolution with other operands, by their names, in the place of one."""
    with ir.InsertionPoint(op):
        op.result.replace_all_uses_with(with_operands(op, **operands).result)
    op.erase()
