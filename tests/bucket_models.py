"""Models whose dynamic dimensions may be padded to buckets, and such that mix padding in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper, parser

from models import encoder

SIZES = (1, 2, 3, 5, 8, 6, 4, 7)
BUCKETS = [2, 5, 8]
RELU = "g (float[b,3] x) => (float[b,3] y) { y = Relu(x) }"
ADD = "g (float[b,3] x, float[b,3] z) => (float[b,3] y) { y = Add(x, z) }"


def model(text: str, opset: int = 21, **weights: np.ndarray) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')
    made.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return made


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


def feeds_of(session: Any, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Random inputs; integers are 1 to 3, so that they divide and are positions."""
    rng = np.random.default_rng(sum(sizes.values()))
    feeds = {}
    for port in session.inputs:
        dims = [sizes.get(str(dim), dim) for dim in port.shape]
        draw = rng.standard_normal(dims) if port.numpy_dtype.kind == "f" else rng.integers(1, 4, dims)
        feeds[port.name] = np.asarray(draw).astype(port.numpy_dtype)
    return feeds


def reference(proto: onnx.ModelProto) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    return ort.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def check(want: ort.InferenceSession, session: Any, feeds: Mapping[str, np.ndarray]) -> None:
    results = session.run(None, feeds)
    told = session.output_shapes({name: array.shape for name, array in feeds.items()})
    assert list(told.values()) == [array.shape for array in results]
    for got, expected in zip(results, want.run(None, feeds), strict=True):
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def open_encoder() -> onnx.ModelProto:
    proto = encoder(layers=1, s=6, d=16, heads=2, ffn=24)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "b"
    del proto.graph.value_info[:]
    return proto


SAFE: dict[str, tuple[onnx.ModelProto, str]] = {
    "perceptron": (
        model(
            "g (float[b,8] x) => (float[b,4] y) { h = Gemm(x, w, c) r = Relu(h) t = MatMul(r, v) y = Softmax(t) }",
            w=floats(8, 8), c=floats(8), v=floats(8, 4),
        ),
        "b",
    ),
    "convolutions": (
        model(
            """g (float[b,3,12,12] x) => (float[b,5] y) <int64[2] s = {2, 3}> {
            h = Conv<pads=[1,1,1,1]>(x, k) n = BatchNormalization(h, g1, g2, g3, g4) r = Relu(n)
            p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) a = GlobalAveragePool(p) f = Flatten(a) y = Gemm(f, w) }""",
            k=floats(4, 3, 3, 3), g1=floats(4), g2=floats(4), g3=floats(4), g4=abs(floats(4)) + 1, w=floats(4, 5),
        ),
        "b",
    ),
    "encoder": (open_encoder(), "b"),
    "batch merged into rows": (
        model(
            """g (float[b,s,8] x) => (float[n,8] y) <int64[2] rows = {-1, 8}> { r = Reshape(x, rows) y = MatMul(r, w) }""",
            w=floats(8, 8),
        ),
        "b",
    ),
    "embedding and positions": (
        model(
            """g (int64[b,s] ids) => (float[b,s,8] y) <int64[1] zero = {0}> {
            d = Shape<start=1, end=2>(ids) e = Gather(words, ids) p = Slice(table, zero, d, zero) y = Add(e, p) }""",
            words=floats(16, 8), table=floats(300, 8),
        ),
        "s",
    ),
    "positions counted": (
        model(
            """g (float[s,3] x) => (float[s,3] y) <int64 zero = {0}, int64 one = {1}, int64[2] column = {-1, 1}> {
            d = Shape(x) n = Gather<axis=0>(d, zero) r = Range(zero, n, one) f = Cast<to=1>(r) c = Reshape(f, column)
            y = Add(x, c) }"""
        ),
        "s",
    ),
    "running sum": (
        model("g (float[s,3] x) => (float[s,3] y) <int64 axis = {0}> { y = CumSum(x, axis) }"),
        "s",
    ),
    "integer division": (
        model("g (int64[b,3] x, int64[b,3] z) => (int64[b,3] y) { y = Div(x, z) }"),
        "b",
    ),
    "a size written out": (
        model(
            """g (float[b,2,3] x, float[b,2,3] z) => (float[b,6] y) <int64 zero = {0}, int64[1] six = {6}, int64[1] first = {0}> {
            d = Shape(x) n = Gather<axis=0>(d, first) o = ConstantOfShape(n) u = Unsqueeze(o, six0) t = Concat<axis=0>(n, six)
            r = Reshape(x, t) y = Add(r, u) }""",
            six0=np.array([1]),
        ),
        "b",
    ),
}  # fmt: skip

UNSAFE = {
    "softmax over the sequence": (
        """g (float[b,s,8] x) => (float[b,s,s] y) { k = Transpose<perm=[0,2,1]>(x) p = MatMul(x, k) y = Softmax(p) }""",
        "s", "Softmax_2", "mixes elements along dimension 2",
    ),
    "attention with a mask": (
        """g (float[b,2,s,4] q, float[b,2,s,4] k, float[b,2,s,4] v) => (float[b,2,s,4] y) {
        y = Attention<is_causal=1>(q, k, v) }""",
        "s", "Attention_0", "mixes elements",
    ),
    "mean over the batch": (
        "g (float[b,8] x) => (float[1,8] y) <int64[1] a = {0}> { y = ReduceMean(x, a) }",
        "b", "ReduceMean_0", "mixes elements along dimension 0",
    ),
    "mean by a size": (
        """g (float[b,8] x) => (float[b,8] y) <int64 zero = {0}> {
        d = Shape(x) n = Gather<axis=0>(d, zero) f = Cast<to=1>(n) y = Div(x, f) }""",
        "b", "Div_3", "computes with a number that depends on 'b'",
    ),
    "sum of everything": (
        "g (float[b,8] x) => (float y) { y = ReduceSum<keepdims=0>(x) }", "b", "ReduceSum_0", "mixes elements"),
    "last position": (
        """g (float[s,8] x) => (float[1,8] y) <int64[1] last = {-1}, int64[1] far = {9223372036854775807}, int64[1] zero = {0}> {
        y = Slice(x, last, far, zero) }""",
        "s", "Slice_0", "'s'",
    ),
    "what is past and what is new": (
        "g (float[p,8] c, float[s,8] x) => (float[t,8] y) { y = Concat<axis=0>(c, x) }", "p", "Concat_0", "concatenates dimension 0"),
    "the best of the batch": (
        "g (float[b,8] x) => (int64[1,8] y) { y = ArgMax<axis=0>(x) }", "b", "ArgMax_0", "mixes elements"),
    "scale of everything": (
        """g (float[b,8] x) => (uint8[b,8] y, float scale, uint8 zero) { y, scale, zero = DynamicQuantizeLinear(x) }""",
        "b", "DynamicQuantizeLinear_0", "mixes elements",
    ),
    "convolution along the sequence": (
        "g (float[1,3,s] x) => (float[1,4,s] y) { y = Conv<pads=[1,1]>(x, filter) }", "s", "Conv_0", "mixes elements along dimension 2"),
    "backwards": (
        """g (float[s,8] x) => (float[s,8] y) <int64[1] last = {-1}, int64[1] far = {-9223372036854775807}, int64[1] zero = {0}> {
        y = Slice(x, last, far, zero, last) }""",
        "s", "Slice_0", "'s'",
    ),
}  # fmt: skip
