"""hipDNN's ABI: the C++ conformance program on the port's libraries."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import installed
from hipdnn_mlir_runtime.cli import amd
from onnx_backend.report import KILL_TIMEOUT_S, Limits

from .cases import Case, Suite
from .machine import ended

_POLL_S = 0.05
_KILLED = re.compile(r"ended by signal 9\b.*")


def conformance(program: Path, port: str, limits: Limits) -> Suite:
    """Run the rules that every hipDNN library keeps.

    The program runs its cases in a child process, and the rest in another one when that dies: a case that hangs has its process killed. The
    time limit is that of a process, which cannot be seen to go from case to case.
    """
    libraries = [str(installed.library(port))]
    if port == "hip":
        libraries = [_found(names, limits.case_s) for names in (amd.HIPDNN, amd.HIP)]
    suite = Suite("hipDNN's ABI")
    with (
        tempfile.TemporaryFile("w+", errors="replace") as out,
        tempfile.TemporaryFile("w+", errors="replace") as errors,
    ):
        command = [str(program), *libraries, "--portable"]
        process = subprocess.Popen(command, stdout=out, stderr=errors, start_new_session=True)
        try:
            killed, is_ended = _watch(process, limits)
        finally:
            if process.poll() is None:  # somebody ended the report
                os.killpg(process.pid, signal.SIGKILL)
        out.seek(0)
        errors.seek(0)
        text, said = out.read(), errors.read().strip()
    hang = f"hang: no end within {limits.case_s:g} s"
    for status, name, message in re.findall(r"^(FAILED|REFUSED) (.*)((?:\n  .*)+)", text, re.MULTILINE):
        reason = message.strip()
        if killed and _KILLED.search(reason):
            reason = hang
        suite.cases.append(Case(name, "failed" if status == "FAILED" else "refused", reason))
    counted = re.search(r"^(\d+) cases, (\d+) failed, (\d+) refused$", text, re.MULTILINE)
    if counted is None:
        code = process.poll()
        end = hang if is_ended else f"crash: exit status {code}: {said[-400:]}"
        end = "hang: it cannot be ended" if code is None else end
        suite.cases.append(Case(program.name, "failed", end, said))
    else:
        suite.passed = int(counted[1]) - int(counted[2]) - int(counted[3])
    return suite


def _watch(process: subprocess.Popen[bytes] | subprocess.Popen[str], limits: Limits) -> tuple[int, bool]:
    """Wait for the program's end, and kill a child of it that takes too long.

    Returns:
        How many children were killed, and whether the program was, with all that it had started.
    """
    killed, child, since = 0, 0, time.monotonic()
    while process.poll() is None:
        time.sleep(_POLL_S)
        now = time.monotonic()
        found = _child(process.pid)
        if found != child:
            child, since = found, now
        elif now - since > limits.case_s:
            if not child or killed >= limits.hangs or now > limits.until:
                os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(KILL_TIMEOUT_S)
                return killed, True
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            killed, since = killed + 1, now
    return killed, False


def _child(pid: int) -> int:
    """The process that another one has started; 0 where there is none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def _found(names: tuple[str, ...], limit_s: float) -> str:
    """The name that the dynamic linker opens, or the first. It is opened in a process of its own, where it may hang or crash."""
    for name in names:
        done = ended([sys.executable, "-P", "-c", "import ctypes, sys; ctypes.CDLL(sys.argv[1])", name], limit_s)
        if done is None or done.returncode != 1:  # 1: the linker refuses it
            return name
    return names[0]
