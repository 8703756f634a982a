"""Convolutions in groups of few channels, against ONNX Runtime."""

from typing import Any

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

ENGINE = "HOST_GROUPS_ENGINE"
Sizes = tuple[int, ...]
# Image, filter, then how it is applied: groups are the image's channels by the filter's.
CASES: list[tuple[Sizes, Sizes, dict[str, Sizes]]] = [
    ((1, 24, 12, 12), (24, 8, 3, 3), {"pads": (1, 1, 1, 1)}),
    ((2, 24, 13, 11), (24, 8, 3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 2)}),
    ((1, 16, 9, 15), (32, 4, 3, 3), {"pads": (0, 2, 1, 0)}),
    ((1, 32, 9, 8), (32, 8, 1, 1), {}),
    ((3, 8, 7, 30), (16, 4, 5, 2), {"pads": (2, 1, 2, 0), "strides": (1, 3), "dilations": (1, 2)}),
    ((1, 528, 5, 6), (528, 8, 3, 3), {"pads": (1, 1, 1, 1)}),
]


def arrays(image: Sizes, taps: Sizes) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([*image, *taps])
    return rng.standard_normal(image, np.float32), 0.1 * rng.standard_normal(taps, np.float32)


def settings_of(settings: dict[str, Sizes]) -> tuple[Sizes, Sizes, Sizes]:
    return settings.get("strides", (1, 1)), settings.get("pads", (0, 0, 0, 0)), settings.get("dilations", (1, 1))


def reference(x: np.ndarray, w: np.ndarray, settings: dict[str, Sizes]) -> np.ndarray:
    return onnx_result("Conv", [x, w], group=x.shape[1] // w.shape[1], **settings)


@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("image", "taps", "settings"), CASES, ids=str)
def test_convolution_equals_onnxruntime(
    image: Sizes, taps: Sizes, settings: dict[str, Sizes], threads: int, is_constant: bool
) -> None:
    x, w = arrays(image, taps)
    expected = reference(x, w, settings)
    y = channels_last(np.zeros_like(expected))
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.convolution(graph.tensor(channels_last(x)), weights, graph.tensor(y), *settings_of(settings))
    plan = graph.plan(ENGINE, threads, (weights,) if is_constant else ())
    assert ("groups of" in plan.describe()) == is_constant
    for _ in range(2):
        y[...] = np.nan
        plan.execute()
        assert_close(y, expected)


@pytest.mark.parametrize("residual", ["channels last", "plain", "one column"])
def test_bias_residual_and_relu_follow(residual: str) -> None:
    image, taps, settings = CASES[1]
    x, w = arrays(image, taps)
    assert_epilogue_follows(ENGINE, x, w, reference(x, w, settings), settings_of(settings), residual)


@pytest.mark.parametrize(
    ("image", "taps", "layout", "reason"),
    [
        ((1, 24, 6, 6), (24, 24, 3, 3), channels_last, "has no groups"),
        ((1, 24, 6, 6), (24, 3, 3, 3), channels_last, "groups of 3 channels"),
        ((1, 32, 6, 6), (32, 16, 3, 3), channels_last, "groups of 16 channels"),
        ((1, 24, 6, 6), (24, 4, 3, 3), channels_last, "groups of 4 results"),
        ((1, 24, 6, 6), (24, 8, 3, 3), np.ascontiguousarray, "channels last"),
    ],
)
def test_misfits_are_refused_with_a_reason(image: Sizes, taps: Sizes, layout: Any, reason: str) -> None:
    x, w = arrays(image, taps)
    y = layout(np.zeros((image[0], taps[0], image[2] - 2, image[3] - 2), np.float32))
    graph = AnchorGraph()
    graph.convolution(graph.tensor(layout(x)), graph.tensor(w), graph.tensor(y), *settings_of({}))
    assert reason in refusal(graph, ENGINE)
