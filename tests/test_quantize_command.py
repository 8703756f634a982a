"""The command `quantize`: a model becomes one of 8 bits that the CPU runs on integers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from conftest import Command

ENGINE = "HOST_QUANTIZED_ENGINE"


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    folder.mkdir()
    for number in range(4):
        image = np.random.default_rng(number).standard_normal((1, 3, 32, 32), np.float32)
        np.savez(folder / f"{number}.npz", image=image)
    return folder


def test_calibrated_model_runs_on_integers(command: Command, small_model: Path, samples: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.onnx"
    result = command("quantize", small_model, "--calibrate", samples, "--reduce-range", "-o", made, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["samples"] == 4
    assert report["bytes"] < report["bytes_before"]  # scales of each channel are as large as some of the weights
    image = np.load(samples / "0.npz")["image"]
    (exact,) = ort.InferenceSession(small_model, providers=["CPUExecutionProvider"]).run(None, {"image": image})
    session = hipdnn_mlir.compile(onnx.load(made)).session()
    assert sum(step.get("engine") == ENGINE for step in session.steps) > 5
    (got,) = session.run(None, {"image": image})
    assert np.abs(got - exact).max() < 0.2 * np.abs(exact).max()
    shown = json.loads(command("verify", made, "--reference", small_model, "--json").stdout)
    assert 1e-3 < shown["outputs"][0]["largest"] < 0.1


def test_without_samples_matmuls_are_quantized_in_each_run(command: Command, tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2,64] x) => (float[2,8] y) { y = MatMul(x, w) }"""
    model = onnx.parser.parse_model(text)
    w = np.random.default_rng(0).standard_normal((64, 8), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(w, "w"))
    onnx.save(model, tmp_path / "model.onnx")
    result = command("quantize", tmp_path / "model.onnx", "--reduce-range")
    assert result.returncode == 0, result.stderr
    session = hipdnn_mlir.compile(onnx.load(tmp_path / "model-int8.onnx")).session()
    assert ENGINE in [step.get("engine") for step in session.steps]
    x = np.random.default_rng(1).standard_normal((2, 64), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], x @ w, atol=0.5)


