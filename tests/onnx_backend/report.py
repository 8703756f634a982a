"""Runs every node case in worker processes and reports passed, rejected with reasons, and failed.

``python tests/onnx_backend/report.py [--through-onnxruntime] [--json FILE] [--coverage FILE] [--filter TEXT]`` prints the report as
markdown. Through ONNX Runtime, on the provider, every case that passes standalone is to pass wholly placed; the report names those that
do not.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import queue
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from onnx_backend.node_cases import node_cases

Result = dict[str, Any]
Results = dict[str, Result]

START_TIMEOUT_S = 120.0
KILL_TIMEOUT_S = 10.0
"""A process inside a driver that hangs does not end even when it is killed: it is left behind."""
LOG_BYTES = 8000
_TESTS = Path(__file__).resolve().parent.parent
STANDALONE = ("-P", "-m", "onnx_backend.worker")
"""Arguments of Python for a worker that compiles and runs node cases."""


def case_names() -> list[str]:
    """Return the names of all node cases of the installed onnx package."""
    return sorted(node_cases())


@dataclass(frozen=True)
class Limits:
    """How long cases may take.

    Attributes:
        case_s: Seconds without an answer after which a case has hung.
        until: No case is begun after this, as ``time.monotonic`` tells it.
        hangs: After so many cases in a row that hung no other is begun: the device answers nothing any more.
    """

    case_s: float = 60.0
    until: float = math.inf
    hangs: float = math.inf


UNLIMITED = Limits()
"""All cases run, none for longer than a minute."""


class Worker:
    """One worker process, started again when a case fails, kills or hangs it. Used by one thread.

    Args:
        command: Python's arguments; the process speaks as ``onnx_backend.worker`` does.
        case_s: As of ``Limits``.
    """

    def __init__(self, command: Sequence[str] = STANDALONE, case_s: float = Limits.case_s) -> None:
        self._command, self._case_s = command, case_s
        self._process: subprocess.Popen[str] | None = None
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the worker

    def run(self, name: str) -> Result:
        """Run one case; a crash or a hang is a failure of that case. What is written to standard error meanwhile is its ``log``.

        Raises:
            RuntimeError: A worker does not even start.
        """
        if self._process is not None and self._process.poll() is not None:
            self.close()
        process = self._process or self._start()
        begin = os.fstat(self._stderr.fileno()).st_size
        result = self._answer(process, name)
        if result["status"] == "failed" and "AssertionError: " not in result["reasons"][0]:
            self.close()  # a GPU answers nothing more to a process that has read where it must not; wrong values are an answer
        log = self._written_since(begin)
        return {**result, "log": log} if log else result

    def _answer(self, process: subprocess.Popen[str], name: str) -> Result:
        assert process.stdin is not None
        try:
            process.stdin.write(name + "\n")
            process.stdin.flush()
            line = self._read_line(process, self._case_s)
            if line:
                result: Result = json.loads(line)
                return result
        except (BrokenPipeError, ValueError):  # it ended before the name was read, or amid its answer
            line = ""
        self.close()
        if line is None:
            return {"status": "failed", "reasons": [f"hang: no answer within {self._case_s:g} s"]}
        return {"status": "failed", "reasons": [f"crash: {self._last_words(process)}"]}

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            # A worker that crashed is let finish, so that its own exit status is seen.
            try:
                self._process.wait(0.5)
            except subprocess.TimeoutExpired:
                self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(KILL_TIMEOUT_S)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(_TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._stderr.seek(0)
        self._stderr.truncate()
        process = self._process = subprocess.Popen(
            [sys.executable, *self._command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            # Workers share the cores between them; ONNX Runtime is to take cases of operator sets that are newer than its release.
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "ALLOW_RELEASED_ONNX_OPSET_ONLY": "0"},
        )
        if self._read_line(process, START_TIMEOUT_S) != "ready\n":
            self.close()
            raise RuntimeError(f"the worker does not start: {self._last_words(process)}")
        return process

    @staticmethod
    def _read_line(process: subprocess.Popen[str], timeout_s: float) -> str | None:
        """Return the next line, an empty text at the end, None after the timeout."""
        assert process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            return process.stdout.readline() if selector.select(timeout_s) else None

    def _written_since(self, begin: int) -> str:
        """Return the end of what came to standard error; without a seek, for the process shares the file's position."""
        file = self._stderr.fileno()
        begin = max(begin, os.fstat(file).st_size - LOG_BYTES)
        return os.pread(file, LOG_BYTES, begin).decode(errors="replace").strip()

    def _last_words(self, process: subprocess.Popen[str]) -> str:
        """Say how a process ended, with the end of its standard error."""
        code = process.returncode
        if code is None:
            return "the process cannot be killed"
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return " | ".join([how, *lines[-3:]])[:400]


@functools.cache
def run_all() -> Results:
    """Run all cases standalone, once per process; not to be modified."""
    return run_cases(case_names(), os.cpu_count() or 1)


