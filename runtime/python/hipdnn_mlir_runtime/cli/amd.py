"""AMD's part of a machine: the driver, HIP, hipDNN and its providers, against what the compiler's tables were read from.

The standard library is enough for it: ``python -m hipdnn_mlir_runtime.cli.amd`` prints the problems before anything is built, and exits 1
where no program can run. ``hipdnn-mlir doctor --amd`` shows all of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from .findings import Finding

HIP = ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so")
HIPDNN = (
    "libhipdnn_backend.so",
    "libhipdnn_backend.so.1",
    "libhipdnn_backend.so.0",
    "/opt/rocm/lib/libhipdnn_backend.so",
)
"""As the runtime looks for them (runtime/src/device/library.cc)."""
NEEDED_RELEASE = "ROCm Core SDK 10.0"
"""What to install: the first release that was seen to have what the runtime needs."""
READ = "ROCm/rocm-libraries, read 2026-11-24"
"""What the compiler's tables were read from: files of a repository, not a release. The day is the last on which some were."""
READ_HIPDNN = "0.4.0"
"""What the hipDNN of these files calls itself (bench/results/2026-11-24-amd-backend.txt)."""
NEEDED = ("driver", "HIP", "hipDNN")
"""Topics without which nothing runs; without a provider something does."""
ENVIRONMENT = (
    *("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HSA_OVERRIDE_GFX_VERSION", "HSA_XNACK"),
    *("HIPDNN_PLUGIN_DIR", "HIPDNN_HEURISTIC_PLUGIN_DIR", "HIPDNN_HEUR_POLICY_ORDER", "HIPDNN_LOG_LEVEL"),
    *("MIOPEN_FIND_MODE", "MIOPEN_FIND_ENFORCE", "MIOPEN_LOG_LEVEL", "HIPBLASLT_LOG_LEVEL", "AMD_SERIALIZE_KERNEL"),
)
"""Variables that change what the libraries do: no others are told."""
_KFD, _DRIVER_VERSION, _RELEASE = Path("/dev/kfd"), Path("/sys/module/amdgpu/version"), Path("/opt/rocm/.info/version")
_PLUGIN_VARIABLE = "HIPDNN_PLUGIN_DIR"
_TENSOR_DESCRIPTOR, _SUCCESS = 14, 0
_PROBE_TIMEOUT_S = 60
_FUNCTIONS = {"name": "hipdnnPluginGetName", "version": "hipdnnPluginGetVersion", "api": "hipdnnPluginGetApiVersion"}
_OLDER = "it is older, and may take less than the tables say"
_NEWER = "it is newer, and may take more or less than the tables say"


@dataclass(frozen=True)
class Provider:
    """An engine plugin of hipDNN's default build.

    Attributes:
        file: Of its library.
        package: What it is called where it is installed from.
        api: The version of the plugin interface in the sources that the tables were read from; empty where they have none.
    """

    file: str
    package: str
    api: str


PROVIDERS = (
    Provider("libmiopen_plugin.so", "miopen-provider", "1.0.0"),
    Provider("libhipblaslt_plugin.so", "hipblaslt-provider", ""),
    Provider("libhip_kernel_provider.so", "hip-kernel-provider", "1.2.0"),
)
"""The sources state their interface's versions, and no version of their own that could be found."""


def findings() -> Iterator[Finding]:
    """What is here of AMD's, and what to do where something is missing or too old."""
    yield from _driver()
    hip, hipdnn = opened(HIP), opened(HIPDNN)
    yield from _hip(hip)
    yield from _hipdnn(hipdnn)
    if hipdnn is not None:
        named = os.environ.get(_PLUGIN_VARIABLE)
        yield from _providers(Path(named) if named else plugin_folder(), is_named=bool(named))


def environment() -> Iterator[Finding]:
    """The variables of ``ENVIRONMENT`` that are set."""
    found = [f"{name}={os.environ[name]}" for name in ENVIRONMENT if name in os.environ]
    if found:
        yield Finding("environment", "note", ", ".join(found))


def opened(names: tuple[str, ...]) -> ctypes.CDLL | None:
    """Return the first library that opens."""
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def plugin_folder() -> Path | None:
    """Return where hipDNN, which this process has opened, looks for plugins unless it is told otherwise: beside itself."""
    maps = Path("/proc/self/maps").read_text().splitlines()
    libraries = [Path(line.split(maxsplit=5)[-1]) for line in maps if "/libhipdnn_backend.so" in line]
    return libraries[0].parent / "hipdnn_plugins" / "engines" if libraries else None


