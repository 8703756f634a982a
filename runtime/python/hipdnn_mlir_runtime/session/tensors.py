"""Arrays that stay in a device's memory: PyTorch's on a GPU where that is installed for it, else NumPy's; and what caches ask of both."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _runtime
from ..dtypes import BF16, find_numpy
from .arrays import Port

_TORCH_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def zeros(dims: Sequence[int], port: Port, device: _runtime.Device) -> Any:
    """Return an array of zeros with a port's type; raises MemoryError."""
    if not _has_torch(device):
        return np.zeros(tuple(dims), port.numpy_dtype)
    import torch

    try:
        made = torch.zeros(
            tuple(dims), dtype=getattr(torch, _TORCH_DTYPES[port.dtype]), device=f"cuda:{device.ordinal}"
        )
    except torch.OutOfMemoryError as error:
        raise MemoryError(str(error)) from error
    torch.cuda.synchronize(device.ordinal)  # runs are on another stream
    return made


def host_zeros(dims: Sequence[int], dtype: npt.DTypeLike, device: _runtime.Device) -> npt.NDArray[Any]:
    """Return a NumPy array of zeros, for runs that use it again and again: a GPU copies by itself to where pages are locked.

    Locked memory is PyTorch's, where that is installed for the GPU.
    """
    made = np.zeros(tuple(dims), dtype)
    if not _has_torch(device):
        return made
    import torch

    return torch.zeros(made.nbytes, dtype=torch.uint8, pin_memory=True).numpy().view(made.dtype).reshape(made.shape)


def _has_torch(device: _runtime.Device) -> bool:
    """Return whether PyTorch is installed for a GPU."""
    if device.port == "host" or importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def is_tensor(value: object) -> bool:
    """Return whether a value is PyTorch's."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def fill(target: Any, source: Any) -> None:
    """Copy elements from an array into one of the same shape and type, of either kind."""
    if not is_tensor(target):
        target[...] = _as_numpy(source, target.dtype) if is_tensor(source) else source
        return
    import torch

    if not is_tensor(source):
        is_bf16 = source.dtype.name == BF16.numpy_name
        dense = np.ascontiguousarray(source.view(np.int16) if is_bf16 else source)
        source = torch.from_numpy(dense).view(target.dtype) if is_bf16 else torch.from_numpy(dense)
    target.copy_(source)
    if target.is_cuda:
        torch.cuda.synchronize(target.device)


def _as_numpy(tensor: Any, dtype: np.dtype[Any]) -> Any:
    import torch

    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).cpu().numpy().view(dtype)
    return tensor.cpu().numpy()


def dtype_of(array: Any) -> str:
    """Return an array's type as program files spell it, or as itself where they have none."""
    if is_tensor(array):
        name = str(array.dtype).removeprefix("torch.")
        return next((known for known, spelled in _TORCH_DTYPES.items() if spelled == name), name)
    known = find_numpy(array.dtype)
    return str(array.dtype) if known is None else known.name


def base_of(array: Any) -> Any:
    """Return the array that an array is a view of, or None."""
    if is_tensor(array):
        return array._base  # noqa: SLF001 - PyTorch's name for what a view is of
    return array.base if isinstance(array, np.ndarray) else None


def begins_as(array: Any, other: Any) -> bool:
    """Return whether two arrays begin at one address, with the same steps from element to element."""
    if is_tensor(array) and is_tensor(other):
        return bool(array.data_ptr() == other.data_ptr() and array.stride() == other.stride())
    if is_tensor(array) or is_tensor(other):
        return False
    places = (each.__array_interface__["data"][0] for each in (array, other))
    return len(set(places)) == 1 and array.strides == other.strides
