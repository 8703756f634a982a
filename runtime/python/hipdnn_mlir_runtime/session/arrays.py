"""Inputs and outputs of a program, and arrays and streams in the form that the runtime takes for them: NumPy's, DLPack's, hip-python's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _runtime
from ..dtypes import BY_NAME, CODED_BY_NAME, DType, find_numpy, is_foreign
from ..errors import ModelError

ALIGNMENT = 16
"""Bytes: what hipDNN asks of a tensor's pointer unless its descriptor says otherwise."""

_HOST_MEMORY = (1, 3, 11)
"""DLPack's kinds of it: a CPU's, pinned for CUDA, pinned for ROCm."""

_NO_END = (1 << 63) - 1
"""From this number on a span has no end."""
_LEGACY_STREAM = 1
"""How the CUDA array interface writes the default stream, whose address is 0."""

_POINTER = "as_c_void_p"
"""What hip-python's pointers have, which know an address alone."""

_DLPACK_DEVICES = {"cuda": 2, "hip": 10}
"""Port -> DLPack's number for the kind of its memory."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Port:
    """One input or output.

    Attributes:
        name: Name as in the ONNX model.
        dtype: Element type as program files spell it, such as ``f32``.
        shape: Dims; an open one is the name of its size, or an expression of such names.
        coded: The type whose codes it has, such as ``i4``; empty where they are the elements themselves.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    coded: str = ""

    @property
    def _stated(self) -> DType:
        return CODED_BY_NAME[self.coded] if self.coded else BY_NAME[self.dtype]

    @property
    def numpy_dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of its arrays (that of ``ml_dtypes`` for bf16 and what has at most 8 bits and is not i8, u8 or bool)."""
        return self._stated.numpy

    @property
    def type(self) -> str:
        """The type as ONNX Runtime spells it, such as ``tensor(float)``."""
        return f"tensor({self._stated.onnx.lower()})"

    @property
    def fixed_dims(self) -> tuple[int, ...] | None:
        """The dims; None where one is open."""
        dims = tuple(dim for dim in self.shape if isinstance(dim, int))
        return dims if len(dims) == len(self.shape) else None

    def __str__(self) -> str:
        """Return dtype and shape, ``f32[1,3,224,224]``."""
        return f"{self._stated.name}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class _DeviceArray:
    """Memory of a GPU as DLPack has it.

    Attributes:
        device: The device.
        address: Where it begins.
        shape: Its dims.
        strides: In elements; None where it is dense.
        dtype: Element type as program files spell it.
        owner: What keeps the memory alive.
    """

    device: _runtime.Device
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: str
    owner: object

    def __dlpack__(self, **_: Any) -> Any:
        return _runtime.device_array(self.device, self.address, self.shape, self.strides, self.dtype, self.owner)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_DEVICES[self.device.port], self.device.ordinal


def names_of(ports: Sequence[Port]) -> str:
    """Return names, for messages."""
    return ", ".join(f"'{port.name}'" for port in ports) or "none"


def check_names(feeds: object, inputs: Sequence[Port]) -> None:
    """Refuse feeds whose names are not those of inputs.

    Raises:
        ModelError: It is no mapping, or a name is missing or unknown.
    """
    if not isinstance(feeds, (dict, Mapping)):  # a Mapping alone is looked up in 0.1 us
        message, expected = "the inputs are no dict", f"a dict with {names_of(inputs)}"
        raise ModelError(message, expected=expected, got=type(feeds).__name__)
    if len(feeds) != len(inputs) or any(port.name not in feeds for port in inputs):
        missing = [f"'{port.name}'" for port in inputs if port.name not in feeds]
        unknown = [f"'{name}'" for name in feeds if name not in {port.name for port in inputs}]
        clauses = {"no input": unknown, "missing input": missing}
        message = ", ".join(f"{clause} {', '.join(names)}" for clause, names in clauses.items() if names)
        raise ModelError(message, expected=names_of(inputs))


def to_input(value: Any, port: Port, device: _runtime.Device, stream: int | None = None) -> Any:
    """Return an input in the form the runtime takes: as it is where dtype and layout allow, else a dense copy.

    Args:
        value: The caller's array.
        port: The input.
        device: Where it is read.
        stream: The stream of the run, where the caller has said.

    Raises:
        ModelError: It is no array, or not of the port's dtype and shape.
        DeviceError: The stream that the array is written on has failed.
    """
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return _of_others(value, port, device, stream, is_written=False)
    check_array(value, port)
    if not value.flags.c_contiguous or not _is_aligned(value):
        value = value.copy(order="C")
    return _as_stored(value)


def to_output(value: Any, port: Port, device: _runtime.Device, stream: int | None = None) -> Any:
    """Return the caller's array for an output in the form the runtime takes; arguments and errors as for ``to_input``."""
    if not isinstance(value, np.ndarray):
        return _of_others(value, port, device, stream, is_written=True)
    check_array(value, port)
    if not (value.flags.c_contiguous and value.flags.writeable and _is_aligned(value)):
        expected = "a writable, dense array aligned to 16 bytes"
        raise ModelError("cannot be written in place", where=f"'{port.name}'", expected=expected)
    return _as_stored(value)


