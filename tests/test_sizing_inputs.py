"""Inputs that sizes of results follow from: what contradicts the sizes that a model declares is refused when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

import hipdnn_mlir
from hipdnn_mlir_runtime.cli.inputs import Inputs
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

CASES: dict[str, tuple[str, list[int], list[list[int]], list[list[int]], list[list[int]], dict[str, Any]]] = {
    # operator, dims of x, dims of results; what the input may hold, and what not
    "Reshape": ("Reshape", [2, 6], [[4, 3]], [[4, 3], [-1, 3], [4, -1]], [[3, 4], [2, 6], [12, 1]], {}),
    "Reshape copying": ("Reshape", [2, 6], [[2, 3, 2]], [[2, 3, 2], [0, 3, -1]], [[2, 2, 3], [0, -1, 3]], {}),
    "Expand": ("Expand", [1, 4], [[2, 3, 4]], [[2, 3, 4], [2, 3, 1]], [[3, 3, 4], [2, 1, 4]], {}),
    "Expand of fewer": ("Expand", [2, 1], [[2, 3]], [[3]], [[4], [1]], {}),
    "Tile": ("Tile", [2, 3], [[2, 6]], [[1, 2]], [[2, 1], [1, 1]], {}),
    "Split": ("Split", [6, 2], [[3, 2], [3, 2]], [[3, 3]], [[2, 4]], {"axis": 0}),
    "Squeeze": ("Squeeze", [1, 3, 1], [[1, 3]], [[2], [-1]], [[0]], {}),
    "Unsqueeze": ("Unsqueeze", [3, 2], [[1, 3, 1, 2]], [[0, 2], [2, 0], [-4, -2]], [[0, 1], [2, 3]], {}),
    "ReduceSum": ("ReduceSum", [3, 2, 2], [[3, 2, 1]], [[2], [-1]], [[0], [1]], {}),
    "ReduceSum of ones": ("ReduceSum", [3, 1, 2], [[1, 1, 2]], [[0, 1], [1, 0]], [[0, 2]], {}),
    "ReduceMax without": ("ReduceMax", [3, 2, 4], [[2]], [[0, 2], [2, -3]], [[0, 1]], {"keepdims": 0}),
    "TopK": ("TopK", [3, 5], [[3, 3], [3, 3]], [[3]], [[2], [4]], {}),
    "CenterCropPad": ("CenterCropPad", [4, 6], [[2, 6]], [[2]], [[3], [4]], {"axes": [0]}),
}


def model_of(
    operator: str, dims: list[int], results: list[list[int]], count: int, attributes: dict[str, Any]
) -> onnx.ModelProto:
    kinds = [TensorProto.FLOAT, TensorProto.INT64 if operator == "TopK" else TensorProto.FLOAT]
    outputs = [
        helper.make_tensor_value_info(f"y{i}", kind, shape)
        for i, (kind, shape) in enumerate(zip(kinds, results, strict=False))
    ]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, dims),
        helper.make_tensor_value_info("s", TensorProto.INT64, [count]),
    ]
    node = helper.make_node(operator, ["x", "s"], [value.name for value in outputs], **attributes)
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("name", CASES)
def test_what_contradicts_the_declared_sizes_is_refused_and_the_rest_is_onnxruntimes(name: str) -> None:
    operator, dims, results, right, wrong, attributes = CASES[name]
    model = model_of(operator, dims, results, len(right[0]), attributes)
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    reference = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model).session()
    x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    drawn = Inputs(session).draw()["s"].tolist()
    for numbers in (*right, drawn):
        feeds = {"x": x, "s": np.array(numbers, np.int64)}
        for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    for numbers in wrong:
        with pytest.raises(
            ModelError, match="'s': it decides sizes of results, and the program was compiled for others"
        ):
            session.run(None, {"x": x, "s": np.array(numbers, np.int64)})


AMONG_CONSTANTS = {
    # text of the graph; what s may hold, and what not
    "Slice": (
        "(float[4,6] x, int64[2] s) => (float[2,3] y) <int64[2] a = {1, -3}> { y = Slice(x, a, s) }",
        [[3, 6], [-1, 6], [3, 7], [3, (1 << 63) - 1]],
        [[4, 6], [3, 5], [3, -1]],
    ),
    "Slice along an axis": (
        "(float[4,6] x, int64[1] s) => (float[4,2] y) <int64[1] a = {1}, int64[1] d = {-1}> { y = Slice(x, a, s, d) }",
        [[3], [-3]],
        [[4], [2]],
    ),
    "Slice in steps": (
        "(float[5,7] x, int64[2] s) => (float[2,3] y) <int64[2] a = {0, -1}, int64[2] d = {0, 1}, int64[2] t = {3, -2}>"
        " { y = Slice(x, a, s, d, t) }",
        [[4, 0], [99, -7], [-1, 1], [5, -6]],
        [[3, 0], [-2, 0], [5, 2], [5, -8]],
    ),
    "Slice of nothing": (
        "(float[4] x, int64[1] s) => (float[0] y) <int64[1] a = {2}> { y = Slice(x, a, s) }",
        [[2], [0], [-2], [-99]],
        [[3], [-1]],
    ),
    "Resize": (
        "(float[1,1,2,3] x, int64[2] s) => (float[1,1,4,6] y) { y = Resize<axes = [2, 3]>(x, , , s) }",
        [[4, 6]],
        [[2, 3], [4, 3]],
    ),
    "Range": (
        "(float[2] x, int64[1] s) => (float[2] z, int64[3] y)"
        " <int64 a = {1}, int64 t = {4}> { z = Relu(x)\n e = Squeeze(s)\n y = Range(a, e, t) }",
        [[10], [13]],
        [[9], [14], [-1]],
    ),
    "AffineGrid": (
        "(float[2,2,3] x, int64[4] s) => (float[2,3,2,2] y) { y = AffineGrid(x, s) }",
        [[2, 1, 3, 2], [2, 7, 3, 2]],
        [[2, 1, 2, 3], [1, 1, 3, 2]],
    ),
    "Reshape by a computed shape": (
        "(float[2,6] x, int64[1] s) => (float[4,3] y) <int64[1] k = {3}> { c = Concat<axis = 0>(s, k)\n y = Reshape(x, c) }",
        [[4], [-1]],
        [[3], [2]],
    ),
    "Expand by a computed shape": (
        "(float[1,2] x, int64[3] s) => (float[3,2] y) <int64[2] at = {2, 0}, int64 k = {1}>"
        " { g = Gather(s, at)\n c = Add(k, g)\n y = Expand(x, c) }",
        [[1, 99, 2], [0, -99, 2]],
        [[1, 1, 3], [2, 1, 2]],
    ),
}


@pytest.mark.parametrize("name", AMONG_CONSTANTS)
def test_ends_and_sizes_that_contradict_the_declared_ones_are_refused(name: str) -> None:
    text, right, wrong = AMONG_CONSTANTS[name]
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> g {text}')
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    reference = ort.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model).session()
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
    for numbers in (*right, Inputs(session).draw()["s"].tolist()):
        feeds = {"x": x, "s": np.array(numbers, np.int64)}
        for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    for numbers in wrong:
        with pytest.raises(ModelError, match="'s': it decides sizes of results"):
            session.run(None, {"x": x, "s": np.array(numbers, np.int64)})


UNCOMPARED = {
    "Range of floats": "(float s) => (float[4] y) <float a = {0}, float d = {1}> { y = Range(a, s, d) }",
    "Range from a start": "(int64 s) => (int64[4] y) <int64 e = {4}, int64 d = {1}> { y = Range(s, e, d) }",
    "a product": "(float[1,4] x, int64[2] s) => (float[3,4] y) { c = Mul(s, s)\n y = Expand(x, c) }",
    "AffineGrid": "(float[1,2,3] x, int64[4] s) => (float[1,4,5,2] y) { c = Abs(s)\n y = AffineGrid(x, c) }",
    "CenterCropPad": "(float[4] x, int64[1] s) => (float[2] y) { c = Abs(s)\n y = CenterCropPad(x, c) }",
    "HannWindow": "(int64 s) => (float[4] y) { c = Abs(s)\n y = HannWindow(c) }",
    "Col2Im": "(float[1,4,9] x, int64[2] s, int64[2] b) => (float[1,1,4,4] y) { c = Abs(s)\n y = Col2Im(x, c, b) }",
}


@pytest.mark.parametrize("name", UNCOMPARED)
def test_what_decides_sizes_and_cannot_be_compared_is_refused_when_it_is_compiled(name: str) -> None:
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> g {UNCOMPARED[name]}')
    with pytest.raises(UnsupportedError, match=r"decides its sizes, and no run|is not known at compile time"):
        hipdnn_mlir.compile(model)
