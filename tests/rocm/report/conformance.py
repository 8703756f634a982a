"""hipDNN's ABI: the C++ conformance program on the port's libraries."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import installed
from hipdnn_mlir_runtime.cli import amd
from onnx_backend.report import Limits

from .cases import Case, Suite

_POLL_S = 0.05
_KILLED = re.compile(r"ended by signal 9\b.*")


def conformance(program: Path, port: str, limits: Limits) -> Suite:
    """Run the rules that every hipDNN library keeps.

    The program runs its cases in a child process, and the rest in another one when that dies: a case that hangs has its process killed. The
    time limit is that of a process, which cannot be seen to go from case to case.
    """
    libraries = [_found(amd.HIPDNN), _found(amd.HIP)] if port == "hip" else [str(installed.library(port))]
    suite = Suite("hipDNN's ABI")
    with (
        tempfile.TemporaryFile("w+", errors="replace") as out,
        tempfile.TemporaryFile("w+", errors="replace") as errors,
    ):
        process = subprocess.Popen([str(program), *libraries, "--portable"], stdout=out, stderr=errors)
        killed = _watch(process, limits)
        out.seek(0)
        errors.seek(0)
        text, said = out.read(), errors.read().strip()
    for status, name, message in re.findall(r"^(FAILED|REFUSED) (.*)((?:\n  .*)+)", text, re.MULTILINE):
        reason = message.strip()
        if killed and _KILLED.search(reason):
            reason = f"hang: no end within {limits.case_s:g} s"
        suite.cases.append(Case(name, "failed" if status == "FAILED" else "refused", reason))
    counted = re.search(r"^(\d+) cases, (\d+) failed, (\d+) refused$", text, re.MULTILINE)
    if counted is None:
        code = process.poll()
        end = "hang: it cannot be ended" if code is None else f"crash: exit status {code}: {said[-400:]}"
        suite.cases.append(Case(program.name, "failed", end, said))
    else:
        suite.passed = int(counted[1]) - int(counted[2]) - int(counted[3])
    return suite


def _watch(process: subprocess.Popen[bytes] | subprocess.Popen[str], limits: Limits) -> int:
    """Wait for the program's end, and kill a child of it that takes too long; how many were killed."""
    killed, child, since = 0, 0, time.monotonic()
    while process.poll() is None:
        time.sleep(_POLL_S)
        now = time.monotonic()
        found = _child(process.pid)
        if found != child:
            child, since = found, now
        elif now - since > limits.case_s:
            if not child or killed >= limits.hangs or now > limits.until:
                process.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(limits.case_s)
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            killed, since = killed + 1, now
    return killed


def _child(pid: int) -> int:
    """The process that another one has started; 0 where there is none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return 0
    return int(children[0]) if children else 0


def _found(names: tuple[str, ...]) -> str:
    """The name that the dynamic linker opens, or the first."""
    return next((name for name in names if amd.opened((name,)) is not None), names[0])
