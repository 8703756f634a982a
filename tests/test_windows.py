"""Windows of pools that are longer than what they go over, where ONNX has one all the same: against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError


def _pool(op: str, dims: list[Any], **attributes: Any) -> onnx.ModelProto:
    nodes = [
        helper.make_node(op, ["x"], ["p"], "pool", **attributes),
        helper.make_node("GlobalAveragePool", ["p"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in (("x", dims), ("y", None))]
    graph = helper.make_graph(nodes, "windows", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _reference(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def _image(*size: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((2, 3, *size), np.float32)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("size", "attributes"),
    [
        pytest.param((1, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}, id="one-axis"),
        pytest.param((2, 1), {"kernel_shape": [4, 3], "strides": [3, 3]}, id="both-axes"),
        pytest.param((1, 8), {"kernel_shape": [4, 2], "strides": [3, 2], "pads": [1, 0, 0, 0]}, id="padding"),
    ],
)
def test_pool_equals_onnxruntime_when_its_window_is_longer_than_the_image(
    op: str, size: tuple[int, int], attributes: dict[str, Any]
) -> None:
    model, x = _pool(op, [2, 3, *size], **attributes), _image(*size)
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": x})
    np.testing.assert_allclose(got, _reference(model, x), rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("AveragePool", {"pads": [1, 0, 0, 0], "count_include_pad": 1}), ("MaxPool", {"ceil_mode": 1})],
)
def test_pool_equals_onnxruntime_when_its_long_window_counts_padding_or_is_rounded_up(
    op: str, attributes: dict[str, Any]
) -> None:
    model, x = _pool(op, [2, 3, 1, 8], kernel_shape=[3, 2], strides=[3, 2], **attributes), _image(1, 8)
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": x})
    np.testing.assert_allclose(got, _reference(model, x), rtol=1e-5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pool_is_named_when_a_dynamic_dimension_is_less_than_its_window(op: str) -> None:
    model = _pool(op, ["n", 3, "h", "w"], kernel_shape=[3, 2], strides=[3, 2])
    session = hipdnn_mlir.compile(model).session()
    for size in ((3, 2), (4, 9)):
        (got,) = session.run(None, {"x": _image(*size)})
        np.testing.assert_allclose(got, _reference(model, _image(*size)), rtol=1e-5)
    with pytest.raises(
        ModelError, match=r"does not hold for n=2, h=2, w=9: node 'pool' needs 3 <= h; compile the model for these"
    ):
        session.run(None, {"x": _image(2, 9)})


_ROUNDED_UP: list[Any] = [
    pytest.param("AveragePool", {"kernel_shape": [2, 2], "count_include_pad": 1}, id="mean"),
    pytest.param("AveragePool", {"kernel_shape": [3, 3], "pads": [0, 1, 1, 1]}, id="mean-without-padding"),
    pytest.param(
        "AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}, id="mean-with-padding"
    ),
    pytest.param("MaxPool", {"kernel_shape": [3, 3], "pads": [0, 0, 1, 1]}, id="maximum"),
    pytest.param("LpPool", {"kernel_shape": [3, 3]}, id="norm"),
]


@pytest.mark.parametrize(("op", "attributes"), _ROUNDED_UP)
def test_pool_equals_onnxruntime_at_every_size_when_windows_are_rounded_up(op: str, attributes: dict[str, Any]) -> None:
    model = _pool(op, [2, 3, "h", "w"], strides=[2, 2], ceil_mode=1, **attributes)
    session = hipdnn_mlir.compile(model).session()
    for size in ((7, 8), (8, 7), (8, 8), (9, 15)):
        (got,) = session.run(None, {"x": _image(*size)})
        np.testing.assert_allclose(got, _reference(model, _image(*size)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("op", "attributes"), _ROUNDED_UP[:-1])
def test_pool_is_that_of_rounding_down_when_no_window_reaches_beyond(op: str, attributes: dict[str, Any]) -> None:
    reach = attributes["kernel_shape"][0]
    pads = attributes.get("pads", [0] * 4)
    size = [8 + reach - pads[axis] - pads[axis + 2] for axis in range(2)]
    up, down = (
        hipdnn_mlir.compile(_pool(op, [2, 3, *size], strides=[2, 2], ceil_mode=mode, **attributes)) for mode in (1, 0)
    )
    assert [e.descriptors for e in up.model.executables] == [e.descriptors for e in down.model.executables]


def test_mean_of_dilated_windows_says_what_it_needs_when_sizes_are_open() -> None:
    model = _pool("AveragePool", [2, 3, "h", "w"], kernel_shape=[3, 2], dilations=[2, 1])
    with pytest.raises(
        UnsupportedError, match="means over dilated windows at sizes that are not known at compile time"
    ):
        hipdnn_mlir.compile(model)
    (got,) = hipdnn_mlir.compile(model, shapes={"x": (2, 3, 7, 8)}).session().run(None, {"x": _image(7, 8)})
    np.testing.assert_allclose(got, _reference(model, _image(7, 8)), rtol=1e-5, atol=1e-6)
