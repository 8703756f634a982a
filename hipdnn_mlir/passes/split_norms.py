"""hipdnn-split-norms: norms of few long rows are computed in three steps, each with work for a whole GPU."""

from math import prod

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions, operations
from ..ir.literals import constant_list
from ..ir.module_pass import module_pass
from ..ir.terms import number
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument
from ..ir.view_chains import dims_of, reshaped
from ..targets.table import find_target

_MOST_ROWS, _LEAST_SIZE = 64, 1 << 14
"""Each row has a block of a GPU with many more multiprocessors: one of 62,720 elements takes 100 us of an H100."""
_FIRST = 2
"""The first dim of a row: batch and groups are before it."""


@module_pass("hipdnn-split-norms")
def split_norms(module: ir.Operation, *, target: str = "host") -> None:
    """Compute mean and variance of a long row from those of its parts, which lie beside each other in the row's first dim.

    The variance of a row is the mean of its parts' variances and of the squares of what their means are off (Chan, Golub, LeVeque 1983).

    Before: `torch.aten.instance_norm` of `[1, 1, 320, 14, 14]`.
    After: means over the 320 channels and over their squared distances from them, both `[1, 1, 1, 14, 14]`; the mean and variance of those;
    a difference and a product.

    Args:
        module: the module operation.
        target: whose needs to follow: the host computes rows one after the other.
    """
    if find_target(target).architecture is None:
        return
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, torch.AtenInstanceNormOp) and _is_long(op):
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_in_parts(op))
                op.erase()


def _is_long(norm: torch.AtenInstanceNormOp) -> bool:
    kind = tensor_type(norm.input.type)
    if not kind.is_static or not argument(norm.use_input_stats):
        return False
    dims = kind.static_dims()
    has_parts = len(dims) > _FIRST + 1 and dims[_FIRST] > 1
    return has_parts and prod(dims[:_FIRST]) < _MOST_ROWS and prod(dims[_FIRST:]) >= _LEAST_SIZE


def _in_parts(norm: torch.AtenInstanceNormOp) -> ir.Value:
    x, rest = norm.input, tuple(range(_FIRST + 1, len(dims_of(norm.input))))
    part = _mean(x, (_FIRST,))
    variance_of_part = _mean(_squared(_sub(x, part)), (_FIRST,))
    mean = _mean(part, rest)
    variance = _mean(_add(variance_of_part, _squared(_sub(part, mean))), rest)
    shifted = torch.aten_add_Scalar(variance.type, variance, norm.eps, torch.constant_int(1))
    made = _mul(_sub(x, mean), torch.aten_rsqrt(variance.type, shifted))
    channels = (1, dims_of(x)[1], *(1,) * (len(rest) + 1))
    if argument(norm.weight) is not None and number(norm.weight) != 1:
        made = _mul(made, reshaped(norm.weight, channels))
    return made if argument(norm.bias) is None or number(norm.bias) == 0 else _add(made, reshaped(norm.bias, channels))


def _mean(value: ir.Value, axes: tuple[int, ...]) -> ir.Value:
    kind = tensor_type(value.type)
    dims = tuple(1 if axis in axes else size for axis, size in enumerate(kind.static_dims()))
    keeps, none = torch.constant_bool(True), torch.constant_none()
    return torch.aten_mean_dim(torch_tensor(dims, kind.dtype), value, constant_list(axes), keeps, none)


def _squared(value: ir.Value) -> ir.Value:
    return torch.aten_mul_Tensor(value.type, value, value)


def _sub(left: ir.Value, right: ir.Value) -> ir.Value:
    return torch.aten_sub_Tensor(left.type, left, right, torch.constant_int(1))


def _add(left: ir.Value, right: ir.Value) -> ir.Value:
    return torch.aten_add_Tensor(left.type, left, right, torch.constant_int(1))


def _mul(left: ir.Value, right: ir.Value) -> ir.Value:
    return torch.aten_mul_Tensor(left.type, left, right)
