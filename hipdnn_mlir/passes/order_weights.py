"""hipdnn-order-weights: store constant filters and matrices in the order in which the target's libraries read them."""

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions, operations
from ..ir.constants import STAYS, constant_values
from ..ir.convolutions import change_operands, convolutions_of_constants
from ..ir.layout import order_matters
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import producer
from ..ir.view_chains import dims_of, movement_of, permuted
from ..ops.spec import Permute
from ..targets.table import find_target


@module_pass("hipdnn-order-weights")
def order_weights(module: ir.Operation, *, target: str = "host") -> None:
    """Store filters of convolutions as (k, r, s, c), and right operands of matmuls with their columns along memory.

    Kernels for matrix units read adjacent channels of image and filter at once; a library that is given another order has to bring the
    filter into this one at every run, or has slower kernels for it. A matmul of few rows reads each column as one line of memory.

    Before: `torch.aten.convolution %x, %w, ...` with `%w[64, 32, 3, 3]`; `torch.aten.matmul %x, %m` with `%m[768, 3072]`.
    After: the convolution of a permuted view of `torch.aten.clone`, which is constant arithmetic, of `%w` permuted to [64, 3, 3, 32];
    `torch.aten.linear %x, %n` with `%n[3072, 768]`, a clone of `%m` permuted.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    library = find_target(target)
    for function in functions(module):
        ordered: dict[ir.Value, ir.Value] = {}
        if library.filters_channels_last:
            for convolution in convolutions_of_constants(function):
                _order(convolution, ordered)
        if library.matrices_by_columns:
            constants = constant_values(function)
            for op in operations(function):
                if isinstance(op, torch.AtenMatmulOp | torch.AtenMmOp) and op.operands[1] in constants:
                    _by_columns(op, ordered)


def _by_columns(matmul: torch.AtenMatmulOp | torch.AtenMmOp, ordered: dict[ir.Value, ir.Value]) -> None:
    x, weight = matmul.operands
    if len(dims_of(weight)) != 2 or len(dims_of(x)) < 2 or not tensor_type(weight.type).is_static:
        return
    with ir.InsertionPoint(matmul), matmul.location:
        if weight not in ordered:
            ordered[weight] = _columns(weight)
        made = torch.aten_linear(matmul.result.type, x, ordered[weight], torch.constant_none())
    matmul.result.replace_all_uses_with(made)
    matmul.erase()


def _columns(weight: ir.Value) -> ir.Value:
    """The weight transposed: what the model itself transposes, as embeddings that are the last layer's weights, or a stored copy."""
    source = producer(weight)
    if source is not None and movement_of(source) == Permute((1, 0)) and producer(source.operands[0]) is None:
        return source.operands[0]
    columns = permuted(weight, (1, 0))
    return torch.aten_clone(columns.type, columns, torch.constant_none())


def _order(convolution: torch.AtenConvolutionOp, ordered: dict[ir.Value, ir.Value]) -> None:
    weight, kind = convolution.weight, tensor_type(convolution.weight.type)
    if not kind.is_static or not order_matters(kind.static_dims()):
        return
    if weight not in ordered:
        with ir.InsertionPoint(convolution), convolution.location:
            ordered[weight] = _channels_last(weight)
    change_operands(convolution, weight=ordered[weight])


def _channels_last(weight: ir.Value) -> ir.Value:
    """The weight, stored with channels innermost and seen with its own dims."""
    rank = len(dims_of(weight))
    inner = permuted(weight, (0, *range(2, rank), 1))
    stored = torch.aten_clone(inner.type, inner, torch.constant_none())
    seen = permuted(stored, (0, rank - 1, *range(1, rank - 1)))
    seen.owner.attributes[STAYS] = ir.UnitAttr.get()
    return seen
