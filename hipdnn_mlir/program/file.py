"""Writes and reads `model.hipdnn`: safetensors with the program in its metadata."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hipdnn_mlir_runtime.atomic_file import written
from hipdnn_mlir_runtime.dtypes import of_numpy
from hipdnn_mlir_runtime.errors import ProgramError

from ..ops.evaluate import Array
from .checksum import WORD_BYTES, checksum, to_text
from .schema import CACHE_KEY, CHECKSUM_KEY, METADATA_KEY, ProgramModel

ALIGNMENT = 64
"""Bytes; the header is padded and tensors are placed at multiples of it, so that a memory map is usable as it is."""
MAX_HEADER_BYTES = 1 << 30
FILLER = "hipdnn_mlir.filler"
"""Name prefix of tensors that only align the next one."""
_SAFETENSORS = {"f32": "F32", "f64": "F64", "f16": "F16", "bf16": "BF16", "f8e4m3": "F8_E4M3", "f8e5m2": "F8_E5M2",
                "i8": "I8", "u8": "U8", "i16": "I16", "u16": "U16", "i32": "I32", "u32": "U32",
                "i64": "I64", "u64": "U64", "bool": "BOOL"}  # fmt: skip


def write(path: Path, program: ProgramModel, weights: Mapping[str, Array]) -> None:
    """Write a program file; the destination appears complete or not at all.

    Args:
        path: destination.
        program: everything but the weights.
        weights: array per constant of the program that holds no values itself.

    Raises:
        HipdnnMlirError: the destination cannot be written.
    """
    with written(path) as file:
        write_to(file, program, weights)


def write_to(file: BinaryIO, program: ProgramModel, weights: Mapping[str, Array], cache_key: str = "") -> None:
    """Write a program to an open file.

    Args:
        file: destination, at its start.
        program: as for `write`.
        weights: as for `write`.
        cache_key: what a cache keeps it under; none where empty.

    Raises:
        OSError: the file cannot be written.
    """
    arrays = _placed({tensor: np.ascontiguousarray(weights[tensor]) for tensor in program.stored_tensors})
    program_text = json.dumps(program.to_dict(), separators=(",", ":"))
    header: dict[str, Any] = {}
    offset = data_sum = 0
    for name, array in arrays.items():
        kind = _SAFETENSORS[of_numpy(array.dtype).name]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        # Every tensor starts at a whole word but the fillers, and those are zeros.
        data_sum += checksum(array.reshape(-1).view(np.uint8), offset // WORD_BYTES)
        offset += array.nbytes
    sums = to_text(checksum(program_text.encode()), data_sum)
    header["__metadata__"] = {METADATA_KEY: program_text, CHECKSUM_KEY: sums}
    if cache_key:
        header["__metadata__"][CACHE_KEY] = cache_key
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    file.write(struct.pack("<Q", len(text)) + text)
    for array in arrays.values():
        file.write(array.reshape(-1).view(np.uint8).data)


def _placed(arrays: dict[str, Array]) -> dict[str, Array]:
    """The tensors in file order, each at a multiple of the alignment: safetensors allows no gaps, so fillers are tensors too."""
    placed = {name: array for name, array in arrays.items() if array.nbytes % ALIGNMENT == 0}
    for name, array in arrays.items():
        if name not in placed:
            placed[name] = array
            placed[f"{FILLER}.{len(placed)}"] = np.zeros(-array.nbytes % ALIGNMENT, np.uint8)
    return placed


def read_metadata(path: Path) -> dict[str, Any]:
    """The program object of a file, unchecked beyond being JSON: for tools that show it.

    Raises:
        ProgramError: missing, truncated, not safetensors, or without a program.
    """
    hint = "compile the model again"
    try:
        with path.open("rb") as file:
            head = file.read(8)
            size = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
            text = file.read(size) if 0 < size <= MAX_HEADER_BYTES else b""
    except OSError as error:
        raise ProgramError(f"cannot read: {error.strerror}", where=str(path), hint="check the path") from error
    if not text or len(text) != size:
        raise ProgramError(
            "not a program file, or truncated", where=str(path), expected="a safetensors header", hint=hint
        )
    try:
        program = json.loads(json.loads(text)["__metadata__"][METADATA_KEY])
    except (ValueError, KeyError, TypeError) as error:
        raise ProgramError(
            "not a program file", where=str(path), expected=f"metadata entry {METADATA_KEY!r}", hint=hint
        ) from error
    if not isinstance(program, dict):
        raise ProgramError("not a program file", where=str(path), expected="a JSON object", hint=hint)
    return program
