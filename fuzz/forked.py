"""What driver.cc does, for targets in Python: files are replayed, then mutations of them, in processes of their own with limits.

``TARGET.py [-runs=N] [-max_total_time=SECONDS] [-seed=N] [FILE_OR_FOLDER...]``. An input that ends as none may is written to
crash-HASH in the working directory, and the rest goes on.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CPU_S = 10
"""CPU time of one input: how loaded the machine is does not change what passes."""
WALL_S = 300
"""For what waits without end, whatever the load."""
MEMORY_BYTES = 2 << 30
_MOST_SHOWN = 12
_SEED_STEP = 1_000_003
_BATCH = 20

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
    bad = sum(not _passes(target, path.read_bytes(), str(path)) for path in files)
    end = time.monotonic() + arguments.seconds
    count = 0
    while count != arguments.runs and (not arguments.seconds or time.monotonic() < end):
        most = _BATCH if arguments.runs < 0 else min(_BATCH, arguments.runs - count)
        batch = {
            f"mutation {count + i} of seed {arguments.seed}": mutate(seeds, _draw(arguments, count + i))
            for i in range(most)
        }
        bad += _count_bad(target, batch)
        count += most
    print(f"{len(files)} inputs replayed, {count} mutations run, {bad} bad")
    return bad


def _draw(arguments: Arguments, number: int) -> random.Random:
    return random.Random(arguments.seed * _SEED_STEP + number)  # noqa: S311 - inputs, no secrets


def _count_bad(target: Target, batch: Mapping[str, bytes]) -> int:
    """How many inputs end badly: all in one process, which saves half the time, and each in its own where that ends badly."""
    ending, lines = _forked(target, list(batch.values()))
    if ending is None:
        return 0
    bad = sum(not _passes(target, data, name) for name, data in batch.items())
    if not bad:
        print(
            f"{next(iter(batch))} and those behind it, each of which ends well alone: {ending}",
            *lines,
            sep="\n  ",
            flush=True,
        )
    return max(bad, 1)


def _passes(target: Target, data: bytes, name: str) -> bool:
    """Whether a process ends well that runs the target on an input."""
    ending, lines = _forked(target, [data])
    if ending is None:
        return True
    path = Path(f"crash-{hashlib.sha256(data).hexdigest()[:12]}")
    path.write_bytes(data)
    print(f"{name}: {ending}; the input is in {path}", *lines, sep="\n  ", flush=True)
    return False


def _forked(target: Target, inputs: Sequence[bytes]) -> tuple[str | None, list[str]]:
    """How a process ends that runs the target on inputs, None for well, and the last lines that it prints."""
    with tempfile.TemporaryFile() as printed:
        child = os.fork()
        if child == 0:
            _run_and_end(target, inputs, printed.fileno())
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        lines = printed.read().decode(errors="backslashreplace").splitlines()[-_MOST_SHOWN:]
    if code == 0:
        return None, lines
    return f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}", lines


def _run_and_end(target: Target, inputs: Sequence[bytes], printed: int) -> None:
    status = 1
    try:
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if "LD_PRELOAD" not in os.environ:  # sanitizers map their shadow as data
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        outer, (_, most_cpu_s) = tempfile.gettempdir(), resource.getrlimit(resource.RLIMIT_CPU)
        for data in inputs:
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + CPU_S, most_cpu_s))
            signal.alarm(WALL_S)
            with tempfile.TemporaryDirectory(dir=outer) as folder, contextlib.chdir(folder):
                tempfile.tempdir = folder  # reproducers go with it
                target(data)
        status = 0
    except BaseException:  # noqa: BLE001 - the process boundary
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
