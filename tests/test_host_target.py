"""Target `host` takes what the host's library takes, in the library's words, but for what is faster otherwise."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir.ops.kernels import Kernel
from hipdnn_mlir.targets import host
from hipdnn_mlir_runtime import _runtime
from hipdnn_mlir_runtime.errors import DeviceError, UnsupportedError
from hipdnn_mlir_runtime.session import devices
from models import GraphBuilder


def conv(*operators: str) -> onnx.ModelProto:
    """A convolution with a bias, and unary operators."""
    b = GraphBuilder("conv", opset=20)
    y = b.op("Conv", b.input("x", [1, 4, 6, 6]), b.normal((4, 4, 3, 3), 0.3), b.normal((4,), 0.3))
    for operator in operators:
        y = b.op(operator, y)
    return b.model({y: [1, 4, 4, 4]})


def summaries(model: onnx.ModelProto) -> list[str]:
    program = hipdnn_mlir.compile(model).model
    return [summary for step in program.steps if (summary := program.summary(step)) != "copy"]


def assert_equal_to_onnxruntime(model: onnx.ModelProto, *arrays: np.ndarray, tolerance: float = 1e-5) -> None:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = dict(zip([value.name for value in session.get_inputs()], arrays, strict=True))
    for got, want in zip(hipdnn_mlir.compile(model).session().run(None, feeds), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        (["Neg"], ["conv2d + add + neg"]),
        (["Mish"], ["conv2d + add + softplus + tanh + mul"]),
        (["Sin"], ["conv2d + add", "sin"]),
    ],
)
def test_an_epilogue_is_what_the_library_takes(operators: list[str], expected: list[str]) -> None:
    model = conv(*operators)
    assert summaries(model) == expected
    assert_equal_to_onnxruntime(model, np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32))


def test_an_epilogue_ends_where_its_rest_is_faster_in_another_graph() -> None:
    whole, cut = summaries(conv(*["Tanh"] * 15)), summaries(conv(*["Tanh"] * 16))
    assert [summary.count("tanh") for summary in whole] == [15]
    assert [summary.count("tanh") for summary in cut] == [15, 1]


def test_layer_norm_stays_alone_because_that_is_faster() -> None:
    b = GraphBuilder("norm", opset=17)
    x, scale, bias = b.input("x", [4, 8]), b.normal((8,), 1.0), b.normal((8,), 1.0)
    y = b.op("Neg", b.op("LayerNormalization", b.op("Relu", x), scale, bias))
    assert summaries(b.model({y: [4, 8]})) == ["relu", "layer_norm", "neg"]


def test_layer_norm_of_f64_is_taken_since_an_engine_has_it() -> None:
    text = """<ir_version: 10, opset_import: ["" : 17]>
      g (double[4,8] x, double[8] s, double[8] b) => (double[4,8] y) { y = LayerNormalization(x, s, b) }"""
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(dims) for dims in ((4, 8), 8, 8)]
    assert_equal_to_onnxruntime(onnx.parser.parse_model(text), *arrays, tolerance=1e-12)


def test_a_reject_is_in_the_words_of_each_engine() -> None:
    text = """<ir_version: 10, opset_import: ["" : 17]>
      g (float[4294967296,4] x, float[4,4] w) => (float[4294967296,4] y) { y = MatMul(x, w) }"""
    with pytest.raises(UnsupportedError) as raised:
        hipdnn_mlir.compile(onnx.parser.parse_model(text))
    (reject,) = raised.value.rejects
    assert reject.rule == "engine"
    assert "HOST_ONEDNN_ENGINE: tensor [4294967296, 4] float" in reject.reason
    assert "at most 2147483647" in reject.reason
    assert "HOST_ROWWISE_ENGINE: " in reject.reason


def test_a_kernel_is_refused_in_the_words_of_the_library() -> None:
    assert host.refuses_kernel(Kernel("scan", [], {})) == "scan: expected 1 ins and 1 outs, got 0 and 0"


def test_equal_graphs_are_asked_once() -> None:
    hipdnn_mlir.compile(conv("Relu"))
    before = host._answer.cache_info().misses
    hipdnn_mlir.compile(conv("Relu"))
    assert host._answer.cache_info().misses == before


def test_answers_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "hipdnn_mlir"):
        devices.open_device.cache_clear()
        host._answer.cache_clear()
        hipdnn_mlir.compile(conv("Sin"))
        devices.forward_log()
    devices.open_device.cache_clear()
    assert host._answer.cache_info().misses > 0
    assert [record.message for record in caplog.records if record.name == "hipdnn_mlir.hipdnn"] == []


@pytest.fixture
def no_host_library(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """An installation built with -DHIPDNN_MLIR_HOST_PORT=OFF."""

    def opened(options: object, **others: object) -> object:
        return original(options, directory=str(tmp_path), **others)

    original = _runtime.open_device
    monkeypatch.setattr(_runtime, "open_device", opened)
    for cached in (devices.open_device, host._answer, host._kernel_refusal):
        cached.cache_clear()
        # What is asked without the library is an exception, which no cache keeps.


@pytest.mark.usefixtures("no_host_library")
def test_compiling_for_the_host_says_what_is_missing_where_its_library_is_not_there() -> None:
    with pytest.raises(DeviceError, match=r"target 'host' asks its library: .*cannot open libhipdnn_host.*--target"):
        hipdnn_mlir.compile(conv("Relu"))


@pytest.mark.usefixtures("no_host_library")
@pytest.mark.parametrize("target", ["sm_90", "gfx942"])
def test_compiling_for_a_gpu_needs_no_host_library(target: str) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    assert hipdnn_mlir.compile(conv("Relu"), target=target).model.steps
