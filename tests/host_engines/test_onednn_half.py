"""16-bit floats on the oneDNN engine, whether the CPU computes with them or not, against numpy in float64.

References start from the rounded operands. A result may be two roundings to its type away from the largest magnitude
expected: the last one, and one between primitives where the CPU has arithmetic of that type.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Pointwise, Resample
from host_engines.anchor_graph import ONEDNN, AnchorGraph, assert_close, refusal, stored
from host_engines.host_graph import Operand, strided_like

F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
TOLERANCE = {F16: 2.0**-10, BF16: 2.0**-7}
THROUGH_F32 = " through f32"

half_types = pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
constant_or_not = pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])


def random(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(sum(shape) + seed).standard_normal(shape).astype(dtype)


def unset(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    return np.full(shape, np.nan, dtype)


def wide(array: np.ndarray) -> np.ndarray:
    """The same values in float64."""
    return array.astype(np.float64)


def convolved(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """A 2-D convolution in one group, n c h w and k c r s, in float64."""
    padded = np.pad(wide(x), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    result: np.ndarray = np.einsum("nchwrs,kcrs->nkhw", windows, wide(w))
    return result


def spread(dy: np.ndarray, w: np.ndarray, stride: int) -> np.ndarray:
    """A transposed 2-D convolution in one group without padding, n k h w and k c r s, in float64."""
    n, _, h, width = dy.shape
    _, c, r, s = w.shape
    dx = np.zeros((n, c, (h - 1) * stride + r, (width - 1) * stride + s))
    for i, j in product(range(h), range(width)):
        dx[:, :, i * stride : i * stride + r, j * stride : j * stride + s] += np.einsum(
            "nk,kcrs->ncrs", wide(dy[:, :, i, j]), wide(w)
        )
    return dx


def run(graph: AnchorGraph, constants: tuple[Operand, ...]) -> str:
    """Executes the graph on the oneDNN engine; returns the plan's description."""
    plan = graph.plan(ONEDNN, constants=constants)
    plan.execute()
    return plan.describe()


@constant_or_not
@pytest.mark.parametrize("layout", ["channels_last", "plain"])
@half_types
def test_convolution_with_bias_and_relu_equals_numpy(dtype: np.dtype[Any], layout: str, is_constant: bool) -> None:
    x, w, bias = random((2, 24, 13, 11), dtype), random((20, 24, 3, 3), dtype), random((1, 20, 1, 1), dtype)
    expected = np.maximum(convolved(x, w, 2, 1) + wide(bias), 0)
    y = stored(unset(expected.shape, dtype), layout)
    graph = AnchorGraph()
    weights, addend = graph.tensor(stored(w, layout)), graph.tensor(bias)
    value = graph.convolution(
        graph.tensor(stored(x, layout)), weights, graph.virtual(y.shape, dtype), (2, 2), (1, 1, 1, 1), (1, 1)
    )
    graph.then(Pointwise.RELU_FWD, graph.then(Pointwise.ADD, value, addend), out=graph.tensor(y))
    run(graph, (weights, addend) if is_constant else ())
    assert_close(y, expected, TOLERANCE[dtype])


@constant_or_not
@half_types
def test_transposed_convolution_equals_numpy(dtype: np.dtype[Any], is_constant: bool) -> None:
    dy, w = random((2, 16, 5, 6), dtype), random((16, 12, 3, 3), dtype)
    expected = spread(dy, w, 2)
    dx = stored(unset(expected.shape, dtype), "channels_last")
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.transposed_convolution(graph.tensor(dy), weights, graph.tensor(dx), (2, 2), (0, 0, 0, 0), (1, 1))
    run(graph, (weights,) if is_constant else ())
    assert_close(dx, expected, TOLERANCE[dtype])


@constant_or_not
@pytest.mark.parametrize("addend_shape", [(1, 40), (33, 40)], ids=["bias", "residual"])
@half_types
def test_matmul_and_add_equals_numpy(dtype: np.dtype[Any], addend_shape: tuple[int, int], is_constant: bool) -> None:
    a, b, addend = random((33, 70), dtype), random((70, 40), dtype), random(addend_shape, dtype, seed=1)
    expected = wide(a) @ wide(b) + wide(addend)
    c = unset(expected.shape, dtype)
    graph = AnchorGraph()
    weights = graph.tensor(b)
    value = graph.matmul(graph.tensor(a), weights, graph.virtual(c.shape, dtype))
    graph.then(Pointwise.ADD, value, graph.tensor(addend), out=graph.tensor(c))
    run(graph, (weights,) if is_constant else ())
    assert_close(c, expected, TOLERANCE[dtype])


@half_types
def test_matmul_of_heads_equals_numpy_when_layouts_have_gaps_and_repeats(dtype: np.dtype[Any]) -> None:
    q = strided_like((2, 4, 9, 16), dtype, (0, 2, 1, 3))
    k = np.broadcast_to(random((2, 1, 16, 11), dtype), (2, 4, 16, 11))
    q[...] = random(q.shape, dtype)
    expected = (wide(q) @ wide(k)) * 0.25
    scores = strided_like(expected.shape, dtype, (0, 1, 2, 3), gap=5)
    graph = AnchorGraph()
    value = graph.matmul(graph.tensor(q), graph.tensor(k), graph.virtual(scores.shape, dtype))
    graph.then(Pointwise.MUL, value, graph.scalar(0.25, dtype), out=graph.tensor(scores))
    run(graph, ())
    assert_close(scores, expected, TOLERANCE[dtype])
    gap = np.lib.stride_tricks.as_strided(scores, (*scores.shape[:3], 16))[..., 11:]
    assert (gap == 77).all()


