"""What users of other command lines expect of this one: help, versions, options in any place, advice, quiet pipes."""

from __future__ import annotations

import io
import json
import os
import pty
import shutil
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

from conftest import Command
from hipdnn_mlir_runtime.cli import progress, tables
from hipdnn_mlir_runtime.cli.main import all_commands
from hipdnn_mlir_runtime.options import options_of
from models import GraphBuilder

NAMES = [command.name for command in all_commands()]


@pytest.mark.parametrize("package", ["hipdnn_mlir", "hipdnn_mlir_runtime"])
def test_version_names_both_packages(package: str) -> None:
    done = subprocess.run([sys.executable, "-m", package, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == "hipdnn-mlir-runtime 0.1.0, hipdnn-mlir 0.1.0\n"


def test_hipdnn_opt_has_a_version_and_suggests_passes() -> None:
    def said(*arguments: str) -> str:
        process = [sys.executable, "-m", "hipdnn_mlir.cli.opt", *arguments]
        done = subprocess.run(process, capture_output=True, text=True, check=False, input="module {}")
        return done.stdout + done.stderr

    assert said("--version") == "hipdnn-mlir-runtime 0.1.0, hipdnn-mlir 0.1.0\n"
    assert "'hipdnn-ofload'; did you mean hipdnn-offload? see hipdnn-opt --help" in said("--hipdnn-ofload")


@pytest.mark.parametrize("name", NAMES)
def test_help_of_a_command_shows_its_options_and_no_others(command: Command, name: str) -> None:
    done = command(*name.split(), "-h")
    assert (done.returncode, done.stderr) == (0, "")
    for row in options_of(name).values():
        assert row.flags[0] in done.stdout
    assert "`" not in done.stdout
    assert command("-h", *name.split()).stdout == done.stdout


def test_help_lists_all_commands(command: Command) -> None:
    done = command("--help")
    assert done.returncode == 0
    assert [name for name in NAMES if f"\n    {name.split()[0]}" not in done.stdout] == []


def test_options_lie_before_or_behind_the_command(command: Command, program: Path) -> None:
    behind = command("inspect", program, "--json")
    for arguments in (
        ["--json", "inspect", program],
        ["inspect", "--json", program],
        ["-q", "inspect", "--json", program],
    ):
        done = command(*arguments)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == json.loads(behind.stdout)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["explian", "m.onnx"], ["explian: no such command; did you mean explain?"]),
        (["run", "m.onnx", "--treads", "2"], ["--treads: no such option; did you mean --threads?", "run --help"]),
        (["explain"], ["model", "hipdnn-mlir explain --help"]),
        (["run", "a.onnx", "b.onnx"], ["b.onnx"]),
        (["compile", "m.onnx", "--target"], ["--target", "expected one argument"]),
        (["inspect", "m.onnx"], ["m.onnx: an ONNX model", "hipdnn-mlir compile m.onnx", "hipdnn-mlir explain m.onnx"]),
        (["explain", "m.hipdnn"], ["compiled already", "hipdnn-mlir inspect m.hipdnn", "--compare ort --reference MODEL"]),
        (["explain", "a.onnx", "b.onnx"], ["b.onnx: one word too many: expected explain model; see 'hipdnn-mlir explain --help'"]),
        (["devices", "0"], ["0: one word too many: expected devices;"]),
        (["verify", "m.onnx", "--tolerance", "-1"], ["--tolerance: bad value: expected a number from 0, got '-1'"]),
        (["bench", "m.onnx", "--duration", "inf"], ["--duration: bad value: expected a number from 0, got 'inf'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_wrong_words_are_answered_with_advice(command: Command, arguments: list[str], texts: list[str]) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    for text in texts:
        assert text in done.stderr


def test_a_folder_stands_for_the_model_in_it(command: Command, small_model: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    assert "it holds no .onnx or .pt2 file" in command("compile", ".").stderr
    shutil.copy(small_model, work / "a.onnx")
    assert command("compile", ".").returncode == 0
    assert (work / "a.hipdnn").is_file()
    shutil.copy(small_model, work / "b.onnx")
    assert "name one of a.onnx, b.onnx" in command("compile", ".").stderr
    assert "name one of a.hipdnn, a.onnx, b.onnx" in command("run", ".").stderr
    done = command("inspect", ".", "--json")
    assert json.loads(done.stdout) == json.loads(command("inspect", "a.hipdnn", "--json").stdout)
    (work / "a.hipdnn").unlink()
    (work / "b.onnx").unlink()
    assert command("run", ".", "--compare", "ort").returncode == 0


def test_files_written_beside_a_result_are_named(command: Command, program: Path) -> None:
    assert command("inspect", program, "--html", "p.html").stdout.endswith("\n\nWritten: p.html\n")
    json.loads(command("inspect", program, "--html", "p.html", "--json").stdout)


def test_pipes_get_no_colours_and_no_folded_lines(command: Command, small_model: Path) -> None:
    done = command("explain", small_model, env={"COLUMNS": "40"})
    assert "\x1b" not in done.stdout + done.stderr
    assert any(len(line) > 60 for line in done.stdout.splitlines())


def on_a_terminal(*arguments: object, env: dict[str, str]) -> str:
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hipdnn_mlir", *map(str, arguments)],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **env},
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not read:
            break
        text += read
    process.wait()
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("closed", [1, 2])
def test_commands_do_their_work_when_a_stream_is_closed(closed: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hipdnn_mlir", "cache", "list", "--cache-dir", tmp_path]
    result = subprocess.run(command, capture_output=True, text=True, check=False, preexec_fn=lambda: os.close(closed))
    assert (result.returncode, result.stderr) == (0, "")
    assert bool(result.stdout) == (closed == 2)


def test_terminals_get_colours_and_folded_columns(program: Path) -> None:
    shown = on_a_terminal("inspect", program, env={"COLUMNS": "100", "NO_COLOR": ""})
    assert "\x1b[1m" in shown
    assert max(len(line) for line in shown.splitlines()) <= 100 + len("\x1b[1m\x1b[0m")
    assert "\x1b" not in on_a_terminal("inspect", program, env={"COLUMNS": "100", "NO_COLOR": "1"})


@pytest.mark.parametrize("has_colours", [False, True])
def test_names_do_not_control_what_is_shown(monkeypatch: pytest.MonkeyPatch, has_colours: bool) -> None:
    monkeypatch.setattr(tables, "has_colours", lambda: has_colours)
    title = tables.emphasized("title")
    assert tables.printable(f"{title}\n\x1b[8mhidden\x1b[2J \u202e\x7f\u65e5") == (
        f"{title}\n" + r"\x1b[8mhidden\x1b[2J \u202e\x7f" + "\u65e5"
    )


def test_names_are_written_out_where_the_locale_has_no_characters_for_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hipdnn_mlir", "cache", "list", "--cache-dir", tmp_path / "\u65e5"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u65e5" in done.stdout


def test_what_explain_and_profile_print_fits_a_terminal(tmp_path: Path) -> None:
    b = GraphBuilder("m")
    x = b.op("Relu", b.op("MatMul", b.input("x", [2, 3, 3]), b.normal([3, 3], 0.1)))
    onnx.save(b.model({b.op("Bernoulli", x): [2, 3, 3], b.op("Relu", x): [2, 3, 3]}), tmp_path / "m.onnx")
    for target in ("--target=host", "--target=gfx942"), ("--target=host",):
        shown = on_a_terminal("explain", "-q", tmp_path / "m.onnx", *target, env={"COLUMNS": "72"})
        assert max(map(len, shown.splitlines())) <= 72
        assert "Bernoulli" in shown or len(target) == 2
    onnx.save(b.model({b.op("Relu", x): [2, 3, 3]}), tmp_path / "m.onnx")
    shown = on_a_terminal("profile", "-q", tmp_path / "m.onnx", env={"COLUMNS": "110"})
    assert max(map(len, shown.splitlines())) <= 110


def test_a_table_folds_its_widest_columns_and_words_where_nothing_else_helps() -> None:
    rows = [("word " * 8, 123456789, "a_long_identifier " * 2)]
    folded = tables.aligned(("a", "b", "c"), rows, right=["b"], line=51)
    assert folded[1:] == [
        "word word word word  123456789  a_long_identifier",
        "word word word word             a_long_identifier",
    ]
    narrow = tables.aligned(("a", "b", "c"), rows, right=["b"], line=38)
    assert max(map(len, narrow)) <= 38
    assert "a_long_ident" in narrow[1]


def test_columns_of_a_table_are_aligned() -> None:
    text = tables.table("title", ("name", "n", "what"), [("a", 5, "x\ny"), ("long name", 1000, "")], right=["n"])
    assert text.splitlines() == ["title", "name          n  what", "a             5  x y", "long name  1000"]


def test_progress_fits_into_one_row_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(progress, "_DELAY_S", 0)
    monkeypatch.setattr(progress, "_PERIOD_S", 0.001)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress.working("compiling a model with a name") as told:
        told("a step of the\ncompiler that has much to tell")
        deadline = time.monotonic() + 10
        while "..." not in terminal.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    rows = terminal.getvalue().split("\r\x1b[K")
    assert "compiling a model with a name:... (0 s)" in rows
    assert max(map(len, rows)) <= 39
    assert not any("\n" in row for row in rows)
