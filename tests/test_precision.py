"""f32 models in 16-bit types: what runs narrow and what does not, casts, and the error against ONNX Runtime in f32."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import models
from conftest import Command
from drawing import draws
from hipdnn_mlir.cli.verification import TOLERANCES
from hipdnn_mlir_runtime.cli.arrays import distances
from hipdnn_mlir_runtime.errors import ModelError
from models import GraphBuilder


def small_encoder(layers: int = 2) -> onnx.ModelProto:
    return models.encoder(layers, s=16, d=32, heads=2, ffn=64)


def small_cnn() -> onnx.ModelProto:
    rows = ((1, 8, 1, 1), (4, 12, 2, 2))
    return models.mobilenet_v2(2, 32, rows=rows, stem=8, head=32, classes=10)


def error_of(model: onnx.ModelProto, precision: str) -> float:
    """The largest error of an output against ONNX Runtime in f32, relative to the output's scale."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    feeds = {port.name: rng.standard_normal(port.shape, np.float32) for port in reference.get_inputs()}
    got = hipdnn_mlir.compile(model, precision=precision).session().run(None, feeds)
    want = reference.run(None, feeds)
    assert [array.dtype for array in got] == [array.dtype for array in want]
    return max(distances(mine, theirs)[0] for mine, theirs in zip(got, want, strict=True))


def dtypes_by_step(program: hipdnn_mlir.Program) -> list[tuple[str, list[str]]]:
    """Per step what it does, and the types of the buffers it reads and writes."""
    text = json.loads(program.text)
    executables = [executable["summary"] for executable in text["executables"]]
    found = []
    for step in text["steps"]:
        buffers = [text["buffers"][operand["buffer"]] for operand in step["operands"]]
        found.append((executables[step["executable"]], [buffer["dtype"] for buffer in buffers]))
    return found


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@pytest.mark.parametrize("build", [small_encoder, small_cnn, lambda: models.resnet(2), models.mlp])
def test_error_is_within_the_stated_bound(build: Callable[[], onnx.ModelProto], precision: str) -> None:
    assert error_of(build(), precision) < TOLERANCES[precision]


@pytest.mark.parametrize("precision", ["f16", "bf16"])
def test_encoder_has_narrow_products_and_f32_norms_and_residuals(precision: str) -> None:
    program = hipdnn_mlir.compile(small_encoder(), precision=precision)
    counts = Counter(step["summary"] for step in program.session().steps)
    # One cast of the input and one of each norm's result that a residual reads too.
    assert counts == {
        "cast": 4,
        "matmul + add": 6,
        "sdpa_fwd": 2,
        "matmul + add + cast + add": 4,
        "layer_norm": 4,
        "matmul + add + gelu": 2,
    }
    weights = Counter(str(array.dtype) for array in program.weights.values() if array.ndim == 2)
    assert set(weights) == {"float16" if precision == "f16" else "bfloat16"}
    assert {str(a.dtype) for name, a in program.weights.items() if "orm" in name} <= {"float32"}


def test_encoder_norms_write_narrow_where_products_alone_read_them() -> None:
    g = GraphBuilder("prenorm")
    x = g.input("x", [4, 32])
    scale, bias = g.normal([32], 0.1, 1.0), g.normal([32], 0.1)
    y = g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    y = g.op("Relu", g.op("MatMul", y, g.normal([32, 64], 0.1)))
    y = g.op("Add", x, g.op("MatMul", y, g.normal([64, 32], 0.1)))
    model = g.model({y: [4, 32]})
    steps = [step["summary"] for step in hipdnn_mlir.compile(model, precision="bf16").session().steps]
    assert steps == ["layer_norm", "matmul + relu", "matmul + cast + add"]
    assert error_of(model, "bf16") < TOLERANCES["bf16"]


def test_cnn_has_no_cast_but_at_its_input() -> None:
    plain, narrow = (
        [step["summary"] for step in hipdnn_mlir.compile(small_cnn(), precision=precision).session().steps]
        for precision in ("model", "bf16")
    )
    assert [summary for summary in narrow if summary == "cast"] == ["cast"]
    assert len(narrow) <= len(plain) + 1


def test_weights_take_half_the_bytes() -> None:
    plain, narrow = (
        sum(a.nbytes for a in hipdnn_mlir.compile(models.resnet(2), precision=p).weights.values())
        for p in ("model", "f16")
    )
    assert narrow < 0.51 * plain


def test_dynamic_dimensions_run_narrow() -> None:
    model = models.encoder(1, s=16, d=32, heads=2, ffn=64)
    session = hipdnn_mlir.compile(
        model, precision="bf16", shapes={"hidden": (1, "s", 32), "mask": (1, 1, 1, "s")}
    ).session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"hidden": np.random.default_rng(1).standard_normal((1, 16, 32), np.float32)}
    feeds["mask"] = np.zeros((1, 1, 1, 16), np.float32)
    (got,), (want,) = session.run(None, feeds), reference.run(None, feeds)
    assert distances(got, want)[0] < TOLERANCES["bf16"]


