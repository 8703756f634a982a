"""What this machine and this environment offer to programs, and what is wrong, with a way out for each problem."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .. import _runtime
from ..errors import HipdnnMlirError, ModelError
from ..session.devices import DeviceInfo, list_devices
from . import amd
from .cache import entries_of
from .command import GROUP, find_compiler, version_of
from .findings import Finding
from .render import bytes_text, counted
from .tables import emphasized, table

_PACKAGES = (
    *(
        "hipdnn-mlir-runtime",
        "hipdnn-mlir",
        "torch-mlir",
        "onnx",
        "onnxruntime",
        "numpy",
        "ml_dtypes",
        "torch",
        "hip-python",
    ),
    *("llvmlite", "ziglang", "onnxruntime-migraphx", "onnx2torch"),
)
_OLDEST_ORT = (1, 24)
_FEATURES = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8")
"""Of a CPU: what the CPU's kernels choose by, as Linux names it."""
_OPENMP = re.compile(r"/lib(gomp|iomp5|omp)\b[^/]*\.so")
_OURS = re.compile(r"/lib(amdhip|hipdnn|MIOpen|hipblaslt|cuda|cudnn|cublas|nvrtc)[^/]*\.so")
_HINT = re.compile(r"; ([^()]*)$")
"""What a message of the runtime says to do: behind all else, which may have semicolons in parentheses."""
_KFD, _NVIDIA = Path("/dev/kfd"), Path("/dev/nvidiactl")


@dataclass(frozen=True)
class Diagnosis:
    """All findings, in the order in which they are shown."""

    findings: tuple[Finding, ...]

    @property
    def problems(self) -> int:
        """How many of them need something done."""
        return sum(finding.status == "problem" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        return {"findings": [asdict(finding) for finding in self.findings], "problems": self.problems}

    def __str__(self) -> str:
        rows = [(finding.topic, finding.text) for finding in self.findings if finding.status == "ok"]
        parts = [table("found", ("", ""), rows)]
        for status, title, colour in (("note", "worth knowing", "33"), ("problem", "problems", "31")):
            some = [(f.topic, "; ".join(filter(None, (f.text, f.fix)))) for f in self.findings if f.status == status]
            if some:
                parts.append(table(emphasized(title, colour), ("", ""), some))
        if not self.problems:
            parts.append(emphasized("No problems.", "32"))
        return "\n\n".join(parts)


def diagnose() -> Diagnosis:
    """Look at versions, the compiler, the CPU, ports with their libraries, OpenMP libraries, the cache and the environment."""
    devices = list_devices()  # opens the ports' libraries, which the process then has
    found = (_versions(), _compiler(), _cpu(), _ports(devices), _libraries(), _cache(), _environment())
    return Diagnosis(tuple(finding for findings in found for finding in findings))


def diagnose_amd() -> Diagnosis:
    """Look at what programs for AMD's GPUs need: versions, what compiling for GPUs lacks, AMD's driver and libraries, its devices."""
    found = [*_versions(), *_compiler(), *amd.findings()]
    if not any(finding.status == "problem" and finding.topic in amd.NEEDED[1:] for finding in found):
        found += _ports(row for row in list_devices() if row.port == "hip")
    return Diagnosis((*found, *amd.environment()))


def _versions() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} ({sys.executable}), {platform.platform()}")
    found = {name: version for name in _PACKAGES if (version := version_of(name))}
    yield Finding("packages", "ok", ", ".join(f"{name} {version}" for name, version in found.items()))
    runtime, compiler = version_of("hipdnn-mlir-runtime"), version_of("hipdnn-mlir")
    if compiler and compiler != runtime:
        text = f"hipdnn-mlir {compiler} beside hipdnn-mlir-runtime {runtime}"
        yield Finding("packages", "problem", text, f"pip install hipdnn-mlir-runtime=={compiler}")
    ort = version_of("onnxruntime")
    if ort and tuple(map(int, re.findall(r"\d+", ort)[:2])) < _OLDEST_ORT:
        oldest = ".".join(map(str, _OLDEST_ORT))
        yield Finding(
            "onnxruntime", "problem", f"{ort} has no plugin providers", f"pip install 'onnxruntime>={oldest}'"
        )


def _compiler() -> Iterator[Finding]:
    points = [*importlib.metadata.entry_points(group=GROUP)]
    if not points:
        text = "not installed: programs run, models are not compiled"
        yield Finding("compiler", "note", text, "pip install hipdnn-mlir")
    for point in points:
        try:
            compiler = point.load()
            compiler.load_extensions()  # imports all that compiling needs
            for missing in compiler.missing_tools():
                yield Finding("compiler", "note", missing.message, missing.hint or "")
        except HipdnnMlirError as error:
            text = ": ".join(filter(None, (error.where, error.message, "no model is compiled")))
            fix = ", or ".join(filter(None, (error.hint, "take it out of HIPDNN_MLIR_EXTENSIONS")))
            yield Finding("extensions", "problem", text, fix)
        except Exception as error:  # noqa: BLE001 - what a broken installation raises is anything
            text = f"cannot be imported: {type(error).__name__}: {error}"
            yield Finding("compiler", "problem", text, "pip install --force-reinstall hipdnn-mlir")


