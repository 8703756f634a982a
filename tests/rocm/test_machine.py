"""What `doctor --amd` and the report's first section say of a machine: what is missing, too old, or broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hipdnn_mlir_runtime.cli import amd
from hipdnn_mlir_runtime.cli.findings import Finding
from hipdnn_mlir_runtime.session.devices import DeviceInfo
from rocm.report import machine

SOURCES = Path(__file__).parents[2] / "runtime" / "python"
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
    assert "driver: /dev/kfd does not exist: no AMD GPU, or its driver (amdgpu) is not loaded; install" in done.stderr
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


def test_doctor_tells_versions_beside_those_of_the_tables(faulty_libraries: Path) -> None:
    command = [*machine.COMMAND, "doctor", "--amd", "--json"]
    variables = {
        "LD_LIBRARY_PATH": str(faulty_libraries), "FAKE_GCN_ARCH": "gfx942", "HIP_VISIBLE_DEVICES": "0", "HIPDNN_SECRET": "1",
    }  # fmt: skip
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    found = [Finding(**row) for row in json.loads(done.stdout)["findings"]]
    assert {f.topic for f in found if f.status == "problem"} <= {"driver"}, done.stdout
    text = {f.topic: f.text for f in found}
    assert "HIP 7.0.0, devices: 1; tables: ROCm Core SDK 10.0" in text["HIP"]
    assert text["hip-kernel-provider"] == "a provider 0.7.0, plugin interface 1.2.0; tables: 1.2.0"
    assert "target gfx942" in text["hip:0"]
    assert text["environment"] == "HIP_VISIBLE_DEVICES=0"
    assert text["packages"]


@pytest.mark.parametrize(
    ("api", "status", "told"),
    [
        ("0.9.0", "problem", "it is too old"),
        ("1.2.0", "note", "it is newer, and may take more or less than the tables say"),
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
