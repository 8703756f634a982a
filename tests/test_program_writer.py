"""Program files: what other tools read from them, and what is left behind when writing fails."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir.program.file import ALIGNMENT, FILLER, read_metadata, write
from hipdnn_mlir.program.schema import Buffer, Constant, Executable, Execute, Location, Port, ProgramModel
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ProgramError


def program_of(weights: Mapping[str, np.ndarray]) -> ProgramModel:
    """A program without steps that has these constants."""
    program = ProgramModel("host", {"hipdnn_mlir": "0"}, {"name": "m", "sha256": ""})
    for index, (name, array) in enumerate(weights.items()):
        program.constants.append(Constant(name, index))
        program.buffers.append(Buffer("constant", array.nbytes))
    return program


def header_of(path: Path) -> tuple[dict, int]:
    """The safetensors header and where the data starts."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), 8 + size


WEIGHTS = {
    "conv/w:0": np.arange(7, dtype=np.float32),
    "half": np.arange(64, dtype=np.float16).reshape(8, 8),
    "flags": np.array([True, False]),
    "scalar": np.array(3, np.int64),
    "none": np.zeros((0, 4), np.float32),
    "transposed": np.arange(6, dtype=np.float64).reshape(2, 3).T,
}


def test_safetensors_library_reads_every_constant(tmp_path: Path) -> None:
    path = tmp_path / "m.hipdnn"
    write(path, program_of(WEIGHTS), WEIGHTS)
    with safetensors.safe_open(path, "numpy") as file:
        assert {name for name in file.keys() if not name.startswith(FILLER)} == set(WEIGHTS)  # noqa: SIM118 - not a mapping
        for name, array in WEIGHTS.items():
            np.testing.assert_array_equal(file.get_tensor(name), array)
            assert file.get_tensor(name).dtype == array.dtype


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 200), max_size=6))
def test_tensors_are_aligned_when_sizes_are_any(sizes: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    weights = {f"w{index}": np.ones(size, np.uint8) for index, size in enumerate(sizes)}
    path = tmp_path_factory.mktemp("aligned") / "m.hipdnn"
    write(path, program_of(weights), weights)
    header, start = header_of(path)
    assert start % ALIGNMENT == 0
    for name in weights:
        assert (start + header[name]["data_offsets"][0]) % ALIGNMENT == 0
    assert path.stat().st_size == start + max(
        (e["data_offsets"][1] for n, e in header.items() if n in weights or n.startswith(FILLER)), default=0
    )


def test_metadata_is_the_program(tmp_path: Path) -> None:
    program = program_of({})
    program.inputs.append(Port("x", "f32", (2, 3), 0))
    program.buffers.append(Buffer("input", 24))
    program.executables.append(Executable("g_0", "relu", "E", [{"uid": 1, "role": "in"}], [[14, [[1300, 3, [1]]]]]))
    program.steps.append(Execute(0, "Relu_0", [Location(0, 0)]))
    write(tmp_path / "m.hipdnn", program, {})
    assert read_metadata(tmp_path / "m.hipdnn") == json.loads(json.dumps(program.to_dict()))


def test_equal_programs_make_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, program_of(WEIGHTS), WEIGHTS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


class _Failing(Mapping[str, np.ndarray]):
    """Weights that cannot be read."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __getitem__(self, name: str) -> np.ndarray:
        raise self._error

    def __iter__(self) -> object:
        return iter(WEIGHTS)

    def __len__(self) -> int:
        return len(WEIGHTS)


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyError("w"), KeyboardInterrupt(), MemoryError()]
)
def test_old_file_stays_and_nothing_else_when_writing_fails(error: BaseException, tmp_path: Path) -> None:
    path = tmp_path / "m.hipdnn"
    path.write_bytes(b"old")
    with pytest.raises(HipdnnMlirError if isinstance(error, OSError) else type(error)):
        write(path, program_of(WEIGHTS), _Failing(error))
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.hipdnn"]
    assert path.read_bytes() == b"old"


def test_error_names_path_and_reason_when_the_folder_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "m.hipdnn"
    with pytest.raises(HipdnnMlirError) as caught:
        write(path, program_of({}), {})
    assert str(caught.value) == f"{path}: cannot write: No such file or directory; choose another folder"


def _truncated(data: bytes) -> bytes:
    return data[:100]


def _not_safetensors(data: bytes) -> bytes:
    return struct.pack("<Q", 10) + b"not json!!" + data


def _without_program(_: bytes) -> bytes:
    text = json.dumps({"__metadata__": {"other": "x"}}).encode()
    return struct.pack("<Q", len(text)) + text


def _program_is_a_list(_: bytes) -> bytes:
    text = json.dumps({"__metadata__": {"hipdnn_program": "[]"}}).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    "damage",
    [_truncated, _not_safetensors, _without_program, _program_is_a_list, lambda _: b"", lambda _: b"\xff" * 16],
)
def test_broken_file_is_a_program_error_when_read(damage: object, tmp_path: Path) -> None:
    path = tmp_path / "m.hipdnn"
    write(path, program_of(WEIGHTS), WEIGHTS)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ProgramError, match="not a program file") as caught:
        read_metadata(path)
    assert str(path) in str(caught.value)


def test_missing_file_is_a_program_error_when_read(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="No such file"):
        read_metadata(tmp_path / "none.hipdnn")


def test_file_has_the_mode_of_a_new_file(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write(tmp_path / "p.hipdnn", program_of({}), {})
    finally:
        os.umask(previous)
    assert (tmp_path / "p.hipdnn").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["p.hipdnn"]


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/null")
    for name in ("pipe", "device"):
        with pytest.raises(HipdnnMlirError, match="not a regular file: expected the name of the file to write"):
            write(tmp_path / name, program_of({}), {})
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "device").is_symlink()
