"""Arrays and streams that are not NumPy's, where the session runs on the host. rocm/test_hip_python.py has memory of a GPU."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Port, stream_address, to_input, to_output
from hipdnn_mlir_runtime.session.devices import open_device
from hipdnn_mlir_runtime.session.options import device_options
from hipdnn_mlir_runtime.session.session import Session
from runtime_programs import Array, relu_of_sum

SHAPE = (2, 3)


class OnGpu:
    """What numba or hip-python show of memory."""

    def __init__(self, array: Array) -> None:
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": array.dtype.str, "data": (1 << 20, False)}


class Pointer:
    """What hip-python's pointers are."""

    as_c_void_p = ctypes.c_void_p(1 << 20)

    def __int__(self) -> int:
        return 1 << 20


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(relu_of_sum(SHAPE), threads=1)


@pytest.fixture
def values() -> dict[str, Array]:
    return {name: np.ones(SHAPE, np.float32) for name in "ab"}


class OnGpuByDlpack:
    """What PyTorch shows of memory."""

    def __init__(self, array: Array) -> None:
        device = open_device(device_options({}, "host", is_tf32=False))
        self._make = lambda: _runtime.device_array(device, array.ctypes.data, array.shape, None, "f32", array)

    def __dlpack__(self, **_: Any) -> Any:
        return self._make()


@pytest.mark.parametrize("make", [OnGpu, lambda _: Pointer(), OnGpuByDlpack])
def test_memory_of_a_gpu_is_refused_on_the_host(session: Session, values: dict[str, Array], make: Any) -> None:
    array = np.zeros(SHAPE, np.float32)
    with pytest.raises(ModelError, match=r"'b'.*(memory of the host|the host's memory)"):
        session.run(None, values | {"b": make(array)})
    with pytest.raises(ModelError, match=r"'y'.*(memory of the host|the host's memory)"):
        session.run(None, values, out={"y": make(array)})


class Device:
    """A device of the port ``hip``, as far as arrays are looked at before it is used."""

    port, ordinal = "hip", 2

    def __init__(self) -> None:
        self.waited: list[int] = []

    def synchronize(self, stream: int) -> None:
        self.waited.append(stream)


def described(**changes: Any) -> OnGpu:
    array = OnGpu(np.zeros((2, 3), np.uint16))
    array.__cuda_array_interface__ |= changes
    return array


BF16 = Port("x", "bf16", (2, 3))


def test_memory_of_a_gpu_is_taken_as_its_interface_says() -> None:
    made = to_input(described(strides=(6, 2)), BF16, Device())  # NumPy's typestr has no bfloat16
    assert (made.address, made.shape, made.strides, made.dtype) == (1 << 20, (2, 3), (3, 1), "u16")
    assert made.__dlpack_device__() == (10, 2)
    block = to_input(described(shape=(12,), typestr="|u1"), BF16, Device())
    assert (block.shape, block.strides, block.dtype) == ((2, 3), None, "bf16")
    pointer = to_input(Pointer(), BF16, Device())
    assert (pointer.address, pointer.shape, pointer.dtype) == (1 << 20, (2, 3), "bf16")


@pytest.mark.parametrize(("stream", "waited"), [(None, []), (1, [0]), (2, [2]), (640, [640]), (77, [])])
def test_the_stream_of_an_array_is_waited_for_unless_it_is_the_runs(stream: int | None, waited: list[int]) -> None:
    device = Device()
    to_output(described(stream=stream), BF16, device, 77)
    assert device.waited == waited


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strides": (7, 2)}, "strides between elements"),
        ({"mask": object()}, "masked"),
        ({"typestr": ">f4"}, "wrong array.*expected bf16"),
        ({"typestr": "zz"}, "unknown typestr"),
        ({"data": (0, False)}, "null pointer"),
        ({"data": (4096, True)}, "cannot be written in place"),
    ],
)
def test_what_cannot_be_used_is_told(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=f"'x'.*{message}|{message}.*'x'"):
        to_output(described(**changes), BF16, Device())


def test_an_address_alone_needs_fixed_sizes() -> None:
    with pytest.raises(ModelError, match="an address has no sizes"):
        to_input(Pointer(), Port("x", "f32", ("batch", 3)), Device())


def test_what_is_no_array_is_named(session: Session, values: dict[str, Array]) -> None:
    with pytest.raises(ModelError, match=r"not an array: 'y'|'y'.*not an array"):
        session.run(None, values, out={"y": [0.0]})


class Protocol:
    """A stream by the protocol of CUDA's Python packages."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 77


@pytest.mark.parametrize(("stream", "address"), [(5, 5), (Pointer(), 1 << 20), (Protocol(), 77), (np.int64(9), 9)])
def test_streams_have_an_address(stream: Any, address: int) -> None:
    assert stream_address(stream) == address


@pytest.mark.parametrize("stream", [None, 1.5, "5", True, object()])
def test_what_is_no_stream_is_refused(stream: Any) -> None:
    with pytest.raises(ModelError, match=f"not a stream.*{type(stream).__name__}"):
        stream_address(stream)
