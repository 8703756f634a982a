"""hipdnn-fold-batch-norm: move batch norm into the weights of the convolution before it."""

from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, erase_dead, functions
from ..ir.constants import constant_values
from ..ir.convolutions import CONV_BIAS, CONV_GROUPS, CONV_TRANSPOSED, CONV_W
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, defining


@module_pass("hipdnn-fold-batch-norm")
def fold_batch_norm(module: Any) -> None:
    """Fold inference batch norm with constant statistics into the constant weights and bias of a convolution used by nothing else.

    All constants must have one dtype. A transposed convolution in groups is left alone: its weights are not ordered by output channel.

    With s = scale / sqrt(variance + eps): w' = w * s (per output channel), bias' = (bias - mean) * s + shift. The products are torch ops
    on constants, which hipdnn-outline-constants evaluates at compile time.

    Before: `%y = torch.aten.convolution %x, %w, %none, ...`; `torch.aten.batch_norm %y, %scale, %shift, %mean, %variance, ...`.
    After: `torch.aten.convolution %x, %w_scaled, %bias, ...`.
    """
    for function in functions(module):
        norms = [operation for operation in body(function) if operation.name == "torch.aten.batch_norm"]
        constants = constant_values(function) if norms else set()
        for norm in norms:
            _fold(norm, constants)
        erase_dead(function)


def _fold(norm: Any, known: set[Any]) -> None:
    """Fold one norm; what is made of `known` constants becomes known, for another norm may follow."""
    convolution = defining(norm.operands[0])
    if convolution is None or convolution.name != "torch.aten.convolution" or len(list(norm.operands[0].uses)) != 1:
        return
    has_bias = argument(convolution.operands[CONV_BIAS]) is not None
    constants = [
        convolution.operands[CONV_W],
        *list(norm.operands)[1:5],
        *([convolution.operands[CONV_BIAS]] if has_bias else []),
    ]
    if not known.issuperset(constants) or argument(norm.operands[5]):
        return
    if argument(convolution.operands[CONV_TRANSPOSED]) and argument(convolution.operands[CONV_GROUPS]) != 1:
        return
    if len({tensor_type(value.type).dtype for value in constants}) > 1:
        return
    convolution.move_before(norm)  # whose constants may be computed after the convolution
    with ir.InsertionPoint(convolution), norm.location:
        weight, bias = _folded(convolution, norm, has_bias=has_bias)
    known |= {weight, bias}
    convolution.operands[CONV_W] = weight
    convolution.operands[CONV_BIAS] = bias
    norm.results[0].replace_all_uses_with(convolution.results[0])
    norm.erase()


def _folded(convolution: Any, norm: Any, *, has_bias: bool) -> tuple[Any, Any]:
    """The scaled weight and the new bias, as torch ops at the current insertion point."""
    scale, shift, mean, variance = list(norm.operands)[1:5]
    kind = variance.type
    one = torch.constant_int(1)
    deviation = _op("torch.aten.rsqrt", kind, _op("torch.aten.add.Scalar", kind, variance, norm.operands[7], one))
    factor = _op("torch.aten.mul.Tensor", kind, scale, deviation)
    weight = convolution.operands[CONV_W]
    shape = tensor_type(weight.type)
    axis = 1 if argument(convolution.operands[CONV_TRANSPOSED]) else 0
    dims = tuple(size if i == axis else 1 for i, size in enumerate(shape.static_dims()))
    column = _op("torch.aten.view", torch_tensor(dims, shape.dtype), factor, constant_list(dims))
    scaled = _op("torch.aten.mul.Tensor", weight.type, weight, column)
    centred = (
        _op("torch.aten.sub.Tensor", kind, convolution.operands[CONV_BIAS], mean, one)
        if has_bias
        else _op("torch.aten.neg", kind, mean)
    )
    bias = _op("torch.aten.add.Tensor", kind, _op("torch.aten.mul.Tensor", kind, centred, factor), shift, one)
    return scaled, bias


def _op(name: str, kind: Any, *operands: Any) -> Any:
    return ir.Operation.create(name, results=[kind], operands=list(operands)).result