def test_batch_norm_of_narrow_values_keeps_its_statistics() -> None:
    """Behind an addition, so that it stays an operation of its own; a variance of 1e-6 would vanish beside 1e-5 in f16."""
    g = GraphBuilder("norm")
    x = g.input("x", [2, 4, 8, 8])
    y = g.op("Conv", x, g.normal([4, 4, 3, 3], 0.1), pads=[1, 1, 1, 1])
    y = g.op("Add", y, g.op("Conv", x, g.normal([4, 4, 1, 1], 0.1)))
    parameters = [g.normal([4], 0.1, 1.0), g.normal([4], 0.1), g.normal([4], 0.1), g.uniform([4], 0.5, 1.5)]
    y = g.op("Relu", g.op("BatchNormalization", y, *parameters, epsilon=1e-8))
    y = g.op("Conv", y, g.normal([4, 4, 1, 1], 0.5))
    model = g.model({y: [2, 4, 8, 8]})
    for precision in ("f16", "bf16"):
        assert error_of(model, precision) < TOLERANCES[precision]
    assert "cast" not in [s["summary"] for s in hipdnn_mlir.compile(model, precision="bf16").session().steps][1:]


def test_masked_scores_stay_finite_when_the_mask_holds_the_least_f32() -> None:
    """Written out with a scale that keeps it from being recognized as attention."""
    g = GraphBuilder("masked")
    x = g.input("x", [1, 8, 16])
    scores = g.op("MatMul", x, g.op("Transpose", x, perm=[0, 2, 1]))
    mask = g.constant(np.full((8, 8), np.finfo(np.float32).min, np.float32), np.float32)
    y = g.op("Softmax", g.op("Add", scores, mask), axis=-1)
    model = g.model({y: [1, 8, 8]})
    for precision in ("f16", "bf16"):
        assert np.isfinite(error_of(model, precision))


@pytest.mark.parametrize("precision", ["f16", "bf16"])
@draws(15)
@hypothesis.given(data=st.data())
def test_chain_of_operations_is_near_f32(precision: str, data: st.DataObject) -> None:
    g = GraphBuilder("chain", seed=data.draw(st.integers(0, 99)))
    values = [g.input("x", [6, 8])]
    for _ in range(data.draw(st.integers(1, 7))):
        x, other = data.draw(st.sampled_from(values[-3:])), data.draw(st.sampled_from(values))
        op = data.draw(st.sampled_from(_OPS))
        values.append(op(g, x, other))
    model = g.model({values[-1]: [6, 8]})
    assert error_of(model, precision) < 2 * TOLERANCES[precision]


_OPS: list[Callable[[GraphBuilder, str, str], str]] = [
    lambda g, x, _: g.op("MatMul", x, g.normal([8, 8], 0.35)),
    lambda g, x, _: g.op("Add", g.op("MatMul", x, g.normal([8, 8], 0.35)), g.normal([8], 0.1)),
    lambda g, x, y: g.op("Add", x, y),
    lambda g, x, _: g.op("Mul", x, g.constant(0.7, np.float32)),
    lambda g, x, _: g.op("Relu", x),
    lambda g, x, _: g.op("Tanh", x),
    lambda g, x, _: g.op("Softmax", x, axis=-1),
    lambda g, x, _: g.op("LayerNormalization", x, g.normal([8], 0.1, 1.0), g.normal([8], 0.1), axis=-1),
    lambda g, x, _: g.op("Add", x, g.op("ReduceMean", x, axes=[-1], keepdims=1)),
    lambda g, x, _: g.op("Reshape", g.op("Transpose", x, perm=[1, 0]), g.constant([6, 8], np.int64)),
    lambda g, x, y: g.op("Slice", g.op("Concat", x, y, axis=0), *(g.constant([n], np.int64) for n in (3, 9, 0))),
    lambda g, x, y: g.op("Where", g.op("Greater", x, y), x, y),
]


def test_unknown_precision_lists_the_known_ones() -> None:
    with pytest.raises(ModelError, match="unknown precision 'f8': expected one of model, tf32, f16, bf16"):
        hipdnn_mlir.compile(small_cnn(), precision="f8")


def test_verify_reports_both_and_exits_1_beyond_the_tolerance(command: Command, tmp_path: Path) -> None:
    model = tmp_path / "cnn.onnx"
    onnx.save(small_cnn(), model)
    found = command("verify", model, "--precision", "bf16", "--json", "--in-process")
    assert found.returncode == 0, found.stderr
    plain, narrow = json.loads(found.stdout)["outputs"]
    assert (plain["precision"], narrow["precision"]) == ("model", "bf16")
    assert plain["largest"] < 1e-5 < narrow["largest"] < TOLERANCES["bf16"]
    assert 0 < narrow["rms"] < narrow["tolerance"]
    strict = command("verify", model, "--precision", "bf16", "--tolerance", 1e-5, "--in-process")
    assert strict.returncode == 1, strict.stderr
    assert "beyond" in strict.stdout
    assert "within" in strict.stdout


def test_run_compares_with_the_tolerance_of_the_precision(command: Command, tmp_path: Path) -> None:
    model = tmp_path / "cnn.onnx"
    onnx.save(small_cnn(), model)
    options = ("--precision", "bf16", "--compare", "ort", "--in-process")
    assert command("run", model, *options).returncode == 0
    assert command("run", model, *options, "--rtol", 1e-4, "--atol", 1e-6).returncode == 1


def test_distances_are_relative_to_the_scale_of_the_reference() -> None:
    want = np.array([0.0, -4.0, 2.0, np.nan], np.float32)
    largest, rms = distances(np.array([0.2, -4.0, 2.0, np.nan], np.float32), want)
    np.testing.assert_allclose([largest, rms], [0.05, 0.2 / np.sqrt(20)], rtol=1e-6)
    assert distances(np.array([np.inf], np.float32), np.array([1.0], np.float32))[0] == np.inf
    assert distances(np.array([1, 2]), np.array([1, 3])) == (0.5, 0.5)
