"""hipdnn-order-filters: store the constant filters of convolutions channels-last where the target's library reads images so."""

from typing import Any

from torch_mlir import ir

from ..ir.blocks import functions
from ..ir.constants import STAYS
from ..ir.convolutions import CONV_W, convolutions_of_constants
from ..ir.layout import order_matters
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..targets.target import find_target


@module_pass("hipdnn-order-filters")
def order_filters(module: Any, *, target: str = "host") -> None:
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
        ordered: dict[Any, Any] = {}
        for convolution in convolutions_of_constants(function):
            _order(convolution, ordered)


def _order(convolution: Any, ordered: dict[Any, Any]) -> None:
    weight = convolution.operands[CONV_W]
    kind = tensor_type(weight.type)
    if not kind.is_static or not order_matters(kind.static_dims()):
        return
    if weight not in ordered:
        with ir.InsertionPoint(convolution), convolution.location:
            ordered[weight] = _channels_last(weight)
    convolution.operands[CONV_W] = ordered[weight]


def _channels_last(weight: Any) -> Any:
    """The weight, stored with channels innermost and seen with its own dims."""
    kind = tensor_type(weight.type)
    rank = len(kind.static_dims())
    inner = _permuted(weight, (0, *range(2, rank), 1))
    none = ir.Operation.create("torch.constant.none", results=[ir.Type.parse("!torch.none")]).result
    stored = ir.Operation.create("torch.aten.clone", results=[inner.type], operands=[inner, none]).result
    seen = _permuted(stored, (0, rank - 1, *range(1, rank - 1)))
    seen.owner.operation.attributes[STAYS] = ir.UnitAttr.get()
    return seen


def _permuted(value: Any, order: tuple[int, ...]) -> Any:
    kind = tensor_type(value.type)
    result = torch_tensor(tuple(kind.static_dims()[axis] for axis in order), kind.dtype)
    return ir.Operation.create("torch.aten.permute", results=[result], operands=[value, constant_list(order)]).result
