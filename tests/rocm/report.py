"""Runs the suites on the devices of a port and writes one file about it: `python tests/rocm/report.py --write build/rocm-report.md`.

Versions, devices and engines first; then hipDNN's ABI (the C++ conformance program with the port's libraries), onnx's node cases compiled
for the device, the op table's samples against the host's library, and whole models against ONNX Runtime on the CPU, plain and recorded.
Every failure stands there with its message. Exits 1 where something failed.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnxruntime as ort

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "bench" / "gpu"))

import suite as op_suite

import hipdnn_mlir
import installed
import models
from hipdnn_mlir.codegen.core import link
from hipdnn_mlir.targets.table import AMD, FUSILLI, FUSILLI_ENGINE, TARGETS
from hipdnn_mlir_runtime.session.devices import DeviceInfo, list_devices
from onnx_backend.report import case_names, run_cases
from rocm import check_machine

PACKAGES = ("hipdnn-mlir", "torch-mlir", "onnx", "onnxruntime", "numpy", "llvmlite")
MODEL_ERROR = {"f32": 1e-3, "f16": 2e-2}
"""Of outputs, as norms: products of f32 may be summed in another order, those of f16 round each operand."""
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": models.mlp,
    "resnet": models.resnet,
    "mobilenet_v2": models.mobilenet_v2,
    "encoder": lambda: models.encoder(layers=2, s=64, d=64, heads=4, ffn=128),
}


@dataclass
class Suite:
    """What became of one suite: counts by status, and what failed, or was refused where that is worth telling, with its message."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)

    def add(self, case: str, status: str, message: str = "") -> None:
        """Count a case."""
        self.counts[status] = self.counts.get(status, 0) + 1
        if status == "failed":
            self.failures.append((case, message))


def conformance(program: Path, port: str) -> Suite:
    """The ABI's rules that every hipDNN library keeps, on the port's."""
    suite = Suite("hipDNN's ABI")
    packaged = installed.library(port)
    libraries = [_found(check_machine.HIPDNN), _found(check_machine.HIP)] if port == "hip" else [str(packaged)]
    command = [str(program), *libraries, "--portable"]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    counted = re.search(r"^(\d+) cases, (\d+) failed, (\d+) refused$", run.stdout, re.MULTILINE)
    told = re.findall(r"^(FAILED|REFUSED) (.*)((?:\n  .*)+)", run.stdout, re.MULTILINE)
    for status, name, message in told:
        if status == "FAILED":
            suite.add(name, "failed", message.strip())
        else:
            suite.add(name, "rejected")
            suite.refusals.append((name, message.strip()))
    if counted is None:
        suite.add(program.name, "failed", f"exit status {run.returncode}: {run.stderr.strip()[-400:]}")
    else:
        suite.counts["passed"] = int(counted[1]) - int(counted[2]) - int(counted[3])
    return suite


def node_cases(target: str, wanted: str, workers: int) -> Suite:
    """Onnx's node cases, each compiled for the target and run on its port."""
    suite = Suite(f"onnx's node cases, {target}")
    os.environ["HIPDNN_MLIR_TEST_TARGET"] = target
    for name, result in run_cases([name for name in case_names() if wanted in name], workers).items():
        suite.add(name, str(result["status"]), "; ".join(result["reasons"]))
    return suite


def samples(target: str, port: str, wanted: str, workers: int) -> Suite:
    """The op table's samples against the host's library, as compiled for the target and, where its library refuses graphs, without them."""
    suite = Suite(f"samples of the op table, {target}")
    with TemporaryDirectory() as folder:
        file = Path(folder, "samples")
        op_suite.pack(file, target, wanted, workers)
        for name, result in op_suite.run(file, port, wanted, workers).items():
            reason = "; ".join(result["reasons"])
            is_right = result["status"] in ("passed", "recovered")
            suite.add(name, "passed" if is_right else "failed", reason)
            if result["status"] == "recovered":
                suite.refusals.append((name, reason))
    return suite


def whole_models(target: str, names: Iterable[str]) -> Suite:
    """Models in f32 and f16 against ONNX Runtime on the CPU in f32, each in a process of its own."""
    suite = Suite(f"models, {target}")
    for name in names:
        for precision, most in MODEL_ERROR.items():
            case = f"{name} in {precision}"
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                try:
                    error = pool.submit(model_error, name, precision, target).result()
                except BrokenProcessPool:
                    suite.add(case, "failed", "the process died")
                except Exception as problem:  # noqa: BLE001 - whatever it is, it is a failure of this case
                    suite.add(case, "failed", f"{type(problem).__name__}: {problem}")
                else:
                    suite.add(case, "passed" if error <= most else "failed", f"off by {error:.1e}, at most {most:.0e}")
    return suite