@pytest.mark.parametrize("layout", ["channels_last", "plain"])
@half_types
def test_max_pool_is_exact(dtype: np.dtype[Any], layout: str) -> None:
    x = random((2, 10, 12, 9), dtype)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 2), axis=(2, 3))[:, :, ::2, ::1]
    expected = windows.max(axis=(-2, -1))
    y = stored(unset(expected.shape, dtype), layout)
    graph = AnchorGraph()
    graph.resample(Resample.MAXPOOL, graph.tensor(stored(x, layout)), graph.tensor(y), (3, 2), (2, 1), (0, 0, 0, 0))
    run(graph, ())
    assert np.array_equal(wide(y), expected)


@constant_or_not
@pytest.mark.parametrize("parameter_type", [None, F32], ids=["same", "float32"])
@half_types
def test_layer_norm_equals_numpy(dtype: np.dtype[Any], parameter_type: np.dtype[Any] | None, is_constant: bool) -> None:
    parameters = parameter_type or dtype
    x, scale, bias = random((6, 7, 48), dtype), random((48,), parameters), random((48,), parameters, seed=1)
    epsilon = float(np.array(1e-3, dtype))
    values = wide(x)
    centered = values - values.mean(-1, keepdims=True)
    expected = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon) * wide(scale) + wide(bias)
    y = unset(x.shape, dtype)
    graph = AnchorGraph()
    weights = [graph.tensor(array.reshape(1, 1, 48)) for array in (scale, bias)]
    operands = [graph.tensor(x), weights[0], graph.scalar(1e-3, dtype), graph.tensor(y)]
    graph.norm("LAYERNORM", *operands, bias=weights[1])
    description = run(graph, tuple(weights) if is_constant else ())
    assert_close(y, expected, TOLERANCE[dtype])
    if parameter_type is None:
        assert description.endswith(THROUGH_F32)


@constant_or_not
@half_types
def test_batch_norm_and_relu_equals_numpy(dtype: np.dtype[Any], is_constant: bool) -> None:
    x = random((2, 12, 6, 5), dtype)
    mean, scale, bias = (random((1, 12, 1, 1), dtype, seed) for seed in range(3))
    variance = np.abs(random((1, 12, 1, 1), dtype, 3)) + dtype.type(0.5)
    epsilon = float(np.array(1e-3, dtype))
    normalized = (wide(x) - wide(mean)) / np.sqrt(wide(variance) + epsilon)
    expected = np.maximum(normalized * wide(scale) + wide(bias), 0)
    y = stored(unset(x.shape, dtype), "channels_last")
    graph = AnchorGraph()
    weights = tuple(graph.tensor(array) for array in (mean, variance, scale, bias))
    image = graph.tensor(stored(x, "channels_last"))
    value = graph.batchnorm(image, *weights, graph.virtual(y.shape, dtype), graph.scalar(1e-3, dtype))
    graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(y))
    assert run(graph, weights if is_constant else ()).endswith(THROUGH_F32)
    assert_close(y, expected, TOLERANCE[dtype])


def test_both_half_types_meet_in_one_graph() -> None:
    a, b = random((17, 30), F16), random((30, 12), BF16)
    expected = wide(a) @ wide(b)
    c = unset(expected.shape, F32)
    graph = AnchorGraph()
    weights = graph.tensor(b)
    graph.matmul(graph.tensor(a), weights, graph.tensor(c))
    run(graph, (weights,))
    assert_close(c, expected)


@constant_or_not
def test_several_threads_may_execute_one_plan_on_arrays_of_their_own(is_constant: bool) -> None:
    x, w = random((1, 8, 9, 9), F16), random((8, 8, 3, 3), F16)
    y = unset((1, 8, 7, 7), F16)
    graph = AnchorGraph()
    image, weights, result = graph.tensor(x), graph.tensor(w), graph.tensor(y)
    graph.convolution(image, weights, result, (1, 1), (0, 0, 0, 0), (1, 1))
    plan = graph.plan(ONEDNN, constants=(weights,) if is_constant else ())

    def repeat(seed: int) -> tuple[np.ndarray, np.ndarray]:
        own_x, own_y = random(x.shape, F16, seed), unset(y.shape, F16)
        binding = plan.bind({image.uid: own_x, weights.uid: w, result.uid: own_y})
        for _ in range(50):
            plan.execute(binding)
        return own_x, own_y

    with ThreadPoolExecutor(12) as pool:
        for own_x, own_y in pool.map(repeat, range(24)):
            assert_close(own_y, convolved(own_x, w, 1, 0), TOLERANCE[F16])


def test_refusal_is_that_of_the_graph_in_float32() -> None:
    graph = AnchorGraph()
    image = graph.resample(
        Resample.MAXPOOL,
        graph.tensor(random((1, 4, 8, 8), F16)),
        graph.virtual((1, 4, 4, 4), F16),
        (2, 2),
        (2, 2),
        (0, 0, 0, 0),
    )
    graph.then(Pointwise.RELU_FWD, image, out=graph.tensor(unset((1, 4, 4, 4), F16)))
    assert "oneDNN pools without an epilogue" in refusal(graph)