def run_through_onnxruntime(names: Iterable[str], workers: int) -> Results:
    """Run cases in ONNX Runtime with the provider; statuses as ``through_onnxruntime.CaseRunner`` states them."""
    with tempfile.TemporaryDirectory() as cache_dir:
        return run_cases(names, workers, (*STANDALONE, cache_dir))


def run_cases(
    names: Iterable[str],
    workers: int,
    command: Sequence[str] = STANDALONE,
    told: Callable[[str, Result], None] = lambda name, result: None,
    limits: Limits = UNLIMITED,
) -> Results:
    """Run cases on a pool of workers.

    Args:
        names: The cases.
        workers: Processes at a time.
        command: As for ``Worker``.
        told: Is told each result as it comes, in any order.
        limits: How long it may take; what is not begun for it has the status ``unrun``.

    Returns:
        The result of each case, in the order of ``names``.
    """
    names = list(names)
    pending: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        pending.put(name)
    results: Results = {}
    hung = 0

    def run(worker: Worker, name: str) -> Result:
        nonlocal hung
        if hung >= limits.hangs:
            return {"status": "unrun", "reasons": [f"{limits.hangs} cases in a row had hung"]}
        if time.monotonic() > limits.until:
            return {"status": "unrun", "reasons": ["no time was left"]}
        result = worker.run(name)
        hung = hung + 1 if result["reasons"][:1] and result["reasons"][0].startswith("hang: ") else 0
        return result

    def serve() -> None:
        worker = Worker(command, limits.case_s)
        try:
            while True:
                name = pending.get_nowait()
                results[name] = run(worker, name)
                told(name, results[name])
        except queue.Empty:
            pass
        finally:
            worker.close()

    with ThreadPoolExecutor(workers) as pool:
        for served in [pool.submit(serve) for _ in range(workers)]:
            served.result()
    return {name: results[name] for name in names}


def to_markdown(results: Results) -> str:
    """Return the report: counts, rejections by reason, and every failure by name."""
    counts = Counter(result["status"] for result in results.values())
    lines = [
        f"{len(results)} node cases: {counts['passed']} passed wholly in one program, "
        f"{counts['rejected']} rejected, {counts['failed']} failed",
        "",
        "| rejected because | cases |",
        "|---|---:|",
    ]
    reasons: Counter[str] = Counter()
    for result in results.values():
        if result["status"] == "rejected":
            reasons.update(result["reasons"])
    lines += [f"| {reason.replace('|', '/')} | {count} |" for reason, count in reasons.most_common()]
    failed = {name: result for name, result in results.items() if result["status"] == "failed"}
    if failed:
        lines += ["", "| failed | how |", "|---|---|"]
        lines += [f"| {name} | {str(result['reasons']).replace('|', '/')} |" for name, result in failed.items()]
    return "\n".join(lines)


def missing(standalone: Results, through: Results) -> dict[str, Result]:
    """Return what becomes through ONNX Runtime of the cases that pass standalone and not wholly placed on the provider."""
    return {
        name: result
        for name, result in through.items()
        if standalone[name]["status"] == "passed" and result["status"] != "passed"
    }


def compare_to_markdown(standalone: Results, through: Results) -> str:
    """Return the report on cases through ONNX Runtime: how many ran where, and every one that does not pass as it does standalone."""
    counts = Counter(str(result["status"]) for result in through.values())
    passed = sum(result["status"] == "passed" for result in standalone.values())
    lines = [
        f"{len(through)} node cases through ONNX Runtime: {counts['passed']} passed wholly on the provider, "
        f"{counts['removed']} without a node left to run, {counts['cpu']} right with nodes on the CPU, "
        f"{counts['unimplemented']} without a kernel anywhere, {counts['refused']} that ONNX Runtime alone refuses as well, "
        f"{counts['failed']} failed; {passed} pass standalone",
    ]
    shown = sorted(
        {*missing(standalone, through), *(n for n, result in through.items() if result["status"] == "failed")}
    )
    if shown:
        lines += ["", "| differs | through ONNX Runtime | how |", "|---|---|---|"]
        for name in shown:
            lines.append(
                f"| {name} | {through[name]['status']} | {'; '.join(through[name]['reasons']).replace('|', '/')} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Run the cases that a filter selects and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write all results to this file")
    parser.add_argument("--coverage", type=Path, help="write the page of all operators to this file")
    parser.add_argument("--filter", default="", help="only cases whose name contains this text")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--through-onnxruntime", action="store_true", help="run in ONNX Runtime and compare with standalone"
    )
    arguments = parser.parse_args()
    names = [name for name in case_names() if arguments.filter in name]
    results = run_cases(names, arguments.workers)
    text = to_markdown(results)
    if arguments.through_onnxruntime:
        standalone, results = results, run_through_onnxruntime(names, arguments.workers)
        text = compare_to_markdown(standalone, results)
    if arguments.coverage:
        sys.path.insert(0, str(_TESTS))  # as a script this file is outside its package
        from onnx_backend.coverage import to_coverage

        arguments.coverage.write_text(to_coverage(results))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(results, indent=1))
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
