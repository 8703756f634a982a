"""What exporters write out in small operations equals ONNX Runtime, and runs in as few steps as it would as one operation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import hipdnn_mlir

Arrays = dict[str, np.ndarray]
F16_TOLERANCE, F32_TOLERANCE = 4e-3, 2e-6
"""Of the largest value: a few units in the last place."""


def model_of(body: str, inputs: str, outputs: str, constants: Arrays | None = None) -> onnx.ModelProto:
    """Return a model of nodes in ONNX's text form; the shapes of outputs are left to be inferred."""
    text = f'<ir_version: 9, opset_import: ["" : 20]> g ({inputs}) => ({outputs}) {{ {body} }}'
    model = onnx.parser.parse_model(text)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (constants or {}).items())
    return model


def random_feeds(model: onnx.ModelProto) -> Arrays:
    """Return normal numbers, and conditions that hold three times out of four, always so for the first column."""
    rng = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [dim.dim_value for dim in kind.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[value.name] = rng.standard_normal(dims).astype(dtype) if dtype.kind == "f" else rng.random(dims) < 0.75
        if dtype.kind == "b":
            feeds[value.name][..., 0] = True
    return feeds


def steps_when_equal(model: onnx.ModelProto) -> list[str]:
    """Return the summaries of the model's steps after comparing its results with ONNX Runtime's."""
    feeds = random_feeds(model)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    reference = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model).session()
    for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
        assert got.shape == want.shape
        assert got.dtype == want.dtype
        tolerance = F16_TOLERANCE if want.dtype == np.float16 else F32_TOLERANCE
        assert np.abs(got.astype(np.float64) - want).max() <= tolerance * np.abs(want).max()
    return [step["summary"] for step in session.steps]


def scalar(number: float) -> np.ndarray:
    return np.array(number, np.float32)


TRIANGLE = np.where(np.tri(6, dtype=bool), 0, -np.inf).astype(np.float32)
HEADS = "float[2,4,6,8] q, float[2,4,6,8] k, float[2,4,6,8] v"
NUMBERS = {"s": scalar(0.3), "d": scalar(2.5), "low": scalar(-np.inf), "finite": scalar(-1e9), "zero": scalar(0)}
KEYS = "t = Transpose<perm = [0, 1, 3, 2]>(k)"
ATTENTION = {
    "plain": (f"{KEYS} a = MatMul(q, t) b = Softmax(a) y = MatMul(b, v)", HEADS),
    "divided": (f"{KEYS} a = MatMul(q, t) c = Div(a, d) b = Softmax(c) y = MatMul(b, v)", HEADS),
    "scaled operands": (f"p = Mul(q, s) {KEYS} u = Mul(s, t) a = MatMul(p, u) b = Softmax(a) y = MatMul(b, v)", HEADS),
    "guarded": (
        f"{KEYS} a = MatMul(q, t) b = Softmax(a) n = IsNaN(b) g = Where(n, zero, b) y = MatMul(g, v)",
        HEADS,
    ),
    "added mask": (
        f"{KEYS} a = MatMul(q, t) c = Mul(s, a) m = Add(mask, c) b = Softmax(m) y = MatMul(b, v)",
        f"{HEADS}, float[2,1,6,6] mask",
    ),
    "bias per head": (f"{KEYS} a = MatMul(q, t) m = Add(a, bias) b = Softmax(m) y = MatMul(b, v)", f"{HEADS}, float[4,6,6] bias"),
    "condition": (
        f"{KEYS} a = MatMul(q, t) m = Where(seen, a, low) b = Softmax(m) y = MatMul(b, v)",
        f"{HEADS}, bool[2,1,1,6] seen",
    ),
    "causal": (f"{KEYS} a = MatMul(q, t) m = Add(a, triangle) b = Softmax(m) y = MatMul(b, v)", HEADS),
    "causal condition": (f"{KEYS} a = MatMul(q, t) m = Where(lower, a, finite) b = Softmax(m) y = MatMul(b, v)", HEADS),
    "causal and bias": (
        f"{KEYS} a = MatMul(q, t) m = Add(a, triangle) n = Add(m, bias) b = Softmax(n) y = MatMul(b, v)",
        f"{HEADS}, float[6,6] bias",
    ),
    "heads in the batch": (
        "t = Transpose<perm = [0, 2, 1]>(k) a = MatMul(q, t) b = Softmax(a) y = MatMul(b, v)",
        "float[8,6,8] q, float[8,5,8] k, float[8,5,4] v",
    ),
    "number added": (f"{KEYS} a = MatMul(q, t) m = Add(a, d) b = Softmax(m) y = MatMul(b, v)", HEADS),
    "one head for all": (
        f"{KEYS} a = MatMul(q, t) b = Softmax(a) y = MatMul(b, v)",
        "float[2,4,6,8] q, float[2,1,5,8] k, float[2,1,5,8] v",
    ),
    "groups": (
        "c = Unsqueeze(k, two) e = Expand(c, many) r = Reshape(e, all) w = Unsqueeze(v, two) f = Expand(w, many) h = Reshape(f, all) "
        "t = Transpose<perm = [0, 1, 3, 2]>(r) a = MatMul(q, t) b = Softmax(a) y = MatMul(b, h)",
        "float[2,4,6,8] q, float[2,2,5,8] k, float[2,2,5,8] v",
    ),
}  # fmt: skip
ATTENTION_CONSTANTS = {
    **NUMBERS,
    "triangle": TRIANGLE,
    "lower": np.tri(6, dtype=bool),
    "two": np.array([2]),
    "many": np.array([2, 2, 2, 5, 8]),
    "all": np.array([2, 4, 5, 8]),
}


