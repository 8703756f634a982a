"""Quantized operators: written out they give, integer by integer, what ONNX Runtime's CPU provider gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from decompositions.node_models import assert_decomposes, decomposed, node_model, run
from hipdnn_mlir.frontend.decompositions.decompose import decompose
from int8_sums import random_weights

Random = np.random.default_rng


def unsigned(*dims: int, seed: int = 0) -> np.ndarray:
    return Random([seed, *dims]).integers(0, 256, dims).astype(np.uint8)


def signed(*dims: int) -> np.ndarray:
    return random_weights(Random(dims), dims)


def scale(*values: float) -> np.ndarray:
    return np.array(values if len(values) > 1 else values[0], np.float32)


def zero(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


A = {"a_scale": scale(0.1), "a_zero": zero(120)}
Y = {"y_scale": scale(3.0), "y_zero": zero(100)}


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_arithmetic_gives_the_same(op: str, dtype: Any) -> None:
    make = unsigned if dtype == np.uint8 else signed
    inputs = {
        "a": make(3, 40),
        "a_scale": scale(0.1013),
        "a_zero": zero(12, dtype),
        "b": make(40),
        "b_scale": scale(0.0617),
    }
    inputs |= {"b_zero": zero(7, dtype), "y_scale": scale(0.2371), "y_zero": zero(1, dtype)}
    assert_decomposes(op, inputs)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("QLinearLeakyRelu", {"alpha": 0.1}), ("QLinearSigmoid", {}), ("QLinearGlobalAveragePool", {})],
)
def test_unary_operator_gives_the_same(op: str, attributes: dict[str, Any]) -> None:
    inputs = {"a": unsigned(2, 3, 5, 5), **A, "y_scale": scale(1 / 64), "y_zero": zero(3)}
    assert_decomposes(op, inputs, **attributes)


def test_concat_gives_the_same() -> None:
    inputs = {"y_scale": scale(0.1), "y_zero": zero(100), "a": unsigned(3, 4), **A}
    assert_decomposes(
        "QLinearConcat", inputs | {"b": unsigned(3, 5), "b_scale": scale(0.05), "b_zero": zero(7)}, axis=1
    )


@pytest.mark.parametrize("is_quantized", [False, True])
def test_gemm_gives_the_same(is_quantized: bool) -> None:
    bias = Random(0).integers(-100, 100, 7).astype(np.int32)
    inputs = {
        "a": unsigned(16, 5),
        **A,
        "b": signed(7, 16),
        "b_scale": scale(0.05),
        "b_zero": zero(3, np.int8),
        "c": bias,
    }
    assert_decomposes("QGemm", inputs | (Y if is_quantized else {}), transA=1, transB=1, alpha=0.5)


def test_products_to_float_give_the_same() -> None:
    scales = (Random(0).random(7) + 0.1).astype(np.float32)
    weights = {"b": signed(16, 7), "a_scale": scale(0.1), "b_scale": scales, "a_zero": zero(120), "b_zero": signed(7)}
    bias = Random(1).random(7).astype(np.float32)
    assert_decomposes("MatMulIntegerToFloat", {"a": unsigned(2, 5, 16), **weights, "bias": bias})
    dynamic = {"a": Random(0).standard_normal((2, 5, 16)).astype(np.float32), "b": weights["b"], "b_scale": scale(0.1)}
    assert_decomposes("DynamicQuantizeMatMul", dynamic | {"b_zero": zero(3, np.int8), "bias": bias})


@pytest.mark.parametrize("k", [16, 600, 4000])
def test_sums_are_exact_when_they_are_long(k: int) -> None:
    a, b = np.full((2, 3, k), 255, np.uint8), np.full((k, 4), 255, np.uint8)
    a[..., 0], b[::2] = 254, 253
    inputs = {"a": a, "b": b}
    (got,) = run(decomposed(node_model("MatMulInteger", inputs, domain="")), inputs)
    np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64))


def test_sums_are_refused_when_they_cannot_be_exact() -> None:

    inputs = {"a": unsigned(1, 5000), "b": unsigned(5000, 1)}
    _, (reject,), *_ = decompose(node_model("MatMulInteger", inputs, domain=""))
    assert reject.rule == "shape"


def test_integer_products_give_the_same_when_zero_points_differ_by_column() -> None:
    inputs = {"a": unsigned(5, 16), "b": signed(16, 7), "a_zero": zero(120), "b_zero": signed(7)}
    assert_decomposes("MatMulInteger", inputs, domain="")


def test_convolutions_give_the_same() -> None:
    whole = {"x": unsigned(1, 40, 6, 6), "w": unsigned(4, 40, 3, 3), "x_zero": zero(120), "w_zero": zero(3)}
    assert_decomposes("ConvInteger", whole, domain="", pads=[1, 1, 1, 1])
    inputs = {"x": unsigned(1, 3, 6, 6), "x_scale": scale(0.1), "x_zero": zero(120), "w": signed(4, 3, 3, 3)}
    inputs |= {"w_scale": scale(0.1, 0.2, 0.3, 0.4), "w_zero": np.zeros(4, np.int8), "y_scale": scale(20.0)}
    inputs |= {"y_zero": zero(100), "b": np.array([-50, 7, 90, 3], np.int32)}
    assert_decomposes("QLinearConv", inputs, domain="", pads=[1, 1, 1, 1])


def test_matmul_gives_the_same() -> None:
    b = {"b": signed(16, 7), "b_scale": scale(0.05), "b_zero": zero(3, np.int8)}
    assert_decomposes("QLinearMatMul", {"a": unsigned(2, 5, 16), **A, **b, **Y}, domain="")


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_quantization_by_axis_gives_the_same(dtype: str) -> None:
    by_axis = {"scale": scale(0.1, 0.2, 0.3), "zero": np.array([3, 5, 7], dtype)}
    x = Random(0).standard_normal((2, 3, 4)).astype(np.float32) * 50
    assert_decomposes("QuantizeLinear", {"x": x, **by_axis}, domain="", axis=1)
    x = Random(0).integers(0, 100, (2, 3, 4)).astype(dtype)
    assert_decomposes("DequantizeLinear", {"x": x, **by_axis}, domain="", axis=1)


@pytest.mark.parametrize("axis", [1, 2])
def test_quantization_by_block_gives_the_same(axis: int) -> None:
    dims = (2, 2, 6) if axis == 1 else (2, 6, 2)
    blocks = {"scale": Random(0).random(dims).astype(np.float32) + 0.1, "zero": unsigned(*dims)}
    x = Random(0).standard_normal((2, 6, 6)).astype(np.float32) * 50
    assert_decomposes("QuantizeLinear", {"x": x, **blocks}, domain="", axis=axis, block_size=3)
    assert_decomposes("DequantizeLinear", {"x": unsigned(2, 6, 6), **blocks}, domain="", axis=axis, block_size=3)
