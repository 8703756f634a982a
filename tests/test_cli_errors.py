"""Bad input to the command line: one line on standard error, the right exit code, no traceback, no partial file."""

from __future__ import annotations

import json
import os
import shutil
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


@pytest.mark.parametrize("action", ["compile", "run", "explain", "cache key"])
def test_command_names_the_file_when_it_is_missing(command: Command, action: str) -> None:
    assert_refused(command(*action.split(), "nowhere.onnx"), "nowhere.onnx: no such file; check the path")


@pytest.mark.parametrize(
    ("action", "option"), [("profile", "--trace"), ("profile", "--html"), ("run", "--output"), ("explain", "--html")]
)
def test_a_folder_to_write_to_is_looked_for_before_the_work(
    command: Command, tmp_path: Path, action: str, option: str
) -> None:
    (tmp_path / "m.onnx").write_text("no model")  # an error of the work
    texts = "/none: no such directory", f"choose another {option}"
    assert_refused(command(action, tmp_path / "m.onnx", option, "/none/x"), *texts)


@pytest.mark.parametrize("in_process", [[], ["--in-process"]])
def test_compile_refuses_a_file_when_it_is_not_onnx(command: Command, tmp_path: Path, in_process: list[str]) -> None:
    path = tmp_path / "text.onnx"
    path.write_text("this is no model")
    assert_refused(command("compile", path, "-o", "out.hipdnn", *in_process), "text.onnx")
    assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("action", ["compile", "run", "explain", "verify"])
def test_command_says_where_a_model_runs_when_it_was_compiled_ahead(
    command: Command, tmp_path: Path, action: str
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 24, "com.microsoft" : 1]>
        ctx (float[4] x) => (float[4] y) { y = com.microsoft.EPContext<source: string = "HipDNN">(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "ctx.onnx")
    result = command(action, tmp_path / "ctx.onnx")
    assert_refused(result, "ctx.onnx: compiled ahead: its EPContext nodes hold programs for ONNX Runtime; run it in")


def test_compile_refuses_a_model_when_it_is_truncated(command: Command, tmp_path: Path, small_model: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(small_model.read_bytes()[:-100])
    assert_refused(command("compile", path, "-o", "out.hipdnn"), "cut.onnx")
    assert not list((tmp_path / "work").iterdir())


def test_compile_lists_every_reject_when_operations_are_unsupported(command: Command, tmp_path: Path) -> None:
    b = GraphBuilder("unsupported")
    x = b.op("Relu", b.op("Bernoulli", b.input("x", [2, 4, 4])))
    path = tmp_path / "unsupported.onnx"
    onnx.save(b.model({b.op("RandomUniformLike", x): [2, 4, 4]}), path)
    texts = (
        "unsupported.onnx",
        "Bernoulli",
        "RandomUniformLike at",
        "random numbers without a seed",
        "explain' says what would help",
    )
    assert_refused(command("compile", path, "-o", "out.hipdnn"), *texts)
    assert not list((tmp_path / "work").iterdir())


def test_compile_refuses_an_unknown_target_when_asked_for_one(command: Command, small_model: Path) -> None:
    assert_refused(command("compile", small_model, "-o", "out.hipdnn", "--target", "toaster"), "toaster", "host")


def test_compile_refuses_an_output_that_is_a_folder(command: Command, small_model: Path, tmp_path: Path) -> None:
    assert_refused(command("compile", small_model, "-o", tmp_path), f"{tmp_path}: a folder: expected the name of")


@pytest.mark.parametrize("action", ["compile", "explain"])
@pytest.mark.parametrize("is_cycle", [True, False], ids=["cycle", "unsorted"])
def test_nodes_that_read_what_is_computed_later_are_named(
    command: Command, tmp_path: Path, action: str, is_cycle: bool
) -> None:
    first = onnx.helper.make_node("Add", ["x", "b"], ["a"], name="first")
    second = onnx.helper.make_node("Relu", ["a" if is_cycle else "x"], ["b"], name="second")
    x, a = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xa")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([first, second], "g", [x], [a])), tmp_path / "m.onnx")
    assert_refused(
        command(action, tmp_path / "m.onnx"), "topologically sorted, however input 'b' of node: name: first OpType: Add"
    )


def test_compile_refuses_an_output_when_its_directory_is_missing(command: Command, small_model: Path) -> None:
    assert_refused(command("compile", small_model, "-o", "no/such/out.hipdnn"), "no/such")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["compile", "MODEL", "-o", "MODEL"], "the model"),
        (["explain", "MODEL", "--html", "LINK"], "the model"),
        (["run", "PROGRAM", "-o", "PROGRAM"], "the model"),
        (["run", "PROGRAM", "--input", "image=LINK", "-o", "LINK"], "--input image"),
        (["profile", "PROGRAM", "--html", "PROGRAM"], "the model"),
        (["profile", "PROGRAM", "--trace", "same", "--html", "same"], "--trace"),
        (["inspect", "PROGRAM", "--netron", "PROGRAM"], "the program"),
        (["inspect", "PROGRAM", "--reference", "MODEL", "--html", "LINK"], "--reference"),
    ],
)
def test_command_refuses_an_output_when_it_reads_that_file(
    command: Command, tmp_path: Path, small_model: Path, small_program: Path, arguments: list[str], what: str
) -> None:
    files = {"MODEL": tmp_path / "model.onnx", "PROGRAM": tmp_path / "program.hipdnn", "LINK": tmp_path / "link"}
    shutil.copy(small_model, files["MODEL"])
    shutil.copy(small_program, files["PROGRAM"])
    files["LINK"].symlink_to(files["MODEL"])
    given = [str(files.get(text, text)).replace("=LINK", f"={files['LINK']}") for text in arguments]
    assert_refused(command(*given), "would be overwritten", what)
    assert files["MODEL"].read_bytes() == small_model.read_bytes()
    assert files["PROGRAM"].read_bytes() == small_program.read_bytes()


