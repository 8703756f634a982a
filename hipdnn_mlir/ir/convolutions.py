"""Convolutions: those whose filters are constant, what they are, and one made like another."""

from math import prod

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from .blocks import operations
from .constants import constant_values
from .types import tensor_type
from .view import argument, producer, readers
from .view_chains import dims_of

_OPERANDS = ("input", "weight", "bias", "stride", "padding", "dilation", "transposed", "output_padding", "groups")


def convolutions_of_constants(function: func.FuncOp) -> list[torch.AtenConvolutionOp]:
    """The convolutions of a function whose filters are constant."""
    found = [op for op in operations(function) if isinstance(op, torch.AtenConvolutionOp)]
    constants = constant_values(function) if found else set()
    return [op for op in found if op.weight in constants]


def lone_convolution(value: ir.Value, constants: set[ir.Value]) -> torch.AtenConvolutionOp | None:
    """The convolution that a value is, which one op alone reads, with constant filter and bias, static dims and one type throughout."""
    op = producer(value)
    if not isinstance(op, torch.AtenConvolutionOp) or len(readers(value)) != 1 or argument(op.transposed):
        return None
    own = [op.weight] if argument(op.bias) is None else [op.weight, op.bias]
    kinds = [tensor_type(operand.type) for operand in (*own, op.input, op.result)]
    is_known = constants.issuperset(own) and all(kind.is_static for kind in kinds)
    return op if is_known and len({kind.dtype for kind in kinds}) == 1 else None


def is_of_one_pixel(convolution: torch.AtenConvolutionOp) -> bool:
    """Whether a convolution multiplies the channels of a pixel by all of a filter, as a matmul does."""
    kinds = [tensor_type(value.type) for value in (convolution.input, convolution.weight, convolution.result)]
    if (
        not all(kind.is_static for kind in kinds)
        or argument(convolution.transposed)
        or argument(convolution.groups) != 1
    ):
        return False
    has_exact_sums = kinds[0].dtype is not kinds[2].dtype  # which a matmul's would not be
    return not has_exact_sums and all(prod(kind.static_dims()[2:]) == 1 for kind in kinds)


def with_operands(
    op: torch.AtenConvolutionOp, kind: ir.Type | None = None, **operands: ir.Value
) -> torch.AtenConvolutionOp:
    """The convolution with other operands, by their names, made at the current insertion point; `kind` is the result's type, if another."""
    given = {name: operands.get(name, getattr(op, name)) for name in _OPERANDS}
    return torch.AtenConvolutionOp(kind or op.result.type, **given, loc=op.location)


def change_operands(op: torch.AtenConvolutionOp, **operands: ir.Value) -> None:
    """Put a convolution with other operands, by their names, in the place of one."""
    with ir.InsertionPoint(op):
        op.result.replace_all_uses_with(with_operands(op, **operands).result)
    op.erase()


def borders(large: torch.AtenConvolutionOp, small: torch.AtenConvolutionOp) -> list[int] | None:
    """Zeros on either side of each dim that make a filter as large as another one, in steps of which both are applied alike.

    Returns:
        How many, along each dim of the image; None where no zeros do.
    """
    found = []
    sizes = zip(dims_of(large.weight)[2:], dims_of(small.weight)[2:], strict=True)
    paddings, dilations = (
        zip(argument(getattr(large, name)), argument(getattr(small, name)), strict=True)
        for name in ("padding", "dilation")
    )
    for (size, inner), (padding, inner_padding), (dilation, inner_dilation) in zip(
        sizes, paddings, dilations, strict=True
    ):
        border, rest = divmod(size - inner, 2)
        is_apart = inner > 1 and dilation != inner_dilation
        if rest or border < 0 or is_apart or padding - inner_padding != border * dilation:
            return None
        found.append(border)
    return found
