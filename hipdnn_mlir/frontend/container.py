"""The file in which a host hands over a model: a serialized ModelProto, then its large weights, mapped and never copied.

u64 little-endian   bytes of the model
bytes               onnx.ModelProto; large initializers are external: location "weights", offset and length in the weights region
zeros               up to a multiple of 64 from the file's start
bytes               the weights region, up to the end of the file; absent where only the placement is asked for
"""

import mmap
import os
import struct
from collections.abc import Iterable
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from hipdnn_mlir_runtime.errors import ModelError

from ..ops.evaluate import Array
from .onnx_types import BY_ONNX
from .subgraphs import subgraphs

ALIGNMENT = 64
LOCATION = "weights"
_LENGTH = struct.Struct("<Q")
_HINT = "this is a defect of the caller (the ONNX Runtime provider); please report it"


def read_model(descriptor: int) -> onnx.ModelProto:
    """The model of a container, its large weights left where they are, those of branches and bodies beside those of the model.

    Args:
        descriptor: of the file; stays open.

    Raises:
        ModelError: not a container, truncated, or not ONNX.
    """
    size = os.fstat(descriptor).st_size
    head = os.pread(descriptor, _LENGTH.size, 0)
    length = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
    if not 0 < length <= size - _LENGTH.size:
        raise ModelError(f"the model is truncated: {size} bytes for a model of {length}", hint=_HINT)
    with mmap.mmap(descriptor, _LENGTH.size + length, access=mmap.ACCESS_READ) as data:
        try:
            model = onnx.load_model_from_string(data[_LENGTH.size :])
        except DecodeError as error:
            raise ModelError(
                "not a complete ONNX model", expected="a serialized onnx.ModelProto", hint=_HINT
            ) from error
    for node in model.graph.node:
        _hoist(node, model.graph)
    return model


def _hoist(node: onnx.NodeProto, graph: onnx.GraphProto) -> None:
    """Move the large weights of a node's subgraphs into a graph; names are unique in both."""
    for inner in subgraphs(node):
        large = [tensor for tensor in inner.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]
        graph.initializer.extend(large)
        for tensor in large:
            inner.initializer.remove(tensor)
        for other in inner.node:
            _hoist(other, graph)


def map_weights(descriptor: int, model: onnx.ModelProto) -> dict[str, Array]:
    """The external initializers of a container's model, as arrays on its mapped file.

    Args:
        descriptor: of the file; may be closed afterwards, but the file must not shrink.
        model: from `read_model`.

    Raises:
        ModelError: an initializer outside the weights region.
    """
    external = external_initializers(model)
    if not external:
        return {}
    start, size = _weights_start(descriptor), os.fstat(descriptor).st_size
    data = mmap.mmap(descriptor, size, access=mmap.ACCESS_READ)
    return {tensor.name: _view(tensor, data, start, size) for tensor in external}


def save(descriptor: int, path: Path, limit_bytes: int) -> None:
    """Write a container's model as an ONNX file, with a file `weights` beside it: zeros where the container has none.

    Args:
        descriptor: of the container.
        path: destination of the model.
        limit_bytes: weights that take more are left out.

    Raises:
        ModelError: as for `read_model`.
        OSError: a file cannot be written.
    """
    model = read_model(descriptor)
    onnx.save(model, path)
    start, size = _weights_start(descriptor), os.fstat(descriptor).st_size
    with path.with_name(LOCATION).open("wb") as file:
        if start < size <= start + limit_bytes:
            with mmap.mmap(descriptor, size, access=mmap.ACCESS_READ) as data:
                file.write(data[start:])
        else:
            file.truncate(_weights_bytes(model))


def stand_ins(model: onnx.ModelProto) -> dict[str, Array]:
    """Arrays of the dims and dtype of a model's external initializers, one number in memory each.

    Raises:
        ModelError: an initializer of a type or with dims that no array has.
    """
    tensors = external_initializers(model)
    return {t.name: np.broadcast_to(np.zeros((), _dtype(t)), _dims(t)) for t in tensors}


def external_initializers(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The initializers whose data is outside the model."""
    return [tensor for tensor in model.graph.initializer if tensor.data_location == onnx.TensorProto.EXTERNAL]


def _weights_bytes(model: onnx.ModelProto) -> int:
    """Size of the weights region that a model's external initializers ask for."""
    return max((offset + length for offset, length in map(_extent, external_initializers(model))), default=0)


def _weights_start(descriptor: int) -> int:
    (length,) = _LENGTH.unpack(os.pread(descriptor, _LENGTH.size, 0))
    return -(-(_LENGTH.size + int(length)) // ALIGNMENT) * ALIGNMENT


def _view(tensor: onnx.TensorProto, data: mmap.mmap, start: int, size: int) -> Array:
    dtype, dims = _dtype(tensor), _dims(tensor)
    offset, length = _extent(tensor)
    if length != prod(dims) * dtype.itemsize:
        raise ModelError(f"initializer {tensor.name!r} has {length} bytes for dims {list(dims)} of {dtype}", hint=_HINT)
    if offset % ALIGNMENT or start + offset + length > size:
        raise ModelError(f"initializer {tensor.name!r} is outside the weights or not aligned", hint=_HINT)
    return np.frombuffer(data, dtype, prod(dims), start + offset).reshape(dims)


def _dtype(tensor: onnx.TensorProto) -> np.dtype:
    kind = BY_ONNX.get(tensor.data_type)
    if kind is None:
        raise ModelError(f"initializer {tensor.name!r} has element type {tensor.data_type}", hint=_HINT)
    return kind.numpy


def _dims(tensor: onnx.TensorProto) -> tuple[int, ...]:
    if min(tensor.dims, default=0) < 0:
        raise ModelError(f"initializer {tensor.name!r} has dims {list(tensor.dims)}", hint=_HINT)
    return tuple(tensor.dims)


def _extent(tensor: onnx.TensorProto) -> tuple[int, int]:
    """Offset and length in the weights region."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    numbers = _naturals(entries.get(key, "") for key in ("offset", "length"))
    if entries.get("location") != LOCATION or numbers is None:
        raise ModelError(
            f"initializer {tensor.name!r} has external data {entries}",
            expected=f"location {LOCATION!r}, offset and length",
            hint=_HINT,
        )
    return numbers


def _naturals(texts: Iterable[str]) -> tuple[int, int] | None:
    first, second = (int(text) if text.isascii() and text.isdigit() else -1 for text in texts)
    return None if min(first, second) < 0 else (first, second)