def model_error(name: str, precision: str, target: str) -> float:
    """The greatest difference from ONNX Runtime among a model's outputs, as norms, of a plain run and of recorded ones."""
    model = MODELS[name]()
    rng = np.random.default_rng(0)
    dims = {port.name: [d.dim_value for d in port.type.tensor_type.shape.dim] for port in model.graph.input}
    feeds = {port: rng.standard_normal(sizes).astype(np.float32) for port, sizes in dims.items()}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    options = {} if precision == "f32" else {"precision": precision}
    program = hipdnn_mlir.compile(model, target=target, **options)
    recorded = program.session(graph_capture=True)
    runs = [program.session().run(None, feeds), *(recorded.run(None, feeds) for _ in range(3))]
    wanted = session.run(None, feeds)
    return max(
        float(np.linalg.norm(np.asarray(a) - b) / np.linalg.norm(b))
        for run in runs
        for a, b in zip(run, wanted, strict=True)
    )


def targets_of(device: DeviceInfo) -> list[str]:
    """What to compile for: the device's target and, where its library has Fusilli's provider, the one that uses that, too."""
    has_fusilli = device.target in AMD and any(name == FUSILLI_ENGINE for name, _, _ in device.engines)
    return [device.target, device.target + FUSILLI] if has_fusilli else [device.target]


def to_markdown(devices: list[DeviceInfo], targets: list[str], suites: list[Suite]) -> str:
    """The report."""
    lines = [f"# Tests on port {devices[0].port}", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {_version(name)} |" for name in PACKAGES]
    lines += [f"| Python | {platform.python_version()} on {platform.platform()} |"]
    lines += [f"| linker | {' '.join(link.find_linker() or ['none'])} |", f"| target | {', '.join(targets)} |"]
    for device in devices:
        lines.append(
            f"| device {device.ordinal} | {device.name or 'unnamed'}, {device.target}, hipDNN {device.library}, HIP {device.runtime} |"
        )
    engines = devices[0].engines
    lines += ["", "| engine | plugin | version |", "|---|---|---|"]
    lines += [f"| {name} | {Path(plugin).name} | {known} |" for name, plugin, known in engines] or ["| none | | |"]
    lines += ["", "| suite | passed | rejected | failed |", "|---|---:|---:|---:|"]
    for suite in suites:
        passed, rejected, failed = (suite.counts.get(status, 0) for status in ("passed", "rejected", "failed"))
        lines.append(f"| {suite.name} | {passed} | {rejected} | {failed} |")
    for suite in suites:
        if suite.failures:
            lines += ["", f"## Failures: {suite.name}", ""]
            lines += [_line(*failure) for failure in suite.failures]
        if suite.refusals:
            lines += ["", f"## Refused by the library, as it may: {suite.name}", ""]
            lines += [_line(*refusal) for refusal in suite.refusals]
    return "\n".join(lines) + "\n"


def _line(case: str, message: str) -> str:
    return f"- `{case}`: {' '.join(message.split())}"


def _found(names: tuple[str, ...]) -> str:
    """The name that the dynamic linker opens, or the first."""
    return next((name for name in names if check_machine.opened((name,)) is not None), names[0])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> int:
    """Run the suites and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, required=True, help="the report")
    parser.add_argument("--port", default="hip", help="whose devices to test on")
    parser.add_argument(
        "--conformance", type=Path, help="the C++ program test_host_abi; left out where it is not given"
    )
    parser.add_argument("--filter", default="", help="only node cases whose name contains this text")
    parser.add_argument(
        "--samples", default="sample ", help="only samples of the op table whose name contains this text"
    )
    parser.add_argument("--models", default=",".join(MODELS), help="models by name, separated by commas")
    parser.add_argument("--workers", type=int, default=2, help="processes that run node cases")
    options = parser.parse_args()
    devices = [device for device in list_devices() if device.port == options.port]
    usable = [device for device in devices if not device.problem]
    if not usable:
        problems = "; ".join(device.problem for device in devices)
        sys.stderr.write(f"{problems or f'port {options.port} is unknown'}\n")
        return 1
    if usable[0].target not in TARGETS:
        sys.stderr.write(f"the device is a {usable[0].target}, which is no target: known are {', '.join(TARGETS)}\n")
        return 1
    suites = [conformance(options.conformance, options.port)] if options.conformance else []
    targets = targets_of(usable[0])
    for target in targets:
        suites.append(node_cases(target, options.filter, options.workers))
        suites.append(samples(target, options.port, options.samples, options.workers))
        suites.append(whole_models(target, [name for name in options.models.split(",") if name]))
    options.write.parent.mkdir(parents=True, exist_ok=True)
    options.write.write_text(to_markdown(usable, targets, suites))
    sys.stdout.write(f"wrote {options.write}\n")
    return 1 if any(suite.failures for suite in suites) else 0


if __name__ == "__main__":
    sys.exit(main())
