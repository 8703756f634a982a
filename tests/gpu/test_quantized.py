"""Quantized models for NVIDIA GPUs: signed bytes for the library, kernels around, within a step of ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from gpu.exact_sums import compute
from gpu.programs import compile_for_emulator, run
from hipdnn_mlir.codegen.kernels import elementwise
from hipdnn_mlir.codegen.kernels.byte_table import write_table
from test_quantized_models import W_SCALE, X_SCALE, Y_SCALE, Model, convolution, integers, weights


def check(
    model: Any, x: np.ndarray, monkeypatch: pytest.MonkeyPatch, step: float = 1, others: float = 2e-3
) -> list[str]:
    """Asserts that no result is more than a step apart, and all but some are equal; returns what the library computes."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90")
    (got,) = run(program, {"x": x}, modules, library=compute)
    assert got.dtype == reference[0].dtype
    apart = np.abs(np.asarray(got, np.float64) - reference[0])
    assert apart.max() <= step
    assert (apart > step / 2).mean() <= others
    return [str(executable.summary) for executable in program.model.executables]


class Network(Model):
    """Convolutions whose values have one scale and the zero point of a Relu."""

    def __init__(self, dtype: Any = np.uint8) -> None:
        super().__init__()
        self.least = dtype(np.iinfo(dtype).min)

    def product(self, value: str, *dims: int, scale: Any = Y_SCALE, zero: Any = None, **attributes: Any) -> str:
        per_channel = np.linspace(0.5, 1.5, dims[0]).astype(np.float32) * W_SCALE / 8
        w = self.dequantized(self.constant(weights(*dims)), per_channel, np.zeros(dims[0], np.int8), 0)
        return self.op("Conv", self.dequantized(value, scale, self.least if zero is None else zero), w, **attributes)

    def bytes_of(self, value: str) -> str:
        return self.dequantized(value, Y_SCALE, self.least)