@pytest.mark.parametrize("form", ATTENTION)
def test_attention_is_one_step_when_written_out(form: str) -> None:
    body, inputs = ATTENTION[form]
    steps = steps_when_equal(model_of(body, inputs, "float y", ATTENTION_CONSTANTS))
    assert steps.count("sdpa_fwd") == 1
    assert [step for step in steps if step != "sdpa_fwd"] == []


def test_mask_of_zeros_in_one_column_is_not_causal() -> None:
    body = f"{KEYS} a = MatMul(q, t) m = Add(a, column) b = Softmax(m) y = MatMul(b, v)"
    constants = {"column": np.zeros((6, 1), np.float32)}
    assert steps_when_equal(model_of(body, HEADS, "float y", constants)) == ["sdpa_fwd"]


def test_masks_of_f16_attention_are_f32_when_applied_after_the_cast() -> None:
    body = (
        f"{KEYS} a = MatMul(q, t) c = Cast<to = 1>(a) m = Where(seen, c, finite) n = Add(m, bias) b = Softmax(n) e = Cast<to = 10>(b) "
        "y = MatMul(e, v)"
    )
    inputs = "float16[2,4,6,8] q, float16[2,4,6,8] k, float16[2,4,6,8] v, bool[2,1,1,6] seen, float[6,6] bias"
    assert "sdpa_fwd" in steps_when_equal(model_of(body, inputs, "float16 y", NUMBERS))


def test_hidden_scores_keep_their_number_when_it_is_finite() -> None:
    body = f"{KEYS} a = MatMul(q, t) m = Where(seen, a, finite) b = Softmax(m) y = MatMul(b, v)"
    model = model_of(body, f"{HEADS}, bool[2,1,6,6] seen", "float y", ATTENTION_CONSTANTS)
    feeds = random_feeds(model)
    feeds["seen"][1, 0, 2] = False
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    (got,) = hipdnn_mlir.compile(model).session().run(None, feeds)
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6)


def test_query_that_sees_nothing_gets_zero_when_hidden_scores_are_infinite() -> None:
    body = f"{KEYS} a = MatMul(q, t) m = Where(seen, a, low) b = Softmax(m) n = IsNaN(b) g = Where(n, zero, b) y = MatMul(g, v)"
    model = model_of(body, f"{HEADS}, bool[2,1,6,6] seen", "float y", ATTENTION_CONSTANTS)
    feeds = random_feeds(model)
    feeds["seen"][1, 0, 2] = False
    (got,) = hipdnn_mlir.compile(model).session().run(None, feeds)
    assert np.isfinite(got).all()
    assert not got[1, :, 2].any()


def test_attention_in_f16_is_one_step_when_softmax_is_in_f32() -> None:
    body = f"{KEYS} a = MatMul(q, t) c = Cast<to = 1>(a) b = Softmax(c) e = Cast<to = 10>(b) y = MatMul(e, v)"
    inputs = "float16[2,4,6,8] q, float16[2,4,6,8] k, float16[2,4,6,8] v"
    assert steps_when_equal(model_of(body, inputs, "float16 y")) == ["sdpa_fwd"]


