"""Dims of the same name: of one size where the model's operators need it, else of sizes of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError

PART = "float[n,3] y, float[n,4] v) { y = Relu(x) v = Relu(z) }"
OWN: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "two inputs apart": (f"g (float[n,3] x, float[n,4] z) => ({PART}", {"x": (2, 3), "z": (5, 4)}),
    "two dims of one input": ("g (float[n,n] x) => (float[n,n] y) { y = Relu(x) }", {"x": (2, 5)}),
    "pairs that are added": (
        "g (float[n,n] x, float[n,n] z) => (float[n,n] y) { y = Add(x, z) }",
        {"x": (2, 5), "z": (2, 5)},
    ),
    "an image": ("g (float[n,3,n,n] x) => (float[n,3,n,n] y) { y = Sigmoid(x) }", {"x": (2, 3, 4, 8)}),
}
"""Graph and sizes that a run of ONNX Runtime takes."""
SHARED = {
    "added": "g (float[n,3] x, float[n,3] z) => (float[n,3] y) { y = Add(x, z) }",
    "multiplied": "g (float[3,n] x, float[n,4] z) => (float[3,4] y) { y = MatMul(x, z) }",
    "joined": "g (float[n,3] x, float[n,4] z) => (float[n,7] y) { y = Concat<axis=1>(x, z) }",
    "with itself": "g (float[n,n] x) => (float[n,n] y) { y = MatMul(x, x) }",
}


def _model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 17]> {text}')


def _feeds(sizes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    return {name: np.random.default_rng(len(name)).standard_normal(dims, np.float32) for name, dims in sizes.items()}


def _named(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    for dim in (dim for value in model.graph.input for dim in value.type.tensor_type.shape.dim):
        if dim.dim_param:
            dim.dim_param = name
    return model


@pytest.mark.parametrize("case", OWN)
def test_dims_of_one_name_have_their_own_sizes_when_the_operators_take_them(case: str) -> None:
    text, sizes = OWN[case]
    model, feeds = _model(text), _feeds(sizes)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    reference = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    for got, want in zip(
        hipdnn_mlir.compile(model).session().run(None, feeds), reference.run(None, feeds), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("case", SHARED)
def test_dims_of_one_name_are_one_size_when_the_operators_need_it(case: str) -> None:
    assert hipdnn_mlir.compile(_model(SHARED[case])).session().symbols == ["n"]


@pytest.mark.parametrize("name", ["?", "-1", ""])
def test_dims_have_their_own_sizes_when_their_name_is_none(name: str) -> None:
    model = _named(_model("g (float[n,3,n,n] x) => (float[a,3,b,c] y) { y = Relu(x) }"), name)
    session = hipdnn_mlir.compile(model).session()
    assert session.symbols == ["x.0", "x.2", "x.3"]
    assert session.run(None, _feeds({"x": (2, 3, 4, 8)}))[0].shape == (2, 3, 4, 8)


@pytest.mark.parametrize(
    "options", [{"shapes": {"n": "?"}}, {"shapes": {"x": ("n", 3)}}, {"buckets": {"n": [4, 8]}}], ids=str
)
def test_dims_of_one_name_are_one_size_when_the_user_gives_the_name(options: dict[str, Any]) -> None:
    text, sizes = OWN["two inputs apart"]
    session = hipdnn_mlir.compile(_model(text), **options).session()
    assert session.symbols == ["n"]
    with pytest.raises(ModelError, match=r"'z', dimension 0 \('n'\): expected 2 as in 'x', dimension 0, got 5"):
        session.run(None, _feeds(sizes))


def test_dims_without_a_name_are_one_size_when_the_operators_need_it() -> None:
    session = hipdnn_mlir.compile(_named(_model(OWN["pairs that are added"][0]), "?")).session()
    assert session.symbols == ["x.0", "x.1"]
    assert session.run(None, _feeds(OWN["pairs that are added"][1]))[0].shape == (2, 5)


def test_a_number_for_a_name_holds_for_all_its_dims() -> None:
    session = hipdnn_mlir.compile(_model(OWN["two inputs apart"][0]), shapes={"n": 4}).session()
    assert [port.shape for port in session.inputs] == [(4, 3), (4, 4)]


@pytest.mark.parametrize("names", [("?", "?"), ("d", "d")])
def test_sizes_given_for_one_input_hold_when_its_dims_share_a_name(names: tuple[str, str]) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [*names])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [*names])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "one", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    values = np.random.default_rng(0).standard_normal((3, 5), np.float32)
    (got,) = hipdnn_mlir.compile(model, shapes={"x": [3, 5]}).session().run(None, {"x": values})
    np.testing.assert_array_equal(got, np.maximum(values, 0))