def _driver() -> Iterator[Finding]:
    system = f"Linux {platform.release()}"
    version = f"amdgpu {_DRIVER_VERSION.read_text().strip()}" if _DRIVER_VERSION.exists() else ""
    told = ", ".join(filter(None, [version, system]))
    if not _KFD.exists():
        text = f"{_KFD} does not exist: no AMD GPU, or its driver (amdgpu) is not loaded ({told})"
        yield Finding(
            "driver", "problem", text, f"install the driver of {NEEDED_RELEASE} or newer: sudo modprobe amdgpu"
        )
    elif not os.access(_KFD, os.R_OK | os.W_OK):
        fix = "add yourself to its group: sudo usermod -a -G render,video $USER, and log in again"
        yield Finding("driver", "problem", f"{_KFD} is there, and you may not open it ({told})", fix)
    else:
        yield Finding("driver", "ok", f"{version or 'amdgpu without a version of its own'}, {system}; not compared")
    if _RELEASE.exists():
        yield Finding("rocm", "ok", f"ROCm {_RELEASE.read_text().strip()}; not compared")


def _hip(hip: ctypes.CDLL | None) -> Iterator[Finding]:
    if hip is None:
        fix = f"install {NEEDED_RELEASE} or newer, and put its lib folder on LD_LIBRARY_PATH"
        yield Finding("HIP", "problem", f"{HIP[0]} does not open", fix)
        return
    number, count = ctypes.c_int(0), ctypes.c_int(0)
    hip.hipRuntimeGetVersion(ctypes.byref(number))
    major, rest = divmod(number.value, 10_000_000)
    version = f"{major}.{rest // 100_000}.{rest % 100_000}"
    is_old = not hasattr(hip, "hipGetDevicePropertiesR0600")
    if is_old:
        yield Finding("HIP", "problem", f"HIP {version} is too old", f"install {NEEDED_RELEASE} or newer")
    if hip.hipGetDeviceCount(ctypes.byref(count)) != _SUCCESS or count.value == 0:
        fix = "is the user in the groups 'render' and 'video', is HIP_VISIBLE_DEVICES empty?"
        yield Finding("HIP", "problem", f"HIP {version} sees no device", fix)
    elif not is_old:
        yield Finding("HIP", "ok", f"HIP {version}, devices: {count.value}; not compared")


def _hipdnn(hipdnn: ctypes.CDLL | None) -> Iterator[Finding]:
    if hipdnn is None:
        fix = f"install the hipDNN of {NEEDED_RELEASE} or newer with its MIOpen, hipBLASLt and HIP kernel providers"
        yield Finding("hipDNN", "problem", f"{HIPDNN[0]} does not open", fix)
        return
    version = _told(hipdnn, "hipdnnVersionString_ext", is_status=False) or _told(hipdnn, "hipdnnGetVersion_ext")
    name = f"hipDNN {version}" if version else "a hipDNN that tells no version"
    made = ctypes.c_void_p()
    # hipDNN of 2025 has the same symbols, and takes graphs as bytes alone.
    create = getattr(hipdnn, "hipdnnBackendCreateDescriptor", None)
    if create is not None and create(_TENSOR_DESCRIPTOR, ctypes.byref(made)) == _SUCCESS:
        hipdnn.hipdnnBackendDestroyDescriptor(made)
        text = f"{name}; tables: {READ_HIPDNN} ({READ})"
        order = _order(version, READ_HIPDNN)
        if not _numbers(version):
            yield Finding("hipDNN", "note", f"{text}; not compared")
        elif order:
            yield Finding("hipDNN", "note", f"{text}: {_OLDER if order < 0 else _NEWER}")
        else:
            yield Finding("hipDNN", "ok", f"{text}: the same")
    else:
        text = f"{name} has no descriptors of tensors: it is too old"
        yield Finding("hipDNN", "problem", text, f"install {NEEDED_RELEASE} or newer")


