"""hipdnn-fold-batch-norm: move batch norm into the weights of the convolution before it, or write it out as a product and a sum."""

from collections.abc import Iterable

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import DType

from ..ir.blocks import erase_dead, functions, operations
from ..ir.constants import constant_values
from ..ir.convolutions import with_operands
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, producer, readers


@module_pass("hipdnn-fold-batch-norm")
def fold_batch_norm(module: ir.Operation) -> None:
    """Fold inference batch norm with constant statistics into the constant weights and bias of a convolution used by nothing else.

    All constants must have one dtype. A transposed convolution in groups is left alone: its weights are not ordered by output channel.
    A norm that cannot be folded, but has constant statistics, becomes x * s + (shift - mean * s), which fuses with what is around it.

    With s = scale / sqrt(variance + eps): w' = w * s (per output channel), bias' = (bias - mean) * s + shift. The products are torch ops
    on constants, which hipdnn-outline-constants evaluates at compile time.

    Before: `%y = torch.aten.convolution %x, %w, %none, ...`; `torch.aten.batch_norm %y, %scale, %shift, %mean, %variance, ...`.
    After: `torch.aten.convolution %x, %w_scaled, %bias, ...`.
    """
    for function in functions(module):
        norms = [op for op in operations(function) if isinstance(op, torch.AtenBatchNormOp)]
        constants = constant_values(function) if norms else set()
        for norm in norms:
            _fold(norm, constants)
        erase_dead(function)


def _fold(norm: torch.AtenBatchNormOp, known: set[ir.Value]) -> None:
    """Fold one norm, or write it out; what is made of `known` constants becomes known, for another norm may follow."""
    constants = [norm.weight, norm.bias, norm.running_mean, norm.running_var]
    if not known.issuperset(constants) or argument(norm.training) or len(_dtypes(constants)) > 1:
        return
    convolution = producer(norm.input)
    with ir.InsertionPoint(norm), norm.location:  # its constants may be computed after the convolution
        if isinstance(convolution, torch.AtenConvolutionOp) and _takes(convolution, norm, known):
            weight, bias = _folded(convolution, norm)
            known |= {weight, bias}
            written = with_operands(convolution, weight=weight, bias=bias).result
        elif _dtypes([norm.input, norm.result]) == _dtypes(constants):
            written = _written_out(norm)
        else:
            return
    norm.result.replace_all_uses_with(written)
    norm.erase()


def _dtypes(values: Iterable[ir.Value]) -> set[DType]:
    return {tensor_type(value.type).dtype for value in values}


def _takes(convolution: torch.AtenConvolutionOp, norm: torch.AtenBatchNormOp, known: set[ir.Value]) -> bool:
    """Whether a norm's factors can go into the weights of the convolution before it."""
    constants = [convolution.weight] if argument(convolution.bias) is None else [convolution.weight, convolution.bias]
    if len(readers(norm.input)) != 1 or not known.issuperset(constants):
        return False
    if argument(convolution.transposed) and argument(convolution.groups) != 1:
        return False
    return len(_dtypes([*constants, norm.weight])) == 1


def _written_out(norm: torch.AtenBatchNormOp) -> ir.Value:
    """The norm as a product and a sum, at the current insertion point."""
    one = torch.constant_int(1)
    factor = _factor(norm)
    kind = norm.running_mean.type
    shift = torch.aten_sub_Tensor(kind, norm.bias, torch.aten_mul_Tensor(kind, norm.running_mean, factor), one)
    data = tensor_type(norm.input.type)
    dims = (*tensor_type(kind).static_dims(), *[1] * (len(data.dims) - 2))
    factors, shifts = (
        torch.aten_view(torch_tensor(dims, data.dtype), value, constant_list(dims)) for value in (factor, shift)
    )
    scaled = torch.aten_mul_Tensor(norm.result.type, norm.input, factors)
    return torch.aten_add_Tensor(norm.result.type, scaled, shifts, one)


def _factor(norm: torch.AtenBatchNormOp) -> ir.Value:
    """A number for each channel: scale / sqrt(variance + eps)."""
    kind = norm.running_var.type
    deviation = torch.aten_rsqrt(kind, torch.aten_add_Scalar(kind, norm.running_var, norm.eps, torch.constant_int(1)))
    return torch.aten_mul_Tensor(kind, norm.weight, deviation)


def _folded(convolution: torch.AtenConvolutionOp, norm: torch.AtenBatchNormOp) -> tuple[ir.Value, ir.Value]:
    """The scaled weight and the new bias, as torch ops at the current insertion point."""
    mean, kind, one = norm.running_mean, norm.running_var.type, torch.constant_int(1)
    factor = _factor(norm)
    weight = convolution.weight
    shape = tensor_type(weight.type)
    axis = 1 if argument(convolution.transposed) else 0
    dims = tuple(size if i == axis else 1 for i, size in enumerate(shape.static_dims()))
    column = torch.aten_view(torch_tensor(dims, shape.dtype), factor, constant_list(dims))
    scaled = torch.aten_mul_Tensor(weight.type, weight, column)
    has_bias = argument(convolution.bias) is not None
    centred = torch.aten_sub_Tensor(kind, convolution.bias, mean, one) if has_bias else torch.aten_neg(kind, mean)
    bias = torch.aten_add_Tensor(kind, torch.aten_mul_Tensor(kind, centred, factor), norm.bias, one)
    return scaled, bias
