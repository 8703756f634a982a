"""Tensors and their types, as NumPy and the rest of the compiler have them."""

import ml_dtypes
import torch
from torch import Tensor

from hipdnn_mlir_runtime.dtypes import ALL, BF16, DType
from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ...ops.evaluate import Array

TORCH_DTYPES = {d.name: torch.bfloat16 if d is BF16 else getattr(torch, d.numpy.name) for d in ALL}
"""Element type as programs spell it -> PyTorch's."""
_BY_TORCH = {TORCH_DTYPES[d.name]: d for d in ALL}


def to_numpy(tensor: Tensor) -> Array:
    """A tensor's values, without a copy where they are dense in the host's memory."""
    dense = tensor.detach().cpu().contiguous()
    if dense.dtype is torch.bfloat16:
        return dense.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return dense.numpy()


def from_numpy(array: Array) -> Tensor:
    """A tensor in an array's memory."""
    if array.dtype == BF16.numpy:
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)


def dtype_of(dtype: torch.dtype, what: str) -> DType:
    """The row of a type.

    Raises:
        UnsupportedError: there is none.
    """
    if dtype not in _BY_TORCH:
        raise UnsupportedError([Reject(what, "dtype", f"element type {dtype}", what)])
    return _BY_TORCH[dtype]
