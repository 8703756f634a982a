"""A DLPack array that says that it lies on another GPU, as PyTorch's arrays of that GPU do."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

ROCM, FLOAT = 10, 2
"""Numbers of DLPack (dlpack.h, version 0.8)."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OnOtherGpu:
    """Memory of f32 at an address on a GPU of this number."""

    def __init__(self, address: int, shape: Sequence[int], device: int) -> None:
        self._dims = (ctypes.c_int64 * len(shape))(*shape)
        self._managed = _Managed(
            _Tensor(address, ROCM, device, len(shape), FLOAT, 32, 1, self._dims, None, 0), None, None
        )

    def __dlpack__(self, **_: Any) -> Any:
        return _new_capsule(ctypes.addressof(self._managed), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return ROCM, self._managed.tensor.device_id