def is_on_device(array: Any) -> bool:
    """Return whether an array says that it is in the memory of a device."""
    if isinstance(array, np.ndarray):
        return False
    if hasattr(array, "__dlpack_device__"):
        return array.__dlpack_device__()[0] not in _HOST_MEMORY
    return hasattr(array, "__cuda_array_interface__") or hasattr(array, _POINTER)


def check_sizing(name: str, array: Any, numbers: Sequence[Sequence[tuple[int, int]]]) -> None:
    """Refuse an input that asks for other sizes of results than the program has; one in the memory of a device is not looked at.

    Args:
        name: The input.
        array: What it was given.
        numbers: Per element spans of the numbers that it may be, first and last.

    Raises:
        ModelError: An element is none of its numbers.
    """
    if is_on_device(array):
        return
    given = np.asarray(array).reshape(-1).tolist()
    pairs = zip(given, numbers, strict=True)
    if all(any(first <= number <= last for first, last in spans) for number, spans in pairs):
        return
    raise ModelError(
        "it decides sizes of results, and the program was compiled for others",
        where=f"'{name}'",
        expected=f"[{', '.join(' or '.join(map(_shown, spans)) or 'none' for spans in numbers)}]",
        got=str(given),
        hint="compile the model with this input as a constant",
    )


def _shown(span: tuple[int, int]) -> str:
    first, last = span
    if first == last:
        return str(first)
    if abs(first) >= _NO_END and abs(last) >= _NO_END:
        return "any"
    if abs(last) >= _NO_END:
        return f"{first} and more"
    return f"{last} and less" if abs(first) >= _NO_END else f"{first} to {last}"


def from_native(array: Array, port: Port) -> Array:
    """Return an output of the runtime's with the port's dtype."""
    dtype = port.numpy_dtype
    return array if array.dtype == dtype else array.view(dtype)


def as_bytes(array: Array) -> Array:
    """Return an array's bytes, without a copy where it is dense and aligned."""
    if not array.flags.c_contiguous or not _is_aligned(array):
        array = array.copy(order="C")
    return array.reshape(-1).view(np.uint8)


def stream_address(stream: Any) -> int:
    """Return the address of a stream: an int, an object with ``__cuda_stream__``, or one that int() takes, such as hip-python's.

    Raises:
        ModelError: It is none of these.
    """
    told = getattr(stream, "__cuda_stream__", None)
    if told is not None:
        _, address = told() if callable(told) else told
        return int(address)
    if isinstance(stream, bool | float | str | bytes) or not hasattr(stream, "__int__"):
        expected = "an address, a stream of hip-python, or an object with __cuda_stream__"
        raise ModelError("not a stream", expected=expected, got=type(stream).__name__)
    return int(stream)


