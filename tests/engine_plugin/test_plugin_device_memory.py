"""Memory of a GPU, played by a HIP whose memory the CPU cannot read (device_hip.c): in processes of their own, which have it loaded."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
HEADERS = TESTS.parent / "third_party" / "hip"
START = """
import ctypes, sys
import numpy as np
hip = ctypes.CDLL("libamdhip64.so.7")
from engine_plugin.graph_bytes import configuration, graph_bytes
from engine_plugin.loader import Buffer, Plugin, PluginError, engine_id
import runtime_programs

def buffers(arrays):
    return (Buffer * len(arrays))(*((uid, array.ctypes.data | 1 << 62) for uid, array in arrays.items()))

def copies():
    return ctypes.c_int.in_dll(hip, "copies_done").value

plugin = Plugin(sys.argv[1])
stream = ctypes.c_void_p(77)
plugin.call("hipdnnEnginePluginSetStream", plugin.handle, stream)
"""
ROWS = """
graph = runtime_programs.Graph("negate")
x = graph.tensor("f32", [3, 4], "in", [8, 1])
y = graph.tensor("f32", [3, 4], "out", [6, 1])
graph.pointwise("NEG", [x], y)
given = {1: np.arange(20, dtype=np.float32), 2: np.full(16, 7, np.float32)}
config, raw = configuration(engine_id("HOST_ROWWISE_ENGINE")), graph_bytes(graph.to_json()["descriptors"])
with plugin.context(config, raw) as context:
    run = lambda: plugin.call("hipdnnEnginePluginExecuteOpGraph", plugin.handle, context._made, None, buffers(given), 2)
    run()
    done = copies()
    wanted = np.full(18, 7, np.float32)
    wanted.reshape(3, 6)[:, :4] = -np.arange(24, dtype=np.float32).reshape(3, 8)[:, :4]
    assert (given[2] == wanted[:16]).all(), given[2]
    assert done == 3, done  # in, what the result lies in, and out
    hip.fail_copies(1)
    try:
        run()
    except PluginError as error:
        assert "hipMemcpyAsync: HIP error 1" in str(error)
    else:
        raise AssertionError("no error")
print("done")
"""
MODELS = """
from contextlib import ExitStack
from engine_plugin import loader
from engine_plugin.steps import OnPlugin
from engine_plugin.whole_models import compare

loader.Context.device_bit = 1 << 62
with ExitStack() as stack:
    for name in ("perceptron", "encoder"):
        before = copies()
        assert compare(name, OnPlugin(plugin, stack)) > 0
        assert copies() > before
print("done")
"""


@pytest.fixture(scope="module")
def device_hip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the library."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler cc for the HIP that is played")
    folder = tmp_path_factory.mktemp("hip")
    name = "libamdhip64.so.7"
    options = ["-shared", "-fPIC", "-Wall", "-Werror", f"-I{HEADERS}", f"-Wl,-soname,{name}", "-o", str(folder / name)]
    subprocess.run([compiler, *options, str(Path(__file__).with_name("device_hip.c"))], check=True)
    return folder


@pytest.mark.parametrize("script", [ROWS, MODELS], ids=["rows", "models"])
def test_operands_in_device_memory_are_copied(script: str, device_hip: Path, plugin_path: Path) -> None:
    variables = {
        "LD_LIBRARY_PATH": os.pathsep.join([str(device_hip), os.environ.get("LD_LIBRARY_PATH", "")]),
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "bench")]),
    }
    command = [sys.executable, "-W", "ignore", "-c", START + script, str(plugin_path)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("done\n"), done.stderr
