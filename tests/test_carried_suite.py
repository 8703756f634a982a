"""The suite that is compiled on one machine and run on another (bench/gpu/suite.py), both on this one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from onnx_backend.node_cases import node_cases

pytestmark = pytest.mark.slow

SUITE = Path(__file__).resolve().parent.parent / "bench" / "gpu" / "suite.py"


def suite(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the script; modules of the folder `path` come first."""
    node_cases()  # made before, for the script to find
    known = os.pathsep.join(filter(None, [path and str(path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, str(SUITE), *map(str, arguments), "--workers", "1"]
    return subprocess.run(command, text=True, capture_output=True, env={**os.environ, "PYTHONPATH": known})


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Node cases of softplus and one that is not taken, and the samples of it in three types."""
    file = tmp_path_factory.mktemp("suite") / "host.pack"
    made = suite("pack", file, "--target", "host", "--filter", "softplus")
    assert made.returncode == 0, made.stdout + made.stderr
    assert "4 node cases, 3 samples" in made.stdout
    return file


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases are pickles of the script's classes."""
    monkeypatch.syspath_prepend(SUITE.parent)


def changed(packed: Path, name: str, **fields: object) -> Path:
    """The file with other fields in one of its cases."""
    file = packed.with_name("changed.pack")
    with zipfile.ZipFile(packed) as before, zipfile.ZipFile(file, "w") as after:
        for entry in before.namelist():
            data = before.read(entry)
            after.writestr(entry, pickle.dumps(replace(pickle.loads(data), **fields)) if entry == name else data)
    return file


def test_all_pass_on_the_host_without_the_compiler(packed: Path, tmp_path: Path) -> None:
    Path(tmp_path, "torch_mlir.py").write_text("raise ImportError('torch-mlir is not on that machine')")
    ran = suite("run", packed, "--port", "host", path=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith("7 passed\n")


def test_wrong_output_is_a_failure_that_names_the_case(packed: Path) -> None:
    name = "test_softplus"
    case = pickle.loads(zipfile.ZipFile(packed).read(name))
    wrong = [(inputs, [output + 1 for output in expected]) for inputs, expected in case.data_sets]
    ran = suite("run", changed(packed, name, data_sets=wrong), "--port", "host")
    assert ran.returncode == 1
    assert ran.stdout.startswith(f"failed: {name}: AssertionError")
    assert ran.stdout.endswith("1 failed, 6 passed\n")


def test_crash_is_a_failure_of_its_case_alone(packed: Path) -> None:
    ran = suite("run", changed(packed, "test_softplus", otherwise=Crash()), "--port", "host")
    assert ran.returncode == 1
    assert ran.stdout.startswith("failed: test_softplus: crash: SIGABRT")
    assert ran.stdout.endswith("1 failed, 6 passed\n")


class Crash:
    """Takes down the process that unpickles it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.abort, ()


def test_what_the_target_alone_rejects_is_listed_with_the_reason(tmp_path: Path) -> None:
    # A last block that is not whole; scales of 16 bits are nothing that the host takes either.
    made = suite("pack", tmp_path / "none.pack", "--target", "sm_90", "--filter", "BlockScaleQuantize(f32")
    assert made.returncode == 0, made.stdout + made.stderr
    assert "rejected for sm_90, not for host: 1 x BlockScaleQuantize: " in made.stdout
    assert "has blocks of 4 of a dim of 5" in made.stdout
