"""Whole models with their graphs on the plugin equal ONNX Runtime: through its functions, and through AMD's backend where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine_plugin.loader import Plugin
from engine_plugin.steps import OnPlugin, RunGraph
from engine_plugin.whole_models import MODELS, compare
from rocm.conftest import build_library

BACKEND = os.environ.get("HIPDNN_BACKEND", "")
TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def on_plugin(plugin: Plugin) -> Iterator[RunGraph]:
    with ExitStack() as stack:
        yield OnPlugin(plugin, stack)


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_onnxruntime(name: str, on_plugin: RunGraph) -> None:
    assert compare(name, on_plugin) > 0


@pytest.fixture(scope="module")
def through_backend(plugin_path: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a process says of each model that runs them on port `hip`, with the backend and with HIP played by the host's library."""
    if not BACKEND:
        pytest.skip("HIPDNN_BACKEND does not name AMD's libhipdnn_backend.so")
    folder = tmp_path_factory.mktemp("backend")
    build_library("fake_hip.c", folder / "libamdhip64.so")
    (folder / "libhipdnn_backend.so").symlink_to(Path(BACKEND).resolve())
    paths = os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")])
    variables = {
        "LD_LIBRARY_PATH": paths,
        "HIPDNN_PLUGIN_DIR": str(plugin_path),
        "FAKE_GCN_ARCH": "gfx942",
        "FAKE_HIP_RECORD": str(folder),
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "bench")]),
    }
    answers = folder / "models.json"
    command = [sys.executable, "-W", "ignore", "-m", "engine_plugin.whole_models", str(answers)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    found = json.loads(answers.read_text()) if answers.is_file() else {}
    return {name: found.get(name, f"the process ended: {done.returncode}, {done.stderr[-500:]}") for name in MODELS}


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_onnxruntime_through_amds_backend(name: str, through_backend: dict[str, str]) -> None:
    assert through_backend[name].endswith("graphs equal ONNX Runtime"), through_backend[name]
