"""Bad input to the command line: one line on standard error, the right exit code, no traceback, no partial file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
    x = b.op("Relu", b.op("Bernoulli", b.input("x", [2, 3, 3])))
    path = tmp_path / "unsupported.onnx"
    onnx.save(b.model({b.op("Det", x): [2]}), path)
    assert_refused(command("compile", path, "-o", "out.hipdnn"), "Bernoulli", "Det")
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


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("image=1x3x32x31", ["dimension 3 of input 'image'", "expected 32, got 31"]),
        ("image=1x3", ["input 'image' has rank 4", "2 sizes"]),
        ("picture=1x3", ["'picture'", "image"]),
        ("batch=4", ["'batch'", "there is none"]),
    ],
)
def test_run_refuses_sizes_that_a_program_does_not_have(
    command: Command, program: Path, text: str, texts: list[str]
) -> None:
    assert_refused(command("run", program, "--shape", text), "--shape", *texts)


@pytest.mark.parametrize("size", [1 << 46, 1 << 70])
def test_run_says_so_when_random_values_do_not_fit_into_memory(command: Command, tmp_path: Path, size: int) -> None:
    b = GraphBuilder("open")
    path = tmp_path / "open.onnx"
    onnx.save(b.model({b.op("Relu", b.input("x", ["n", 8])): ["n", 8]}), path)
    compiled = command("compile", path, "-o", tmp_path / "open.hipdnn")
    assert compiled.returncode == 0, compiled.stderr
    assert_refused(command("run", tmp_path / "open.hipdnn", "--shape", f"n={size}"), "'x'", "no memory", str(size))


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


@pytest.mark.parametrize("keep", [0, 7, 100, -1], ids=["empty", "length", "header", "tensors"])
@pytest.mark.parametrize("action", ["run", "inspect"])
def test_program_is_refused_when_it_is_truncated(command: Command, program: Path, keep: int, action: str) -> None:
    program.write_bytes(program.read_bytes()[:keep])
    assert_refused(command(action, program), "small.hipdnn")


def change_program(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the program in a file and leave out its checksum, as a program made by another tool may."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    program = json.loads(header["__metadata__"]["hipdnn_program"])
    change(program)
    header["__metadata__"] = {"hipdnn_program": json.dumps(program)}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-(8 + len(encoded)) % 64)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + content[start:])


def test_program_runs_when_it_was_written_again_unchanged(command: Command, program: Path) -> None:
    change_program(program, lambda _: None)
    assert command("run", program).returncode == 0


def test_program_is_refused_when_its_format_is_newer(command: Command, program: Path) -> None:
    change_program(program, lambda text: text.update(format=9))
    assert_refused(command("inspect", program), "small.hipdnn", "format", "9")


def test_program_is_refused_when_it_is_for_another_target(command: Command, program: Path) -> None:
    change_program(program, lambda text: text.update(target="mars"))
    assert_refused(command("run", program), "mars")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text["buffers"][0].update(bytes=2**63 - 1),
        lambda text: text["steps"][0].update(executable=10_000),
        lambda text: text["steps"][-1]["operands"][0].update(buffer=-1),
        lambda text: text["steps"].pop(0),
        lambda text: text.pop("outputs"),
        lambda text: text["inputs"][0].update(dims=[1, 3, 32, "32"]),
    ],
    ids=["buffer-size", "executable", "buffer", "missing-step", "missing-field", "dims"],
)
def test_program_is_refused_when_its_text_was_altered(
    command: Command, program: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    change_program(program, change)
    assert_refused(command("run", program), "small.hipdnn")


@pytest.mark.parametrize("where", [1000, -1000], ids=["text", "weights"])
def test_program_is_refused_when_a_byte_flipped(command: Command, program: Path, where: int) -> None:
    content = bytearray(program.read_bytes())
    content[where] ^= 1
    program.write_bytes(content)
    assert_refused(command("run", program), "small.hipdnn")
