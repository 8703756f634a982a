"""Element types, as PyTorch and the rest of the compiler have them."""

import torch

from hipdnn_mlir_runtime.dtypes import ALL, DType
from hipdnn_mlir_runtime.errors import Reject, UnsupportedError
from hipdnn_mlir_runtime.torch import TORCH_DTYPES

_BY_TORCH = {TORCH_DTYPES[d.name]: d for d in ALL}


def dtype_of(dtype: torch.dtype, what: str) -> DType:
    """The row of a type.

    Raises:
        UnsupportedError: there is none.
    """
    if dtype not in _BY_TORCH:
        raise UnsupportedError([Reject(what, "dtype", f"element type {dtype}", what)])
    return _BY_TORCH[dtype]
