"""Pooling and norms of the oneDNN engine against ONNX Runtime's CPU provider and numpy in float64."""

import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Padding, Pointwise, Resample
from host_engines.anchor_graph import ONEDNN, AnchorGraph, assert_close, onnx_result, refusal, stored

LAYOUTS = [("channels_last", "channels_last"), ("plain", "plain"), ("plain", "channels_last")]
WINDOWS = [
    ((1, 64, 16, 16), (3, 3), (2, 2), (1, 1, 1, 1)),
    ((2, 10, 9, 9), (2, 3), (2, 1), (0, 1, 1, 0)),
    ((1, 32, 7, 7), (7, 7), (1, 1), (0, 0, 0, 0)),
    ((2, 10, 9), (3,), (2,), (1, 0)),
    ((2, 10, 9, 8, 7), (3, 2, 2), (2, 1, 1), (1, 0, 1, 0, 1, 0)),
]
MODES = {
    Resample.MAXPOOL: ("MaxPool", {}),
    Resample.AVGPOOL_EXCLUDE_PADDING: ("AveragePool", {"count_include_pad": 0}),
    Resample.AVGPOOL_INCLUDE_PADDING: ("AveragePool", {"count_include_pad": 1}),
}


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape, np.float32)


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
@pytest.mark.parametrize(("shape", "window", "strides", "pads"), WINDOWS, ids=str)
def test_pool_equals_onnxruntime(
    shape: tuple[int, ...],
    window: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    mode: Resample,
    layouts: tuple[str, str],
) -> None:
    x = random(*shape) - 1
    operation, attributes = MODES[mode]
    expected = onnx_result(operation, [x], kernel_shape=window, strides=strides, pads=pads, **attributes)
    y = stored(np.full_like(expected, np.nan), layouts[1])
    graph = AnchorGraph()
    graph.resample(mode, graph.tensor(stored(x, layouts[0])), graph.tensor(y), window, strides, pads)
    graph.run(ONEDNN)
    assert_close(y, expected)


@pytest.mark.parametrize("layout", ["channels_last", "plain"])
def test_zeros_around_a_maximum_take_part_in_it(layout: str) -> None:
    x = -1 - np.abs(random(2, 10, 9, 9))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (0, 2)))
    expected = onnx_result("MaxPool", [padded], kernel_shape=(3, 3), strides=(2, 1))
    assert (expected == 0).any()
    y = stored(np.full_like(expected, np.nan), layout)
    graph = AnchorGraph()
    graph.resample(
        Resample.MAXPOOL,
        graph.tensor(stored(x, layout)),
        graph.tensor(y),
        (3, 3),
        (2, 1),
        (1, 0, 0, 2),
        Padding.ZERO_PAD,
    )
    plan = graph.plan(ONEDNN)
    for _ in range(2):
        plan.execute()
        assert_close(y, expected)


def test_an_average_over_infinite_padding_is_refused() -> None:
    graph = AnchorGraph()
    x, y = np.zeros((1, 3, 8, 8), np.float32), np.zeros((1, 3, 8, 8), np.float32)
    mode = Resample.AVGPOOL_INCLUDE_PADDING
    graph.resample(mode, graph.tensor(x), graph.tensor(y), (3, 3), (1, 1), (1, 1, 1, 1), Padding.NEG_INF_PAD)
    assert "minus infinity" in refusal(graph)


def normalized(x: np.ndarray, count: int, epsilon: float) -> np.ndarray:
    axes = tuple(range(-count, 0))
    wide = x.astype(np.float64)
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + epsilon)


@pytest.mark.parametrize("layout", ["channels_last", "plain"])
@pytest.mark.parametrize(("shape", "count"), [((2, 16, 96), 1), ((2, 16, 24), 2), ((2, 3, 4, 5), 3), ((2, 3, 4, 5), 1)])
def test_layernorm_equals_numpy(shape: tuple[int, ...], count: int, layout: str) -> None:
    x = 3 * random(*shape) + 1
    trailing = (1,) * (len(shape) - count) + shape[-count:]
    scale, bias = random(*trailing), random(*trailing) + 1
    y = stored(np.full_like(x, np.nan), layout)
    graph = AnchorGraph()
    operands = [graph.tensor(a) for a in (stored(x, layout), scale)]
    graph.norm("LAYERNORM", *operands, graph.scalar(1e-5), graph.tensor(y), bias=graph.tensor(bias))
    graph.run(ONEDNN)
    assert_close(y, normalized(x, count, 1e-5) * scale + bias)


@pytest.mark.parametrize("has_relu", [True, False], ids=["relu", "no_relu"])
@pytest.mark.parametrize("has_variance", [True, False], ids=["variance", "inverse"])
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("shape", [(2, 32, 7, 7), (2, 10, 5), (2, 10, 5, 4, 3)], ids=str)
def test_batchnorm_equals_numpy(
    shape: tuple[int, ...], layouts: tuple[str, str], has_variance: bool, has_relu: bool
) -> None:
    epsilon = 1e-3
    channels = (1, shape[1]) + (1,) * (len(shape) - 2)
    x, mean, scale, bias = random(*shape), random(*channels), random(*channels) + 2, random(*channels) - 1
    variance = np.abs(random(*channels)) + 0.1
    expected = (x.astype(np.float64) - mean) / np.sqrt(variance.astype(np.float64) + epsilon) * scale + bias
    spread = variance if has_variance else (1 / np.sqrt(variance + epsilon)).astype(np.float32)
    y = stored(np.full_like(x, np.nan), layouts[1])
    graph = AnchorGraph()
    operands = [graph.tensor(a) for a in (stored(x, layouts[0]), mean, spread, scale, bias)]
    result = graph.virtual(shape) if has_relu else graph.tensor(y)
    graph.batchnorm(*operands, result, graph.scalar(epsilon) if has_variance else None)
    if has_relu:
        graph.then(Pointwise.RELU_FWD, result, out=graph.tensor(y))
        expected = np.maximum(expected, 0)
    graph.run(ONEDNN)
    assert_close(y, expected)


def test_layernorm_followed_by_a_node_is_refused() -> None:
    graph = AnchorGraph()
    x, one = np.zeros((2, 8), np.float32), np.ones((1, 8), np.float32)
    middle = graph.virtual((2, 8))
    scale = graph.tensor(one)
    graph.norm("LAYERNORM", graph.tensor(x), scale, graph.scalar(1e-5), middle, bias=graph.tensor(one.copy()))
    graph.then(Pointwise.RELU_FWD, middle, out=graph.tensor(np.zeros((2, 8), np.float32)))
    assert "followed by other nodes" in refusal(graph)
