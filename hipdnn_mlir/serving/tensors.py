"""Tensors as the Open Inference Protocol writes them: datatypes, JSON, and the binary tensor extension."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import ALL, CODED, DType
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import ALIGNMENT, Array

_KINDS = {"f": "FP", "i": "INT", "u": "UINT"}
_TAKEN = {"BOOL": "b", "INT": "iu", "UINT": "iu", "FP": "iuf", "BF": "iuf"}
"""What kinds of numbers may be given for a datatype; NumPy would cut fractions off."""
_MOST = {"FP4e2m1": 6.0}
"""The largest number of datatypes without infinity, to which larger ones are rounded."""
_PIECE = 1 << 14
"""Numbers that are read or written in one call, during which no other thread of Python's runs."""
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
    array = _shaped(np.frombuffer(data, dtype), dims, where)
    return array.view(np.uint8) != 0 if dtype == np.bool_ else array  # any other byte is no bool of NumPy's


def from_numbers(data: Any, datatype: object, shape: object, where: str) -> Array:
    """Return a tensor of numbers, which may be nested lists.

    Raises:
        ModelError: They are none, out of range, or not as many as the shape says.
    """
    dtype, dims = dtype_of(datatype, where), checked_shape(shape, where)
    datatype = str(datatype)
    given = _numbers(data, datatype, where)
    if given.size != math.prod(dims):
        expected = f"{math.prod(dims)} for {list(dims)}"
        raise ModelError("wrong number of elements", where=where, expected=expected, got=str(given.size))
    name = datatype.rstrip("0123456789")
    if name in ("INT", "UINT") and given.size:
        bits = int(datatype[len(name) :])
        low, high = (0, 2**bits - 1) if name == "UINT" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        for end in (given.min(), given.max()):
            if not low <= int(end) <= high:
                raise ModelError("out of bounds", where=where, expected=f"{low} to {high} for {datatype}", got=str(end))
    with np.errstate(over="ignore", invalid="ignore"):
        array: Array = given.astype(dtype)
    if name not in ("INT", "UINT", "BOOL"):
        outside = np.isfinite(given) != np.isfinite(array if dtype.kind == "f" else array.astype(np.float32))
        outside |= np.abs(given) > _MOST.get(datatype, np.inf)
        if outside.any():
            raise ModelError(f"out of bounds of {datatype}", where=where, got=str(given[outside].flat[0]))
    return _shaped(array, dims, where)


def _shaped(array: Array, dims: Sequence[int], where: str) -> Array:
    try:
        return array.reshape(dims)
    except (ValueError, OverflowError) as error:  # sizes beyond NumPy's beside one of 0, or too many of them
        raise ModelError("bad shape", where=where, got=repr(list(dims))) from error


def _numbers(data: Any, datatype: str, where: str) -> Array:
    """Return numbers that may stand for a datatype, as NumPy has them: of 64 bits, or Python's where those are too few."""
    kind = next(kind for kind in _TAKEN if datatype.startswith(kind))
    try:
        given = _in_pieces(data)
        if given.dtype.kind == "O" or (given.dtype.kind == "f" and kind in ("INT", "UINT")):
            exact = np.asarray(
                data, object
            )  # what does not fit into 64 bits with a sign is a float or an object to NumPy
            found = set(map(type, exact.flat))
            if found <= {int} and kind in ("INT", "UINT"):
                return exact
            if found <= {int, float} and kind in ("FP", "BF"):
                return exact.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"no {datatype} numbers: {error}", where=where) from error
    if given.size and given.dtype.kind not in _TAKEN[kind]:
        raise ModelError(f"no {datatype} numbers", where=where, got=given.dtype.name)
    return given


def _in_pieces(data: Any) -> Array:
    """Return an array of a list, between parts of which other threads go on."""
    if not isinstance(data, list) or len(data) <= _PIECE:
        return np.asarray(data)
    return np.concatenate([np.asarray(data[at : at + _PIECE]) for at in range(0, len(data), _PIECE)])


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

    def is_in_binary(self, output: str) -> bool:
        """Whether an output that is wanted comes in binary."""
        return self.is_binary if self.outputs is None else self.outputs[output]


