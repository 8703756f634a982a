"""The host library among the OpenMP libraries of a process: which definitions the dynamic loader binds, by its own log."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import hipdnn_mlir
from drawing import every
from host_engines.host_graph import library_path

BOUND = re.compile(
    r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `((?:GOMP|omp|HOMP|Hmp|dnnl|dnoK)_\w+)'"
)
OURS_NAMED = re.compile(r"/lib(hipdnn_|dnnl)[^/]*$")


class Binding(NamedTuple):
    """The file that asked for a symbol, that in which it was found, and its name."""

    caller: str
    definer: str
    symbol: str


OURS = """
import sys
import numpy as np
import hipdnn_mlir

folder = sys.argv[1]
session = hipdnn_mlir.load(folder + "/model.hipdnn", threads=2)

def ours():
    (y,) = session.run(None, {"x": np.load(folder + "/x.npy")})
    np.testing.assert_allclose(y, np.load(folder + "/y.npy"), rtol=1e-4, atol=1e-4)

ours()
"""
THEIRS = {
    "torch": """
import torch

def theirs():
    torch.set_num_threads(2)
    a = torch.arange(1 << 18, dtype=torch.float64)
    assert a.mul(3).sum().item() == 3 * (a.numel() - 1) * a.numel() / 2
    assert torch.get_num_threads() == 2

theirs()
""",
    "sklearn": """
import numpy as np
from sklearn.cluster import KMeans

def theirs():
    points = np.repeat([[0.0, 0.0], [10.0, 10.0]], 3000, axis=0)
    assert KMeans(2, n_init=1, random_state=0).fit(points).inertia_ == 0

theirs()
""",
    "numpy": """
import numpy as np

def theirs():
    np.testing.assert_array_equal(np.full((300, 300), 2.0) @ np.ones((300, 300)), np.full((300, 300), 600.0))

theirs()
""",
}
LOADED_OPENMP = """
import os
for path in {line.split()[-1] for line in open("/proc/self/maps") if "libgomp" in line}:
    print(os.path.realpath(path))
"""
AGAIN = """
import os, subprocess, sys

spin = [sys.executable, "-S", "-c", f"import os\\nwhile os.getppid() == {os.getpid()}: pass"]
spinning = [subprocess.Popen(spin, env={}) for _ in os.sched_getaffinity(0)]
try:
    ours()
    theirs()
finally:
    for process in spinning:
        process.kill()
"""
"""Both again, while other processes want every CPU."""
INTERPOSER = "#include <stdlib.h>\n" + "".join(
    f"void {name}(void) {{ abort(); }}\n"
    for name in (
        "GOMP_parallel", "GOMP_parallel_start", "GOMP_parallel_end", "GOMP_barrier", "GOMP_loop_static_start",
        "GOMP_loop_static_next", "GOMP_loop_end_nowait", "omp_get_max_threads", "omp_get_num_threads",
        "omp_get_thread_num", "omp_in_parallel", "omp_set_num_threads", "dnnl_engine_create", "dnnl_primitive_execute",
    )
)  # fmt: skip
"""A library that ends the process when one of these is called."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled convolution that is worth two threads, an input, and ONNX Runtime's output."""
    folder = tmp_path_factory.mktemp("openmp")
    rng = np.random.default_rng(1)
    weights = numpy_helper.from_array(rng.standard_normal((64, 32, 3, 3)).astype(np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    (x, y) = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, c, 32, 32]) for name, c in (("x", 32), ("y", 64))
    )
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y], [weights]), opset_imports=[helper.make_opsetid("", 17)], ir_version=10
    )
    onnx.checker.check_model(model)
    feeds = {"x": rng.standard_normal((1, 32, 32, 32)).astype(np.float32)}
    (wanted,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    np.save(folder / "x.npy", feeds["x"])
    np.save(folder / "y.npy", wanted)
    hipdnn_mlir.compile(model).save(folder / "model.hipdnn")
    return folder


def execute(code: str, folder: Path, settings: dict[str, str]) -> str:
    """Run Python code with more environment variables; return what it printed."""
    command = [sys.executable, "-P", "-c", code, str(folder)]
    done = subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def bindings(code: str, folder: Path, tmp_path: Path) -> list[Binding]:
    """Run Python code; return how its symbols of OpenMP and oneDNN were bound, and check that ours were to ours and theirs were not."""
    execute(code, folder, {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(tmp_path / "log")})
    bound: set[Binding] = set()
    for log in tmp_path.glob("log.*"):
        with log.open(errors="replace") as lines:
            bound |= {Binding(*found.groups()) for found in map(BOUND.search, lines) if found}
    ours = [b for b in bound if OURS_NAMED.search(b.caller)]
    theirs = [b for b in bound if b not in ours]
    assert any("dnnl" in b.caller and "libhipdnn_host" in b.definer for b in ours), "oneDNN calls the host library"
    assert [b for b in ours if not OURS_NAMED.search(b.definer)] == []
    assert [b for b in theirs if OURS_NAMED.search(b.definer)] == []
    return theirs


@cache
def loaded_alone(package: str) -> list[str]:
    """The OpenMP libraries of a process that has the package and nothing of ours."""
    return execute(THEIRS[package] + LOADED_OPENMP, Path(), {}).split()


@pytest.mark.parametrize(("package", "order"), every(3, THEIRS, ["before", "after"]))
def test_openmp_is_each_librarys_own_when_a_package_is_imported(
    package: str, order: str, folder: Path, tmp_path: Path
) -> None:
    parts = (THEIRS[package], OURS) if order == "before" else (OURS, THEIRS[package])
    theirs = bindings("".join(parts) + AGAIN, folder, tmp_path)
    alone = loaded_alone(package)
    assert {os.path.realpath(b.definer) for b in theirs if b.symbol.startswith("GOMP_")} == set(alone)
    assert bool(alone) == (package != "numpy"), "the package is expected to use OpenMP, or not to"


def test_openmp_of_others_stays_theirs_when_the_host_library_is_in_the_global_scope(
    folder: Path, tmp_path: Path
) -> None:
    first = f"import ctypes; ctypes.CDLL({str(library_path())!r}, ctypes.RTLD_GLOBAL)\n"
    bindings(first + OURS + THEIRS["sklearn"], folder, tmp_path)


def test_nothing_is_called_in_another_library_when_it_has_the_same_names_in_the_global_scope(
    folder: Path, tmp_path: Path
) -> None:
    source, library = tmp_path / "interposer.c", tmp_path / "interposer.so"
    source.write_text(INTERPOSER)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    first = f"import ctypes; ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)\n"
    bindings(first + OURS, folder, tmp_path)


def test_libgomp_is_not_loaded_when_only_the_host_library_is(folder: Path) -> None:
    assert execute(OURS + LOADED_OPENMP, folder, {}) == ""
