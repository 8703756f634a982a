"""Convolutions of 3 x 3 taps by Winograd's algorithm, against ONNX Runtime's direct ones."""

import numpy as np
import pytest

from host_engines.anchor_graph import (
    AnchorGraph,
    assert_close,
    assert_epilogue_follows,
    channels_last,
    onnx_result,
    refusal,
)

ENGINE = "HOST_WINOGRAD_ENGINE"
IMAGES = [
    ((1, 64, 12, 12), 64, (1, 1, 1, 1)),
    ((2, 80, 13, 11), 64, (1, 1, 1, 1)),
    ((1, 64, 15, 14), 64, (0, 0, 0, 0)),
    ((1, 64, 12, 17), 112, (2, 0, 1, 2)),
    ((3, 64, 7, 9), 272, (1, 2, 0, 1)),
    ((1, 256, 14, 14), 64, (1, 1, 1, 1)),
]


def arrays(shape: tuple[int, ...], outputs: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([*shape, outputs])
    return rng.standard_normal(shape, np.float32), 0.1 * rng.standard_normal((outputs, shape[1], 3, 3), np.float32)


def reference(x: np.ndarray, w: np.ndarray, pads: tuple[int, ...]) -> np.ndarray:
    return onnx_result("Conv", [x, w], pads=pads)


@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("shape", "outputs", "pads"), IMAGES, ids=str)
def test_convolution_equals_onnxruntime(
    shape: tuple[int, ...], outputs: int, pads: tuple[int, ...], threads: int, is_constant: bool
) -> None:
    x, w = arrays(shape, outputs)
    expected = reference(x, w, pads)
    y = channels_last(np.zeros_like(expected))
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.convolution(graph.tensor(channels_last(x)), weights, graph.tensor(y), (1, 1), pads, (1, 1))
    plan = graph.plan(ENGINE, threads, (weights,) if is_constant else ())
    assert ("winograd" in plan.describe()) == is_constant
    for _ in range(2):
        y[...] = np.nan
        plan.execute()
        assert_close(y, expected)


def test_filters_that_lie_channels_last_are_read_by_their_strides() -> None:
    x, w = arrays((1, 64, 12, 12), 80)
    expected = reference(x, w, (1, 1, 1, 1))
    y = channels_last(np.zeros_like(expected))
    graph = AnchorGraph()
    weights = graph.tensor(channels_last(w))
    graph.convolution(graph.tensor(channels_last(x)), weights, graph.tensor(y), (1, 1), (1, 1, 1, 1), (1, 1))
    graph.plan(ENGINE, constants=(weights,)).execute()
    assert_close(y, expected)


@pytest.mark.parametrize("residual", ["channels last", "plain", "one column"])
def test_bias_residual_and_relu_follow(residual: str) -> None:
    pads = (1, 1, 1, 1)
    x, w = arrays((2, 64, 11, 12), 80)
    assert_epilogue_follows(ENGINE, x, w, reference(x, w, pads), ((1, 1), pads, (1, 1)), residual)


@pytest.mark.parametrize(
    ("shape", "outputs", "settings", "reason"),
    [
        ((1, 64, 12, 12), 64, {"strides": (2, 2)}, "steps of one"),
        ((1, 64, 12, 12), 64, {"dilations": (2, 2)}, "steps of one"),
        ((1, 32, 12, 12), 64, {}, "32 and 64 channels"),
        ((1, 64, 12, 12), 72, {}, "64 and 72 channels"),
        ((1, 64, 8, 8), 64, {}, "16 tiles"),
    ],
)
def test_what_direct_convolutions_compute_better_is_refused(
    shape: tuple[int, ...], outputs: int, settings: dict[str, tuple[int, int]], reason: str
) -> None:
    x, w = arrays(shape, outputs)
    strides, dilations = settings.get("strides", (1, 1)), settings.get("dilations", (1, 1))
    expected = onnx_result("Conv", [x, w], strides=strides, dilations=dilations, pads=(1, 1, 1, 1))
    y = channels_last(np.zeros_like(expected))
    graph = AnchorGraph()
    graph.convolution(
        graph.tensor(channels_last(x)), graph.tensor(w), graph.tensor(y), strides, (1, 1, 1, 1), dilations
    )
    assert reason in refusal(graph, ENGINE)


@pytest.mark.parametrize("plain", ["x", "y"])
def test_images_in_other_layouts_are_refused(plain: str) -> None:
    x, w = arrays((1, 64, 12, 12), 64)
    y = np.zeros((1, 64, 12, 12), np.float32)
    graph = AnchorGraph()
    tensors = [graph.tensor(array if name == plain else channels_last(array)) for name, array in (("x", x), ("y", y))]
    graph.convolution(tensors[0], graph.tensor(w), tensors[1], (1, 1), (1, 1, 1, 1), (1, 1))
    assert "channels last" in refusal(graph, ENGINE)
