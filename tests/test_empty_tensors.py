"""Tensors without elements: models compile around them and equal ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError

GRAPHS = {
    "every result is empty": "g (float[0,8] x) => (float[0,8] y, float[0,8] z, float[0,8] x) { y = Relu(x) z = Tanh(x) }",
    "no image": """g (float[0,3,8,8] x) => (float[0,4] y) {
        c = Conv(x, w) r = Relu(c) p = GlobalAveragePool(r) y = Flatten(p) }""",
    "sums over nothing": """g (float[0,8] x) => (float y, float[0] z) {
        one = Constant<value_ints=[1]>() y = ReduceSum<keepdims=0>(x) z = ReduceMean<keepdims=0>(x, one) }""",
    "softmax of nothing": "g (float[4,0] x) => (float[4,0] y) { y = Softmax<axis=1>(x) }",
    "parts of a concatenation": """g (float[4,0] x, float[4,8] q) => (float[4,8] y) {
        a = Concat<axis=1>(x, q, x) y = Relu(a) }""",
    "one part of a split": """g (float[4,8] x) => (float[4,0] y, float[4,8] z) {
        s = Constant<value_ints=[0, 8]>() y, r = Split<axis=1>(x, s) z = Relu(r) }""",
    "a slice of nothing": """g (float[4,8] x) => (float[0,8] y, float[4,8] z) {
        s = Constant<value_ints=[3]>() y = Slice(x, s, s) z = Relu(x) }""",
    "a border around nothing": """g (float[2,0] x) => (float[2,6] y) {
        p = Constant<value_ints=[0, 3, 0, 3]>() y = Pad(x, p) }""",
    "other types": """g (float[0,8] x) => (float16[0,8] y, bool[0,8] b, int64[0,8] i) {
        y = Cast<to=10>(x) b = Greater(x, x) i = Cast<to=7>(x) }""",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_model_equals_onnxruntime_when_there_is(name: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{GRAPHS[name]}')
    rng = np.random.default_rng(0)
    model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal((4, 3, 3, 3), np.float32), "w"))
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {port.name: rng.standard_normal(port.shape, np.float32) for port in reference.get_inputs()}
    got, want = hipdnn_mlir.compile(model).session().run(None, feeds), reference.run(None, feeds)
    for one, other in zip(got, want, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        """g (float[n,3] x) => (float[n,6] y) {
            one = Constant<value_int=1>() s = CumSum(x, one) y = Concat<axis=1>(x, s) }""",
        """g (float[n,3] x) => (float[n,3] y, float[m,3] z) {
            y = Relu(x) n = Shape<start=0, end=1>(y) two = Constant<value_ints=[2]>() h = Div(n, two)
            first = Constant<value_ints=[0]>() z = Slice(y, h, n, first) }""",
    ],
    ids=["parts that a kernel writes", "a copy"],
)
def test_nothing_is_moved_when_a_dynamic_dimension_is_0(graph: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{graph}')
    got = hipdnn_mlir.compile(model).session().run(None, {"x": np.zeros((0, 3), np.float32)})
    assert [one.shape[0] for one in got] == [0] * len(got)


@pytest.mark.parametrize(
    ("graph", "made_by"),
    [
        ("g (float[2,3,n] x) => (float y) { y = ReduceSum<keepdims=0>(x) }", "reduce"),
        ("g (float[2,3,n] x) => (float[2,3,1] y) { y = GlobalAveragePool(x) }", "pool"),
        ("g (float[4,n] x, float[n,4] w) => (float[4,4] y) { y = MatMul(x, w) }", "matmul"),
    ],
)
def test_a_run_whose_results_would_be_made_of_nothing_is_an_error(graph: str, made_by: str) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>\n{graph}')
    session = hipdnn_mlir.compile(model).session()
    feeds = {
        port.name: np.ones([size if isinstance(size, int) else 0 for size in port.shape], np.float32)
        for port in session.inputs
    }
    with pytest.raises(ModelError, match=rf"n=0: .*made of no elements \({made_by}\); sizes of at least 1 are needed"):
        session.run(None, feeds)
