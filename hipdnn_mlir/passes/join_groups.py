"""hipdnn-join-groups: groups of a convolution with too few channels for the target's kernels become one group."""

from math import prod

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions
from ..ir.convolutions import change_operands, convolutions_of_constants
from ..ir.literals import literal
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument
from ..ir.view_chains import dims_of, reshaped
from ..targets.table import find_target
from ..targets.target import Target


@module_pass("hipdnn-join-groups")
def join_groups(module: ir.Operation, *, target: str = "host") -> None:
    """Join groups of convolutions until one has a multiple of the target's channels; weights between groups are zeros.

    The products are more, but there is a kernel for them. Depthwise convolutions have kernels of their own, and stay. A value that is
    not finite reaches the outputs of all groups that are joined.

    Before: `torch.aten.convolution %x, %w, ...` of 32 groups with 4 channels, %w: [128,4,3,3].
    After: the same of 16 groups with 8, %w: [128,8,3,3], of which half is zero.

    Args:
        module: the module operation.
        target: whose kernels to follow.
    """
    known = find_target(target)
    if not known.group_channels:
        return
    for function in functions(module):
        for convolution in convolutions_of_constants(function):
            _join(convolution, known)


def _join(convolution: torch.AtenConvolutionOp, target: Target) -> None:
    weight, groups = tensor_type(convolution.weight.type), argument(convolution.groups)
    if not weight.is_static or argument(convolution.transposed) or groups == 1:
        return
    outputs, channels, *_ = dims_of(convolution.weight)
    wanted = target.group_channels.get(weight.dtype, 1)
    is_depthwise = channels == 1 and outputs == groups
    if is_depthwise or channels >= wanted:
        return
    together = next((n for n in range(2, wanted + 1) if groups % n == 0 and channels * n % wanted == 0), None)
    if together is None:
        return
    with ir.InsertionPoint(convolution), convolution.location:
        joined = _block_diagonal(convolution.weight, groups, together)
        change_operands(convolution, weight=joined, groups=torch.constant_int(groups // together))


def _block_diagonal(weight: ir.Value, groups: int, together: int) -> ir.Value:
    """Filters whose groups are `together` of the former ones, with zeros for the channels of the others."""
    outputs, channels, *taps = dims_of(weight)
    dtype = tensor_type(weight.type).dtype
    parts = (groups // together, together, outputs // groups, 1, channels * prod(taps))
    own = literal(np.eye(together, dtype=dtype.numpy).reshape(1, together, 1, together, 1))
    spread = torch_tensor((*parts[:3], together, parts[4]), dtype)
    filters = torch.aten_mul_Tensor(spread, reshaped(weight, parts), own)
    return reshaped(filters, (outputs, channels * together, *taps))
