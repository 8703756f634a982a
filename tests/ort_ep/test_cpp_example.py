"""The C++ example, built against the library of the onnxruntime package and run on a small model."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

from hipdnn_mlir_runtime import ort_ep
from ort_ep.sessions import reference

SOURCE = Path(__file__).parents[2] / "examples" / "cpp"
DIMS = (2, 3, 12, 12)


def onnxruntime_library() -> Path:
    (library,) = Path(ort.__file__).with_name("capi").glob("libonnxruntime.so.1.*")
    return library


def cmake(*arguments: object) -> subprocess.CompletedProcess[str]:
    # An environment's own cmake is beside its Python, which need not be on PATH.
    found = shutil.which("cmake", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    assert found is not None, "cmake is missing: pip install cmake"
    command = [found, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("cpp_example")
    settings = [
        f"-DONNXRUNTIME_LIBRARY={onnxruntime_library()}",
        "-DCMAKE_CXX_FLAGS=-Werror",
        "-DCMAKE_BUILD_TYPE=Release",
    ]
    for step in (["-S", SOURCE, "-B", build, *settings], ["--build", build]):
        done = cmake(*step)
        assert done.returncode == 0, done.stdout + done.stderr
    return build / "run_model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution with ReLU and a negation, both of ``x`` f32[2,3,12,12]."""
    weights = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], name="conv"),
        helper.make_node("Relu", ["c"], ["y"], name="relu"),
        helper.make_node("Neg", ["x"], ["z"], name="neg"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, DIMS)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "z")]
    graph = helper.make_graph(nodes, "small", inputs, outputs, [numpy_helper.from_array(weights, "w")])
    path = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)
    return path


def run(program: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def options(cache_dir: Path) -> list[str]:
    # strict: a node that stays with the CPU provider is an error, so this cannot pass without the provider.
    return [f"cache_dir={cache_dir}", f"python={sys.executable}", "strict=1"]


def one_line_of(done: subprocess.CompletedProcess[str]) -> str:
    # ONNX Runtime's logger writes there too.
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert done.stderr.endswith(line + "\n")
    return line


def test_example_prints_what_the_cpu_provider_computes(program: Path, model: Path, tmp_path: Path) -> None:
    done = run(program, ort_ep.get_library_path(), model, *options(tmp_path))
    assert done.returncode == 0, done.stderr
    x = np.sin(np.arange(np.prod(DIMS), dtype=np.float64)).astype(np.float32).reshape(DIMS)
    lines = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    for name, expected in zip(("x", "y", "z"), [x, *reference(model, {"x": x})], strict=True):
        declared, *values, dots = lines[name].split()
        assert declared == f"float32[{','.join(map(str, expected.shape))}]"
        assert dots == "..."
        np.testing.assert_allclose([float(value) for value in values], expected.ravel()[:5], rtol=1e-5, atol=1e-5)
    assert re.fullmatch(r"\d+\.\d{3} ms, the best of 10 runs", done.stdout.splitlines()[-1])


def test_example_runs_open_dimensions_as_one(program: Path, model: Path, tmp_path: Path) -> None:
    loose = onnx.load(model)
    loose.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    path = tmp_path / "loose.onnx"
    onnx.save(loose, path)
    done = run(program, ort_ep.get_library_path(), path, *options(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    assert "y: float32[1,4,12,12]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "usage: .*run_model LIBRARY MODEL"),
        (["LIBRARY", "absent.onnx"], 2, "'absent.onnx' is no file: give the path of an ONNX model"),
        (["absent.so", "MODEL"], 2, "'absent.so' is no file: give the path of libhipdnn_ep.so"),
        (["MODEL", "MODEL"], 1, "Failed to load library"),
        (["LIBRARY", "LIBRARY"], 1, "Load model from .* failed"),
        (["LIBRARY", "MODEL", "threads"], 2, "'threads' is no provider option: write OPTION=VALUE"),
        (["LIBRARY", "MODEL", "colour=red"], 1, "unknown option 'colour': expected one of .*'compiler'"),
        (["LIBRARY", "MODEL", "threads=many"], 1, "option 'threads' = 'many': expected a whole number from 0"),
    ],
)
def test_example_says_what_is_wrong(program: Path, model: Path, arguments: list[str], code: int, message: str) -> None:
    known = {"LIBRARY": ort_ep.get_library_path(), "MODEL": str(model)}
    done = run(program, *(known.get(argument, argument) for argument in arguments))
    assert (done.returncode, done.stdout) == (code, "")
    assert re.search(message, one_line_of(done))


def test_build_names_the_option_when_the_library_is_missing(tmp_path: Path) -> None:
    done = cmake("-S", SOURCE, "-B", tmp_path, f"-DONNXRUNTIME_LIBRARY={tmp_path / 'absent.so'}")
    assert done.returncode != 0
    assert re.search(r"which is no\s+file: give the path of libonnxruntime.so", done.stderr)
