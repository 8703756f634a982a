"""Convolutions of the oneDNN engine, forward and transposed, against ONNX Runtime's CPU provider."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import ConvolutionMode, Pointwise
from host_engines.anchor_graph import (
    ONEDNN,
    AnchorGraph,
    assert_close,
    channels_last,
    onnx_result,
    refusal,
    stored,
)
from host_engines.host_graph import Operand


@dataclass
class Case:
    """A convolution; `pads` as in ONNX."""

    x: tuple[int, ...]
    w: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...] = ()
    groups: int = 1
    output_padding: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.dilations = self.dilations or (1,) * (len(self.x) - 2)

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(sum(self.x) + sum(self.w))
        return rng.standard_normal(self.x, np.float32), rng.standard_normal(self.w, np.float32)

    def reference(self, x: np.ndarray, w: np.ndarray, *, transposed: bool = False) -> np.ndarray:
        attributes = {"strides": self.strides, "pads": self.pads, "dilations": self.dilations, "group": self.groups}
        if self.output_padding:
            attributes["output_padding"] = self.output_padding
        return onnx_result("ConvTranspose" if transposed else "Conv", [x, w], **attributes)


FORWARD = [
    Case((1, 64, 14, 14), (64, 64, 3, 3), (1, 1), (1, 1, 1, 1)),
    Case((2, 30, 9, 11), (33, 30, 1, 1), (1, 1), (0, 0, 0, 0)),
    Case((1, 3, 33, 33), (16, 3, 7, 7), (2, 2), (3, 3, 3, 3)),
    Case((1, 1, 28, 28), (8, 1, 5, 5), (1, 1), (2, 2, 2, 2)),
    Case((2, 24, 15, 15), (24, 1, 3, 3), (2, 2), (0, 0, 1, 1), groups=24),
    Case((2, 24, 15, 15), (48, 1, 3, 3), (1, 1), (1, 1, 1, 1), groups=24),
    Case((2, 32, 14, 14), (64, 8, 3, 3), (1, 1), (1, 1, 1, 1), groups=4),
    Case((1, 16, 20, 18), (24, 16, 3, 3), (1, 2), (4, 0, 0, 3), (2, 3)),
    Case((2, 16, 50, 1), (24, 16, 5, 1), (2, 1), (4, 0, 0, 0)),
    Case((2, 16, 50, 1), (16, 1, 5, 1), (1, 1), (1, 0, 2, 0), (2, 1), groups=16),
    Case((2, 16, 50), (24, 16, 5), (1,), (4, 0)),
    Case((2, 16, 50), (16, 1, 5), (3,), (1, 2), (2,), groups=16),
    Case((1, 8, 6, 9, 10), (12, 8, 3, 2, 3), (1, 2, 1), (1, 0, 1, 0, 1, 1)),
    Case((1, 8, 6, 9, 10), (8, 1, 3, 3, 3), (1, 1, 1), (1, 1, 1, 1, 1, 1), groups=8),
]
TRANSPOSED = [
    Case((1, 32, 7, 7), (32, 16, 4, 4), (2, 2), (1, 1, 1, 1)),
    Case((2, 32, 7, 7), (32, 8, 3, 3), (2, 2), (1, 1, 1, 1), groups=2, output_padding=(1, 1)),
    Case((1, 12, 7, 9), (12, 1, 3, 3), (2, 1), (0, 1, 1, 0), groups=12),
    Case((1, 16, 7, 7), (16, 5, 3, 3), (1, 1), (2, 2, 2, 2), (2, 2)),
    Case((1, 32, 14, 1), (32, 16, 4, 1), (2, 1), (1, 0, 0, 0)),
    Case((1, 32, 14), (32, 16, 4), (2,), (1, 1)),
    Case((1, 8, 3, 4, 5), (8, 4, 3, 3, 3), (2, 2, 2), (1, 1, 1, 1, 1, 1)),
]


LAYOUTS = [("channels_last", "channels_last"), ("plain", "plain"), ("plain", "channels_last")]


@pytest.mark.parametrize("is_constant", [True, False], ids=["packed", "unpacked"])
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("case", FORWARD, ids=str)
def test_convolution_equals_onnxruntime(case: Case, layouts: tuple[str, str], is_constant: bool) -> None:
    x, w = case.arrays()
    expected = case.reference(x, w)
    graph = AnchorGraph()
    y = stored(np.zeros_like(expected), layouts[1])
    weights = graph.tensor(w)
    graph.convolution(
        graph.tensor(stored(x, layouts[0])), weights, graph.tensor(y), case.strides, case.pads, case.dilations
    )
    plan = graph.plan(ONEDNN, constants=(weights,) if is_constant else ())
    for _ in range(2):
        y[...] = np.nan
        plan.execute()
        assert_close(y, expected)


@pytest.mark.parametrize("layout", ["channels_last", "plain"])
@pytest.mark.parametrize("case", TRANSPOSED, ids=str)
def test_transposed_convolution_equals_onnxruntime(case: Case, layout: str) -> None:
    x, w = case.arrays()
    expected = case.reference(x, w, transposed=True)
    graph = AnchorGraph()
    y = stored(np.full_like(expected, np.nan), layout)
    spatial = len(case.strides)
    pads = list(case.pads)
    for d, extra in enumerate(case.output_padding):
        pads[spatial + d] -= extra
    graph.transposed_convolution(
        graph.tensor(stored(x, layout)), graph.tensor(w), graph.tensor(y), case.strides, pads, case.dilations
    )
    graph.run(ONEDNN)
    assert_close(y, expected)


def simple() -> tuple[AnchorGraph, Operand, np.ndarray]:
    """A channels-last convolution, its virtual result and ONNX Runtime's value for that."""
    case = Case((1, 24, 10, 10), (32, 24, 3, 3), (1, 1), (1, 1, 1, 1))
    x, w = case.arrays()
    expected = case.reference(x, 0.1 * w)
    graph = AnchorGraph()
    result = graph.virtual(expected.shape)
    graph.convolution(
        graph.tensor(channels_last(x)), graph.tensor(0.1 * w), result, case.strides, case.pads, case.dilations
    )
    return graph, result, expected


