"""hipdnn-order-filters: store the constant filters of convolutions channels-last where the target's library reads images so."""

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions
from ..ir.constants import STAYS
from ..ir.convolutions import change_operands, convolutions_of_constants
from ..ir.layout import order_matters
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view_chains import dims_of, permuted
from ..targets.table import find_target


@module_pass("hipdnn-order-filters")
def order_filters(module: ir.Operation, *, target: str = "host") -> None:
    """Give convolutions a view of a constant filter that lies in memory as (k, r, s, c).

    Kernels for matrix units read adjacent channels of image and filter at once; a library that is given another order has to bring the
    filter into this one at every run, or has slower kernels for it.

    Before: `torch.aten.convolution %x, %w, ...` with `%w[64, 32, 3, 3]`.
    After: the same of a permuted view of `torch.aten.clone`, which is constant arithmetic, of `%w` permuted to [64, 3, 3, 32].

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    if not find_target(target).filters_channels_last:
        return
    for function in functions(module):
        ordered: dict[ir.Value, ir.Value] = {}
        for convolution in convolutions_of_constants(function):
            _order(convolution, ordered)


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
