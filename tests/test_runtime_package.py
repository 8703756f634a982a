"""The runtime's wheel by itself: installed into an empty folder with NumPy and ONNX Runtime, where there is no compiler."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime import ort_ep

ROOT = Path(__file__).parent.parent
WHEELS = ROOT / "build" / "wheels"
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
LARGEST_MB = 25

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WHEELS.is_dir(), reason="`make wheels` has not been run here; `make pytest` runs it"),
]


@pytest.fixture(scope="module")
def wheel() -> Path:
    """The runtime's wheel."""
    (path,) = WHEELS.glob("hipdnn_mlir_runtime-*.whl")
    return path


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what ``pip install --target`` puts there: the wheel, what it needs, and ONNX Runtime."""
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--target",
        str(folder),
    ]
    subprocess.run([*command, str(wheel), f"onnxruntime=={version('onnxruntime')}"], check=True)
    return folder


def python(site: Path, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the folder and nothing else: that of the system, since the provider looks for a compiler beside it."""
    return subprocess.run(
        [Path(sys.executable).resolve(), "-S", "-P", *map(str, arguments)],
        env={"PATH": os.defpath, "PYTHONPATH": str(site), "HOME": str(cwd)},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_versions_are_one() -> None:
    compiler, runtime = (tomllib.loads((ROOT / folder / "pyproject.toml").read_text()) for folder in (".", "runtime"))
    number = runtime["project"]["version"]
    assert compiler["project"]["version"] == number
    assert f"hipdnn-mlir-runtime=={number}" in compiler["project"]["dependencies"]


def test_wheel_is_small_and_holds_one_onednn_with_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert wheel.stat().st_size <= LARGEST_MB * 1e6
    assert [Path(name).name for name in names if "dnnl" in name] == ["libhipdnn_dnnl.so"]
    assert {"LICENSE", "THIRD-PARTY-PROGRAMS", "CHANGES"} <= {Path(name).name for name in names if "/onednn/" in name}


def test_wheel_says_what_of_others_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (bill,) = (json.loads(archive.read(name)) for name in archive.namelist() if ".dist-info/sboms/" in name)
        licences = {
            Path(name).parent.name: archive.read(name).decode() for name in archive.namelist() if "LICENSE" in name
        }
        changes = archive.read("hipdnn_mlir_runtime/lib/onednn/CHANGES").decode()
    found = {each["name"]: each for each in bill["components"]}
    assert set(found) == {"nanobind", "nlohmann-json", "robin-map", "oneDNN"}
    for name in ("nanobind", "nlohmann-json"):
        assert found[name]["version"] == version(name)
    assert f"oneDNN {found['oneDNN']['version']} " in changes
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", each["version"]) for each in bill["components"])
    words = {
        "nanobind": "Redistribution",
        "nlohmann-json": "Permission",
        "robin-map": "Permission",
        "onednn": "Apache License",
    }
    for folder, word in words.items():
        assert word in licences[folder]


def test_runtime_needs_numpy_alone(site: Path, tmp_path: Path) -> None:
    assert not (site / "hipdnn_mlir").exists()
    code = "import hipdnn_mlir_runtime, sys; hipdnn_mlir_runtime.load; print(*{name.partition('.')[0] for name in sys.modules})"
    done = python(site, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    foreign = {name for name in done.stdout.split() if (site / name).is_dir() or (site / f"{name}.py").is_file()}
    assert foreign == {"hipdnn_mlir_runtime", "numpy"}


def test_runtime_runs_the_digits_program(site: Path, tmp_path: Path) -> None:
    hipdnn_mlir.compile(DIGITS).save(tmp_path / "digits.hipdnn")
    images = np.random.default_rng(0).random((60, 1, 8, 8), np.float32)
    np.save(tmp_path / "image.npy", images)
    done = python(
        site,
        "-m",
        "hipdnn_mlir_runtime",
        "run",
        "digits.hipdnn",
        "--input",
        "image=image.npy",
        "-o",
        "y.npz",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    (want,) = ort.InferenceSession(DIGITS, providers=["CPUExecutionProvider"]).run(None, {"image": images})
    with np.load(tmp_path / "y.npz") as got:
        np.testing.assert_allclose(got[got.files[0]], want, rtol=1e-4, atol=1e-5)
    inspected = python(site, "-m", "hipdnn_mlir_runtime", "inspect", "digits.hipdnn", "--json", cwd=tmp_path)
    assert json.loads(inspected.stdout)["inputs"][0]["name"] == "image"
    devices = python(site, "-m", "hipdnn_mlir_runtime", "devices", cwd=tmp_path)
    assert "host:0" in devices.stdout


@pytest.mark.parametrize(
    "arguments", [["compile", "m.onnx"], ["explain", "m.onnx"], ["verify", "m.onnx"], ["run", "m.onnx"]]
)
def test_commands_of_the_compiler_say_what_to_install(site: Path, tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "m.onnx").touch()
    done = python(site, "-m", "hipdnn_mlir_runtime", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the compiler is not installed; pip install hipdnn-mlir" in done.stderr


IN_ORT = """
import sys
import numpy as np, onnxruntime as ort
from hipdnn_mlir_runtime import ort_ep

options = ort.SessionOptions()
options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
ort_ep.add_to_session_options(options)
session = ort.InferenceSession(sys.argv[1], sess_options=options)
np.save("y.npy", session.run(None, {"image": np.load("image.npy")})[0])
print(*{group.ep_name for group in session.get_provider_graph_assignment_info()})
"""


@pytest.fixture
def images(tmp_path: Path) -> np.ndarray:
    """The input ``image.npy``."""
    array = np.random.default_rng(0).random((60, 1, 8, 8), np.float32)
    np.save(tmp_path / "image.npy", array)
    return array


def of_onnxruntime(images: np.ndarray) -> np.ndarray:
    """What ONNX Runtime's own provider computes."""
    return ort.InferenceSession(DIGITS, providers=["CPUExecutionProvider"]).run(None, {"image": images})[0]


def test_provider_runs_a_compiled_model(site: Path, tmp_path: Path, images: np.ndarray) -> None:
    options = ort.SessionOptions()
    ort_ep.add_to_session_options(options, {"cache_dir": str(tmp_path / "cache")}, device="cpu")
    compiler = ort.ModelCompiler(options, str(DIGITS), embed_compiled_data_into_model=True)
    compiler.compile_to_file(str(tmp_path / "compiled.onnx"))
    assert {node.op_type for node in onnx.load(tmp_path / "compiled.onnx").graph.node} == {"EPContext"}
    done = python(site, "-c", IN_ORT, "compiled.onnx", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [ort_ep.get_ep_name()]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), of_onnxruntime(images), rtol=1e-4, atol=1e-5)


def test_provider_leaves_a_plain_model_to_the_cpu_with_one_warning(
    site: Path, tmp_path: Path, images: np.ndarray
) -> None:
    done = python(site, "-c", IN_ORT, DIGITS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["CPUExecutionProvider"]
    warnings = [line for line in done.stderr.splitlines() if "hipdnn" in line.lower()]
    assert len(warnings) == 1, done.stderr
    assert "pip install hipdnn-mlir" in warnings[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), of_onnxruntime(images), rtol=1e-5, atol=1e-6)
