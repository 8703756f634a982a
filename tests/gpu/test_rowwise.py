"""Generated kernels of graphs with reductions, against float64 NumPy: short and long rows, either layout, every type."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, row, run_graph
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R
from hipdnn_mlir_runtime.dtypes import BOOL, F32
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype

ERROR = {"f32": 2e-6, "f64": 1e-14, "f16": 1e-3, "bf16": 8e-3}
CHANNELS_LAST = "channels last"


def normal(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(numpy_dtype(dtype))


def channels_last(array: Array) -> Array:
    """The same values with dim 1 the fastest in memory."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, 1, -1)), -1, 1)


def close(got: Array, want: Array, dtype: str, scale: float = 1) -> None:
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=scale * ERROR[dtype], atol=scale * ERROR[dtype])


def softmax(x: Array, axis: int) -> Array:
    wide = x.astype(np.float64)
    raised = np.exp(wide - wide.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "f64"])
@pytest.mark.parametrize("shape", [(5, 3), (70, 8), (3, 64), (7, 100), (2, 3, 384), (3, 1000), (1, 6001), (2, 20000)])
def test_softmax_equals_float64(shape: tuple[int, ...], dtype: str, arch: str) -> None:
    x, out = normal(dtype, shape), TensorSpec(dtype, shape)
    (got,) = run_graph(row("aten.softmax.int", ..., -1, None, results=[out]), [x], [out], arch)
    close(got, softmax(x, -1), dtype)


def test_softmax_has_few_threads_idle_when_many_rows() -> None:
    shape = (2000, 768)
    x, out = normal("f16", shape), TensorSpec("f16", shape)
    (got,) = run_graph(row("aten.softmax.int", ..., -1, None, results=[out]), [x], [out])
    close(got, softmax(x, -1), "f16")


@pytest.mark.parametrize("arch", ["sm_80", "gfx90a"])
@pytest.mark.parametrize("shape", [(2, 5, 7), (2, 19, 64), (1, 300, 33), (3, 1, 8)])
def test_softmax_equals_float64_when_over_channels(shape: tuple[int, ...], arch: str) -> None:
    x, out = normal("f32", shape), TensorSpec("f32", shape)
    (got,) = run_graph(row("aten.softmax.int", ..., 1, None, results=[out]), [x], [out], arch)
    close(got, softmax(x, 1), "f32")


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("layout", ["packed", CHANNELS_LAST])
@pytest.mark.parametrize("shape", [(1, 64, 7, 7), (2, 33, 5, 3), (3, 2, 40, 40), (1, 2048, 7, 7)])
def test_global_average_equals_float64(shape: tuple[int, ...], layout: str, dtype: str) -> None:
    x = normal(dtype, shape)
    x = channels_last(x) if layout == CHANNELS_LAST else x
    out = TensorSpec(dtype, (*shape[:2], 1, 1))
    (got,) = run_graph(lambda e, v: e.reduction(R.AVG, v, (2, 3)), [x], [out])
    close(got, x.astype(np.float64).mean((2, 3), keepdims=True), dtype)


REDUCTIONS = {
    R.ADD: np.sum, R.MUL: np.prod, R.MIN: np.min, R.MAX: np.max, R.AVG: np.mean,
    R.NORM1: lambda x, axis, keepdims: np.abs(x).sum(axis, keepdims=keepdims),
    R.NORM2: lambda x, axis, keepdims: np.sqrt((x * x).sum(axis, keepdims=keepdims)),
    R.AMAX: lambda x, axis, keepdims: np.abs(x).max(axis, keepdims=keepdims),
    R.MUL_NO_ZEROS: lambda x, axis, keepdims: np.where(x == 0, 1, x).prod(axis, keepdims=keepdims),
}  # fmt: skip


