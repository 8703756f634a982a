"""Operators of classical models beside ONNX Runtime: linear ones, scalers and ensembles of trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from decompositions.node_models import node_model, run
from hipdnn_mlir.frontend.decompositions.decompose import decompose

ML = "ai.onnx.ml"
X = np.random.default_rng(0).standard_normal((7, 3)).astype(np.float32)


def model_of(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node, whose results are y, and z of a classifier."""
    outputs = ("y", "z") if op.endswith("Classifier") else ("y",)
    model = node_model(op, {"x": x}, outputs, domain=ML, **attributes)
    model.opset_import.append(onnx.helper.make_opsetid(ML, version))
    return model


def assert_same(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> None:
    """Assert that a program gives ONNX Runtime's results: whole numbers exactly."""
    model = model_of(op, x, version=version, **attributes)
    got = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": x})
    for mine, other in zip(got, run(model, {"x": x}), strict=True):
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape)
        tolerance = 1e-5 if other.dtype.kind == "f" else 0
        np.testing.assert_allclose(mine, other, rtol=tolerance, atol=tolerance)


def reason(op: str, x: np.ndarray, *, version: int = 3, **attributes: Any) -> str:
    """Return why the node stays."""
    _, (reject,) = decompose(model_of(op, x, version=version, **attributes))
    return reject.reason


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_linear_models_of_three_columns_are_those_of_onnxruntime(transform: str) -> None:
    coefficients = [0.5, -1.0, 2.0, 1.5, 0.25, -0.75, 0.0, 0.0, 0.0]  # the last column is its intercept, that is zero
    common = {"coefficients": coefficients, "intercepts": [0.1, -0.2, 0.0], "post_transform": transform}
    assert_same("LinearRegressor", X, targets=3, **common)
    assert_same("LinearClassifier", X, classlabels_ints=[4, 9, -1], **common)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_one_column_tells_two_classes_apart(transform: str, dtype: type) -> None:
    x = (X * 3).round().astype(dtype)  # with scores of zero
    x[0] = 0
    common = {"coefficients": [1.0, -1.0, 2.0], "intercepts": [0.0], "classlabels_ints": [7, 5]}
    assert_same("LinearClassifier", x, post_transform=transform, **common)


def test_regression_of_one_target_takes_open_rows() -> None:
    model = model_of("LinearRegressor", X, coefficients=[1.0, -1.0, 2.0], targets=1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": X})
    np.testing.assert_allclose(y, run(model, {"x": X})[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
@pytest.mark.parametrize("count", [1, 3])
def test_scaler_is_that_of_onnxruntime(dtype: type, count: int) -> None:
    assert_same("Scaler", (X * 9).astype(dtype), offset=[0.1, -0.3, 2.0][:count], scale=[3.0, 0.7, -1.0][:count])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer_is_that_of_onnxruntime_with_rows_of_zero(norm: str) -> None:
    x = X.copy()
    x[2] = 0
    assert_same("Normalizer", x, norm=norm)


@pytest.mark.parametrize(
    ("op", "attributes", "words"),
    [
        ("LinearClassifier", {"classlabels_strings": ["a", "b"], "intercepts": [0.0]}, "labels that are strings"),
        ("LinearClassifier", {"classlabels_ints": [0, 1], "intercepts": [0.0] * 3}, "3 intercepts for 2 classes"),
        ("LinearRegressor", {"post_transform": "PROBIT", "targets": 3}, "PROBIT"),
        ("LinearRegressor", {"post_transform": "LOGISTIC", "targets": 1, "coefficients": [1.0] * 3}, "of one column"),
        ("LinearRegressor", {"targets": 2}, "9 coefficients"),
        ("LinearRegressor", {}, "3 features for coefficients of 9"),
    ],
)
def test_linear_model_is_refused_with_its_reason(op: str, attributes: dict[str, Any], words: str) -> None:
    assert words in reason(op, X, **{"coefficients": [1.0] * 9, **attributes})