@pytest.mark.parametrize("order", [("bias", "residual"), ("residual", "bias")], ids="-".join)
@pytest.mark.parametrize("residual_layout", ["channels_last", "plain"])
def test_bias_residual_and_relu_run_as_one_primitive(order: tuple[str, str], residual_layout: str) -> None:
    graph, value, expected = simple()
    rng = np.random.default_rng(0)
    terms = {
        "bias": rng.standard_normal((1, 32, 1, 1), np.float32),
        "residual": stored(rng.standard_normal(expected.shape, np.float32), residual_layout),
    }
    for name in order:
        value = graph.then(Pointwise.ADD, value, graph.tensor(terms[name]))
    y = channels_last(np.zeros_like(expected))
    graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(y))
    plan = graph.plan(ONEDNN)
    plan.execute()
    assert_close(y, np.maximum(expected + terms["bias"] + terms["residual"], 0))
    assert plan.describe().endswith(" + bias + add + relu")


def test_steps_that_cannot_be_fused_follow_as_primitives() -> None:
    graph, value, expected = simple()
    image = np.random.default_rng(0).standard_normal((1, 1, 10, 10), np.float32)
    value = graph.then(Pointwise.MUL, value, graph.tensor(image))
    y = channels_last(np.zeros_like(expected))
    graph.then(Pointwise.TANH_FWD, value, out=graph.tensor(y))
    plan = graph.plan(ONEDNN)
    plan.execute()
    assert_close(y, np.tanh(expected * image))
    assert "ref" not in plan.describe()


def test_images_of_one_column_are_computed_as_rows_with_their_epilogue() -> None:
    """Several pixels at once, by the kernel that images of one row have; what is read behind it lies as it did."""
    case = Case((2, 24, 40, 1), (32, 24, 3, 1), (1, 1), (1, 0, 1, 0))
    x, w = case.arrays()
    expected = case.reference(x, 0.1 * w)
    rng = np.random.default_rng(0)
    bias, image = rng.standard_normal((1, 32, 1, 1), np.float32), rng.standard_normal((1, 1, 40, 1), np.float32)
    described = []
    for axes in ((0, 1, 2, 3), (0, 1, 3, 2)):
        graph = AnchorGraph()
        value = graph.virtual(expected.transpose(axes).shape)
        pads = case.pads if axes[2] == 2 else (0, 1, 0, 1)
        first, taps = (stored(array.transpose(axes), "channels_last") for array in (x, 0.1 * w))
        graph.convolution(graph.tensor(first), graph.tensor(np.ascontiguousarray(taps)), value, (1, 1), pads, (1, 1))
        for mode, term in ((Pointwise.ADD, bias), (Pointwise.MUL, image)):
            value = graph.then(mode, value, graph.tensor(np.ascontiguousarray(term.transpose(axes))))
        y = channels_last(np.zeros_like(expected.transpose(axes)))
        graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(y))
        plan = graph.plan(ONEDNN)
        plan.execute()
        assert_close(y.transpose(axes), np.maximum((expected + bias) * image, 0))
        described.append(plan.describe())
    assert described[0] == described[1]


def test_several_threads_may_execute_one_plan() -> None:
    graph, value, expected = simple()
    y = channels_last(np.zeros_like(expected))
    graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(y))
    plans = [graph.plan(ONEDNN) for _ in range(3)]

    def repeat(plan: Any) -> None:
        for _ in range(50):
            plan.execute()

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(repeat, plans * 4))
    assert_close(y, np.maximum(expected, 0))


def test_flipped_filters_are_refused() -> None:
    graph = AnchorGraph()
    x, w, y = (np.zeros(s, np.float32) for s in ((1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)))
    tensors = [graph.tensor(a) for a in (x, w, y)]
    graph.convolution(*tensors, (1, 1), (0, 0, 0, 0), (1, 1), ConvolutionMode.CONVOLUTION)
    assert "CROSS_CORRELATION" in refusal(graph)


def test_a_stored_intermediate_is_refused() -> None:
    graph = AnchorGraph()
    x, w = np.zeros((1, 3, 8, 8), np.float32), np.zeros((4, 3, 3, 3), np.float32)
    y, z = np.zeros((1, 4, 6, 6), np.float32), np.zeros((1, 4, 6, 6), np.float32)
    middle = graph.tensor(y)
    graph.convolution(graph.tensor(x), graph.tensor(w), middle, (1, 1), (0, 0, 0, 0), (1, 1))
    graph.then(Pointwise.RELU_FWD, middle, out=graph.tensor(z))
    assert "stored and also read" in refusal(graph)


def test_double_precision_is_refused() -> None:
    graph = AnchorGraph()
    arrays = (np.zeros(s) for s in ((1, 3, 8, 8), (4, 3, 3, 3), (1, 4, 6, 6)))
    x, w, y = (graph.tensor(a) for a in arrays)
    graph.convolution(x, w, y, (1, 1), (0, 0, 0, 0), (1, 1))
    assert "float32, bfloat16 and float16" in refusal(graph)
