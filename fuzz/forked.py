"""What driver.cc does, for targets in Python: files are replayed, then mutations of them, each in a process of its own with limits.

``TARGET.py [-runs=N] [-max_total_time=SECONDS] [-seed=N] [FILE_OR_FOLDER...]``. An input that ends as none may is written to
crash-HASH in the working directory, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

CPU_S = 10
"""CPU time of one input: how loaded the machine is does not change what passes."""
WALL_S = 300
"""For what waits without end, whatever the load."""
MEMORY_BYTES = 2 << 30
_MOST_SHOWN = 12
_SEED_STEP = 1_000_003

Mutate = Callable[[Sequence[bytes], random.Random], bytes]
Target = Callable[[bytes], None]


@dataclass(frozen=True)
class Arguments:
    """The command line, in libFuzzer's words."""

    runs: int
    seconds: float
    seed: int
    paths: list[Path]

    @classmethod
    def parse(cls, words: Sequence[str]) -> Arguments:
        """Read the command line."""
        given = dict(word.lstrip("-").split("=") for word in words if word.startswith("-"))
        seconds = float(given.get("max_total_time", 0))
        runs = int(given.get("runs", -1 if seconds else 0))
        paths = [Path(word) for word in words if not word.startswith("-")]
        return cls(runs, seconds, int(given.get("seed", 1)), paths)


def run(target: Target, mutate: Mutate, seeds: Sequence[bytes], arguments: Arguments) -> int:
    """Replay files, run mutations, and return how many inputs ended as none may."""
    files = [each for path in arguments.paths for each in (sorted(path.iterdir()) if path.is_dir() else [path])]
    replayed = [path.read_bytes() for path in files]
    bad = sum(not _passes(target, each, str(path)) for path, each in zip(files, replayed, strict=True))
    end = time.monotonic() + arguments.seconds
    count = 0
    while count != arguments.runs and (not arguments.seconds or time.monotonic() < end):
        draw = random.Random(arguments.seed * _SEED_STEP + count)  # noqa: S311 - inputs, no secrets
        bad += not _passes(target, mutate(seeds, draw), f"mutation {count} of seed {arguments.seed}")
        count += 1
    print(f"{len(replayed)} inputs replayed, {count} mutations run, {bad} bad")
    return bad


def _passes(target: Target, data: bytes, name: str) -> bool:
    """Whether a process ends well that runs the target on an input."""
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            _run_and_end(target, data, printed.fileno())
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        lines = printed.read().decode(errors="backslashreplace").splitlines()
    if code == 0:
        return True
    ending = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    path = Path(f"crash-{hashlib.sha256(data).hexdigest()[:12]}")
    path.write_bytes(data)
    print(f"{name}: {ending}; the input is in {path}", *lines[-_MOST_SHOWN:], sep="\n  ", flush=True)
    return False


def _run_and_end(target: Target, data: bytes, printed: int) -> None:
    status = 1
    try:
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.alarm(WALL_S)
        if "LD_PRELOAD" not in os.environ:  # sanitizers map their shadow as data
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            tempfile.tempdir = folder  # reproducers go with it
            target(data)
        status = 0
    except BaseException:  # noqa: BLE001 - the process boundary
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
