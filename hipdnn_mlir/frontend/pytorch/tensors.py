"""Element types, as PyTorch and the rest of the compiler have them."""

import torch

from hipdnn_mlir_runtime.dtypes import ALL, BF16, DType
from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

TORCH_DTYPES = {d.name: torch.bfloat16 if d is BF16 else getattr(torch, d.numpy.name) for d in ALL}
"""Element type as programs spell it -> PyTorch's."""
_BY_TORCH = {TORCH_DTYPES[d.name]: d for d in ALL}


def dtype_of(dtype: torch.dtype, what: str) -> DType:
    """The row of a type.

    Raises:
        UnsupportedError: there is none.
    """
    if dtype not in _BY_TORCH:
        raise UnsupportedError([Reject(what, "dtype", f"element type {dtype}", what)])
    return _BY_TORCH[dtype]
