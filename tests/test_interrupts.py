"""Ctrl-C in the middle of a run, and of compiling."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hipdnn_mlir_runtime.session.session import Session
from runtime_programs import Graph, ProgramText, argument, document, execute

STEPS = 501
ELEMENTS = 1 << 22
_RUN = """
import signal, sys
import numpy as np
from hipdnn_mlir_runtime.session.session import Session
from test_interrupts import ELEMENTS
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
session = Session(sys.argv[1], threads=1)
x, y = np.arange(ELEMENTS, dtype=np.float32), np.zeros(ELEMENTS, np.float32)
print("runs", flush=True)
try:
    session.run(None, {"x": x}, out={"y": y})
except KeyboardInterrupt:
    print("interrupted", y.any())
session.run(None, {"x": x}, out={"y": y})
print((y == -x).all())
"""


def negated(count: int) -> ProgramText:
    """Return y = -x, by an odd number of steps that negate."""
    graph = Graph("neg")
    x, y = (graph.tensor("f32", [ELEMENTS], role) for role in ("in", "out"))
    graph.pointwise("NEG", [x], y)
    places = [0, *(1 + i % 2 for i in range(count - 1)), 3]
    steps = [execute(0, f"step {i}", places[i], places[i + 1]) for i in range(count)]
    buffers = [(kind, 4 * ELEMENTS) for kind in ("input", "temp", "temp", "output")]
    ports = [argument("x", "f32", [ELEMENTS], 0)], [argument("y", "f32", [ELEMENTS], 3)]
    return ProgramText(document([graph.to_json()], *ports, [], buffers, steps))


def test_a_run_ends_before_its_last_step_when_it_is_interrupted(tmp_path: Path) -> None:
    path = negated(STEPS).save(tmp_path / "m.hipdnn")
    with subprocess.Popen(
        [sys.executable, "-c", _RUN, path], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "runs\n"
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        # What the last step would have written is not there; the session runs as before.
        assert child.stdout.read().split("\n") == ["interrupted False", "True", ""]
    assert child.returncode == 0


_SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and "{mark}" in sys.orig_argv:
            os.symlink("/proc/%d" % os.getpid(), {started!r})
            time.sleep(600)
sys.meta_path.insert(0, Finder())
"""
"""Stays where it is when a module is first asked for."""
_WRITTEN = """
import os, pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def replace(self, target):
    os.symlink("/proc/%d" % os.getpid(), {started!r})
    time.sleep(600)
if "{mark}" in sys.orig_argv:
    pathlib.Path.replace = replace
"""
"""Stays where it is when the program is written, but has not got its name."""
MOMENTS = {
    "the child starts": (_SLOW, "hipdnn_mlir_runtime.errors", "hipdnn_mlir.service.server"),
    "the child compiles": (_SLOW, "torch_mlir", "hipdnn_mlir.service.server"),
    "the child writes": (_WRITTEN, "", "hipdnn_mlir.service.server"),
    "this process compiles": (_SLOW, "torch_mlir", "--in-process"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_compiling_ends_with_all_that_it_has_started_when_it_is_interrupted(
    moment: str, small_model: Path, tmp_path: Path
) -> None:
    prelude, module, mark = MOMENTS[moment]
    scratch, work, started = tmp_path / "scratch", tmp_path / "work", tmp_path / "started"
    scratch.mkdir()
    work.mkdir()
    (tmp_path / "sitecustomize.py").write_text(prelude.format(module=module, mark=mark, started=str(started)))
    command = [sys.executable, "-P", "-m", "hipdnn_mlir", "compile", small_model, "-o", work / "m.hipdnn"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "TMPDIR": str(scratch)}
    with subprocess.Popen(
        command + ["--in-process"] * (mark == "--in-process"),
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        start_new_session=True,
    ) as process:
        while not started.is_symlink():
            assert process.poll() is None
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.communicate()[1] == "hipdnn-mlir: error: interrupted\n"
    assert process.returncode == 130
    assert not started.exists()  # the process that it points at is gone
    assert [*work.iterdir(), *scratch.iterdir()] == []


def test_a_handler_that_raises_nothing_lets_a_run_end() -> None:
    seen: list[int] = []
    previous = signal.signal(signal.SIGALRM, lambda number, _: seen.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        x = np.arange(ELEMENTS, dtype=np.float32)
        (y,) = Session(negated(STEPS), threads=1).run(None, {"x": x})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert seen == [signal.SIGALRM]
    np.testing.assert_array_equal(y, -x)
