"""Model containers as a host writes them, for tests: a reading of the format that owes nothing to the package's own."""

from __future__ import annotations

import os
import struct

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_DATA = ("raw_data", "float_data", "double_data", "int32_data")


def write_container(model: onnx.ModelProto, *, weights: bool = True) -> int:
    """Return a descriptor of a memory file with the model; float initializers of more than 1024 bytes go outside."""
    light = onnx.ModelProto()
    light.CopyFrom(model)
    region = b""
    for tensor in light.graph.initializer:
        data = np.ascontiguousarray(numpy_helper.to_array(tensor)).tobytes()
        if tensor.data_type not in _FLOATS or len(data) <= 1024:
            continue
        for field in _DATA:
            tensor.ClearField(field)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", "weights"), ("offset", len(region)), ("length", len(data))):
            tensor.external_data.add(key=key, value=str(value))
        region += data + b"\0" * (-len(data) % 64)
    proto = light.SerializeToString()
    content = struct.pack("<Q", len(proto)) + proto
    if weights:
        content += b"\0" * (-len(content) % 64) + region
    return memory_file(content)


def memory_file(content: bytes = b"") -> int:
    """Return a descriptor of a memory file."""
    descriptor = os.memfd_create("test")
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return descriptor


def read_file(descriptor: int) -> bytes:
    """Return what a memory file holds."""
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)
