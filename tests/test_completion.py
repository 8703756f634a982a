"""Completion of command lines: what bash makes of the script."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command
from hipdnn_mlir_runtime.cli import main
from hipdnn_mlir_runtime.cli.main import all_commands
from hipdnn_mlir_runtime.options import options_of

COMPLETE = """
set -e
source ./script
complete -p hipdnn-mlir
COMP_WORDS=({words})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
set +e
function=$(complete -p hipdnn-mlir | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
$function
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script for bash, and files to choose from."""
    path = tmp_path_factory.mktemp("completion")
    arguments = [sys.executable, "-P", "-m", "hipdnn_mlir", "--print-completion", "bash"]
    (path / "script").write_text(subprocess.run(arguments, capture_output=True, text=True, check=True).stdout)
    for name in ("a.onnx", "b.hipdnn", "c.txt", "x.npy"):
        (path / name).touch()
    (path / "models").mkdir()
    return path


def completed(folder: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    text = COMPLETE.format(words=" ".join(map(shlex.quote, ("hipdnn-mlir", *words))))
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == ""
    head, *offered = done.stdout.split()
    assert head == "complete"
    return {word for word in offered if "hipdnn-mlir" not in word}


def test_commands_are_completed(folder: Path) -> None:
    assert {command.name.split()[0] for command in all_commands()} <= completed(folder, "")
    assert "compile" in completed(folder, "com")
    assert "run" not in completed(folder, "com")
    assert completed(folder, "cache", "p") >= {"prune"}


def test_all_options_of_a_command_are_completed(folder: Path) -> None:
    flags = {flag for row in options_of("compile").values() for flag in row.flags if flag.startswith("--")}
    assert flags <= completed(folder, "compile", "--")
    assert "--older-than" in completed(folder, "cache", "prune", "--o")
    assert "--older-than" not in completed(folder, "cache", "list", "--")


def test_choices_are_completed(folder: Path) -> None:
    assert completed(folder, "compile", "--precision", "") >= {"model", "tf32", "f16", "bf16"}
    assert "plan" in completed(folder, "cache", "prune", "--kind", "p")


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["compile", ""], ["a.onnx", "models"]),
        (["run", ""], ["a.onnx", "b.hipdnn", "models"]),
        (["inspect", ""], ["b.hipdnn", "models"]),
        (["inspect", "--reference", ""], ["a.onnx", "models"]),
        (["compile", "--dump-ir", ""], ["models"]),
    ],
    ids=" ".join,
)
def test_files_of_the_right_kind_are_offered(folder: Path, words: list[str], wanted: list[str]) -> None:
    offered = {name for name in completed(folder, *words) if (folder / name).exists()}
    assert sorted(offered) == wanted


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_scripts_of_their_own(command: Command, shell: str) -> None:
    done = command("--print-completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert {"zsh": "#compdef hipdnn-mlir", "tcsh": "complete hipdnn-mlir"}[shell] in done.stdout


def test_without_shtab_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main.call(["--print-completion", "bash"]) == 2
    error = "hipdnn-mlir: error: --print-completion: completion needs the package shtab; pip install shtab\n"
    assert capsys.readouterr() == ("", error)


@pytest.mark.parametrize("arguments", [["--print-completion", "fsh"], ["--print-completion"]])
def test_an_unknown_shell_is_an_error(command: Command, arguments: list[str]) -> None:
    done = command(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "--print-completion" in done.stderr