def text_bytes(chunks: Sequence[bytes], header_length: str | None) -> int:
    """Return the bytes of JSON in a body; arguments and errors as for `read_request`."""
    whole = sum(map(len, chunks))
    if header_length is None:
        return whole
    if header_length.isdecimal() and len(header_length) <= len(str(whole)) and int(header_length) <= whole:
        return int(header_length)
    expected = f"a number up to the {whole} bytes of the body"
    raise ModelError("bad header", where=HEADER_LENGTH, expected=expected, got=header_length)


def read_request(chunks: Sequence[bytes], header_length: str | None) -> InferRequest:
    """Read the body of an HTTP request.

    Args:
        chunks: The body as it came: JSON, with tensors behind it where the client sends them in binary.
        header_length: Bytes of the JSON, as the header has it; None for all.

    Raises:
        ModelError: The body is not as the protocol has it.
    """
    length = text_bytes(chunks, header_length)
    room = bytes(-length % ALIGNMENT)  # the first tensor lies where a run takes it without a copy
    body = memoryview(b"".join([room, *chunks]))[len(room) :]
    try:
        text = json.loads(bytes(body[:length]), parse_float=_float, parse_int=_int)
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
    own = text.get("id")
    return InferRequest("" if own is None else str(own), inputs, *_wanted(text))


def _float(text: str) -> float:
    return float(text)  # a function of Python: other threads go on between numbers, as json's own calls don't let them


def _int(text: str) -> int:
    return int(text)


def _wanted(text: Mapping[str, Any]) -> tuple[dict[str, bool] | None, bool]:
    """Which outputs are wanted, and in which form."""
    is_binary = bool(_parameters(text, "the request").get("binary_data_output", False))
    entries = _entries(text, "outputs") if text.get("outputs") else None
    if entries is None:
        return None, is_binary
    wanted = {}
    for entry in entries:
        parameters = _parameters(entry, f"output '{entry['name']}'")
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
    check_parameters({name for name, value in found.items() if value}, where)
    return found


def check_parameters(given: Container[str], where: str) -> None:
    """Refuse what another answer is asked for with, or another place for tensors; other parameters change nothing.

    Args:
        given: Names of the parameters of a tensor.
        where: Which one.

    Raises:
        ModelError: One of them is not supported.
    """
    if "shared_memory_region" in given:
        raise ModelError("shared memory is not supported", where=where, hint="send the bytes")
    if "classification" in given:
        raise ModelError("classification is not supported", where=where, hint="ask for the values")


def write_response(
    request: InferRequest, model: str, version: str, outputs: Mapping[str, Array]
) -> tuple[list[bytes], int | None]:
    """Return the parts of the body of an answer, and the bytes of JSON in front where tensors are behind.

    Raises:
        ModelError: JSON has no word for a number, which is none or infinite.
    """
    entries: list[str] = []
    blobs: list[bytes] = []
    for name, array in outputs.items():
        entry: dict[str, Any] = {"name": name, "datatype": datatype_of(array), "shape": list(array.shape)}
        if request.is_in_binary(name):
            blobs.append(array.tobytes())
            entries.append(_json(entry | {"parameters": {"binary_data_size": len(blobs[-1])}}))
            continue
        numbers = (array if array.dtype.kind != "V" else array.astype(np.float32)).ravel()
        try:
            pieces = [_json(numbers[at : at + _PIECE].tolist())[1:-1] for at in range(0, numbers.size, _PIECE)]
        except ValueError as error:
            hint = "ask for it in binary: parameters binary_data_output"
            raise ModelError("NaN or infinity, which JSON has not", where=f"output '{name}'", hint=hint) from error
        entries.append(f'{_json(entry)[:-1]},"data":[{",".join(pieces)}]}}')
    text = {"model_name": model, "model_version": version} | ({"id": request.id} if request.id else {})
    header = f'{_json(text)[:-1]},"outputs":[{",".join(entries)}]}}'.encode()
    return [header, *blobs], len(header) if blobs else None


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
