"""Data movement made at the current insertion point: borders, slices and joins (reshapes and transposes: view_chains)."""

from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir.dialects import torch

from .literals import constant_list, tensor_list
from .types import tensor_type, torch_tensor
from .view_chains import dims_of


def padded(value: ir.Value, borders: Sequence[tuple[int, int]]) -> ir.Value:
    """Zeros around the value: a pair of counts per dim."""
    if not any(map(any, borders)):
        return value
    sizes = tuple(low + size + high for size, (low, high) in zip(dims_of(value), borders, strict=True))
    counts = tuple(count for border in reversed(borders) for count in border)
    kind = torch_tensor(sizes, tensor_type(value.type).dtype)
    return torch.aten_constant_pad_nd(kind, value, constant_list(counts), torch.constant_float(0.0))


def sliced(value: ir.Value, axis: int, start: int, end: int) -> ir.Value:
    """The elements from `start` up to `end` along an axis."""
    dims = dims_of(value)
    kind = torch_tensor((*dims[:axis], end - start, *dims[axis + 1 :]), tensor_type(value.type).dtype)
    return torch.aten_slice_Tensor(kind, value, *map(torch.constant_int, (axis, start, end, 1)))


def joined(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Tensors side by side along an axis."""
    dims = dims_of(values[0])
    size = sum(dims_of(value)[axis] for value in values)
    kind = torch_tensor((*dims[:axis], size, *dims[axis + 1 :]), tensor_type(values[0].type).dtype)
    return torch.aten_cat(kind, tensor_list(values), torch.constant_int(axis))