@pytest.mark.parametrize("name", ["sm_90", "gfx90a", "gfx1100"])
@pytest.mark.parametrize(
    ("channels", "size", "blocks", "threads"), [(32, 112, 2, 1024), (96, 56, 6, 1024), (480, 14, 8, 256)]
)
def test_means_over_many_pixels_have_many_threads(
    channels: int, size: int, blocks: int, threads: int, name: str
) -> None:
    x, out = channels_last(normal("f16", (1, channels, size, size))), TensorSpec("f16", (1, channels, 1, 1))
    body = row("aten.mean.dim", ..., [2, 3], True, None, results=[out])
    made = generate_graph(graph_of(body, [x], [out]), find_architecture(name))
    assert not isinstance(made, Reject)
    assert (made.grid[0], made.block[0]) == (blocks, threads)
    (got,) = run_graph(body, [x], [out], name)
    close(got, x.astype(np.float64).mean((2, 3), keepdims=True), "f16")


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reduction_equals_float64(operator: R, axes: tuple[int, ...]) -> None:
    x = (1 + normal("f32", (6, 5, 36)) / 8).astype(np.float32)
    x[0, 0, 3] = 0
    out = TensorSpec("f32", tuple(1 if axis in axes else size for axis, size in enumerate(x.shape)))
    (got,) = run_graph(lambda e, v: e.reduction(operator, v, axes), [x], [out])
    close(got, REDUCTIONS[operator](x.astype(np.float64), axis=axes, keepdims=True), "f32", 10)


@pytest.mark.parametrize(("shape", "axis"), [((3000, 40), 0), ((2, 5000, 6), 1), ((4096, 64), 0)])
def test_few_long_rows_beside_each_other_are_summed(shape: tuple[int, ...], axis: int) -> None:
    x = normal("f32", shape)
    out = TensorSpec("f32", tuple(1 if dim == axis else size for dim, size in enumerate(shape)))
    (got,) = run_graph(lambda e, v: e.reduction(R.ADD, v, (axis,)), [x], [out])
    close(got, x.astype(np.float64).sum(axis, keepdims=True), "f32", 20)


@pytest.mark.parametrize("dtype", ["i32", "i64", "i8"])
def test_integers_are_reduced(dtype: str) -> None:
    x = np.random.default_rng(1).integers(-9, 9, (4, 300)).astype(numpy_dtype(dtype))
    out = TensorSpec(dtype, (4, 1))
    for operator, reference in ((R.MAX, np.max), (R.MIN, np.min), (R.ADD, np.sum)):
        (got,) = run_graph(lambda e, v, o=operator: e.reduction(o, v, (1,)), [x], [out])
        np.testing.assert_array_equal(got, reference(x, axis=1, keepdims=True).astype(x.dtype))


def layer_norm(x: Array, scale: Array, bias: Array, axes: tuple[int, ...]) -> Array:
    x = x.astype(np.float64)
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5) * scale + bias


@pytest.mark.parametrize("arch", ["sm_90", "gfx1100", "gfx942"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 768), (4, 1024), (1, 30000), (300, 96)])
def test_layer_norm_equals_float64(shape: tuple[int, ...], dtype: str, arch: str) -> None:
    x, scale, bias = normal(dtype, shape), normal("f32", shape[-1:], 2), normal("f32", shape[-1:], 3)
    out = TensorSpec(dtype, shape)
    body = row("aten.layer_norm", ..., [shape[-1]], ..., ..., 1e-5, True, results=[out])
    (got,) = run_graph(body, [x, scale, bias], [out], arch)
    close(got, layer_norm(x, scale, bias, (-1,)), dtype, 2)


def test_layer_norm_with_what_follows_is_one_kernel() -> None:
    x, residual = normal("f32", (6, 40)), normal("f32", (6, 40), 4)
    out = TensorSpec("f32", (6, 40))

    def body(e: Emitter, a: Value, b: Value) -> list[Value]:
        total = e.pointwise(P.ADD, a, b)
        mean = e.reduction(R.AVG, total, (1,))
        centred = e.pointwise(P.SUB, total, mean)
        variance = e.reduction(R.AVG, e.pointwise(P.MUL, centred, centred), (1,))
        inverse = e.pointwise(P.RSQRT, e.pointwise(P.ADD, variance, e.scalar(1e-5, F32)))
        return [e.pointwise(P.GELU_FWD, e.pointwise(P.MUL, centred, inverse)), total, mean]

    got = run_graph(body, [x, residual], [out, out, TensorSpec("f32", (6, 1))])
    total = x.astype(np.float64) + residual
    y = layer_norm(total, np.ones(40), np.zeros(40), (1,))
    close(got[0], 0.5 * y * (1 + np.vectorize(math.erf)(y / math.sqrt(2))), "f32", 4)
    close(got[1], total, "f32")
    close(got[2], total.mean(1, keepdims=True), "f32")


