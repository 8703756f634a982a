"""`make test-rocm` on a machine without an AMD GPU: what it says is missing, and its report on the host's port."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

from hipdnn_mlir_runtime.session.devices import DeviceInfo
from onnx_backend.node_cases import node_cases
from rocm import report

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def run(script: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    node_cases()  # made before, for the script to find
    command = [sys.executable, str(HERE / script), *arguments]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")
def test_what_is_missing_is_named_before_anything_is_built() -> None:
    done = run("check_machine.py")
    assert done.returncode == 1
    for text in (
        "/dev/kfd does not exist",
        "libamdhip64.so does not open: install ROCm",
        "libhipdnn_backend.so does not open",
    ):
        assert text in done.stderr


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")
def test_a_hipdnn_without_tensors_is_named(early_libraries: Path) -> None:
    done = run("check_machine.py", LD_LIBRARY_PATH=str(early_libraries))
    assert done.returncode == 1
    assert "hipDNN 0.0.1 has no descriptors of tensors: install ROCm Core SDK 10.0 or newer" in done.stderr
    done = run("report.py", "--write", "unused", LD_LIBRARY_PATH=str(early_libraries))
    assert done.returncode == 1
    assert (
        "(hipDNN 0.0.1): it has no descriptors of tensors, convolutions, matmuls, pointwise operations" in done.stderr
    )


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")
def test_a_port_without_a_device_is_an_error(tmp_path: Path) -> None:
    done = run("report.py", "--write", str(tmp_path / "report.md"))
    assert done.returncode == 1
    assert "cannot open libamdhip64.so" in done.stderr
    assert not (tmp_path / "report.md").exists()


def test_the_report_has_versions_engines_and_counts(tmp_path: Path) -> None:
    written = tmp_path / "deep" / "report.md"
    done = run(
        "report.py",
        "--port",
        "host",
        "--filter",
        "test_relu",
        "--samples",
        "aten.relu",
        "--models",
        "mlp",
        "--write",
        str(written),
    )
    assert done.returncode == 0, done.stderr
    text = written.read_text()
    for part in (
        "| torch-mlir |",
        "| target | host |",
        "| HOST_ONEDNN_ENGINE |",
        "| models, host | 2 | 0 | 0 |",
        "| samples of the op table, host | ",
        "| onnx's node cases, host | ",
    ):
        assert part in text
    assert "Failures" not in text


def conformance_of(tmp_path: Path, script: str) -> report.Suite:
    program = tmp_path / "test_host_abi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return report.conformance(program, "host")


def test_failures_stand_with_their_messages(tmp_path: Path) -> None:
    said = "FAILED tensor twice\\n  got 3, expected 2\\n12 cases, 1 failed, 0 refused\\n"
    conformance_of(tmp_path, f"printf '{said}'; exit 1")
    written = tmp_path / "report.md"
    cases = ("--port", "host", "--filter", "test_relu", "--samples", "none of them", "--models", "")
    done = run("report.py", *cases, "--conformance", str(tmp_path / "test_host_abi"), "--write", str(written))
    assert done.returncode == 1
    assert "| hipDNN's ABI | 11 | 0 | 1 |" in written.read_text()
    assert "- `tensor twice`: got 3, expected 2" in written.read_text()


def test_crashes_and_refusals_are_those_of_their_cases(tmp_path: Path) -> None:
    suite = conformance_of(
        tmp_path,
        "printf 'FAILED handle: a\\n  the process ended by signal 11, Segmentation fault\\n'\n"
        "printf 'REFUSED plan: b\\n  NOT_SUPPORTED\\n'\n"
        "printf 'FAILED plan: c\\n  got 1, expected 2\\n  in two lines\\n12 cases, 2 failed, 1 refused\\n'; exit 1",
    )
    assert suite.counts == {"passed": 9, "failed": 2, "rejected": 1}
    assert suite.failures == [
        ("handle: a", "the process ended by signal 11, Segmentation fault"),
        ("plan: c", "got 1, expected 2\n  in two lines"),
    ]
    assert suite.refusals == [("plan: b", "NOT_SUPPORTED")]
    assert "as it may: hipDNN's ABI\n\n- `plan: b`: NOT_SUPPORTED" in report.to_markdown(
        [DeviceInfo("host", target="host")], ["host"], [suite]
    )


def test_what_was_told_before_the_program_died_is_kept(tmp_path: Path) -> None:
    suite = conformance_of(
        tmp_path, "printf 'FAILED handle: a\\n  got 1, expected 2\\n'; echo lacks the symbol x >&2; exit 2"
    )
    assert suite.failures == [
        ("handle: a", "got 1, expected 2"),
        ("test_host_abi", "exit status 2: lacks the symbol x"),
    ]


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
    assert report.targets_of(device) == expected


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")
def test_the_devices_architecture_is_what_cases_are_compiled_for(libraries: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    arguments = ("--filter", "test_matmul_2d", "--samples", "none of them", "--models", "", "--write", str(report))
    variables = {"LD_LIBRARY_PATH": str(libraries), "FAKE_HIP_RECORD": str(tmp_path)}
    done = run("report.py", *arguments, **variables, FAKE_GCN_ARCH="gfx90a:sramecc+:xnack-")
    assert done.returncode == 0, done.stderr
    assert "| target | gfx90a |" in report.read_text()
    assert "| onnx's node cases, gfx90a | 1 | 0 | 0 |" in report.read_text()
    done = run("report.py", *arguments, **variables, FAKE_GCN_ARCH="gfx1030")
    assert done.returncode == 1
    assert "the device is a gfx1030, which is no target: known are host, " in done.stderr
