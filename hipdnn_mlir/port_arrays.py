"""Inputs and outputs of a program, and arrays in the form that the runtime takes for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import BF16, BY_NAME, BY_NUMPY
from .errors import ModelError

_ALIGNMENT = 16
"""Bytes: what hipDNN asks of a tensor's pointer unless its descriptor says otherwise."""

_HOST_MEMORY = (1, 3, 11)
"""DLPack's kinds of it: a CPU's, pinned for CUDA, pinned for ROCm."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Port:
    """One input or output.

    Attributes:
        name: Name as in the ONNX model.
        dtype: Element type as program files spell it, such as ``f32``.
        shape: Dims; an open one is the name of its size, or an expression of such names.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of its arrays (that of ``ml_dtypes`` for bf16)."""
        return BY_NAME[self.dtype].numpy

    def __str__(self) -> str:
        """Return dtype and shape, ``f32[1,3,224,224]``."""
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def check(array: Array, port: Port) -> None:
    """Refuse an array whose dtype or shape is not the port's; the runtime checks open dims."""
    if array.dtype != port.numpy_dtype or (array.shape != port.shape and not _may_fit(array.shape, port.shape)):
        known = BY_NUMPY.get(array.dtype)
        got = f"{known.name if known else array.dtype}[{','.join(map(str, array.shape))}]"
        raise ModelError("wrong array", where=f"'{port.name}'", expected=str(port), got=got)


def _may_fit(got: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    return len(got) == len(shape) and all(isinstance(b, str) or a == b for a, b in zip(got, shape, strict=True))


def is_aligned(array: Array) -> bool:
    """Return whether an array starts where hipDNN takes it."""
    return bool(array.__array_interface__["data"][0] % _ALIGNMENT == 0)


def is_on_device(array: Any) -> bool:
    """Return whether an array says that it is in the memory of a device."""
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack_device__"):
        return False
    return array.__dlpack_device__()[0] not in _HOST_MEMORY


def view_bf16(array: Any) -> Any:
    """NumPy cannot export bfloat16: such arrays cross as 16-bit unsigned integers."""
    return array.view(np.uint16) if isinstance(array, np.ndarray) and array.dtype == BF16.numpy else array


def to_native(value: Any, port: Port) -> Any:
    """Return an input in the form the runtime takes: as it is where dtype and layout allow, else a dense copy."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        if not hasattr(value, "__dlpack__"):
            raise ModelError("not an array", where=f"'{port.name}'", expected=str(port), got=type(value).__name__)
        return value
    check(value, port)
    if not value.flags.c_contiguous or not is_aligned(value):
        value = value.copy(order="C")
    return view_bf16(value)


def from_native(array: Array, port: Port) -> Array:
    """Return an output of the runtime as the array that the caller gets."""
    return array.view(BF16.numpy) if port.dtype == BF16.name else array


def as_bytes(array: Array) -> Array:
    """Return an array's bytes, without a copy where it is dense and aligned."""
    if not array.flags.c_contiguous or not is_aligned(array):
        array = array.copy(order="C")
    return array.reshape(-1).view(np.uint8)
