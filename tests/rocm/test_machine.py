"""What `doctor --amd` and the report's first section say of a machine: what is missing, too old, or broken."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hipdnn_mlir.targets.table import AMD, find_target
from hipdnn_mlir_runtime.cli import amd
from hipdnn_mlir_runtime.cli.findings import Finding
from hipdnn_mlir_runtime.session.devices import DeviceInfo
from rocm.report import machine

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "runtime" / "python"
HAS_GPU = Path("/dev/kfd").exists()


def preliminary(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """What `make test-rocm` does before it builds anything; ``-S`` hides what is installed."""
    command = [sys.executable, "-P", "-S", *options, "-m", "hipdnn_mlir_runtime.cli.amd"]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)} | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without an AMD GPU")
def test_what_is_missing_is_named_before_anything_is_built() -> None:
    done = preliminary()
    assert done.returncode == 1
    assert "driver: /dev/kfd does not exist: no AMD GPU, or its driver (amdgpu) is not loaded (" in done.stderr
    assert "; install the driver of ROCm Core SDK 10.0 or newer" in done.stderr
    assert "hipDNN: libhipdnn_backend.so does not open; install the hipDNN of ROCm Core SDK 10.0" in done.stderr


def test_a_hipdnn_without_tensors_is_too_old(early_libraries: Path) -> None:
    done = preliminary(LD_LIBRARY_PATH=str(early_libraries))
    assert done.returncode == 1
    told = "hipDNN: hipDNN 0.0.1 has no descriptors of tensors: it is too old; install ROCm Core SDK 10.0 or newer"
    assert told in done.stderr


@pytest.mark.skipif(HAS_GPU, reason="needs a machine without an AMD GPU")
def test_a_missing_provider_does_not_keep_the_suites_from_running(libraries: Path) -> None:
    patched = "amd._KFD, amd.HIP, amd.HIPDNN = Path('/dev/null'), sys.argv[1:2], sys.argv[2:]"
    code = f"import sys; from pathlib import Path; from hipdnn_mlir_runtime.cli import amd; {patched}; sys.exit(amd.main([]))"
    found = [str(libraries / names[0]) for names in (amd.HIP, amd.HIPDNN)]
    # The library that plays AMD's sets the host's library up for its whole process.
    done = subprocess.run(
        [sys.executable, "-c", code, *found],
        env=os.environ | {"HIPDNN_PLUGIN_DIR": str(libraries)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "some of AMD's libraries are missing:\n- miopen-provider: libmiopen_plugin.so is missing" in done.stderr
    assert "refused; unset HIPDNN_PLUGIN_DIR, which replaces hipDNN's default folder" in done.stderr
    assert "libamdhip64" not in done.stderr


def test_doctor_tells_versions_beside_those_of_the_tables(faulty_libraries: Path) -> None:
    command = [*machine.COMMAND, "doctor", "--amd", "--json"]
    variables = {
        "LD_LIBRARY_PATH": str(faulty_libraries), "FAKE_GCN_ARCH": "gfx942", "HIP_VISIBLE_DEVICES": "0", "HIPDNN_SECRET": "1",
    }  # fmt: skip
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    found = [Finding(**row) for row in json.loads(done.stdout)["findings"]]
    assert {f.topic for f in found if f.status == "problem"} <= {"driver"}, done.stdout
    text = {f.topic: f.text for f in found}
    assert text["HIP"] == "HIP 7.0.0, devices: 1; not compared"
    assert "; tables: 0.4.0 (ROCm/rocm-libraries, read 2026-11-24)" in text["hipDNN"]
    assert text["hip-kernel-provider"] == "a provider 0.7.0, plugin interface 1.2.0; tables: 1.2.0"
    assert "target gfx942" in text["hip:0"]
    assert text["environment"] == "HIP_VISIBLE_DEVICES=0"
    assert text["packages"]


@pytest.mark.parametrize(
    ("api", "status", "told"),
    [
        ("0.9.0", "problem", "it is too old"),
        ("1.2.0", "note", "it is newer, and may take more or less than the tables say"),
        ("1.0", "ok", "tables: 1.0.0"),
        ("none", "note", "plugin interface not stated; tables: 1.0.0: it states no version, and is not compared"),
        ("", "problem", "does not load: exit status -6"),
    ],
)
def test_a_provider_is_compared_with_the_one_that_was_read(
    api: str, status: str, told: str, faulty_libraries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_PROVIDER_API", api)
    found = {f.topic: f for f in amd._providers(faulty_libraries / "hipdnn_plugins" / "engines")}
    assert (found["miopen-provider"].status, told in found["miopen-provider"].text) == (status, True)


def test_a_provider_that_is_missing_or_is_no_library_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "libmiopen_plugin.so").write_text("no library")
    found = {f.topic: f for f in amd._providers(tmp_path)}
    assert "does not load" in found["miopen-provider"].text
    assert "libhipblaslt_plugin.so is missing" in found["hipblaslt-provider"].text
    assert found["hipblaslt-provider"].fix == "install the hipblaslt-provider of ROCm Core SDK 10.0 or newer"
    assert all(f.status == "problem" for f in found.values())


def test_a_file_that_the_environment_names_is_looked_at(faulty_libraries: Path, tmp_path: Path) -> None:
    plugin = shutil.copy(
        faulty_libraries / "hipdnn_plugins/engines/libmiopen_plugin.so", tmp_path / "libhipdnn_cpu_plugin.so"
    )
    found = {f.topic: f for f in amd._providers(plugin, is_named=True)}
    text = "a provider 0.7.0, plugin interface 1.2.0; not in the tables"
    assert found["libhipdnn_cpu_plugin"] == Finding("libhipdnn_cpu_plugin", "ok", text)
    missing = found["miopen-provider"]
    assert missing.text == "libmiopen_plugin.so is not loaded: graphs made for its engines are refused"
    assert missing.fix == "unset HIPDNN_PLUGIN_DIR, which replaces hipDNN's default folder"


def test_what_the_tables_have_no_version_of_is_not_compared(faulty_libraries: Path) -> None:
    found = {f.topic: f for f in amd._providers(faulty_libraries / "hipdnn_plugins" / "engines")}
    told = found["hipblaslt-provider"]
    assert (told.status, told.text) == ("ok", "a provider 0.7.0, plugin interface 1.2.0; tables: not stated")


def test_a_library_that_is_no_plugin_is_called_so(libraries: Path, tmp_path: Path) -> None:
    for name in ("libmiopen_plugin.so", "libother.so"):
        shutil.copy(libraries / "libamdhip64.so", tmp_path / name)
    found = {f.topic: f for f in amd._providers(tmp_path)}
    assert found["libother"] == Finding("libother", "note", f"{tmp_path}/libother.so is no plugin: it tells no name")
    assert (found["miopen-provider"].status, "is no plugin" in found["miopen-provider"].text) == ("problem", True)


@pytest.mark.parametrize(
    ("habit", "status", "told"),
    [
        ("prints", "ok", "a provider 0.7.0, plugin interface 1.2.0; not in the tables"),
        ("ends", "problem", "does not load: it ended the process while it loaded"),
    ],
)
def test_a_plugin_may_print_or_end_the_process(
    habit: str, status: str, told: str, faulty_libraries: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plugin = shutil.copy(faulty_libraries / "hipdnn_plugins/engines/libmiopen_plugin.so", tmp_path / "libsome.so")
    monkeypatch.setenv("FAKE_PROVIDER_HABIT", habit)
    found = {f.topic: f for f in amd._providers(plugin)}
    assert (found["libsome"].status, told in found["libsome"].text) == (status, True)


def test_a_plugin_folder_that_was_not_found_is_one_problem() -> None:
    (found,) = amd._providers(None)
    assert (found.status, found.text) == ("problem", "hipDNN's plugin folder was not found")


def test_a_driver_with_a_problem_is_not_ok_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "version").write_text("6.16.6\n")
    monkeypatch.setattr(amd, "_DRIVER_VERSION", tmp_path / "version")
    monkeypatch.setattr(amd, "_RELEASE", tmp_path / "nothing")
    monkeypatch.setattr(amd, "_KFD", tmp_path / "kfd")
    (missing,) = amd._driver()
    assert (missing.status, "is not loaded (amdgpu 6.16.6, Linux " in missing.text) == ("problem", True)
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    (closed,) = amd._driver()
    assert (closed.status, "you may not open it (amdgpu 6.16.6, Linux " in closed.text) == ("problem", True)
    monkeypatch.setattr(os, "access", lambda *_: True)
    (fine,) = amd._driver()
    assert (fine.status, fine.text) == ("ok", f"amdgpu 6.16.6, Linux {platform.release()}; not compared")


def put(value: int) -> Callable[[Any], int]:
    """A function of HIP that writes a number where it is told, and succeeds."""

    def function(pointer: Any) -> int:
        pointer._obj.value = value
        return 0

    return function


@pytest.mark.parametrize(
    ("devices", "is_old", "expected"),
    [
        (2, False, [("ok", "HIP 7.2.5, devices: 2; not compared")]),
        (0, False, [("problem", "HIP 7.2.5 sees no device")]),
        (2, True, [("problem", "HIP 7.2.5 is too old")]),
        (0, True, [("problem", "HIP 7.2.5 is too old"), ("problem", "HIP 7.2.5 sees no device")]),
    ],
)
def test_a_hip_with_a_problem_is_not_ok_too(devices: int, is_old: bool, expected: list[tuple[str, str]]) -> None:
    hip = SimpleNamespace(hipRuntimeGetVersion=put(70_200_005), hipGetDeviceCount=put(devices))
    if not is_old:
        hip.hipGetDevicePropertiesR0600 = None
    assert [(f.status, f.text) for f in amd._hip(hip)] == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("version", "status", "told"),
    [
        (
            "0.3.9",
            "note",
            "hipDNN 0.3.9; tables: 0.4.0 (ROCm/rocm-libraries, read 2026-11-24): it is older, and may take less",
        ),
        ("0.4.0", "ok", "read 2026-11-24): the same"),
        ("0.4", "ok", "read 2026-11-24): the same"),
        ("0.10.0", "note", "read 2026-11-24): it is newer, and may take more or less"),
        (
            "",
            "note",
            "a hipDNN that tells no version; tables: 0.4.0 (ROCm/rocm-libraries, read 2026-11-24); not compared",
        ),
    ],
)
def test_hipdnns_version_is_compared_with_the_one_that_was_read(version: str, status: str, told: str) -> None:
    def tell() -> bytes:
        return version.encode()

    hipdnn = SimpleNamespace(
        hipdnnVersionString_ext=tell,
        hipdnnBackendCreateDescriptor=lambda *_: 0,
        hipdnnBackendDestroyDescriptor=lambda *_: 0,
    )
    (found,) = amd._hipdnn(hipdnn)  # type: ignore[arg-type]
    assert (found.status, told in found.text) == (status, True), found.text


def test_what_was_read_is_what_the_compilers_tables_and_the_log_name() -> None:
    engines = [engine for target in AMD for engine in find_target(target).engines]
    read = max(source.read for engine in engines for source in engine.sources)
    assert amd.READ.endswith(f", read {read}")
    log = (ROOT / "bench" / "results" / "2026-11-24-amd-backend.txt").read_text()
    assert f"it calls itself {amd.READ_HIPDNN};" in log


def test_doctor_looks_for_the_libraries_that_the_runtime_opens() -> None:
    text = (ROOT / "runtime" / "src" / "device" / "library.cc").read_text()
    row = re.search(r'\{\{"hip",.*?\},\s*false,\s*\{(.*?)\},\s*\{(.*?)\},', text, re.DOTALL)
    assert row is not None
    assert [tuple(re.findall(r'"([^"]+)"', names)) for names in row.groups()] == [amd.HIP, amd.HIPDNN]


def test_engines_of_the_rules_that_the_library_has_not_are_problems() -> None:
    engines = tuple((name, "", "") for name in ("MIOPEN_ENGINE", "HIPBLASLT_ENGINE", "HIP_MLOPS_ENGINE"))
    read, missing = machine.engines_of_rules(DeviceInfo("hip", target="gfx942", engines=engines))
    assert missing.text == "the library has no ASM_SDPA_ENGINE: its graphs are refused"
    assert read.text.startswith("the rules of the compiler's tables were read 20")
    assert not machine.engines_of_rules(DeviceInfo("host", target="host", engines=engines))


def test_libraries_that_hang_when_they_are_opened_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    found = machine.look("hip", 0.2)
    assert found.problem == "hipdnn-mlir devices hangs: no answer within 0.2 s"
    monkeypatch.setattr(machine, "COMMAND", (sys.executable, "-c", "import os; os.abort()"))
    assert "hipdnn-mlir devices ended with status -6" in machine.look("hip", 30).problem
    monkeypatch.setattr(machine, "COMMAND", (sys.executable, "-c", "print('{}')"))
    assert machine.look("nowhere", 30).problem == "port nowhere is unknown"


def test_a_device_that_does_not_open_again_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.is_dead("host") == ""
    monkeypatch.setattr(machine, "COMMAND", (sys.executable, "-c", "import time; time.sleep(60)"))
    assert machine.is_dead("host", 0.2) == "hipdnn-mlir devices hangs: no answer within 0.2 s"


@pytest.mark.parametrize(
    ("target", "engine", "expected"),
    [
        ("gfx942", "FUSILLI_ENGINE", ["gfx942", "gfx942+fusilli"]),
        ("gfx942", "MIOPEN_ENGINE", ["gfx942"]),
        ("host", "FUSILLI_ENGINE", ["host"]),
    ],
)
def test_fusillis_target_is_tested_where_its_provider_is(target: str, engine: str, expected: list[str]) -> None:
    device = DeviceInfo("hip", target=target, engines=(("HIPBLASLT_ENGINE", "", ""), (engine, "", "")))
    assert machine.targets_of(device) == expected
