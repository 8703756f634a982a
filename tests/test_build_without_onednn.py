"""The build on a machine without oneDNN: everything but the port on the CPU."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import DeviceError

ROOT = Path(__file__).parents[1]
HIDDEN = """
import importlib.metadata as metadata

found = metadata.distribution

def distribution(name):
    if name.startswith("onednn"):
        raise metadata.PackageNotFoundError(name)
    return found(name)

metadata.distribution = distribution
"""
"""Runs when Python starts: oneDNN's packages are as if they were not installed."""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """One in which Python does not find oneDNN's packages."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HIDDEN)
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": tools, "PYTHONPATH": str(site)}


def configure(build: Path, environment: dict[str, str], *settings: str) -> subprocess.CompletedProcess[str]:
    """Run CMake's first step, in which a system's oneDNN is not found either."""
    cmake = shutil.which("cmake", path=environment["PATH"])
    assert cmake is not None, "cmake is missing: pip install cmake"
    fixed = [f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON", "-G", "Ninja"]
    command = [cmake, "-S", str(ROOT), "-B", str(build), *fixed, *settings]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def targets(build: Path) -> Iterator[str]:
    """Names of the libraries that a configured folder would build."""
    rules = (build / "build.ninja").read_text()
    return (found[1] for found in re.finditer(r"^build \S*/(lib\w+|_runtime\S*)\.so: ", rules, re.M))


def test_all_but_the_host_port_is_built_when_it_is_off(tmp_path: Path, environment: dict[str, str]) -> None:
    done = configure(tmp_path / "build", environment, "-DHIPDNN_MLIR_HOST_PORT=OFF")
    assert done.returncode == 0, done.stdout + done.stderr
    built = {name.split(".")[0] for name in targets(tmp_path / "build")}
    assert built == {"_runtime", "libhipdnn_cuda", "libhipdnn_ep"}


def test_missing_onednn_is_named_when_the_host_port_is_on(tmp_path: Path, environment: dict[str, str]) -> None:
    done = configure(tmp_path / "build", environment)
    assert done.returncode == 1
    message = " ".join(done.stderr.split())
    assert "oneDNN 3 not found: install the system package" in message
    assert "or build without the host port (-DHIPDNN_MLIR_HOST_PORT=OFF)" in message


def test_tests_are_refused_when_the_host_port_is_off(tmp_path: Path, environment: dict[str, str]) -> None:
    settings = ("-DHIPDNN_MLIR_HOST_PORT=OFF", "-DHIPDNN_MLIR_BUILD_TESTS=ON")
    done = configure(tmp_path / "build", environment, *settings)
    assert done.returncode == 1
    assert "the C++ tests run on the host port" in " ".join(done.stderr.split())


def test_opening_the_host_port_says_what_is_missing_when_its_library_is_not_there(tmp_path: Path) -> None:
    reason = r"port 'host': cannot open libhipdnn_host\.so.*HIPDNN_MLIR_HOST_PORT=OFF has no port 'host'"
    with pytest.raises(DeviceError, match=reason):
        _runtime.open_device({"port": "host"}, directory=str(tmp_path))
