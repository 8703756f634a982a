"""Convolutions: those whose filters are constant, and one made like another."""

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from .blocks import operations
from .constants import constant_values

CONV_X, CONV_W, CONV_TRANSPOSED, CONV_GROUPS = 0, 1, 6, 8


def convolutions_of_constants(function: func.FuncOp) -> list[torch.AtenConvolutionOp]:
    """The convolutions of a function whose filters are constant."""
    found = [op for op in operations(function) if isinstance(op, torch.AtenConvolutionOp)]
    constants = constant_values(function) if found else set()
    return [op for op in found if op.weight in constants]


def with_filters(op: torch.AtenConvolutionOp, weight: ir.Value, bias: ir.Value) -> torch.AtenConvolutionOp:
    """The convolution with other filters and another bias, made at the current insertion point."""
    geometry = (op.stride, op.padding, op.dilation, op.transposed, op.output_padding, op.groups)
    return torch.AtenConvolutionOp(op.result.type, op.input, weight, bias, *geometry, loc=op.location)
