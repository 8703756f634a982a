"""`make test-rocm` from end to end on machines without an AMD GPU: the host's port, and AMD's libraries as they are played here."""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
from ctypes.util import find_library
from pathlib import Path

import pytest

from onnx_backend.node_cases import node_cases
from onnx_backend.report import UNLIMITED, Limits
from rocm.report.cases import Suite
from rocm.report.conformance import conformance
from rocm.report.machine import Machine
from rocm.report.page import Report

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATH = os.pathsep.join(str(ROOT / name) for name in ("tests", "bench", "bench/gpu"))
NOTHING = ("--filter", "none of them", "--samples", "none of them", "--models", "", "--timings", "", "--engines", "")
HOST = ("--port", "host")


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    node_cases()  # made before, for the script to find
    command = [sys.executable, "-P", "-m", "rocm.report", *arguments, "--write", str(folder)]
    environment = os.environ | {"PYTHONPATH": PATH} | variables
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with a report of all kinds of cases, and the archive of it."""
    folder = tmp_path_factory.mktemp("reported") / "deep"
    cases = ("--filter", "test_relu", "--samples", "aten.relu(f", "--models", "mlp", "--engines", "HOST_ROWWISE_ENGINE")
    done = run(folder / "report", *HOST, *cases, "--timings", "mlp-f16,unknown", "--quick")
    assert done.returncode == 0, done.stderr
    return folder


def test_the_report_has_versions_engines_and_counts(reported: Path) -> None:
    text = (reported / "report" / "report.md").read_text()
    for part in (
        "| packages | ok | hipdnn-mlir-runtime 0.1.0",
        "| target | ok | host |",
        "| onnx's node cases, host | 1 | 0 | 0 | 0 | 0 | 0 | ",
        "| samples of the op table, host | 2 | 0 | 0 | 0 | 0 | 0 | ",
        "| models, host | 2 | 0 | 0 | 0 | 0 | 0 | ",
        "| HOST_ROWWISE_ENGINE alone, host | hipdnn_host 0.1.0.0 | 2 | 2 | 0 |",
        "**0 of 5 cases failed, and 0 on one engine alone.** A quick run",
    ):
        assert part in text
    assert "Failures" not in text
    with tarfile.open(reported / "report.tar.gz") as packed:
        file = packed.extractfile("rocm-report/report.json")
        assert file is not None
        data = json.load(file)
    assert data["suites"][0]["cases"][0]["status"] == "passed"


def test_times_stand_beside_those_of_others_or_why_there_are_none(reported: Path) -> None:
    text = (reported / "report" / "report.md").read_text()
    for way in ("step by step", "recorded"):
        assert re.search(rf"\| mlp-f16 \| hipdnn-mlir, {way} \| \d+\.\d+ \|", text)
    assert "| mlp-f16 | migraphx |  | MIGraphX runs on AMD GPUs; compile for one (--target) |" in text
    assert re.search(r"\| mlp-f16 \| (torch \|  \| mlp-f16.onnx: |PyTorch eager \| \d)", text)
    assert "| unknown | hipdnn-mlir |  | it cannot be made: KeyError: 'unknown' |" in text


def test_an_old_library_is_told_in_a_report_that_can_be_sent(early_libraries: Path, tmp_path: Path) -> None:
    done = run(tmp_path / "report", LD_LIBRARY_PATH=str(early_libraries), FAKE_GCN_ARCH="gfx942")
    assert done.returncode == 1
    assert "(hipDNN 0.0.1): it has no descriptors of tensors, convolutions, matmuls" in done.stderr
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| hipDNN | problem | hipDNN 0.0.1 has no descriptors of tensors: it is too old; install ROCm" in text
    assert "## Suites" not in text
    assert (tmp_path / "report.tar.gz").exists()


@pytest.mark.skipif(find_library("hipdnn_backend") is not None, reason="needs a machine without AMD's hipDNN")
def test_a_port_without_a_device_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path / "report")
    assert done.returncode == 1
    assert "cannot open lib" in done.stderr


def test_a_broken_engine_is_found_in_a_run_that_goes_on(faulty_libraries: Path, tmp_path: Path) -> None:
    cases = (
        *NOTHING[:2],
        "--samples",
        "aten.mm(f32",
        *NOTHING[4:8],
        "--engines",
        "HOST_ONEDNN_ENGINE,HOST_SDPA_ENGINE",
    )
    variables = {"LD_LIBRARY_PATH": str(faulty_libraries), "FAKE_HIP_RECORD": str(tmp_path), "FAKE_GCN_ARCH": "gfx942"}
    private = {"USER": "wilhelmina", "LOGNAME": "wilhelmina", "HOME": str(tmp_path / "wilhelminas")}
    done = run(tmp_path / "report", *cases, **variables, **private, FAKE_FAULT="crash:HOST_ONEDNN_ENGINE")
    assert done.returncode == 1
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| HOST_ONEDNN_ENGINE alone, gfx942 | hipdnn_host 0.1.0.0 | 1 | 0 | 0 | 0 | 1 | 0 |" in text
    assert "| crashed | 1 | crash: SIGABRT | samples of the op table, gfx942 |" in text
    assert "Nothing is taken by: HOST_SDPA_ENGINE." in text
    with tarfile.open(tmp_path / "report.tar.gz") as packed:
        told = b"".join(file.read() for entry in packed if (file := packed.extractfile(entry))).decode()
    for secret in ("wilhelmina", str(tmp_path), str(ROOT), getpass.getuser(), socket.gethostname()):
        assert not re.search(rf"(?<![A-Za-z0-9]){re.escape(secret)}(?![A-Za-z0-9])", told), secret


def conformance_of(tmp_path: Path, script: str, limits: Limits = UNLIMITED) -> Suite:
    program = tmp_path / "test_host_abi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return conformance(program, "host", limits)


def failures(suite: Suite) -> list[tuple[str, str]]:
    return [(case.name, case.reason) for case in suite.with_status("failed")]


def test_crashes_and_refusals_are_those_of_their_cases(tmp_path: Path) -> None:
    suite = conformance_of(
        tmp_path,
        "printf 'FAILED handle: a\\n  the process ended by signal 11, Segmentation fault\\n'\n"
        "printf 'REFUSED plan: b\\n  NOT_SUPPORTED\\n'\n"
        "printf 'FAILED plan: c\\n  got 1, expected 2\\n  in two lines\\n12 cases, 2 failed, 1 refused\\n'; exit 1",
    )
    assert suite.counts == {"passed": 9, "failed": 2, "refused": 1}
    assert failures(suite) == [
        ("handle: a", "the process ended by signal 11, Segmentation fault"),
        ("plan: c", "got 1, expected 2\n  in two lines"),
    ]
    text = Report("host", Machine((), (), ""), [suite]).to_markdown()
    assert "| crashed | 1 | the process ended by signal N, Segmentation fault |" in text
    assert "| (refused by the library) | 1 | NOT_SUPPORTED | hipDNN's ABI | `plan: b`: NOT_SUPPORTED |" in text
    assert "- `plan: c` (hipDNN's ABI): got 1, expected 2 in two lines" in text


def test_what_was_told_before_the_program_died_is_kept(tmp_path: Path) -> None:
    suite = conformance_of(
        tmp_path, "printf 'FAILED handle: a\\n  got 1, expected 2\\n'; echo lacks the symbol x >&2; exit 2"
    )
    assert failures(suite) == [
        ("handle: a", "got 1, expected 2"),
        ("test_host_abi", "crash: exit status 2: lacks the symbol x"),
    ]


def test_a_case_of_the_interface_that_hangs_is_killed(tmp_path: Path) -> None:
    killed = "printf 'FAILED handle: a\\n  the process ended by signal 9, Killed\\n2 cases, 1 failed, 0 refused\\n'"
    suite = conformance_of(tmp_path, f"sleep 60\n{killed}", Limits(case_s=0.3))
    assert suite.counts == {"passed": 1, "failed": 1}
    assert failures(suite) == [("handle: a", "hang: no end within 0.3 s")]
    suite = conformance_of(tmp_path, "while true; do :; done", Limits(case_s=0.3))
    assert failures(suite) == [("test_host_abi", "hang: no end within 0.3 s")]


@pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")
def test_the_devices_architecture_is_what_cases_are_compiled_for(libraries: Path, tmp_path: Path) -> None:
    arguments = ("--filter", "test_matmul_2d", *NOTHING[2:])
    variables = {"LD_LIBRARY_PATH": str(libraries), "FAKE_HIP_RECORD": str(tmp_path)}
    done = run(tmp_path / "report", *arguments, **variables, FAKE_GCN_ARCH="gfx90a:sramecc+:xnack-")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report" / "report.md").read_text()
    assert "| target | ok | gfx90a |" in text
    assert "| onnx's node cases, gfx90a | 1 | 0 | 0 | 0 | 0 | 0 |" in text
    assert "the library has no MIOPEN_ENGINE: its graphs are refused; install its provider" in text
    done = run(tmp_path / "report", *arguments, **variables, FAKE_GCN_ARCH="gfx1030")
    assert done.returncode == 1
    assert "the device is a gfx1030, which is no target: known are host, " in done.stderr