@pytest.mark.parametrize("text", ["image", "image=1xtwo", "=1x2", "image=1x-2"])
def test_compile_refuses_dims_when_they_are_malformed(command: Command, small_model: Path, text: str) -> None:
    assert_refused(command("compile", small_model, "--shape", text), "--shape", "NAME=1x3x224x224", text)


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("image=axb", ["'axb' is no list of the sizes of input 'image': expected 4 sizes, as image=1x3x32x32"]),
        ("image=60", ["60 is no list of the sizes of input 'image': expected 4 sizes, as image=1x3x32x32"]),
        ("imge=1x2", ["no input or dynamic dimension named 'imge'", "(image)", "(there is none); did you mean image?"]),
        ("picture=1x2", ["no input or dynamic dimension named 'picture'", "an input (image)"]),
        ("image=1x3", ["wrong number of sizes for input 'image': expected 4, got 2 (1x3)"]),
        ("image=", ["wrong number of sizes for input 'image': expected 4, got 0"]),
        ("image=-1x3x32x32", ["--shape: bad sizes", "got 'image=-1x3x32x32'; ? leaves a dimension dynamic"]),
        (
            f"image={1 << 60}x3x32x32",
            ["input 'image' cannot have the shape", "expected sizes from 0 to 281474976710655"],
        ),
        (f"image={'9' * 5000}x3", ["--shape: bad sizes"]),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_compile_says_what_is_wrong_with_sizes(
    command: Command, small_model: Path, text: str, texts: list[str]
) -> None:
    assert_refused(command("compile", small_model, "--shape", text), *texts)


@pytest.fixture
def open_model(tmp_path: Path) -> Path:
    """A model with inputs x [n, 8] and z [m]."""
    b = GraphBuilder("open")
    outputs = {b.op("Relu", b.input("x", ["n", 8])): ["n", 8], b.op("Relu", b.input("z", ["m"])): ["m"]}
    path = tmp_path / "open.onnx"
    onnx.save(b.model(outputs), path)
    return path


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (["x=axb"], ["'axb' is no list of the sizes of input 'x': expected 2 sizes, as x=n,8, or one for a dynamic dimension, as n=4"]),
        (["n=1x2"], ["dynamic dimension 'n' takes one size: expected n=4, got 1x2"]),
        (["n="], ["dynamic dimension 'n' takes one size: expected n=4, got none"]),
        (["n=-1"], ["--shape: bad sizes", "? leaves a dimension dynamic"]),
        ([f"n={1 << 60}"], ["dynamic dimension 'n' cannot have this size: expected from 0 to 281474976710655, got 1152921504606846976"]),
        (["n=4", "n=5"], ["--shape: two values for 'n': expected each name once"]),
        (["n=4", "x=5x8"], ["dimension 0 of input 'x' is 5: expected 4, the size of 'n' elsewhere"]),
    ],
    ids=lambda value: " ".join(value)[:30] if "=" in value[0][:3] else "",
)  # fmt: skip
def test_compile_says_what_is_wrong_with_dynamic_dimensions(
    command: Command, open_model: Path, texts: list[str], messages: list[str]
) -> None:
    shapes = (word for text in texts for word in ("--shape", text))
    assert_refused(command("compile", open_model, *shapes), *messages)


