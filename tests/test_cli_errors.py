"""Bad input to the command line: one line on standard error, the right exit code, no traceback, no partial file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from conftest import Command
from models import GraphBuilder


def assert_refused(result: object, *texts: str, code: int = 2) -> None:
    """Check the exit code, that standard error is one line with all texts in it, and that standard output is empty."""
    assert result.returncode == code, result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("hipdnn-mlir: error: ")
    assert "Traceback" not in result.stderr
    for text in texts:
        assert text in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("action", ["compile", "run", "explain"])
def test_command_names_the_file_when_it_is_missing(command: Command, action: str) -> None:
    assert_refused(command(action, "nowhere.onnx"), "nowhere.onnx")


@pytest.mark.parametrize("in_process", [[], ["--in-process"]])
def test_compile_refuses_a_file_when_it_is_not_onnx(command: Command, tmp_path: Path, in_process: list[str]) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("this is no model")
    assert_refused(command("compile", path, "-o", "out.hipdnn", *in_process), "text.onnx")
    assert not list((tmp_path / "work").iterdir())


def test_compile_refuses_a_model_when_it_is_truncated(command: Command, tmp_path: Path, small_model: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(small_model.read_bytes()[:-100])
    assert_refused(command("compile", path, "-o", "out.hipdnn"), "cut.onnx")
    assert not list((tmp_path / "work").iterdir())


def test_compile_lists_every_reject_when_operations_are_unsupported(command: Command, tmp_path: Path) -> None:
    b = GraphBuilder("unsupported")
    x = b.op("Relu", b.op("CumSum", b.input("x", [2, 3, 3]), b.constant(0, np.int64)))
    path = tmp_path / "unsupported.onnx"
    onnx.save(b.model({b.op("Det", x): [2]}), path)
    assert_refused(command("compile", path, "-o", "out.hipdnn"), "CumSum", "Det")
    assert not list((tmp_path / "work").iterdir())


def test_compile_refuses_an_unknown_target_when_asked_for_one(command: Command, small_model: Path) -> None:
    assert_refused(command("compile", small_model, "-o", "out.hipdnn", "--target", "toaster"), "toaster", "host")


def test_compile_refuses_an_output_when_its_directory_is_missing(command: Command, small_model: Path) -> None:
    assert_refused(command("compile", small_model, "-o", "no/such/out.hipdnn"), "no/such")


@pytest.mark.parametrize("text", ["image", "image=1xtwo", "=1x2", "image=1x-2"])
def test_compile_refuses_dims_when_they_are_malformed(command: Command, small_model: Path, text: str) -> None:
    assert_refused(command("compile", small_model, "--shape", text), "--shape", "NAME=1x3x224x224", text)


def test_compile_names_the_inputs_when_dims_are_for_another_one(command: Command, small_model: Path) -> None:
    assert_refused(command("compile", small_model, "--shape", "picture=1x2"), "picture", "image")


def test_run_names_the_inputs_when_a_file_is_for_another_one(
    command: Command, small_model: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 3, 32, 32), np.float32))
    assert_refused(command("run", small_model, "--input", f"picture={tmp_path / 'x.npy'}"), "'picture'", "'image'")


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (np.zeros((1, 3, 32, 32), np.float64), ["'image'", "f32[1,3,32,32]", "f64[1,3,32,32]"]),
        (np.zeros((1, 3, 32, 31), np.float32), ["'image'", "f32[1,3,32,32]", "f32[1,3,32,31]"]),
    ],
    ids=["dtype", "shape"],
)
def test_run_says_what_it_expects_when_an_array_does_not_fit(
    command: Command, small_model: Path, tmp_path: Path, array: np.ndarray, texts: list[str]
) -> None:
    np.save(tmp_path / "x.npy", array)
    assert_refused(command("run", small_model, "--input", f"image={tmp_path / 'x.npy'}"), *texts)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00"], ids=["empty", "text", "cut"])
def test_run_refuses_an_input_file_when_it_is_no_array(
    command: Command, small_model: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert_refused(command("run", small_model, "--input", f"image={path}"), "x.npy")


def test_run_refuses_to_compare_when_a_program_has_no_reference(command: Command, program: Path) -> None:
    assert_refused(command("run", program, "--compare", "ort"), "--reference")


def test_run_refuses_a_reference_when_it_is_unknown(command: Command, small_model: Path) -> None:
    assert_refused(command("run", small_model, "--compare", "oracle"), "--compare", "'ort'", "'oracle'")


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["fly"], ["run"], []], ids=["option", "command", "argument", "none"]
)
def test_command_is_refused_when_arguments_are_wrong(command: Command, arguments: list[str]) -> None:
    assert_refused(command(*arguments), "--help")


@pytest.fixture
def program(command: Command, small_model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "small.hipdnn"
    assert command("compile", small_model, "-o", path).returncode == 0
    return path


@pytest.mark.parametrize("keep", [0, 7, 100, -1], ids=["empty", "length", "header", "tensors"])
@pytest.mark.parametrize("action", ["run", "inspect"])
def test_program_is_refused_when_it_is_truncated(command: Command, program: Path, keep: int, action: str) -> None:
    program.write_bytes(program.read_bytes()[:keep])
    assert_refused(command(action, program), "small.hipdnn")


def edit_program(path: Path, old: bytes, new: bytes) -> None:
    """Replace bytes in a program's header by as many others."""
    assert len(old) == len(new)
    content = path.read_bytes()
    assert content.count(old) == 1, content.count(old)
    path.write_bytes(content.replace(old, new))


def test_program_is_refused_when_its_format_is_newer(command: Command, program: Path) -> None:
    edit_program(program, rb"\"format\":1,", rb"\"format\":9,")
    assert_refused(command("inspect", program), "small.hipdnn", "format", "9")


def test_program_is_refused_when_it_is_for_another_target(command: Command, program: Path) -> None:
    edit_program(program, rb"\"target\":\"host\"", rb"\"target\":\"mars\"")
    assert_refused(command("run", program), "mars")


def test_program_is_refused_when_a_number_was_altered(command: Command, program: Path) -> None:
    size = int.from_bytes(program.read_bytes()[:8], "little")
    header = json.loads(program.read_bytes()[8 : 8 + size])
    bytes_ = json.loads(header["__metadata__"]["hipdnn_program"])["buffers"][0]["bytes"]
    text = f'\\"bytes\\":{bytes_},'.encode()
    content = program.read_bytes()
    assert text in content
    program.write_bytes(content.replace(text, text.replace(str(bytes_).encode(), b"9" * len(str(bytes_))), 1))
    assert_refused(command("run", program), "small.hipdnn")
