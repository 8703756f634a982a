"""Constants of formulas in 16-bit models: each operator computes in f32 with them and rounds once, at its end."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from gpu.programs import compile_for_emulator, run
from models import GraphBuilder
from runtime_programs import Array

KINDS = {
    "f16": (TensorProto.FLOAT16, np.dtype(np.float16)),
    "bf16": (TensorProto.BFLOAT16, np.dtype(ml_dtypes.bfloat16)),
}
Formula = Callable[[Array], Array]


def _f32(number: float) -> float:
    """An attribute, as ONNX keeps it."""
    return float(np.float32(number))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x: Array) -> Array:
    return x * np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2


def _gelu_by_tanh(x: Array) -> Array:
    return x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def _elu(x: Array, alpha: float, gamma: float = 1.0) -> Array:
    return _f32(gamma) * np.where(x < 0, _f32(alpha) * np.expm1(x), x)


def _shrunk(x: Array) -> Array:
    return np.sign(x) * np.where(np.abs(x) > _f32(0.3), np.abs(x) - _f32(0.1), 0)


CASES: dict[str, tuple[str, dict[str, Any], Formula]] = {
    "celu": ("Celu", {"alpha": 0.7}, lambda x: np.where(x < 0, _f32(0.7) * np.expm1(x / _f32(0.7)), x)),
    "elu": ("Elu", {"alpha": 0.37}, lambda x: _elu(x, 0.37)),
    "gelu": ("Gelu", {}, _gelu),
    "gelu-by-tanh": ("Gelu", {"approximate": "tanh"}, _gelu_by_tanh),
    "hard-sigmoid": ("HardSigmoid", {}, lambda x: np.clip(_f32(0.2) * x + 0.5, 0, 1)),
    "hard-sigmoid-of-sixths": ("HardSigmoid", {"alpha": 1 / 6}, lambda x: np.clip(_f32(1 / 6) * x + 0.5, 0, 1)),
    "hard-swish": ("HardSwish", {}, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "leaky-relu": ("LeakyRelu", {"alpha": 0.013}, lambda x: np.where(x < 0, _f32(0.013) * x, x)),
    "mish": ("Mish", {}, lambda x: x * np.tanh(_softplus(x))),
    "selu": ("Selu", {}, lambda x: _elu(x, 1.67326319217681884765625, 1.05070102214813232421875)),
    "selu-of-attributes": ("Selu", {"alpha": 0.3, "gamma": 0.7}, lambda x: _elu(x, 0.3, 0.7)),
    "shrink": ("Shrink", {"lambd": 0.3, "bias": 0.1}, _shrunk),
    "softplus": ("Softplus", {}, _softplus),
    "swish-of-a-factor": ("Swish", {"alpha": 0.7}, lambda x: x * _sigmoid(_f32(0.7) * x)),
    "thresholded-relu": ("ThresholdedRelu", {"alpha": 0.3}, lambda x: np.where(x > _f32(0.3), x, 0)),
    "contrib-fast-gelu": ("com.microsoft:FastGelu", {}, _gelu_by_tanh),
    "contrib-gelu": ("com.microsoft:Gelu", {}, _gelu),
    "contrib-quick-gelu": ("com.microsoft:QuickGelu", {}, lambda x: x * _sigmoid(_f32(1.702) * x)),
    "cos": ("Cos", {}, np.cos),
    "cosh": ("Cosh", {}, np.cosh),
    "sinh": ("Sinh", {}, np.sinh),
}


def _model(case: str, kind: int, elements: int) -> onnx.ModelProto:
    domain, _, name = CASES[case][0].rpartition(":")
    node = helper.make_node(name, ["x"], ["y"], domain=domain, **CASES[case][1])
    x, y = (helper.make_tensor_value_info(value, kind, [elements]) for value in "xy")
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], case, [x], [y]), opset_imports=opsets, ir_version=11)


def _all_between(dtype: np.dtype, low: float, high: float) -> Array:
    """Every number of the type with a magnitude between two others."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(invalid="ignore"):
        magnitude = np.abs(every.astype(np.float64))
    return every[(magnitude >= low) & (magnitude <= high)]


def _check(got: Array, formula: Formula, x: Array) -> None:
    """Rounded once: half a unit in the last place, with room for the f32 arithmetic before, whose terms are of 1 and x."""
    want = formula(x.astype(np.float64))
    info = ml_dtypes.finfo(got.dtype)
    exponents = np.floor(np.log2(np.maximum(np.abs(want), float(info.tiny))))
    allowed = 0.51 * 2.0 ** (exponents - info.nmant) + 2.0**-22 * np.maximum(1, np.abs(x.astype(np.float64)))
    worst = np.argmax(np.abs(got.astype(np.float64) - want) / allowed)
    assert abs(float(got[worst]) - want[worst]) <= allowed[worst], f"{got[worst]} instead of {want[worst]}"


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_operator_rounds_once_when_its_model_is_of_16_bits(case: str, dtype: str) -> None:
    kind, numpy = KINDS[dtype]
    x = _all_between(numpy, 2.0**-16, 11)  # Cosh of 11 is almost the greatest f16
    (got,) = hipdnn_mlir.compile(_model(case, kind, x.size)).session().run(None, {"x": x})
    _check(got, CASES[case][2], x)