def _of_others(value: Any, port: Port, device: _runtime.Device, stream: int | None, *, is_written: bool) -> Any:
    """Return what is no NumPy array: as it is where it speaks DLPack, which says more than the CUDA array interface."""
    if hasattr(value, "__dlpack__"):
        return value
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is None and not hasattr(value, _POINTER):
        raise ModelError("not an array", where=f"'{port.name}'", expected=str(port), got=type(value).__name__)
    if device.port == "host":
        raise ModelError(
            "memory of a GPU",
            where=f"'{port.name}'",
            expected="an array in the host's memory",
            got=type(value).__name__,
        )
    if interface is None:
        return _device_array(value, port, device, {"data": (int(value), False)}, is_written=is_written)
    ready_on = interface.get("stream")
    if ready_on is not None:
        address = 0 if ready_on == _LEGACY_STREAM else int(ready_on)
        if address != stream:
            device.synchronize(address)
    return _device_array(value, port, device, interface, is_written=is_written)


def _device_array(
    value: Any, port: Port, device: _runtime.Device, interface: dict[str, Any], *, is_written: bool
) -> _DeviceArray:
    """Return memory that an interface describes; of a block of bytes, or an address alone, the port says the rest."""

    def wrong(message: str, expected: str | None = None, got: str | None = None) -> ModelError:
        return ModelError(message, where=f"'{port.name}'", expected=expected or str(port), got=got)

    address, is_read_only = interface["data"]
    dims, dtype = port.fixed_dims, port.numpy_dtype
    if "shape" in interface:
        try:
            found = np.dtype(interface["typestr"])
        except TypeError as error:
            raise wrong("unknown typestr", got=repr(interface["typestr"])) from error
        given = tuple(interface["shape"])
        is_block = dims is not None and found.itemsize == 1 and given == (math.prod(dims) * dtype.itemsize,)
        if not is_block:
            dims, dtype = given, found
    if dims is None:
        raise wrong("an address has no sizes", got=type(value).__name__)
    known = find_numpy(dtype)
    if known is None:
        raise wrong("wrong array", got=str(dtype))
    if interface.get("mask") is not None:
        raise wrong("a masked array", expected="an array without a mask")
    if is_written and is_read_only:
        raise wrong("cannot be written in place", expected="a writable array")
    if not address and math.prod(dims) > 0:
        raise wrong("a null pointer")
    strides = interface.get("strides")
    if strides is not None and any(stride % dtype.itemsize for stride in strides):
        raise wrong("strides between elements", expected="a dense array", got=str(strides))
    elements = None if strides is None else tuple(stride // dtype.itemsize for stride in strides)
    return _DeviceArray(device, address, dims, elements, known.name, value)


def check_array(array: Array, port: Port, where: str = "") -> None:
    """Refuse an array whose dtype or shape is not the port's; the runtime checks dynamic ones.

    Args:
        array: The array.
        port: The input or output.
        where: What the message begins with.

    Raises:
        ModelError: It is of another dtype or shape.
    """
    if array.dtype != port.numpy_dtype or (array.shape != port.shape and not _may_fit(array.shape, port.shape)):
        known = find_numpy(array.dtype)
        got = f"{known.name if known else array.dtype}[{','.join(map(str, array.shape))}]"
        raise ModelError("wrong array", where=f"{where}'{port.name}'", expected=str(port), got=got)


def _may_fit(got: tuple[int, ...], shape: tuple[int | str, ...]) -> bool:
    return len(got) == len(shape) and all(isinstance(b, str) or a == b for a, b in zip(got, shape, strict=True))


def _is_aligned(array: Array) -> bool:
    return bool(array.__array_interface__["data"][0] % ALIGNMENT == 0)


def _as_stored(array: Array) -> Array:
    """NumPy cannot export types of ml_dtypes: such arrays cross as unsigned integers."""
    return array.view(f"u{array.dtype.itemsize}") if is_foreign(array.dtype) else array