ACTIVATIONS = {
    "gelu": ("a = Div(x, root) b = Erf(a) c = Add(b, one) d = Mul(x, c) y = Mul(d, half)", "gelu"),
    "gelu_tanh": (
        "a = Pow(x, three) b = Mul(a, cubic) c = Add(x, b) d = Mul(c, factor) e = Tanh(d) f = Add(e, one) g = Mul(half, x) y = Mul(g, f)",
        "gelu_approx_tanh",
    ),
    "silu": ("a = Sigmoid(x) y = Mul(x, a)", "swish"),
    "quick_gelu": ("a = Mul(x, beta) b = Sigmoid(a) y = Mul(x, b)", "mul + swish + mul"),
    "hard_swish": (
        "a = Add(x, three) b = Clip(a, nought, six) c = Mul(x, b) y = Div(c, six)",
        "add + relu + mul + mul",
    ),
}
ACTIVATION_CONSTANTS = {
    name: scalar(number)
    for name, number in {
        "root": 2**0.5, "one": 1, "half": 0.5, "three": 3, "cubic": 0.044715, "factor": (2 / np.pi) ** 0.5, "beta": 1.702, "nought": 0,
        "six": 6,
    }.items()
}  # fmt: skip


@pytest.mark.parametrize("form", ACTIVATIONS)
def test_activation_follows_a_product_in_one_step_when_written_out(form: str) -> None:
    body, summary = ACTIVATIONS[form]
    weights = {"w": np.random.default_rng(1).standard_normal((8, 5)).astype(np.float32)}
    model = model_of(f"x = MatMul(z, w) {body}", "float[3,8] z", "float y", weights | ACTIVATION_CONSTANTS)
    assert steps_when_equal(model) == [f"matmul + {summary}"]


RMS_NORMS = {
    "reciprocal": "a = Pow(x, two) b = ReduceMean(a, last) c = Add(b, eps) d = Sqrt(c) e = Reciprocal(d) f = Mul(x, e) y = Mul(scale, f)",
    "quotient": "a = Mul(x, x) b = ReduceMean(a, last) c = Add(b, eps) d = Sqrt(c) f = Div(x, d) y = Mul(f, scale)",
    "without scale": "a = Pow(x, two) b = ReduceMean(a, last) c = Add(b, eps) d = Sqrt(c) y = Div(x, d)",
}


@pytest.mark.parametrize("form", RMS_NORMS)
def test_rms_norm_is_one_step_when_written_out(form: str) -> None:
    constants = {
        "two": scalar(2),
        "eps": scalar(1e-5),
        "last": np.array([-1]),
        "scale": np.linspace(0.5, 1.5, 7, dtype=np.float32),
    }
    assert steps_when_equal(model_of(RMS_NORMS[form], "float[3,4,7] x", "float y", constants)) == ["rmsnorm"]


def test_rms_norm_in_f16_is_one_step_when_computed_in_f32() -> None:
    body = (
        "w = Cast<to = 1>(x) a = Pow(w, two) b = ReduceMean(a, last) c = Add(b, eps) d = Sqrt(c) e = Div(w, d) f = Cast<to = 10>(e) "
        "y = Mul(f, scale)"
    )
    constants = {
        "two": scalar(2),
        "eps": scalar(1e-6),
        "last": np.array([-1]),
        "scale": np.linspace(0.5, 1.5, 8, dtype=np.float16),
    }
    assert steps_when_equal(model_of(body, "float16[3,8] x", "float16 y", constants)) == ["rmsnorm"]


def constants_of(dims: Sequence[int], *names: str) -> Arrays:
    return {name: np.random.default_rng(len(name)).standard_normal(dims).astype(np.float32) for name in names}


def test_group_norm_is_one_step_when_written_out() -> None:
    body = (
        "a = Reshape(x, grouped) b = InstanceNormalization(a, one, shift) c = Reshape(b, whole) d = Mul(c, scale) e = Add(d, bias) "
        "f = Sigmoid(e) y = Mul(e, f)"
    )
    constants = {"grouped": np.array([0, 3, -1]), "whole": np.array([2, 6, 4, 5])}
    constants |= constants_of((6, 1, 1), "scale", "bias") | constants_of((3,), "one", "shift")
    steps = steps_when_equal(model_of(body, "float[2,6,4,5] x", "float y", constants))
    assert len(steps) == 1


def test_rotary_embedding_makes_no_copies_when_written_out() -> None:
    body = (
        "a = Slice(x, nought, four, last) b = Slice(x, four, eight, last) n = Neg(b) r = Concat<axis = -1>(n, a) c = Mul(x, cos) "
        "d = Mul(r, sin) y = Add(c, d)"
    )
    constants = {"nought": np.array([0]), "four": np.array([4]), "eight": np.array([8]), "last": np.array([-1])}
    steps = steps_when_equal(model_of(body, "float[2,3,5,8] x, float[5,8] cos, float[5,8] sin", "float y", constants))
    assert steps == ["mul + mul + sub", "mul + mul + add"]
