"""What the system refuses or ends: an error of one line, nothing half written, and what others do at the same time is whole."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

import hipdnn_mlir
import models
from conftest import Command
from hipdnn_mlir.report.explain import Explanation
from hipdnn_mlir.report.explain_placement import write_explanation
from hipdnn_mlir.report.page.write_page import write_page
from hipdnn_mlir.report.partitioned import write_partitioned
from hipdnn_mlir_runtime.cli.arrays import write_arrays
from hipdnn_mlir_runtime.errors import HipdnnMlirError

FILE_LIMIT = 4096
KILLS = 25
PROCESSES = 2
PATIENCE_S = 300
"""For what may only end by waiting without end."""


def start_compiling(
    model: Path, output: Path, env: Mapping[str, str], limits: Mapping[int, int] | None = None
) -> subprocess.Popen[str]:
    """Start `hipdnn-mlir compile`, with limits of the system's for it."""

    def limited() -> None:
        for kind, most in (limits or {}).items():
            resource.setrlimit(kind, (most, most))

    command = [sys.executable, "-P", "-m", "hipdnn_mlir", "compile", str(model), "-o", str(output)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **env}, preexec_fn=limited)


def test_full_disk_is_one_line_and_leaves_nothing(small_model: Path, tmp_path: Path) -> None:
    # A limit on file sizes fails a write half way, as a full disk does; the compiler's process has it, too.
    process = start_compiling(small_model, tmp_path / "m.hipdnn", {}, {resource.RLIMIT_FSIZE: FILE_LIMIT})
    _, printed = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, printed
    assert "m.hipdnn: cannot write: File too large" in printed
    assert printed.count("\n") == 1, printed
    assert list(tmp_path.iterdir()) == []


def test_files_stay_as_they_were_when_the_disk_is_full(small_program: Path, tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    writers: list[Callable[[], object]] = [
        lambda: write_page(small_program, path),
        lambda: write_partitioned(small_program, path),
        lambda: write_explanation(str(path), "m", Explanation([], [], [], target="host")),
        lambda: write_arrays(path, {"x": np.zeros(FILE_LIMIT)}),
    ]
    for write in writers:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
        try:
            with pytest.raises(HipdnnMlirError, match="old: cannot write: File too large; free some space"):
                write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_text() == "old"
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("most", [6, 7, 8])
def test_few_open_files_are_one_line_at_most(most: int, small_model: Path, tmp_path: Path) -> None:
    process = start_compiling(small_model, tmp_path / "m.hipdnn", {}, {resource.RLIMIT_NOFILE: most})
    _, printed = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2, printed
    assert "Too many open files" in printed
    assert printed.count("\n") == 1, printed
    assert list(tmp_path.iterdir()) == []


# hashlib prints what it cannot load by itself, and goes on.
_NO_MEMORY = """
import hashlib, resource, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.parametrize("module", ["hipdnn_mlir_runtime.cli.execution", "hipdnn_mlir_runtime._runtime"])
def test_no_more_memory_is_one_line(module: str, command: Command, small_program: Path, tmp_path: Path) -> None:
    """Before Python's own modules are read, and before the library is mapped."""
    (tmp_path / "sitecustomize.py").write_text(_NO_MEMORY.format(module=module))
    result = command("run", small_program, env={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 2, result.stderr
    assert "error: out of memory; " in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr


def test_no_temporary_folder_is_one_line(command: Command, small_model: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import tempfile\ntempfile.tempdir = '/none'\n")
    result = command("quantize", small_model, "-o", tmp_path / "m.onnx", env={"PYTHONPATH": str(tmp_path)})
    assert result.returncode == 2
    assert "/none/" in result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert not (tmp_path / "m.onnx").exists()


def test_program_file_is_whole_when_writers_are_killed(tmp_path: Path) -> None:
    path = tmp_path / "m.hipdnn"
    whole = hipdnn_mlir.compile(models.mlp(1, (512, 1024, 512)))
    whole.save(tmp_path / "whole")
    for kill in range(KILLS):
        pid = os.fork()
        if pid == 0:
            try:
                while True:
                    whole.save(path)
            finally:
                os._exit(1)
        while not path.exists():
            assert os.waitpid(pid, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(0.0007 * kill)  # at different points of its work, whatever they are
        os.kill(pid, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        assert path.read_bytes() == (tmp_path / "whole").read_bytes()
        path.unlink()


def test_processes_write_the_same_bytes_at_once(small_model: Path, tmp_path: Path) -> None:
    """Whatever the order of sets is in a process, and whoever writes last to the file that all write to."""
    shared = tmp_path / "shared.hipdnn"
    own = [tmp_path / str(seed) / "small.hipdnn" for seed in range(PROCESSES)]
    for path in own:
        path.parent.mkdir()
    seeds = [{"PYTHONHASHSEED": str(seed)} for seed in range(PROCESSES)]
    started = [start_compiling(small_model, path, seed) for path, seed in zip(own, seeds, strict=True)]
    started += [start_compiling(small_model, shared, seed) for seed in seeds]
    for process in started:
        _, printed = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, printed
    assert len({path.read_bytes() for path in [*own, shared]}) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "shared.hipdnn"]


def test_session_runs_in_a_process_that_is_forked_behind_a_run(small_program: Path) -> None:
    session = hipdnn_mlir.load(small_program, threads=2)
    x = {"image": np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)}
    (want,) = session.run(None, x)
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(PATIENCE_S)  # the library's threads are not in this process: who waits for them waits for ever
            (got,) = session.run(None, x)
            (again,) = hipdnn_mlir.load(small_program, threads=2).run(None, x)
            os._exit(0 if np.array_equal(got, want) and np.array_equal(again, want) else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    np.testing.assert_array_equal(session.run(None, x)[0], want)