def test_without_samples_an_lstm_is_quantized_in_each_run(command: Command, tmp_path: Path) -> None:
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 17]>
      g (float[steps,1,24] x) => (float[steps,1,1,40] y) { y = LSTM<hidden_size=40>(x, w, r) }""")
    rng = np.random.default_rng(0)
    for name, dims in {"w": (1, 160, 24), "r": (1, 160, 40)}.items():
        array = rng.standard_normal(dims, np.float32) / np.float32(np.sqrt(dims[-1]))
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.save(model, tmp_path / "model.onnx")
    result = command("quantize", tmp_path / "model.onnx", "--reduce-range")
    assert result.returncode == 0, result.stderr
    made = onnx.load(tmp_path / "model-int8.onnx")
    session, floats = (hipdnn_mlir.compile(m).session() for m in (made, model))
    x = rng.standard_normal((7, 1, 24), np.float32)
    (got,), (want,) = (s.run(None, {"x": x}) for s in (session, floats))
    assert "quantized_recurrence" in {step["summary"] for step in session.steps}
    assert np.abs(want).max() > 0.3
    np.testing.assert_allclose(got, want, atol=0.05)


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        (None, None, "no samples"),
        ("a.npz", "other", "arrays of other names than the inputs: expected image, got other"),
        ("a.npy", None, "a.npy: not a NumPy array file"),
        ("a.npz", None, "a.npz: cannot read the arrays"),
        ("a.npz", "image", "a.npz: 'image': wrong array: expected f32[1,3,32,32], got f32[1]"),
    ],
)
def test_samples_that_do_not_fit_are_told(
    command: Command, small_model: Path, tmp_path: Path, name: str | None, array: str | None, words: str
) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    if array:
        np.savez(folder / "a.npz", **{array: np.zeros(1, np.float32)})
    elif name:
        (folder / name).write_text("no array")
    result = command("quantize", small_model, "--calibrate", folder)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_is_no_model_is_told(command: Command, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").touch()
    result = command("quantize", tmp_path / "m.onnx")
    assert result.returncode == 2
    assert result.stderr.startswith(f"hipdnn-mlir: error: {tmp_path / 'm.onnx'}: ")
    assert result.stderr.count("\n") == 1


def test_the_model_stays_when_the_output_is_another_name_of_it(
    command: Command, small_model: Path, tmp_path: Path
) -> None:
    model, output = tmp_path / "model.onnx", tmp_path / "output.onnx"
    shutil.copy(small_model, model)
    os.link(model, output)
    assert command("quantize", model, "-o", output).returncode == 0
    assert model.read_bytes() == small_model.read_bytes()
    assert output.read_bytes() != small_model.read_bytes()


def _product(path: Path, opset: int = 17, op: str = "MatMul") -> onnx.ModelProto:
    """A model file of one operator on x[2, 64] and weights."""
    y = onnx.helper.make_node(op, ["x", "w"] if op == "MatMul" else ["x"], ["y"])
    x, out = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2, 64]) for n in ("x", "y"))
    w = onnx.numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 64), np.float32), "w")
    graph = onnx.helper.make_graph([y], "g", [x], [out], [w] if op == "MatMul" else [])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, path)
    return model


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "0.npy", np.random.default_rng(1).standard_normal((2, 64), np.float32))
    return folder


@pytest.mark.parametrize("case", ["weights in another file", "opset 9"])
def test_models_that_the_quantizer_spoils_are_quantized(
    command: Command, rows: Path, tmp_path: Path, case: str
) -> None:
    path, made = tmp_path / "model.onnx", tmp_path / "made.onnx"
    model = _product(path, 9 if case == "opset 9" else 17)
    if case != "opset 9":
        onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    result = command("quantize", path, "--calibrate", rows, "--reduce-range", "-o", made, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["bytes"] < report["bytes_before"]
    x = np.load(rows / "0.npy")
    (exact,) = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    (got,) = hipdnn_mlir.compile(made).session().run(None, {"x": x})
    assert np.abs(got - exact).max() < 0.1 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("quantized", "it is quantized already; quantize the model that it was made of"),
        ("nothing", "nothing to quantize: expected operators of f32 with a form in 8 bits"),
        ("custom", "ONNX Runtime's quantizer refuses it: "),
        ("NaN", "0.npy has infinite numbers or NaN"),
    ],
)
def test_what_is_not_quantized_is_told(command: Command, rows: Path, tmp_path: Path, case: str, words: str) -> None:
    path, made = tmp_path / "model.onnx", tmp_path / "made.onnx"
    model = _product(path, op="Elu" if case == "nothing" else "MatMul")
    if case == "quantized":
        assert command("quantize", path, "-o", path.with_name("again.onnx")).returncode == 0
        path = path.with_name("again.onnx")
    elif case == "custom":
        model.graph.node.append(onnx.helper.make_node("Unknown", ["y"], ["z"], domain="acme"))
        model.opset_import.append(onnx.helper.make_opsetid("acme", 1))
        model.graph.output[0].name = "z"
        onnx.save(model, path)
    elif case == "NaN":
        np.save(rows / "0.npy", np.full((2, 64), np.nan, np.float32))
    result = command("quantize", path, "--calibrate", rows, "-o", made)
    assert result.returncode == 2
    assert words in result.stderr
    assert result.stderr.count("\n") == 1
    assert not made.exists()


def test_without_samples_convolutions_stay_as_they_are(command: Command, small_model: Path, tmp_path: Path) -> None:
    """ConvInteger is computed in floats here, and takes longer than Conv."""
    made = tmp_path / "made.onnx"
    assert command("quantize", small_model, "-o", made).returncode == 0
    kinds = {node.op_type for node in onnx.load(made).graph.node}
    assert {"Conv", "MatMulInteger"} <= kinds
    assert "ConvInteger" not in kinds
