"""Engine plugins and the log of AMD's hipDNN, played by a library that takes any plugin (fake_plugins.c)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_library("amdhip64") is not None, reason="needs a machine without AMD's HIP")


def devices(libraries: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Wide enough for any path on one line.
    return run(libraries, "-m", "hipdnn_mlir_runtime.cli.main", "devices", *arguments, COLUMNS="500")


def run(libraries: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", *arguments]
    variables = {"LD_LIBRARY_PATH": str(libraries), "FAKE_GCN_ARCH": "gfx942"} | more
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def rows(libraries: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    done = devices(libraries, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {row["port"]: row for row in json.loads(done.stdout)["devices"]}


OWN = "/opt/rocm/lib/hipdnn_plugins/engines/libmiopen_plugin.so"


def test_devices_lists_what_is_loaded(libraries_with_plugins: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    given = ["--plugin-dir", str(one), "--plugin-dir", str(two)]
    found = rows(libraries_with_plugins, *given)
    assert found["hip"]["plugins"] == [OWN, str(one), str(two)]
    assert (found["host"]["problem"], found["host"]["plugins"]) == ("", [])
    assert rows(libraries_with_plugins, *given, "--plugin-mode", "absolute")["hip"]["plugins"] == [str(one), str(two)]
    assert rows(libraries_with_plugins)["hip"]["plugins"] == []
    assert str(two) in devices(libraries_with_plugins, *given).stdout.replace("\n", "")


def test_mistakes_are_told_without_a_traceback(libraries_with_plugins: Path, tmp_path: Path) -> None:
    for arguments, message in (
        (["--plugin-dir", str(tmp_path / "missing")], "does not exist"),
        (
            ["--plugin-dir", str(tmp_path), "--plugin-mode", "only"],
            "--plugin-mode: bad value: expected one of 'additive'",
        ),
    ):
        done = devices(libraries_with_plugins, *arguments)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr


LISTEN = """
import logging
logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
from hipdnn_mlir_runtime.session.devices import open_device
from hipdnn_mlir_runtime.session.options import device_options
open_device(device_options({}, "hip", is_tf32=False))
"""


def test_the_librarys_log_is_let_through_unless_the_environment_decides(libraries_with_plugins: Path) -> None:
    line = "hipdnn_mlir.hipdnn a handle is made"
    done = run(libraries_with_plugins, "-c", LISTEN)
    assert done.returncode == 0, done.stderr
    assert line in done.stderr.splitlines()
    done = run(libraries_with_plugins, "-c", LISTEN, HIPDNN_LOG_LEVEL="off")
    assert line not in done.stderr.splitlines()
    assert "port hip" in done.stderr


def test_versions_are_told(libraries_with_plugins: Path) -> None:
    row = rows(libraries_with_plugins)["hip"]
    assert row["library"].count(".") == 3
    assert row["runtime"] == "7.0.0"
