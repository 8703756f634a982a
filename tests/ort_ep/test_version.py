"""Which ONNX Runtime these tests run on, and what an older one is told."""

from __future__ import annotations

import ctypes
import os

import onnxruntime as ort

from hipdnn_mlir_runtime import ort_ep


def test_onnxruntime_is_the_expected_one() -> None:
    expected = os.environ.get("HIPDNN_EXPECTED_ORT")
    major, minor = map(int, ort.__version__.split(".")[:2])
    assert (major, minor) >= (1, 24)
    assert expected is None or ort.__version__ == expected


def test_older_onnxruntime_is_refused_in_words() -> None:
    """A stand-in for ONNX Runtime 1.23: it has API version 1 only, whose first function makes statuses."""
    messages: list[str] = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    def create_status(_code: int, message: bytes) -> int:
        messages.append(message.decode())
        return 1

    table = (ctypes.c_void_p * 1)(ctypes.cast(create_status, ctypes.c_void_p).value)

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
    def get_api(version: int) -> int | None:
        return ctypes.addressof(table) if version == 1 else None

    @ctypes.CFUNCTYPE(ctypes.c_char_p)
    def get_version() -> bytes:
        return b"1.23.2"

    base = (ctypes.c_void_p * 2)(
        ctypes.cast(get_api, ctypes.c_void_p).value, ctypes.cast(get_version, ctypes.c_void_p).value
    )
    factories, count = (ctypes.c_void_p * 1)(), ctypes.c_size_t(7)
    create = ctypes.CDLL(ort_ep.get_library_path()).CreateEpFactories
    create.restype = ctypes.c_void_p
    status = create(b"hipdnn", ctypes.byref(base), None, factories, ctypes.c_size_t(1), ctypes.byref(count))
    assert status == 1
    assert count.value == 0
    assert messages == ["libhipdnn_ep needs ONNX Runtime 1.24 or later, this is 1.23.2; update the package onnxruntime"]