def _providers(place: Path | None, *, is_named: bool = False) -> Iterator[Finding]:
    """Each provider of the default build, and what else is there; each is opened in a process of its own, which it may end.

    Args:
        place: A folder of plugins, or the file of one; None where hipDNN's own was not found.
        is_named: The environment names it, in the place of hipDNN's own.
    """
    if place is None:
        fix = f"install {NEEDED_RELEASE} whole, or name the folder in {_PLUGIN_VARIABLE}"
        yield Finding("providers", "problem", "hipDNN's plugin folder was not found", fix)
        return
    files = [place] if place.is_file() else sorted(place.glob("*.so"))
    by_name = {file.name: file for file in files}
    for provider in PROVIDERS:
        file = by_name.pop(provider.file, None)
        if file is None:
            there = "is not loaded" if place.is_file() else f"is missing in {place}"
            fix = f"install the {provider.package} of {NEEDED_RELEASE} or newer"
            if is_named:
                fix = f"unset {_PLUGIN_VARIABLE}, which replaces hipDNN's default folder"
            text = f"{provider.file} {there}: graphs made for its engines are refused"
            yield Finding(provider.package, "problem", text, fix)
        else:
            yield _provider(provider, file)
    for file in by_name.values():
        yield _provider(Provider(file.name, file.stem, ""), file)


def _provider(provider: Provider, file: Path) -> Finding:
    told = _probe(file)
    is_known = provider in PROVIDERS
    whole = f"install {NEEDED_RELEASE} whole, and put its lib folder on LD_LIBRARY_PATH"
    if "problem" in told:
        return Finding(provider.package, "problem", f"{file} does not load: {told['problem']}", whole)
    if not told["name"]:
        text = f"{file} is no plugin: it tells no name"
        return (
            Finding(provider.package, "problem", text, whole) if is_known else Finding(provider.package, "note", text)
        )
    api = told["api"]
    text = f"{told['name']} {told['version']}, plugin interface {api or 'not stated'}; "
    text += f"tables: {provider.api or 'not stated'}" if is_known else "not in the tables"
    if not provider.api:
        return Finding(provider.package, "ok", text)
    if not _numbers(api):
        return Finding(provider.package, "note", f"{text}: it states no version, and is not compared")
    order = _order(api, provider.api)
    if order < 0:
        return Finding(provider.package, "problem", f"{text}: it is too old", f"install {NEEDED_RELEASE} or newer")
    return Finding(provider.package, "note", f"{text}: {_NEWER}") if order else Finding(provider.package, "ok", text)


def _probe(file: Path) -> dict[str, str]:
    """What a plugin says of itself, or the ``problem`` that it has."""
    command = [sys.executable, "-P", "-m", f"{__package__}.amd", str(file)]
    # The process finds this package where this one did.
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_PROBE_TIMEOUT_S, check=False,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"problem": f"no answer within {_PROBE_TIMEOUT_S} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return {"problem": f"exit status {done.returncode} {last}"}
    return _answer(done.stdout) or {"problem": "it ended the process while it loaded"}


def _answer(printed: str) -> dict[str, str] | None:
    """Return the last line that is an answer; plugins print too, also at exit."""
    for line in reversed(printed.splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict) and ("problem" in told or set(_FUNCTIONS) <= set(told)):
            return told
    return None


def _describe(file: str) -> dict[str, str]:
    try:
        library = ctypes.CDLL(file)
    except OSError as error:
        return {"problem": str(error)}
    return {key: _told(library, function) for key, function in _FUNCTIONS.items()}


def _told(library: ctypes.CDLL, function: str, *, is_status: bool = True) -> str:
    """Return the text of a function that answers one, or a status and the text behind a pointer; empty where there is none."""
    call = getattr(library, function, None)
    if call is None:
        return ""
    text = ctypes.c_char_p()
    if is_status:
        call(ctypes.byref(text))
    else:
        call.restype = ctypes.c_char_p
        text.value = call()
    return (text.value or b"").decode(errors="replace")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def _order(version: str, other: str) -> int:
    """Return -1, 0 or 1: the first is older, the same, or newer. Numbers that are not stated are 0."""
    pairs = zip_longest(_numbers(version), _numbers(other), fillvalue=0)
    return next((1 if a > b else -1 for a, b in pairs if a != b), 0)


def main(arguments: list[str]) -> int:
    """Describe the plugin that is named, as JSON; without one, print the problems."""
    if arguments:
        sys.stdout.write("\n" + json.dumps(_describe(arguments[0])) + "\n")
        return 0
    problems = [found for found in findings() if found.status == "problem"]
    is_useless = any(found.topic in NEEDED for found in problems)
    if problems:
        title = "this machine cannot test on AMD's libraries:" if is_useless else "some of AMD's libraries are missing:"
        sys.stderr.write(
            "\n- ".join([title, *(f"{found.topic}: {found.text}; {found.fix}" for found in problems)]) + "\n"
        )
    return 1 if is_useless else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
