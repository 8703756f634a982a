"""Models at the edges of what ONNX allows: against ONNX Runtime, or refused in one clear line."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError


def _model(nodes, shape, outputs, initializers=(), out_shape=None) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, out_shape or shape) for name in outputs]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "edges", inputs, values, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _scalar(name: str, number: float) -> onnx.TensorProto:
    return numpy_helper.from_array(np.float32(number), name)


def test_clip_returns_the_upper_bound_when_bounds_are_the_wrong_way_round() -> None:
    bounds = [_scalar("low", 0.5), _scalar("high", -0.5)]
    model = _model([helper.make_node("Clip", ["x", "low", "high"], ["y"])], [3, 5], ["y"], bounds)
    x = np.random.default_rng(0).standard_normal((3, 5), np.float32)
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": x})
    reference = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(got, reference.run(None, {"x": x})[0])


def test_whole_slice_is_its_operand_when_both_are_outputs() -> None:
    ends = [numpy_helper.from_array(np.array([end]), name) for name, end in (("first", 0), ("last", 100))]
    nodes = [helper.make_node("Exp", ["x"], ["y"]), helper.make_node("Slice", ["y", "first", "last", "first"], ["z"])]
    x = np.random.default_rng(0).standard_normal(12, np.float32)
    y, z = hipdnn_mlir.compile(_model(nodes, [12], ["y", "z"], ends)).session().run(None, {"x": x})
    np.testing.assert_array_equal(y, z)
    np.testing.assert_allclose(z, np.exp(x.astype(np.float64)), rtol=1e-6)


def test_output_is_refused_when_it_is_listed_twice() -> None:
    with pytest.raises(ModelError, match="'y' is listed twice"):
        hipdnn_mlir.compile(_model([helper.make_node("Relu", ["x"], ["y"])], [2, 3], ["y", "y"]))


def test_initializer_is_named_when_its_data_is_too_short() -> None:
    broken = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2, 3], raw_data=b"abc")
    with pytest.raises(ModelError, match="initializer 'w' is broken"):
        hipdnn_mlir.compile(_model([helper.make_node("Add", ["x", "w"], ["y"])], [2, 3], ["y"], [broken]))


def test_declared_output_shape_gives_way_when_an_input_shape_is_given() -> None:
    model = _model([helper.make_node("Relu", ["x"], ["y"])], [60, 3], ["y"])
    session = hipdnn_mlir.compile(model, shapes={"x": (2, 3)}).session()
    assert session.outputs[0].shape == (2, 3)


@pytest.mark.parametrize("size", [-1, 1 << 70])
def test_shape_is_refused_when_it_cannot_be_one(size: int) -> None:
    model = _model([helper.make_node("Relu", ["x"], ["y"])], [60, 3], ["y"])
    with pytest.raises(ModelError, match="cannot have the shape"):
        hipdnn_mlir.compile(model, shapes={"x": (size, 3)})


def test_matrix_product_is_refused_when_a_dim_overflows_the_library() -> None:
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    with pytest.raises(HipdnnMlirError, match=r"at most 2\^40 elements"):
        hipdnn_mlir.compile(_model([node], [1 << 40, 4], ["y"], [weight]))
