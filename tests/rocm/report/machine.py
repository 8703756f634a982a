"""The machine: what `hipdnn-mlir doctor --amd` and `devices` say of it, asked in processes that may hang or crash."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from hipdnn_mlir.targets.table import AMD, FUSILLI, FUSILLI_ENGINE, TARGETS, find_target
from hipdnn_mlir_runtime.cli.findings import Finding
from hipdnn_mlir_runtime.session.devices import DeviceInfo
from onnx_backend.report import KILL_TIMEOUT_S

DEAD_S = 60.0
COMMAND = (sys.executable, "-P", "-m", "hipdnn_mlir_runtime.cli.main")


@dataclass(frozen=True)
class Machine:
    """What was found.

    Attributes:
        findings: Versions and problems, the machine's and those of its devices.
        devices: Those that can be used.
        problem: Why no suite can run; empty where they can.
    """

    findings: tuple[Finding, ...]
    devices: tuple[DeviceInfo, ...]
    problem: str

    @property
    def targets(self) -> list[str]:
        """What to compile for: the device's target and, where its library has Fusilli's provider, the one that uses that, too."""
        return targets_of(self.devices[0]) if self.devices and not self.problem else []


def look(port: str, timeout_s: float) -> Machine:
    """Ask about the machine and the port's devices."""
    with ThreadPoolExecutor() as pool:
        commands = [("doctor", "--amd", "--json"), ("devices", "--json")]
        doctor, told = pool.map(lambda command: asked(command, timeout_s), commands)
    findings = [Finding(**row) for row in doctor.get("findings", ())]
    if "problem" in doctor:
        findings.append(Finding("doctor", "problem", doctor["problem"]))
    rows = [DeviceInfo(**row) for row in told.get("devices", ()) if row["port"] == port]
    usable = tuple(row for row in rows if not row.problem)
    problem = told.get("problem", "") or "; ".join(row.problem for row in rows if row.problem)
    if usable:
        known = ", ".join(TARGETS)
        target = usable[0].target
        problem = "" if target in TARGETS else f"the device is a {target}, which is no target: known are {known}"
        findings += engines_of_rules(usable[0])
    elif not problem:
        problem = f"port {port} is unknown"
    return Machine(tuple(findings), usable, problem)


def is_dead(port: str, timeout_s: float = DEAD_S) -> str:
    """Why the port's devices cannot be opened any more; empty where they can."""
    told = asked(("devices", "--json"), timeout_s)
    problems = [row["problem"] for row in told.get("devices", ()) if row["port"] == port]
    return str(told.get("problem") or (problems[0] if all(problems) and problems else ""))


def asked(arguments: Sequence[str], timeout_s: float) -> dict[str, Any]:
    """What a command answers as JSON, or the ``problem`` that it has."""
    name = f"hipdnn-mlir {arguments[0]}"
    done = ended([*COMMAND, *arguments], timeout_s)
    if done is None:
        return {"problem": f"{name} hangs: no answer within {timeout_s:g} s"}
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or [""])[-1].removeprefix("hipdnn-mlir: error: ")
        return {"problem": f"{name} ended with status {done.returncode}: {last}" if done.returncode < 0 else last}
    return answer


def ended(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str] | None:
    """Run a command; None where it has not ended in time, and was killed with all that it had started, or left where that does not help."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_TIMEOUT_S)
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def engines_of_rules(device: DeviceInfo) -> list[Finding]:
    """When the rules of the target's engines were read, and which of these the library does not have."""
    if device.target not in AMD:
        return []
    engines = [engine for engine in find_target(device.target).engines if not engine.is_generated]
    read = sorted({source.read for engine in engines for source in engine.sources})
    there = {name for name, _, _ in device.engines}
    return [
        Finding("engines", "ok", f"the rules of the compiler's tables were read {', '.join(read)} (docs/amd.md)"),
        *(
            Finding("engines", "problem", f"the library has no {name}: its graphs are refused", "install its provider")
            for name in dict.fromkeys(engine.name for engine in engines)
            if name not in there
        ),
    ]


def targets_of(device: DeviceInfo) -> list[str]:
    """As ``Machine.targets``."""
    has_fusilli = device.target in AMD and any(name == FUSILLI_ENGINE for name, _, _ in device.engines)
    return [device.target, device.target + FUSILLI] if has_fusilli else [device.target]