@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
@pytest.mark.parametrize("case", ["hard-sigmoid", "hard-swish", "selu", "swish-of-a-factor", "thresholded-relu"])
def test_generated_code_rounds_once_when_its_model_is_of_16_bits(
    case: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = _all_between(np.dtype(np.float16), 0.25, 4)
    program, modules = compile_for_emulator(_model(case, TensorProto.FLOAT16, x.size), monkeypatch, target=target)
    (got,) = run(program, {"x": x}, modules, wave=64 if target == "gfx942" else 32)
    _check(got, CASES[case][2], x)


WRITTEN_OUT: dict[str, tuple[Callable[[GraphBuilder, str], str], Formula]] = {
    "factor": (lambda g, x: g.op("Mul", x, g.constant(0.3, np.float32)), lambda x: _f32(0.3) * x),
    "line": (
        lambda g, x: g.op("Add", g.op("Mul", x, g.constant(0.3, np.float32)), g.constant(0.7, np.float32)),
        lambda x: _f32(0.3) * x + _f32(0.7),
    ),
    "hard-sigmoid": (
        lambda g, x: g.op("HardSigmoid", x, alpha=1 / 6),
        lambda x: np.clip(_f32(1 / 6) * x + 0.5, 0, 1),
    ),
    "quotient": (lambda g, x: g.op("Div", x, g.constant(0.3, np.float32)), lambda x: x / _f32(0.3)),
    "threshold": (
        lambda g, x: g.op("Where", g.op("Less", x, g.constant(0.3, np.float32)), g.constant(0.1, np.float32), x),
        lambda x: np.where(x < _f32(0.3), _f32(0.1), x),
    ),
}


@pytest.mark.parametrize("precision", KINDS)
@pytest.mark.parametrize("case", WRITTEN_OUT)
def test_numbers_stay_f32_when_arithmetic_becomes_narrow(case: str, precision: str) -> None:
    g = GraphBuilder(case)
    write, formula = WRITTEN_OUT[case]
    x = _all_between(KINDS[precision][1], 2.0**-6, 8).astype(np.float32)[: 2 * 700].reshape(2, -1).T.copy()
    same = g.constant(np.eye(2), np.float32)
    narrow = write(g, g.op("MatMul", g.input("x", x.shape), same))
    model = g.model({g.op("MatMul", narrow, same): x.shape})
    program = hipdnn_mlir.compile(model, precision=precision)
    (got,) = program.session().run(None, {"x": x})
    exact = got.astype(KINDS[precision][1])
    assert (exact.astype(np.float32) == got).all(), "the arithmetic between the products is not narrow"
    _check(exact.ravel(), formula, x.ravel())


def _normalized(x: Array, epsilon: float) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + _f32(epsilon))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("name", ["InstanceNormalization", "GroupNormalization"])
def test_epsilon_is_f32_when_a_norm_is_of_16_bits(name: str, dtype: str) -> None:
    kind, numpy = KINDS[dtype]
    groups = {"num_groups": 4} if name == "GroupNormalization" else {}
    node = helper.make_node(name, ["x", "scale", "bias"], ["y"], epsilon=1e-5, **groups)
    x, y = (helper.make_tensor_value_info(value, kind, [2, 4, 64]) for value in "xy")
    vectors = [helper.make_tensor("scale", kind, [4], [1.0] * 4), helper.make_tensor("bias", kind, [4], [0.0] * 4)]
    model = helper.make_model(
        helper.make_graph([node], name, [x], [y], vectors), opset_imports=[helper.make_opsetid("", 18)], ir_version=9
    )
    data = (np.random.default_rng(0).standard_normal((2, 4, 64)) * 2**-10).astype(numpy)
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": data})
    _check(got.ravel(), lambda x: _normalized(x.reshape(2, 4, 64), 1e-5).ravel(), data.ravel())


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("op", ["Gemm", "com.microsoft:FusedMatMul"])
def test_factor_of_a_product_is_f32_when_it_is_of_16_bits(op: str, dtype: str) -> None:
    kind, numpy = KINDS[dtype]
    data = _all_between(numpy, 2.0**-6, 8)[:1024].reshape(-1, 2)
    domain, _, name = op.rpartition(":")
    node = helper.make_node(name, ["x", "same"], ["y"], domain=domain, alpha=0.3)
    x, y = (helper.make_tensor_value_info(value, kind, data.shape) for value in "xy")
    same = helper.make_tensor("same", kind, [2, 2], [1.0, 0.0, 0.0, 1.0])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], name, [x], [y], [same]), opset_imports=opsets, ir_version=9)
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": data})
    _check(got.ravel(), lambda x: _f32(0.3) * x, data.ravel())