def test_one_size_is_enough_for_an_input_with_one_dimension(command: Command, open_model: Path) -> None:
    done = command("compile", open_model, "--shape", "z=3", "--shape", "n=0", "--json")
    assert done.returncode == 0, done.stderr
    assert [port["dims"] for port in json.loads(done.stdout)["inputs"]] == [[0, 8], [3]]


def test_run_refuses_several_sizes_for_one_dimension(command: Command, open_model: Path) -> None:
    message = "--shape: dynamic dimension 'n' takes one size: expected n=4, got 2 sizes"
    assert command("compile", open_model).returncode == 0
    assert_refused(command("run", open_model.with_suffix(".hipdnn"), "--shape", "n=1x2"), message)


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        (["nn=1,2"], ["no dynamic dimension named 'nn': expected a dynamic dimension (n); make it dynamic"]),
        (["n=2,1"], ["invalid buckets for 'n'", "in ascending order, got 2,1"]),
        (["n=0,1"], ["invalid buckets for 'n': expected 1 to 1024 numbers from 1 to"]),
        (["n=-1,1"], ["invalid buckets for 'n'", "got -1,1"]),
        ([f"n={10**20}"], ["invalid buckets for 'n'", "from 1 to 281474976710655"]),
        (["n=1x2"], ["--bucket: bad value: expected SIZE=1,2,4,8, got 'n=1x2'"]),
        (["n="], ["--bucket: bad value: expected SIZE=1,2,4,8, got 'n='"]),
        (["n=1", "n=2"], ["--bucket: two values for 'n': expected each name once"]),
    ],
    ids=lambda value: " ".join(value)[:30] if "=" in value[0][:4] else "",
)
def test_compile_says_what_is_wrong_with_buckets(
    command: Command, open_model: Path, texts: list[str], messages: list[str]
) -> None:
    buckets = (word for text in texts for word in ("--bucket", text))
    assert_refused(command("compile", open_model, "--target", "sm_90", "--shape", "z=3", *buckets), *messages)


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
        ("imge=1x3x32x32", ["no input or dynamic dimension named 'imge'", "did you mean image?"]),
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


def test_names_in_a_model_do_not_reach_the_terminal_as_commands(command: Command, tmp_path: Path) -> None:
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy")
    node = onnx.helper.make_node("Twist", ["x"], ["y"], name="\x1b]0;owned\x07\x9b2J")
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y])), tmp_path / "m.onnx")
    result = command("compile", tmp_path / "m.onnx")
    assert_refused(result, r"\x1b]0;owned\x07\x9b2J")
    assert not any(character in result.stderr for character in "\x1b\x07\x9b")


def test_run_refuses_an_output_that_is_a_pipe(command: Command, program: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.npz"
    os.mkfifo(pipe)
    result = command("run", program, "--output", pipe)
    assert result.returncode == 2, result.stderr
    assert "pipe.npz: not a regular file: expected the name of the file to write" in result.stderr
    assert pipe.is_fifo()


@pytest.mark.parametrize("broken", [5, {}, None, "name", []])
def test_program_that_says_nonsense_of_itself_is_no_defect(
    command: Command, small_program: Path, tmp_path: Path, broken: object
) -> None:
    data = small_program.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    program = json.loads(header["__metadata__"].pop("hipdnn_program")) | {"model": broken}
    header["__metadata__"] = {"hipdnn_program": json.dumps(program)}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    (tmp_path / "p.hipdnn").write_bytes(len(text).to_bytes(8, "little") + text + data[8 + size :])
    assert_refused(command("inspect", tmp_path / "p.hipdnn"), "p.hipdnn: what it says of itself is broken")
