"""Reads ONNX models; the data of large initializers stays in the files, as arrays on their mapped pages."""

import hashlib
import mmap
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor

from hipdnn_mlir_runtime.dtypes import I32, I64, DType
from hipdnn_mlir_runtime.errors import ModelError

from ..ops.evaluate import Array
from .onnx_types import BY_ONNX
from .protobuf_wire import Field, WireError, fields, length_delimited, varint
from .subgraphs import subgraphs

MAPPED_BYTES = 1 << 14
"""Initializers of this size or more stay in their file: their values take no part in compilation until the end."""
READ_ELEMENTS = 1 << 16
"""But for integers of so many elements: they may be positions."""

_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _LOCATION = 1, 2, 8, 9, 14


_OF_TORCH = (".pt", ".pth")
"""What torch.save writes is mostly called so."""


@dataclass(frozen=True)
class ModelFile:
    """A model as read.

    Attributes:
        proto: the model; initializers whose data stays in a file have the data location EXTERNAL.
        external: arrays of those initializers.
        digest: what becomes the digest of the model file, without external data; None for a model in memory.
    """

    proto: onnx.ModelProto
    external: dict[str, Array] = field(default_factory=dict)
    digest: "Future[str] | None" = None

    @property
    def sha256(self) -> str:
        """The digest, waited for; empty for a model in memory."""
        return self.digest.result() if self.digest else ""


def read_model(model: str | Path | bytes | onnx.ModelProto) -> ModelFile:
    """Load a model.

    Args:
        model: a path, serialized bytes or a loaded model. A file must not change while its model is in use.

    Raises:
        ModelError: missing, unreadable, truncated or not ONNX.
    """
    if isinstance(model, onnx.ModelProto):
        return ModelFile(model)
    if isinstance(model, bytes):
        return ModelFile(_parse(model, "model bytes"), {}, _digest(model))
    path = Path(model)
    data = _mapped(path)
    digest = _digest(data)
    slim, external = _without_data(data)
    proto = _parse(slim, str(path))
    try:
        external |= _external_data(proto, path.parent, set(external))
    except (
        OSError,
        ValueError,
        RuntimeError,
        onnx.checker.ValidationError,
    ) as error:  # C++'s errors of files are RuntimeErrors
        raise ModelError(
            f"cannot read external weights: {error}", where=str(path), hint="keep the data files beside the model"
        ) from error
    return ModelFile(proto, external, digest)


def is_compiled_ahead(node: onnx.NodeProto) -> bool:
    """Whether a node of ONNX Runtime holds what a provider has compiled."""
    return node.op_type == "EPContext" and node.domain == "com.microsoft"


def _digest(data: mmap.mmap | bytes) -> "Future[str]":
    """Start a thread on the digest: a second per gigabyte, and nothing needs it before the end."""
    executor = ThreadPoolExecutor(1)
    digest = executor.submit(lambda: hashlib.sha256(data).hexdigest())
    executor.shutdown(wait=False)
    return digest


def _mapped(path: Path) -> mmap.mmap | bytes:
    try:
        return _map(path) if path.stat().st_size else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ModelError(f"cannot read the model: {reason}", where=str(path), hint="check the path") from error


def _map(path: Path) -> mmap.mmap:
    """The file's pages; they are read when the program is written, so the disk may start now.

    Raises:
        OSError, ValueError: as for `mmap.mmap`.
    """
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data.madvise(mmap.MADV_WILLNEED)
    return data


def _parse(data: bytes, where: str) -> onnx.ModelProto:
    hint = "export the model again, or check that the file is complete"
    if Path(where).suffix in _OF_TORCH:
        hint = "of a PyTorch module, compile torch.export.export(module, args), in a .pt2 file from torch.export.save"
    try:
        proto = onnx.load_model_from_string(data)
    except DecodeError as error:
        raise ModelError(
            "not a complete ONNX model", where=where, expected="a serialized onnx.ModelProto", hint=hint
        ) from error
    if not proto.graph.node and not proto.graph.output:
        raise ModelError("not an ONNX model", where=where, expected="a graph with nodes and outputs", hint=hint)
    return proto


def _without_data(data: mmap.mmap | bytes) -> tuple[bytes, dict[str, Array]]:
    """The model's bytes without the data of large initializers, and that data.

    Bytes that are no messages come back as they are, for the parser to complain about.
    """
    external: dict[str, Array] = {}
    try:
        parts = [_graph(data, part, external) if part.number == _GRAPH else part.bytes(data) for part in fields(data)]
    except WireError:
        return data[:], {}
    return b"".join(parts), external