def _cpu() -> Iterator[Finding]:
    lines = _read("/proc/cpuinfo").splitlines()
    fields = {name.strip(): value.strip() for name, colon, value in (line.partition(":") for line in lines) if colon}
    flags = set(fields.get("flags", "").split())
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count()
    features = " ".join(feature for feature in _FEATURES if feature in flags) or "none of AVX2 and newer"
    yield Finding(
        "cpu", "ok", f"{fields.get('model name', platform.processor())}, {usable} of {present} CPUs, {features}"
    )
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    if len(quota) == 2 and quota[0] != "max" and int(quota[0]) < usable * int(quota[1]):
        share = int(quota[0]) / int(quota[1])
        text = f"the container may use {share:g} CPUs of {usable}: threads beyond them wait for each other"
        yield Finding("cpu", "note", text, f"--threads {max(1, int(share))}, or the option threads")


def _ports(devices: Iterable[DeviceInfo]) -> Iterator[Finding]:
    for row in devices:
        if not row.problem:
            memory = "" if row.total_bytes is None else f", {row.total_bytes / 2**30:.1f} GiB"
            text = f"{row.name}, target {row.target}, hipDNN {row.library}, HIP {row.runtime}{memory}, {len(row.engines)} engines"
            yield Finding(f"{row.port}:{row.ordinal}", "ok", text)
            plugins = ", ".join(row.plugins)
            if plugins:
                yield Finding(f"{row.port}:{row.ordinal}", "ok", f"plugins {plugins}")
            yield from _target(row)
        else:
            is_there = row.port == "host" or {"hip": _KFD, "cuda": _NVIDIA}[row.port].exists()
            hint = _HINT.search(row.problem)
            text, fix = (row.problem[: hint.start()], hint[1]) if hint else (row.problem, "")
            yield Finding(row.port, "problem" if is_there else "note", text, fix)
    if _KFD.exists() and not os.access(_KFD, os.R_OK | os.W_OK):
        fix = "add yourself to its group: sudo usermod -a -G render,video $USER, and log in again"
        yield Finding("hip", "problem", f"{_KFD} is there, and you may not open it", fix)


def _target(row: DeviceInfo) -> Iterator[Finding]:
    with contextlib.suppress(HipdnnMlirError):  # of a compiler that cannot be imported `_compiler` tells
        compiler = find_compiler()
        missing = compiler.missing_target(row.target) if compiler else None
        if missing:
            yield Finding(f"{row.port}:{row.ordinal}", "note", missing.message, missing.hint or "")


def _libraries() -> Iterator[Finding]:
    mapped = sorted({line.split(maxsplit=5)[-1] for line in _read("/proc/self/maps").splitlines() if "/" in line})
    ours = [path for path in mapped if _OURS.search(path)]
    yield Finding("libraries", "ok", ", ".join(ours) or "none opened")
    openmp = [path for path in mapped if _OPENMP.search(path)]
    if openmp:
        text = (
            f"OpenMP in this process: {', '.join(openmp)}; the CPU's port has threads of its own and uses none of them"
        )
        yield Finding("openmp", "note" if len(openmp) > 1 else "ok", text)


def _cache() -> Iterator[Finding]:
    folder = _runtime.default_cache_directory()
    if not folder:
        fix = "set HOME or XDG_CACHE_HOME, or the option cache_dir"
        yield Finding("cache", "problem", "there is no folder for compiled models and plans", fix)
        return
    try:
        entries = entries_of(Path(folder))
    except ModelError as error:
        yield Finding("cache", "problem", f"{error}: nothing is kept", "set XDG_CACHE_HOME, or the option cache_dir")
        return
    size = sum(entry.bytes for entry in entries)
    text = f"{folder}: {counted(entries, 'entry', 'entries')}, {bytes_text(size)} (hipdnn-mlir cache list)"
    yield Finding("cache", "ok", text)
    above = next(path for path in (Path(folder), *Path(folder).parents) if path.exists())
    try:  # what a folder's mode says is not all: the kernel's own take no files
        tempfile.TemporaryDirectory(prefix="hipdnn-mlir-", dir=above).cleanup()
    except OSError as error:
        text = f"{above} cannot be written ({error.strerror}): nothing is kept"
        yield Finding("cache", "problem", text, "make it writable, or set XDG_CACHE_HOME")


def _environment() -> Iterator[Finding]:
    names = sorted(name for name in os.environ if name.startswith(("HIPDNN_", "MIOPEN_", "HIP_", "ROCR_")))
    if names:
        yield Finding("environment", "note", ", ".join(f"{name}={os.environ[name]}" for name in names))


def _read(path: str) -> str:
    """Return a file of the kernel's; empty where it is not there."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
