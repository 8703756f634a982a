"""Processes that are killed at random moments on one cache, and many at once on an empty one.

Usage: python bench/kills.py [--kills 500] [--processes 50] [--seed 1]

A process makes a session of ONNX Runtime (which compiles in a child and fills the cache, or finds the program there), writes a program
file, or loads one with plans that are kept, and gets SIGKILL. After each, every file of the cache has to have the very bytes that an
undisturbed process leaves under that name, the program file has to be whole, and no process left over. The exit status is 1 where
something was not so.
"""

import argparse
import collections
import ctypes
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import models
from hipdnn_mlir import compile as compile_model
from hipdnn_mlir_runtime import load, ort_ep

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER: what a killed process leaves behind becomes this one's child."""
PARTIAL = ".hipdnn-partial-"
KILLED, ENDED = " killed", " that had ended before"
PATIENCE_S = 120
"""For what a killed process has started to end by itself."""
MODELS = [models.mlp(rows, (32, 64, 16)).SerializeToString() for rows in range(1, 7)]


def session(cache: Path, number: int) -> np.ndarray:
    """Return the result of a model in a session that uses a cache."""
    ort.register_execution_provider_library("hipdnn", ort_ep.get_library_path())
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    devices = [device for device in ort.get_ep_devices() if device.ep_name == ort_ep.get_ep_name()]
    settings.add_provider_for_devices(devices[:1], {"cache_dir": str(cache), "threads": "1", "strict": "1"})
    found = ort.InferenceSession(MODELS[number], sess_options=settings)
    found.disable_fallback()
    (port,) = found.get_inputs()
    x = np.random.default_rng(number).standard_normal(port.shape).astype(np.float32)
    return found.run(None, {port.name: x})[0]


def started(act: Callable[[], object]) -> int:
    """Return the id of a process that does something, and ends with status 0 unless it fails."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        act()
        status = 0
    except Exception:  # noqa: BLE001 - the process boundary
        traceback.print_exc()
    os._exit(status)


def left_over() -> int:
    """Wait for all that killed processes have started, and return how much of it had to be killed."""
    end = time.monotonic() + PATIENCE_S
    killed = 0
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return killed
        if pid == 0 and time.monotonic() > end:
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
                killed += 1
        time.sleep(0.01)


class Life:
    """Folders that processes are killed on, and what undisturbed ones leave there."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.faults: list[str] = []
        self._folder, self._program = folder, folder / "m.hipdnn"
        self._made = compile_model(models.mlp(4, (256, 512, 256)))
        self._made.save(folder / "whole.hipdnn")
        self._made.save(self._program)
        self._whole = self._program.read_bytes()
        for number in range(len(MODELS)):
            began = time.monotonic()
            self.expect(started(lambda n=number: np.save(folder / f"{n}.npy", session(folder / "good", n))), "a model")
            self.session_s = time.monotonic() - began
        self._good = {path.name: path.read_bytes() for path in (folder / "good").iterdir()}

    def expect(self, pid: int, what: str) -> None:
        """Wait for a process, and note where it failed."""
        if os.waitpid(pid, 0)[1] != 0:
            self.faults.append(f"{what}: a process failed")

    def session(self, number: int) -> None:
        """Make a session, and compare its result."""
        np.testing.assert_array_equal(session(self.cache, number), np.load(self._folder / f"{number}.npy"))

    def write(self, _: int) -> None:
        """Write the program file again and again."""
        while True:
            self._made.save(self._program)

    def load(self, _: int) -> None:
        """Load a program again and again, with plans that are timed and kept."""
        while True:
            shutil.rmtree(self._folder / "plans", ignore_errors=True)
            found = load(self._folder / "whole.hipdnn", threads=1, autotune=2, plan_cache=self._folder / "plans")
            found.run(None, {port.name: np.ones(port.shape, np.float32) for port in found.inputs})

    def check(self, what: str) -> None:
        """Note what of the cache and of the program file is not as it has to be."""
        for path in self.cache.iterdir() if self.cache.exists() else ():
            if not path.name.startswith(PARTIAL) and self._good.get(path.name) != path.read_bytes():
                self.faults.append(f"{what}: {path.name} differs")
        if self._program.read_bytes() != self._whole:
            self.faults.append(f"{what}: the program file differs")
        if killed := left_over():
            self.faults.append(f"{what}: {killed} processes were left")

    def kill(self, draw: random.Random) -> str:
        """Kill a process at a random moment, and return what it did, and whether that came too late."""
        name, longest_s = draw.choice([*[("session", self.session_s)] * 3, *[("write", 0.3)] * 3, *[("load", 0.5)] * 2])
        number = draw.randrange(len(MODELS))
        if draw.random() < 0.5:  # most often there is something to compile
            shutil.rmtree(self.cache, ignore_errors=True)
        pid = started(lambda: getattr(self, name)(number))
        time.sleep(draw.uniform(0, longest_s))
        os.kill(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.check(f"{name} {number}")
        if status not in (0, -signal.SIGKILL):
            self.faults.append(f"{name} {number}: status {status}")
        return name + (ENDED if status == 0 else KILLED)


def main() -> int:
    """Kill, and return whether something was not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"kills": 500, "processes": 50, "seed": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    draw = random.Random(given.seed)  # noqa: S311 - moments, no secrets
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder))
        print(f"a session that compiles takes {life.session_s:.1f} s here", flush=True)
        counts: collections.Counter[str] = collections.Counter()
        while sum(count for what, count in counts.items() if what.endswith(KILLED)) < given.kills:
            counts[life.kill(draw)] += 1
        print(", ".join(f"{count} x {what}" for what, count in sorted(counts.items())), flush=True)
        for number in range(len(MODELS)):
            life.expect(started(lambda n=number: life.session(n)), "a model after the kills")
        life.check("after the kills")
        print(f"{len(list(life.cache.glob(PARTIAL + '*')))} files of killed writers are left", flush=True)
        shutil.rmtree(life.cache)
        for pid in [started(lambda: life.session(0)) for _ in range(given.processes)]:
            life.expect(pid, "at once")
        life.check("at once")
        names = sorted(path.suffix for path in life.cache.iterdir())
        print(f"{given.processes} processes at once leave {', '.join(names)}")
    print(*life.faults, f"{len(life.faults)} faults", sep="\n")
    return len(life.faults) > 0


if __name__ == "__main__":
    sys.exit(main())
