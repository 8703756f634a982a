"""Operators over one long row: those that are one graph on the CPU cannot be given in parts. Against ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from models import GraphBuilder

DIMS = [1, 16, 64, 48]
"""More elements than the CPU's engine of rows takes as one row of extremes."""


def norm(operator: str) -> onnx.ModelProto:
    b = GraphBuilder(operator, opset=21)
    x = b.input("x", DIMS)
    one, zero = b.normal([1], 1.0), b.normal([1], 1.0)
    channels = [b.normal([DIMS[1]], 1.0) for _ in range(2)]
    whole = [b.normal(DIMS[1:], 1.0) for _ in range(2)]
    match operator:
        case "InstanceNormalization":
            row = b.op("Reshape", x, b.constant([1, 1, -1], np.int64))
            y = b.op("Reshape", b.op(operator, row, one, zero), b.constant(DIMS, np.int64))
        case "GroupNormalization":
            y = b.op(operator, x, *channels, num_groups=1)
        case "LayerNormalization":
            y = b.op(operator, x, *whole, axis=1)
        case "MeanVarianceNormalization":
            y = b.op(operator, x, axes=[0, 1, 2, 3])
        case _:
            row = b.op("Reshape", x, b.constant([1, -1], np.int64))
            y = b.op("Reshape", b.op(operator, row, axis=1), b.constant(DIMS, np.int64))
    return b.model({y: DIMS})


@pytest.mark.parametrize(
    "operator",
    [
        "InstanceNormalization",
        "GroupNormalization",
        "LayerNormalization",
        "MeanVarianceNormalization",
        "Softmax",
        "LogSoftmax",
        "LpNormalization",
    ],
)
def test_one_row_of_many_elements_equals_onnxruntime(operator: str) -> None:
    model = norm(operator)
    x = np.random.default_rng(3).standard_normal(DIMS, np.float32)
    session = hipdnn_mlir.compile(model).session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (got,), (want,) = session.run(None, {"x": x}), reference.run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-6 + 1e-5 * float(np.abs(want).max()))


def test_dynamic_heads_of_any_length_are_taken() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[2,4,d] q, float[2,4,d] v) => (float[2,4,d] y) {
        t = Transpose<perm=[0,2,1]>(q) s = MatMul(q, t) p = Softmax<axis=-1>(s) y = MatMul(p, v) }""")
    q, v = np.random.default_rng(3).standard_normal((2, 2, 4, 60_000), np.float32)
    q /= 200
    program = hipdnn_mlir.compile(model)
    assert len(program.model.steps) == 1
    weights = np.exp(q.astype(np.float64) @ q.transpose(0, 2, 1))
    want = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(program.session().run(None, {"q": q, "v": v})[0], want, rtol=1e-4, atol=1e-4)
    assert len(hipdnn_mlir.compile(model, shapes={"d": 60_000}).model.steps) == 3  # which is faster


def test_a_dynamic_row_of_any_length_is_taken() -> None:
    b = GraphBuilder("row", opset=21)
    session = hipdnn_mlir.compile(b.model({b.op("Softmax", b.input("x", ["n"]), axis=0): ["n"]})).session()
    x = np.random.default_rng(3).standard_normal(9_000_000, np.float32)
    want = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(session.run(None, {"x": x})[0], want / want.sum(), rtol=1e-5)
