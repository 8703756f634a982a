"""hipdnn-fold-batch-norm: move batch norm into the weights of the convolution before it."""

from torch_mlir import ir
from torch_mlir.dialects import torch

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
    """Fold one norm; what is made of `known` constants becomes known, for another norm may follow."""
    convolution = producer(norm.input)
    if not isinstance(convolution, torch.AtenConvolutionOp) or len(readers(norm.input)) != 1:
        return
    constants = [convolution.weight, norm.weight, norm.bias, norm.running_mean, norm.running_var]
    if argument(convolution.bias) is not None:
        constants.append(convolution.bias)
    if not known.issuperset(constants) or argument(norm.training):
        return
    if argument(convolution.transposed) and argument(convolution.groups) != 1:
        return
    if len({tensor_type(value.type).dtype for value in constants}) > 1:
        return
    with ir.InsertionPoint(norm), norm.location:  # its constants may be computed after the convolution
        weight, bias = _folded(convolution, norm)
        folded = with_operands(convolution, weight=weight, bias=bias)
    known |= {weight, bias}
    norm.result.replace_all_uses_with(folded.result)
    norm.erase()


def _folded(convolution: torch.AtenConvolutionOp, norm: torch.AtenBatchNormOp) -> tuple[ir.Value, ir.Value]:
    """The scaled weight and the new bias, as torch ops at the current insertion point."""
    mean, variance, kind, one = norm.running_mean, norm.running_var, norm.running_var.type, torch.constant_int(1)
    deviation = torch.aten_rsqrt(kind, torch.aten_add_Scalar(kind, variance, norm.eps, one))
    factor = torch.aten_mul_Tensor(kind, norm.weight, deviation)
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
