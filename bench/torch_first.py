"""What ``import torch`` before this package costs: the provider's time over the CPU provider's, in a process with it and in one without.

``python bench/torch_first.py MODEL.onnx...`` prints its rows; ``bench/main.py`` makes them part of the table. The two processes take turns,
first with the machine as it is, then with one more for each CPU that keeps it busy.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from row import Row

LIMIT = 1.05
TURNS, RUNS_PER_TURN = 150, 8  # fewer leave 0.2 of noise on a busy machine
SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): pass"


@dataclass
class Subject:
    """A process that times runs when it is asked to.

    Attributes:
        process: Answers a line of JSON to every line.
        ours: Median milliseconds of each turn on the provider.
        theirs: The same on the CPU provider.
    """

    process: subprocess.Popen[str]
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    def take_turn(self) -> None:
        """Have some runs timed.

        Raises:
            RuntimeError: The process has ended.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.process.args!r} ended")
        ours, theirs = json.loads(answer)
        self.ours.append(ours)
        self.theirs.append(theirs)

    @property
    def ratio(self) -> float:
        """Time on the provider over that on the CPU provider in the same turn."""
        return statistics.median(ours / theirs for ours, theirs in zip(self.ours, self.theirs, strict=True))

    def __str__(self) -> str:
        return f"{statistics.median(self.ours):.2f} ms / {statistics.median(self.theirs):.2f} ms = {self.ratio:.2f}"


@contextmanager
def _process(model: Path, threads: int, first: str | None) -> Iterator[Subject]:
    command = [sys.executable, __file__, "--subject", str(model), str(threads), *filter(None, [first])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Subject(process)


@contextmanager
def _busy() -> Iterator[None]:
    command = [sys.executable, "-S", "-c", SPIN, str(os.getpid())]
    spinning = [subprocess.Popen(command) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def _compare(name: str, model: Path, threads: int, *, is_busy: bool) -> Row:
    with ExitStack() as stack:
        plain, first = (stack.enter_context(_process(model, threads, module)) for module in (None, "torch"))
        for subject in (plain, first):
            subject.take_turn()  # sessions are made in it
            subject.ours.clear()
            subject.theirs.clear()
        if is_busy:
            stack.enter_context(_busy())
        for turn in range(TURNS):
            for subject in (plain, first) if turn % 2 else (first, plain):
                subject.take_turn()
    label = f"ONNX Runtime EP: {name} after import torch / without, {'busy' if is_busy else 'quiet'} machine"
    details = {"plain": [plain.ours, plain.theirs], "first": [first.ours, first.theirs]}
    return Row(label, LIMIT, first.ratio / plain.ratio, "x", f"of time / CPU provider's: {first}; {plain}", details)


def measure(models: Mapping[str, Path], threads: int) -> list[Row]:
    """Return two rows for each model, or none where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return []
    return [_compare(name, model, threads, is_busy=busy) for name, model in models.items() for busy in (False, True)]


def _subject(model: str, threads: int, first: str | None) -> None:
    """Answer every line with the median milliseconds of some runs on the provider, and of as many on the CPU provider."""
    if first:
        importlib.import_module(first)
    import numpy as np
    import onnxruntime as ort

    from hipdnn_mlir_runtime import ort_ep
    from hipdnn_mlir_runtime.cli.measure import interleave

    sessions = []
    for is_ours in (True, False):
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        if is_ours:
            ort_ep.add_to_session_options(options, {"threads": str(threads)})
        sessions.append(ort.InferenceSession(model, sess_options=options))
    feeds = {
        port.name: np.random.default_rng(0).random([d if isinstance(d, int) else 1 for d in port.shape], np.float32)
        for port in sessions[0].get_inputs()
    }
    ours, theirs = sessions
    for _ in sys.stdin:
        timed = interleave(
            {"ours": lambda: ours.run(None, feeds), "theirs": lambda: theirs.run(None, feeds)}, RUNS_PER_TURN
        )
        sys.stdout.write(json.dumps([timed["ours"].median_ms, timed["theirs"].median_ms]) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Measure and print one line per row."""
    for row in measure({Path(model).stem: Path(model) for model in sys.argv[1:]}, 2):
        verdict = "reached" if row.is_reached else "missed"
        print(f"{row.name}: {row.measured:.2f} {row.unit} (<= {row.target:.2f}, {verdict}); {row.note}")


if __name__ == "__main__":
    if sys.argv[1] == "--subject":
        _subject(sys.argv[2], int(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else None)
    else:
        main()
