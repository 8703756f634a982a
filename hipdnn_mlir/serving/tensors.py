"""Tensors as the Open Inference Protocol writes them: datatypes, JSON, and the binary tensor extension."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import ALL, CODED, DType
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import ALIGNMENT, Array

_KINDS = {"f": "FP", "i": "INT", "u": "UINT"}
_TAKEN = {"b": "b", "i": "iu", "u": "iu", "f": "iuf", "V": "iuf"}
"""What numbers may be given for a kind of datatype; NumPy would cut fractions off. V is that of bf16."""
HEADER_LENGTH = "inference-header-content-length"
"""HTTP's header for the bytes of JSON in front of tensors."""


def _datatype(dtype: DType) -> str:
    special = {"bool": "BOOL", "bf16": "BF16"}
    return special.get(dtype.name) or _KINDS[dtype.name[0]] + dtype.name[1:]


DATATYPES = {dtype.name: _datatype(dtype) for dtype in (*ALL, *CODED)}
"""Element types by their names in program files."""
_BY_DATATYPE = {DATATYPES[dtype.name]: dtype for dtype in (*ALL, *CODED)}
_BY_NUMPY = {dtype.numpy_name: datatype for datatype, dtype in _BY_DATATYPE.items()}


def datatype_of(array: Array) -> str:
    """Return the protocol's name of an array's element type."""
    found = _BY_NUMPY.get(array.dtype.name) if array.dtype.isnative else None
    if found is None:
        raise ModelError("no such datatype in the protocol", got=str(array.dtype))
    return found


def dtype_of(datatype: object, where: str) -> np.dtype[Any]:
    """Return NumPy's type for a datatype.

    Raises:
        ModelError: There is none.
    """
    found = _BY_DATATYPE.get(datatype) if isinstance(datatype, str) else None
    if found is None:
        raise ModelError("unknown datatype", where=where, expected=", ".join(_BY_DATATYPE), got=repr(datatype))
    return found.numpy


def checked_shape(shape: object, where: str) -> tuple[int, ...]:
    """Return a shape.

    Raises:
        ModelError: It is no list of sizes.
    """
    if not isinstance(shape, Sequence) or isinstance(shape, str):
        raise ModelError("bad shape", where=where, expected="a list of numbers", got=repr(shape))
    dims = tuple(shape)
    if not all(isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0 for dim in dims):
        raise ModelError("bad shape", where=where, expected="numbers from 0", got=repr(list(dims)))
    return dims


def from_bytes(data: memoryview | bytes, datatype: object, shape: object, where: str) -> Array:
    """Return a tensor that views bytes.

    Raises:
        ModelError: The number of bytes is not that of the shape.
    """
    dtype, dims = dtype_of(datatype, where), checked_shape(shape, where)
    wanted = math.prod(dims) * dtype.itemsize
    if len(data) != wanted:
        raise ModelError(
            "wrong number of bytes", where=where, expected=f"{wanted} for {list(dims)}", got=str(len(data))
        )
    array: Array = np.frombuffer(data, dtype).reshape(dims)
    return array.view(np.uint8) != 0 if dtype == np.bool_ else array  # any other byte is no bool of NumPy's


def from_numbers(data: Any, datatype: object, shape: object, where: str) -> Array:
    """Return a tensor of numbers, which may be nested lists.

    Raises:
        ModelError: They are none, out of range, or not as many as the shape says.
    """
    dtype, dims = dtype_of(datatype, where), checked_shape(shape, where)
    try:
        given, array = np.asarray(data), np.asarray(data, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"no {datatype} numbers: {error}", where=where) from error
    if given.size and given.dtype.kind not in _TAKEN[dtype.kind]:
        raise ModelError(f"no {datatype} numbers", where=where, got=given.dtype.name)
    if array.size != math.prod(dims):
        expected = f"{math.prod(dims)} for {list(dims)}"
        raise ModelError("wrong number of elements", where=where, expected=expected, got=str(array.size))
    return array.reshape(dims)


@dataclass(frozen=True)
class InferRequest:
    """What a client asks for.

    Attributes:
        id: The client's own; empty where it gave none.
        inputs: Tensors by name.
        outputs: Names of the outputs it wants, and of each whether in binary; None for all of them.
        is_binary: Whether outputs that do not say so come in binary.
    """

    id: str
    inputs: dict[str, Array]
    outputs: dict[str, bool] | None = None
    is_binary: bool = False