def test_network_of_convolutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first convolution of three channels, maxima, borders, and bytes between all of them."""
    x, model = integers(np.uint8, 2, 3, 16, 16), Network()
    first = model.product("x", 16, 3, 5, 5, scale=X_SCALE, zero=np.uint8(114), strides=[2, 2], pads=[2, 2, 2, 2])
    first = model.quantized(model.op("Relu", first), np.uint8(0))
    pooled = model.op("MaxPool", model.bytes_of(first), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    pooled = model.quantized(pooled, np.uint8(0))
    inner = model.quantized(model.op("Relu", model.product(pooled, 16, 16, 3, 3, pads=[1, 1, 1, 1])), np.uint8(0))
    last = model.quantized(model.product(inner, 8, 16, 1, 1), np.uint8(90))
    summaries = check(model.build(x, last, np.uint8), x, monkeypatch)
    assert summaries == ["conv2d + mul + add"], "the first and the last one are generated kernels"


@pytest.mark.parametrize("side", [3, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_residual_is_added_before_the_sum_is_rounded(dtype: Any, side: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, model = integers(dtype, 2, 16, 6, 6), Network(dtype)
    middle = dtype(120 if dtype is np.uint8 else -7)
    sides = 16, 16, side, side
    first = model.quantized(model.op("Relu", model.product("x", *sides, pads=[side // 2] * 4)), model.least)
    inner = model.product(first, *sides, pads=[side // 2] * 4)
    inner = model.dequantized(model.quantized(inner, middle), Y_SCALE, middle)
    total = model.op("Relu", model.op("Add", inner, model.bytes_of(first)))
    built = model.build(x, model.quantized(total, model.least), dtype)
    summaries = check(built, x, monkeypatch, others=1)  # ONNX Runtime rounds twice
    of_library = [] if side == 1 else ["conv2d + mul + add", "conv2d + mul + add + mul + add"]
    assert sorted(summaries) == of_library


def test_relu_of_symmetric_bytes_is_part_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    x, model = integers(np.int8, 1, 16, 6, 6), Network(np.int8)
    inner = model.quantized(model.product("x", 16, 16, 3, 3, zero=np.int8(0), pads=[1, 1, 1, 1]), np.int8(0))
    last = model.quantized(model.op("Relu", model.dequantized(inner, Y_SCALE, np.int8(0))), np.int8(0))
    summaries = check(model.build(x, last, np.int8), x, monkeypatch, others=1)
    assert summaries == ["conv2d + mul + add + relu"]


@pytest.mark.parametrize(
    ("dtype", "zero", "dims", "w", "attributes"),
    [
        (np.uint8, 117, (2, 16, 9, 9), (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
        (np.uint8, 7, (1, 12, 8, 8), (12, 1, 3, 3), {"group": 12, "pads": [1, 1, 1, 1]}),
        (np.int8, 3, (1, 64, 6, 6), (16, 32, 3, 3), {"group": 2}),
        (np.int8, 9, (2, 24, 1, 1), (16, 24, 1, 1), {}),
        (np.int8, -5, (1, 24, 8, 8), (8, 24, 2, 2), {"strides": [2, 2]}),
    ],
)
def test_convolution_is_within_a_step(
    dtype: Any, zero: int, dims: Any, w: Any, attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, y = convolution(dtype, zero, dims, weights(*w), **attributes)
    x, of_library = integers(dtype, *dims), [] if w[1] == 1 else ["conv2d + mul + add"]
    assert check(model.build(x, model.quantized(y, dtype(20)), dtype), x, monkeypatch) == of_library


@pytest.mark.parametrize("is_rounded", [True, False])
def test_matmul_is_within_a_step(is_rounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Model(), integers(np.uint8, 2, 40, 32)
    right = model.dequantized(model.constant(weights(32, 16)), np.full(16, W_SCALE), np.zeros(16, np.int8), 1)
    y = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(99)), right)
    if is_rounded:
        built, step = model.build(x, model.quantized(y, np.int8(3)), np.int8), 1.0
    else:
        built, step = model.build(x, y, np.float32), 1e-4
    assert check(built, x, monkeypatch, step) == ["matmul + mul + add"]


def test_zero_point_that_is_computed_is_part_of_the_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model()
    x = np.random.default_rng(3).standard_normal((40, 32)).astype(np.float32)
    model.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "scale", "zero"], name="dynamic"))
    sums = model.op("MatMulInteger", "a", model.constant(weights(32, 16)), "zero", model.constant(np.int8(0)))
    factor = model.op("Mul", "scale", model.constant(W_SCALE))
    y = model.op("Mul", model.op("Cast", sums, to=TensorProto.FLOAT), factor)
    assert check(model.build(x, y, np.float32), x, monkeypatch, 1e-3) == ["matmul + mul + add"]


@pytest.mark.parametrize("count", [70_000, 65_536 + 5])
@pytest.mark.parametrize("op", ["HardSwish", "Gelu"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_function_of_a_byte_is_looked_up(dtype: Any, op: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Model(), integers(dtype, count)
    y = model.op(op, model.dequantized("x", X_SCALE, dtype(33)))
    built = model.build(x, model.quantized(y, dtype(-30 if dtype is np.int8 else 30)), dtype)
    built_in = []
    monkeypatch.setattr(elementwise, "write_table", lambda *args: built_in.append(write_table(*args)))
    check(built, x, monkeypatch)
    assert built_in == [None]


def test_function_of_a_byte_is_one_kernel_however_many_bytes_are_between(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Model(), integers(np.uint8, 66_000)

    def rounded(value: str) -> str:
        return model.dequantized(model.quantized(value, np.uint8(128)), Y_SCALE, np.uint8(128))

    scaled = rounded(model.op("Div", model.dequantized("x", X_SCALE, np.uint8(100)), model.constant(np.float32(1.41))))
    moved = rounded(model.op("Add", rounded(model.op("Erf", scaled)), model.constant(np.float32(1))))
    y = model.op(
        "Mul",
        rounded(model.op("Mul", model.dequantized("x", X_SCALE, np.uint8(100)), moved)),
        model.constant(np.float32(0.5)),
    )
    built = model.build(x, model.quantized(y, np.uint8(128)), np.uint8)
    program, _ = compile_for_emulator(built, monkeypatch, target="sm_90")
    assert len(program.model.steps) == 1
    check(built, x, monkeypatch)