@pytest.mark.parametrize("shape", [(3, 7), (2, 5, 4096), (9, 11, 64)])
def test_rms_norm_equals_float64(shape: tuple[int, ...]) -> None:
    x, scale = normal("f16", shape), normal("f16", shape[-1:], 2)
    out = TensorSpec("f16", shape)
    (got,) = run_graph(row("aten.rms_norm", ..., [shape[-1]], ..., 1e-6, results=[out]), [x, scale], [out])
    wide = x.astype(np.float64)
    want = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * scale.astype(np.float64)
    close(got, want, "f16", 2)


@pytest.mark.parametrize("layout", ["packed", CHANNELS_LAST])
def test_batch_norm_equals_float64(layout: str) -> None:
    x = normal("f32", (2, 16, 5, 6))
    x = channels_last(x) if layout == CHANNELS_LAST else x
    scale, bias, mean = (normal("f32", (16,), seed) for seed in (2, 3, 4))
    variance = np.abs(normal("f32", (16,), 5))
    out = TensorSpec("f32", x.shape, tuple(step // 4 for step in x.strides))
    body = row("aten.batch_norm", ..., ..., ..., ..., ..., False, 0.1, 1e-5, False, results=[out])
    (got,) = run_graph(body, [x, scale, bias, mean, variance], [out])
    s, b, m, v = (a.astype(np.float64)[:, None, None] for a in (scale, bias, mean, variance))
    close(got, (x - m) / np.sqrt(v + 1e-5) * s + b, "f32", 3)


ACTIVATIONS = {
    P.SIGMOID_FWD: lambda x: 1 / (1 + np.exp(-x)), P.SWISH_FWD: lambda x: x / (1 + np.exp(-x)), P.TANH_FWD: np.tanh,
    P.ELU_FWD: lambda x: np.where(x > 0, x, np.expm1(x)), P.SOFTPLUS_FWD: lambda x: np.logaddexp(0, x),
    P.RELU_FWD: lambda x: np.maximum(x, 0),
    P.GELU_APPROX_TANH_FWD: lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    P.GELU_FWD: lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("mode", ACTIVATIONS)
def test_activation_equals_float64(mode: P, dtype: str) -> None:
    x = (3 * normal(dtype, (501,))).astype(numpy_dtype(dtype))
    (got,) = run_graph(lambda e, v: e.pointwise(mode, v), [x], [TensorSpec(dtype, x.shape)])
    close(got, ACTIVATIONS[mode](x.astype(np.float64)), dtype, 2)


def test_an_operand_may_be_read_twice_by_a_node() -> None:
    x = np.array([1, np.nan, -3], np.float32)
    (got,) = run_graph(lambda e, v: e.pointwise(P.CMP_NEQ, v, v, dtype=BOOL), [x], [TensorSpec("bool", (3,))])
    np.testing.assert_array_equal(got, np.isnan(x))
    (got,) = run_graph(
        lambda e, v: e.reduction(R.ADD, e.pointwise(P.MUL, v, v), (0,)), [x[::2]], [TensorSpec("f32", (1,))]
    )
    np.testing.assert_array_equal(got, [10])


def test_clipped_relu_has_slope_below() -> None:
    x = np.linspace(-4, 9, 100).astype(np.float32)
    options = {"RELU_LOWER_CLIP": 1.0, "RELU_UPPER_CLIP": 6.0, "RELU_LOWER_CLIP_SLOPE": 0.5}
    (got,) = run_graph(lambda e, v: e.pointwise(P.RELU_FWD, v, **options), [x], [TensorSpec("f32", x.shape)])
    close(got, np.where(x <= 1, 0.5 * (x.astype(np.float64) - 1) + 1, np.minimum(x, 6)), "f32")


def test_reductions_over_different_dims_are_refused() -> None:
    x = normal("f32", (4, 5))
    out = TensorSpec("f32", (1, 1))
    graph = graph_of(lambda e, v: e.reduction(R.ADD, e.reduction(R.MAX, v, (1,)), (0,)), [x], [out])
    made = generate_graph(graph, find_architecture("sm_90"))
    assert isinstance(made, Reject)
    assert made.reason == "reductions over different dimensions"


@pytest.mark.parametrize("name", compiled.ALL)
@pytest.mark.parametrize("shape", [(64, 7), (64, 1000), (2, 50000)])
def test_code_is_whole(shape: tuple[int, ...], name: str) -> None:
    for dtype in ("f16", "f64") if shape[1] == 1000 else ("bf16",):
        x, out = normal(dtype, shape), TensorSpec(dtype, shape)
        graph = graph_of(row("aten.softmax.int", ..., -1, None, results=[out]), [x], [out])
        compiled.check(generate_graph(graph, find_architecture(name)))