def read_request(chunks: Sequence[bytes], header_length: str | None) -> InferRequest:
    """Read the body of an HTTP request.

    Args:
        chunks: The body as it came: JSON, with tensors behind it where the client sends them in binary.
        header_length: Bytes of the JSON, as the header has it; None for all.

    Raises:
        ModelError: The body is not as the protocol has it.
    """
    whole = sum(map(len, chunks))
    if header_length is not None and not (header_length.isdecimal() and int(header_length) <= whole):
        expected = f"a number up to the {whole} bytes of the body"
        raise ModelError("bad header", where=HEADER_LENGTH, expected=expected, got=header_length)
    length = whole if header_length is None else int(header_length)
    room = bytes(-length % ALIGNMENT)  # the first tensor lies where a run takes it without a copy
    body = memoryview(b"".join([room, *chunks]))[len(room) :]
    try:
        text = json.loads(bytes(body[:length]))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the body is no JSON: {error}") from error
    if not isinstance(text, dict):
        raise ModelError("the body is no JSON object", got=type(text).__name__)
    binary = body[length:]
    inputs: dict[str, Array] = {}
    for entry in _entries(text, "inputs"):
        name, where = entry["name"], f"input '{entry['name']}'"
        if name in inputs:
            raise ModelError("given twice", where=where)
        size = _parameters(entry, where).get("binary_data_size")
        if size is None:
            if "data" not in entry:
                raise ModelError("no data", where=where, hint="give 'data', or 'binary_data_size' and bytes behind")
            inputs[name] = from_numbers(entry["data"], entry.get("datatype"), entry.get("shape"), where)
            continue
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(binary):
            expected = f"a number up to {len(binary)}, which is left of the body"
            raise ModelError("bad binary_data_size", where=where, expected=expected, got=repr(size))
        inputs[name] = from_bytes(binary[:size], entry.get("datatype"), entry.get("shape"), where)
        binary = binary[size:]
    if len(binary):
        raise ModelError(f"{len(binary)} bytes behind the last tensor", where="the body")
    return InferRequest(str(text.get("id", "")), inputs, *_wanted(text))


def _wanted(text: Mapping[str, Any]) -> tuple[dict[str, bool] | None, bool]:
    """Which outputs are wanted, and in which form."""
    is_binary = bool(_parameters(text, "the request").get("binary_data_output", False))
    entries = _entries(text, "outputs") if text.get("outputs") else None
    if entries is None:
        return None, is_binary
    wanted = {}
    for entry in entries:
        parameters = _parameters(entry, f"output '{entry['name']}'")
        if parameters.get("classification"):
            raise ModelError("classification is not supported", where=f"output '{entry['name']}'")
        wanted[entry["name"]] = bool(parameters.get("binary_data", is_binary))
    return wanted, is_binary


def _entries(text: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    entries = text.get(key)
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and isinstance(e.get("name"), str) for e in entries
    ):
        raise ModelError("bad request", where=key, expected="a list of objects with a 'name'")
    return entries


def _parameters(entry: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    found = entry.get("parameters") or {}
    if not isinstance(found, dict):
        raise ModelError("bad parameters", where=where, expected="an object", got=type(found).__name__)
    if "shared_memory_region" in found:
        raise ModelError("shared memory is not supported", where=where, hint="send the bytes")
    return found


def write_response(
    request: InferRequest, model: str, version: str, outputs: Mapping[str, Array]
) -> tuple[list[bytes], int | None]:
    """Return the parts of the body of an answer, and the bytes of JSON in front where tensors are behind."""
    entries: list[dict[str, Any]] = []
    blobs: list[bytes] = []
    for name, array in outputs.items():
        entry: dict[str, Any] = {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
        if request.is_binary if request.outputs is None else request.outputs[name]:
            blobs.append(array.tobytes())
            entry["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            entry["data"] = (array if array.dtype.kind != "V" else array.astype(np.float32)).ravel().tolist()
        entries.append(entry)
    text = {"model_name": model, "model_version": version, "outputs": entries} | (
        {"id": request.id} if request.id else {}
    )
    header = json.dumps(text, separators=(",", ":")).encode()
    return [header, *blobs], len(header) if blobs else None
