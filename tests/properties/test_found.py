"""What the properties found once, each as small as it came: models that were wrong, or ended the compiler."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import helper, parser

from .call import Call, Case
from .test_operators import check
from .worker import Worker

GRAPHS = {
    "columns of blocks, other channels than blocks": """[21] g (float[1,4,1,2] x) => (y) {
        y = DepthToSpace<blocksize=2, mode="CRD">(x) }""",
    "alpha without a bias": "[21] g (float[2,3] x, float[3,4] w) => (y) { y = Gemm<alpha=0.5>(x, w) }",
    "the defaults of an activation": "[22] g (double[3] x) => (y) { y = Selu(x) }",
    "an activation of an older operator set": "[21] g (float[3] x) => (y) { y = Softsign(x) }",
    "operands that broadcast to each other": """[21] g (float[3,1] x, float[1,4] y, float[5,1,1] z) => (a, b) {
        a = Max(x, y, z) b = Sum(x, y, z) }""",
    "a reduction of one number over no axes": """[18] g (float x) => (y) <int64[0] axes = {}> {
        y = ReduceLogSumExp<keepdims=0>(x, axes) }""",
    "the norm of one number": "[22] g (float[1] x) => (y) { y = LpNormalization<axis=0, p=2>(x) }",
    "the norm of single numbers": "[18] g (float[1,3] x) => (y) <int64[1] axes = {0}> { y = ReduceL2<keepdims=0>(x, axes) }",
    "the norm of f64": "[18] g (double[2,3] x) => (y) { y = ReduceL2(x) }",
    "a product over all axes in a type that hipDNN lacks": "[18] g (uint64[2,3] x) => (y) { y = ReduceProd(x) }",
    "a norm in f64": "[21] g (double[2,5] x, double[5] s) => (y) { y = LayerNormalization<stash_type=11, epsilon=0.25>(x, s) }",
    "an empty tensor of bf16": "[21] g (bfloat16[0] x) => (y) { y = Relu(x) }",
    "parameters that lie apart": """[21] g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[6] v) => (y)
        <int64[1] zero = {0}, int64[1] six = {6}, int64[1] two = {2}> {
        w = Abs(v) part = Slice(w, zero, six, zero, two) y = BatchNormalization(x, s, b, m, part) }""",
    "a bias that lies apart": """[21] g (float[2,3] x, float[3,4] w, float[8] b) => (y)
        <int64[1] zero = {0}, int64[1] eight = {8}, int64[1] two = {2}> {
        part = Slice(b, zero, eight, zero, two) m = MatMul(x, w) y = Add(m, part) }""",
    "a view under a cast": """[27] g (float[2,1,2] q, float[2,2,1] k, float[2,1,2] v) => (y, s) {
        t = Transpose<perm=[1, 2, 0]>(k) y, s = LinearAttention<q_num_heads=1, kv_num_heads=1, update_rule="linear">(q, t, v) }""",
    "pixels of the oldest operator sets": """[9] g (float[1,1,1,2] x) => (y) <float[4] scales = {1.0, 1.0, 1.0, 2.0}> {
        y = Upsample<mode="linear">(x, scales) }""",
    "a constant that onnx's evaluator normalizes wrongly": """[21] g () => (y) <float[1,3,1,1] x = {1.0, 2.0, 3.0}> {
        y = LRN<size=1, alpha=0.25>(x) }""",
    "a constant with windows that begin in front of it": """[22] g () => (y) <float[1,1,5] x = {1.0, 4.0, 2.0, 3.0, -2.0}> {
        y = MaxPool<auto_pad="SAME_LOWER", kernel_shape=[2], strides=[2]>(x) }""",
    "a constant whose shape is wanted": """[21] g () => (y) <float[2,3] x = {1.0, 2.0, 3.0, 6.0, 5.0, 4.0}> {
        y = Hardmax<axis=1>(x) }""",
}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


@pytest.mark.parametrize("name", GRAPHS)
def test_model_equals_reference_when_there_is(name: str, worker: Worker) -> None:
    opset, _, graph = GRAPHS[name].partition("] ")
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset.removeprefix("[")}]>\n{graph}')
    rng = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = [dim.dim_value for dim in kind.shape.dim]
        numbers = rng.integers(1, 4, dims) if kind.elem_type in _INTEGERS else rng.uniform(0.5, 2.0, dims)
        feeds[value.name] = np.asarray(numbers).astype(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    assert check(worker, Case(model, feeds, Call("", (), loose=16.0))) is None


_INTEGERS = frozenset(helper.np_dtype_to_tensor_dtype(np.dtype(name)) for name in ("int64", "uint64"))
