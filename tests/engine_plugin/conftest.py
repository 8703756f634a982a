"""The plugin that is installed with the package, and what runs through AMD's backend."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

import installed
from engine_plugin.loader import Plugin
from hipdnn_mlir_runtime.cli.amd import HIP
from rocm.conftest import build_library

BACKEND = os.environ.get("HIPDNN_BACKEND", "")
TESTS = Path(__file__).parents[1]
OnBackend = Callable[[str], Mapping[str, str]]
"""What on_backend.py says of its samples or its models, by name."""


@pytest.fixture(scope="session")
def plugin_path() -> Path:
    """The library."""
    return installed.library("cpu_plugin")


@pytest.fixture(scope="session")
def plugin(plugin_path: Path) -> Plugin:
    """The library, loaded."""
    return Plugin(plugin_path)


@pytest.fixture(scope="session")
def on_backend(plugin_path: Path, tmp_path_factory: pytest.TempPathFactory) -> OnBackend:
    """A process with the backend library, the plugin, and HIP played by the host's library."""
    if not BACKEND:
        pytest.skip("HIPDNN_BACKEND does not name AMD's libhipdnn_backend.so")
    folder = tmp_path_factory.mktemp("backend")
    build_library("fake_hip.c", folder / "libamdhip64.so")
    for name in HIP[1:3]:
        (folder / name).symlink_to("libamdhip64.so")
    (folder / "libhipdnn_backend.so").symlink_to(Path(BACKEND).resolve())

    @cache
    def answers(kind: str) -> Mapping[str, str]:
        variables = {
            "LD_LIBRARY_PATH": os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")]),
            "HIPDNN_PLUGIN_DIR": str(plugin_path),
            "FAKE_GCN_ARCH": "gfx942",
            "FAKE_HIP_RECORD": str(folder),
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "bench")]),
        }
        file = folder / f"{kind}.json"
        command = [sys.executable, "-W", "ignore", "-m", "engine_plugin.on_backend", kind, str(file)]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
        found = json.loads(file.read_text()) if file.is_file() else {}
        return defaultdict(lambda: f"the process ended with {done.returncode}: {done.stderr[-500:]}", found)

    return answers