def _graph(data: mmap.mmap | bytes, graph: Field, external: dict[str, Array]) -> bytes:
    parts = []
    for part in fields(data, graph.start, graph.end):
        found = _large_data(data, part) if part.number == _INITIALIZER and part.size >= MAPPED_BYTES else None
        if found is None or found.name in external:
            parts.append(part.bytes(data))
            continue
        external[found.name] = found.array
        parts.append(
            length_delimited(_INITIALIZER, found.rest + varint(_LOCATION << 3) + varint(onnx.TensorProto.EXTERNAL))
        )
    return length_delimited(_GRAPH, b"".join(parts))


@dataclass(frozen=True)
class _Tensor:
    name: str
    array: Array
    rest: bytes


def _large_data(data: mmap.mmap | bytes, tensor: Field) -> _Tensor | None:
    """An initializer taken apart where its data is raw, and as long as its dims and type say."""
    parts = list(fields(data, tensor.start, tensor.end))
    raw = [part for part in parts if part.number == _RAW_DATA]
    rest = b"".join(part.bytes(data) for part in parts if part.number != _RAW_DATA)
    slim = onnx.TensorProto()
    try:
        slim.ParseFromString(rest)
    except DecodeError:
        return None
    kind = BY_ONNX.get(slim.data_type)
    if (
        kind is None
        or _is_read(kind, prod(slim.dims))
        or len(raw) != 1
        or not slim.name
        or min(slim.dims, default=0) < 0
    ):
        return None
    if slim.data_location == onnx.TensorProto.EXTERNAL or raw[0].size != prod(slim.dims) * kind.numpy.itemsize:
        return None
    array = np.frombuffer(data, kind.numpy, prod(slim.dims), raw[0].start).reshape(tuple(slim.dims))
    return _Tensor(slim.name, array, rest)


def _is_read(kind: DType, count: int) -> bool:
    return kind in (I32, I64) and count <= READ_ELEMENTS


def _external_data(model: onnx.ModelProto, folder: Path, mapped: set[str]) -> dict[str, Array]:
    """Map the large initializers whose data is in files of their own, and load all other tensors that have such data.

    Raises:
        OSError, ValueError, RuntimeError, onnx.checker.ValidationError: as onnx's own loader.
    """
    external = {}
    files: dict[str, mmap.mmap] = {}
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL or tensor.name in mapped:
            continue
        array = _mapped_tensor(tensor, folder, files)
        if array is None:
            _load(tensor, folder)
        else:
            external[tensor.name] = array
    for tensor in attribute_tensors(model.graph):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            _load(tensor, folder)
    return external


def _load(tensor: onnx.TensorProto, folder: Path) -> None:
    load_external_data_for_tensor(tensor, str(folder))
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def _mapped_tensor(tensor: onnx.TensorProto, folder: Path, files: dict[str, mmap.mmap]) -> Array | None:
    """An array on the file of a large tensor; None for what onnx's own loader had better look at.

    Args:
        tensor: with its data in a file of its own.
        folder: the model's.
        files: what has been mapped before, by location.
    """
    info = ExternalDataInfo(tensor)
    kind = BY_ONNX.get(tensor.data_type)
    if kind is None or min(tensor.dims, default=0) < 0:
        return None
    size, offset = prod(tensor.dims) * kind.numpy.itemsize, info.offset or 0
    if size < MAPPED_BYTES or _is_read(kind, prod(tensor.dims)) or (info.length or size) != size:
        return None
    if info.location not in files:
        _check_location(info.location, folder)
        files[info.location] = _map(folder / info.location)
    file = files[info.location]
    if offset + size > len(file):
        raise ValueError(f"{info.location} has {len(file)} bytes, tensor {tensor.name!r} ends at {offset + size}")
    return np.frombuffer(file, kind.numpy, prod(tensor.dims), offset).reshape(tuple(tensor.dims))


def _check_location(location: str, folder: Path) -> None:
    """Have onnx's own loader read a byte from there: it refuses what is outside the folder, links too.

    Raises:
        OSError, ValueError, RuntimeError, onnx.checker.ValidationError: as onnx's own loader.
    """
    byte = onnx.TensorProto(name=location, data_type=onnx.TensorProto.UINT8, dims=[1])
    byte.external_data.add(key="location", value=location)
    byte.external_data.add(key="length", value="1")
    load_external_data_for_tensor(byte, str(folder))


def attribute_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Tensors in attributes of nodes, and everything in subgraphs."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from [attribute.t, *attribute.tensors] if attribute.HasField("t") or attribute.tensors else []
        for inner in subgraphs(node):
            yield from inner.initializer
            yield from attribute_tensors(inner)
