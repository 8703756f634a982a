"""Convolutions and products between DequantizeLinear and QuantizeLinear run on integers, within one step of ONNX Runtime's CPU provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import hipdnn_mlir
from host_kernels.test_recurrence import panels
from int8_sums import quantized_in_each_run, random_weights

ENGINE = "HOST_QUANTIZED_ENGINE"
_COPY = "HOST_ROWWISE_ENGINE"
"""Stores an image channels-last."""
X_SCALE, W_SCALE, Y_SCALE = np.float32(0.021), np.float32(0.013), np.float32(0.071)
_KINDS = {
    np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16,
}  # fmt: skip


class Model:
    """A graph that is written node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: Any) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.nodes.append(
            helper.make_node(op, [*inputs], [f"v{len(self.nodes)}"], name=f"n{len(self.nodes)}", **attributes)
        )
        return str(self.nodes[-1].output[0])

    def dequantized(self, value: str, scale: Any, zero: Any, axis: int = 1) -> str:
        return self.op("DequantizeLinear", value, self.constant(scale), self.constant(zero), axis=axis)

    def quantized(self, value: str, zero: Any) -> str:
        return self.op("QuantizeLinear", value, self.constant(Y_SCALE), self.constant(zero))

    def build(self, x: np.ndarray, y: str, kind: Any) -> onnx.ModelProto:
        taken = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        given = helper.make_tensor_value_info(y, _KINDS[kind], None)
        graph = helper.make_graph(self.nodes, "g", [taken], [given], self.constants)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def integers(dtype: Any, *dims: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(dims).integers(info.min, info.max, dims, dtype, endpoint=True)


def weights(*dims: int) -> np.ndarray:
    return random_weights(np.random.default_rng(dims), dims)


def engines_beside_onnxruntime(
    model: onnx.ModelProto, x: np.ndarray, step: float = 1, others: float = 1e-3
) -> list[str]:
    """Asserts that no result is more than a step apart, and but 0.1 % of them, or another share, are equal; returns the engines."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[
        0
    ]
    session = hipdnn_mlir.compile(model).session()
    (got,) = session.run(None, {"x": x})
    assert (got.dtype, got.shape) == (reference.dtype, reference.shape)
    apart = np.abs(np.asarray(got, np.float64) - reference)
    assert apart.max() <= step
    assert (apart > step / 2).mean() <= others
    return [found.get("engine", "") for found in session.steps]


def convolution(
    dtype: Any, zero: int, dims: tuple[int, ...], w: np.ndarray, *, activation: str = "", **attributes: Any
) -> tuple[Model, str]:
    """Of x, with weights by channel and a bias."""
    model = Model()
    per_channel = np.linspace(0.5, 1.5, w.shape[0]).astype(np.float32) * W_SCALE
    bias = np.random.default_rng(1).integers(-3000, 3000, w.shape[0], np.int32)
    y = model.op(
        "Conv",
        model.dequantized("x", X_SCALE, dtype(zero)),
        model.dequantized(model.constant(w), per_channel, np.zeros(w.shape[0], np.int8), 0),
        model.dequantized(model.constant(bias), X_SCALE * per_channel, np.zeros(w.shape[0], np.int32), 0),
        **attributes,
    )
    return model, model.op(activation, y) if activation else y


@pytest.mark.parametrize(
    ("dtype", "zero", "dims", "w", "attributes"),
    [
        (np.uint8, 117, (2, 16, 9, 9), (24, 16, 3, 3), {"pads": [1, 1, 1, 1]}),
        (np.int8, -5, (1, 3, 12, 11), (8, 3, 5, 5), {"pads": [2, 0, 1, 2], "strides": [2, 2]}),
        (np.uint8, 7, (1, 12, 8, 8), (12, 1, 3, 3), {"group": 12, "pads": [1, 1, 1, 1]}),
        (np.int8, 3, (1, 8, 10, 10), (6, 4, 3, 3), {"group": 2, "dilations": [2, 2]}),
        (np.uint8, 0, (1, 5, 20), (4, 5, 4), {"strides": [3]}),
        (np.uint8, 9, (1, 4, 5, 6, 7), (3, 4, 2, 3, 3), {"pads": [0, 1, 1, 1, 1, 1]}),
    ],
)
def test_convolution_is_within_a_step(dtype: Any, zero: int, dims: Any, w: Any, attributes: dict[str, Any]) -> None:
    model, y = convolution(dtype, zero, dims, weights(*w), **attributes)
    x = integers(dtype, *dims)
    assert engines_beside_onnxruntime(model.build(x, model.quantized(y, dtype(20)), dtype), x) in (
        [ENGINE],
        [_COPY, ENGINE],
    )


def test_chain_with_residual_stays_in_bytes() -> None:
    x = integers(np.uint8, 1, 16, 8, 8)
    model, first = convolution(np.uint8, 0, x.shape, weights(16, 16, 3, 3), activation="Relu", pads=[1, 1, 1, 1])
    middle = model.dequantized(model.quantized(first, np.uint8(0)), Y_SCALE, np.uint8(0))
    total = model.op("Relu", model.op("Add", middle, model.dequantized("x", X_SCALE, np.uint8(0))))
    built = model.build(x, model.quantized(total, np.uint8(0)), np.uint8)
    assert engines_beside_onnxruntime(built, x) == [_COPY, ENGINE, "HOST_ROWWISE_ENGINE"]


def test_relu_that_cuts_more_than_clipping_is_computed() -> None:
    x = integers(np.uint8, 1, 4, 6, 6)
    model, y = convolution(np.uint8, 30, x.shape, weights(4, 4, 3, 3), activation="Relu")
    engines = engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(128)), np.uint8), x)
    assert ENGINE not in engines


@pytest.mark.parametrize("dims", [(5, 24), (2, 3, 24), (2, 2, 3, 24)])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_matmul_is_within_a_step(dims: tuple[int, ...], is_rounded: bool) -> None:
    model, x = Model(), integers(np.uint8, *dims)
    right = model.dequantized(model.constant(weights(24, 7)), np.full(7, W_SCALE), np.zeros(7, np.int8), 1)
    y = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(99)), right)
    if is_rounded:
        built, step = model.build(x, model.quantized(y, np.int8(3)), np.int8), 1.0
    else:
        built, step = model.build(x, y, np.float32), 1e-4
    assert engines_beside_onnxruntime(built, x, step) == [ENGINE]


@pytest.mark.parametrize(
    ("dims", "w"), [((24,), (24, 7)), ((3, 24), (24,)), ((3, 4, 24), (3, 24, 24)), ((24,), (3, 24, 7))]
)
@pytest.mark.parametrize("end", ["floats", "bytes", "bias"])
def test_products_of_other_ranks_are_within_a_step(dims: tuple[int, ...], w: tuple[int, ...], end: str) -> None:
    model, x = Model(), integers(np.uint8, *dims)
    right = model.dequantized(model.constant(weights(*w) // 4), W_SCALE, np.int8(0))
    y = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(99)), right)
    if end == "bias":
        rounded = model.dequantized(model.quantized(y, np.uint8(120)), Y_SCALE, np.uint8(120))
        bias = np.linspace(-1, 1, w[-1], dtype=np.float32).reshape(1, 1, 1, -1) if len(w) > 1 else np.float32([0.5])
        y = model.op("Add", rounded, model.constant(bias))
    step, others = (1e-4, 1e-3) if end == "floats" else (1.0, 1.0 if end == "bias" else 1e-3)
    built = (
        model.build(x, y, np.float32)
        if end == "floats"
        else model.build(x, model.quantized(y, np.uint8(110)), np.uint8)
    )
    engines_beside_onnxruntime(built, x, step, others)


def test_scales_in_vectors_of_one_number_count_as_numbers() -> None:
    x = integers(np.uint8, 2, 5, 24)
    model = Model()
    right = model.dequantized(model.constant(weights(24, 7)), np.full(7, W_SCALE), np.zeros(7, np.int8), 1)
    y = model.op("MatMul", model.dequantized("x", np.array([X_SCALE]), np.array([99], np.uint8)), right)
    y = model.op("QuantizeLinear", y, model.constant(np.array([Y_SCALE])), model.constant(np.array([100], np.uint8)))
    assert engines_beside_onnxruntime(model.build(x, y, np.uint8), x) == [ENGINE]


def test_constants_that_nodes_state_are_known() -> None:
    x, model = integers(np.uint8, 1, 4, 6, 6), Model()
    model.constant = lambda array: model.op("Constant", value=numpy_helper.from_array(np.asarray(array)))  # type: ignore[method-assign]
    y = model.op(
        "Conv",
        model.dequantized("x", X_SCALE, np.uint8(5)),
        model.dequantized(model.constant(weights(4, 4, 3, 3)), W_SCALE, np.int8(0)),
    )
    assert ENGINE in engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(9)), np.uint8), x)


def test_constant_that_is_returned_stays() -> None:
    x, model = integers(np.uint8, 2, 3), Model()
    y = model.op("Constant", value=numpy_helper.from_array(np.arange(3, dtype=np.float32)))
    model.dequantized("x", X_SCALE, np.uint8(5))
    engines_beside_onnxruntime(model.build(x, y, np.float32), x)


def test_clip_in_front_of_a_bias_still_cuts() -> None:
    model, x = Model(), integers(np.uint8, 6, 24)
    right = model.dequantized(model.constant(weights(24, 7)), W_SCALE, np.int8(0))
    y = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(128)), right)
    scale, zero = np.float32(0.01), np.uint8(128)
    y = model.op("Clip", y, model.constant(np.float32(-1.28)), model.constant(np.float32(1.27)))
    rounded = model.op("QuantizeLinear", y, model.constant(scale), model.constant(zero))
    total = model.op("Add", model.dequantized(rounded, scale, zero), model.constant(np.arange(-3, 4, dtype=np.float32)))
    engines_beside_onnxruntime(model.build(x, model.quantized(total, np.uint8(110)), np.uint8), x)


@pytest.mark.parametrize("dims", [(6, 9), (1, 9), (6, 1), (1,), ()])
def test_gemm_takes_any_bias(dims: tuple[int, ...]) -> None:
    model, x = Model(), integers(np.uint8, 6, 20)
    bias = np.random.default_rng(0).integers(-3000, 3000, dims).astype(np.int32)
    y = model.op(
        "Gemm",
        model.dequantized("x", X_SCALE, np.uint8(7)),
        model.dequantized(model.constant(weights(20, 9)), W_SCALE, np.int8(0)),
        model.dequantized(model.constant(bias), X_SCALE * W_SCALE, np.int32(0)),
    )
    engines = engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(120)), np.uint8), x)
    assert (ENGINE in engines) == (dims not in ((6, 9), (6, 1)))


@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_is_within_a_step(transposed: int) -> None:
    model, x = Model(), integers(np.int8, 6, 20)
    w = weights(9, 20) if transposed else weights(20, 9)
    bias = np.arange(-4, 5, dtype=np.int32) * 200
    y = model.op(
        "Gemm",
        model.dequantized("x", X_SCALE, np.int8(-4)),
        model.dequantized(model.constant(w), W_SCALE, np.int8(0)),
        model.dequantized(model.constant(bias), X_SCALE * W_SCALE, np.int32(0)),
        transB=transposed,
    )
    assert engines_beside_onnxruntime(model.build(x, model.quantized(y, np.int8(1)), np.int8), x)[-1] == ENGINE


def _dynamic(x: np.ndarray, w: np.ndarray, scale: np.ndarray | np.float32) -> onnx.ModelProto:
    model = Model()
    model.nodes.append(helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "scale", "zero"], name="dynamic"))
    sums = model.op("MatMulInteger", "a", model.constant(w), "zero", model.constant(np.int8(0)))
    factor = model.op("Mul", "scale", model.constant(scale))
    y = model.op("Mul", model.op("Cast", sums, to=TensorProto.FLOAT), factor)
    if scale.size == 1:  # ONNX Runtime scales the bias, too, where it fuses scales of rows
        y = model.op("Add", y, model.constant(np.arange(w.shape[-1], dtype=np.float32)))
    return model.build(x, y, np.float32)


def test_dynamic_quantization_multiplies_integers() -> None:
    x = np.random.default_rng(3).standard_normal((2, 5, 32)).astype(np.float32)
    assert ENGINE in engines_beside_onnxruntime(_dynamic(x, weights(32, 12), W_SCALE), x, 1e-3)


@pytest.mark.parametrize("case", ["vector", "batches", "scales of rows"])
def test_dynamic_quantization_of_other_products_is_the_same(case: str) -> None:
    x = np.random.default_rng(3).standard_normal((32,) if case == "vector" else (2, 12, 32)).astype(np.float32)
    w = weights(2, 32, 12) if case == "batches" else weights(32, 12)
    scale = np.linspace(0.01, 0.1, 12, dtype=np.float32).reshape(12, 1) if case == "scales of rows" else W_SCALE
    engines_beside_onnxruntime(_dynamic(x, w, scale), x, 1e-3)


def test_bias_behind_a_product_is_added_before_it_is_rounded() -> None:
    model, x = Model(), integers(np.uint8, 2, 5, 24)
    small = weights(24, 7) // 4  # what is rounded in between stays inside 8 bits
    right = model.dequantized(model.constant(small), np.full(7, W_SCALE), np.zeros(7, np.int8), 1)
    product = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(99)), right)
    rounded = model.dequantized(model.quantized(product, np.uint8(120)), Y_SCALE, np.uint8(120))
    bias = model.dequantized(model.constant(np.arange(-3, 4, dtype=np.int8)), np.float32(0.3), np.int8(0))
    y = model.quantized(model.op("Add", bias, rounded), np.uint8(110))
    assert engines_beside_onnxruntime(model.build(x, y, np.uint8), x, others=1) == [ENGINE]  # ONNX Runtime rounds twice


def test_product_of_one_row_packs_its_weights_once() -> None:
    model, x = Model(), integers(np.uint8, 1, 70)
    right = model.dequantized(model.constant(weights(70, 33)), np.full(33, W_SCALE), np.zeros(33, np.int8), 1)
    y = model.op("MatMul", model.dequantized("x", X_SCALE, np.uint8(99)), right)
    assert engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(100)), np.uint8), x) == [ENGINE]


def test_channels_that_are_inputs_of_the_graph_are_looked_at() -> None:
    x, w = integers(np.uint8, 1, 4, 3, 3), weights(1040, 4, 1, 1)
    model, y = convolution(np.uint8, 30, x.shape, w)
    assert ENGINE in engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(128)), np.uint8), x)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Transpose", {"perm": [0, 2, 3, 1]}),
        ("Flatten", {}),
        ("Resize", {"mode": "nearest"}),
    ],
)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_movement_between_quantized_tensors_moves_bytes(op: str, attributes: dict[str, Any], dtype: Any) -> None:
    model, x = Model(), integers(dtype, 1, 6, 8, 8)
    sizes = ["", model.constant(np.array([1, 1, 2, 2], np.float32))] if op == "Resize" else []
    y = model.op(op, model.dequantized("x", Y_SCALE, dtype(7)), *sizes, **attributes)
    built = model.build(x, model.quantized(y, dtype(7)), dtype)
    reference = ort.InferenceSession(built.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    session = hipdnn_mlir.compile(built).session()
    (got,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(got, reference[0])
    assert len(session.steps) <= (3 if op == "MaxPool" else 1)  # windows are read channels-last


@pytest.mark.parametrize("same", [True, False])
def test_concatenated_bytes_of_other_scales_are_quantized_again(same: bool) -> None:
    model, x = Model(), integers(np.uint8, 2, 3, 5)
    other = model.dequantized("x", Y_SCALE if same else X_SCALE, np.uint8(7 if same else 90))
    joined = model.op("Concat", model.dequantized("x", Y_SCALE, np.uint8(7)), other, axis=1)
    engines_beside_onnxruntime(model.build(x, model.quantized(joined, np.uint8(7)), np.uint8), x)


def test_concatenated_floats_that_are_returned_are_not_quantized() -> None:
    model, x = Model(), integers(np.uint8, 2, 3, 5)
    joined = model.op(
        "Concat", model.dequantized("x", Y_SCALE, np.uint8(7)), model.dequantized("x", X_SCALE, np.uint8(90))
    )
    model.nodes[-1].attribute.append(helper.make_attribute("axis", 1))
    model.op("QuantizeLinear", joined, model.constant(np.float32(0.5)), model.constant(np.uint8(7)))
    engines_beside_onnxruntime(model.build(x, joined, np.float32), x, 1e-6)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_maxima_of_bytes_with_a_border_on_one_side_are_those_inside(dtype: Any) -> None:
    model, x = Model(), integers(dtype, 1, 3, 6, 6) // 4 - (90 if dtype is np.int8 else 0)
    x = x.astype(dtype)
    y = model.op("MaxPool", "x", kernel_shape=[2, 2], pads=[0, 1, 1, 0])
    engines_beside_onnxruntime(model.build(x, y, dtype), x, 0.5)


def test_number_beyond_the_border_of_a_crop_is_no_integer() -> None:
    model, x = Model(), integers(np.uint8, 1, 2, 4, 4)
    box, sizes = np.array([0, 0, -0.5, -0.5, 1, 1, 1.5, 1.5], np.float32), np.array([1, 2, 6, 6])
    crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.3}
    parameters = model.constant(box), "", model.constant(sizes)
    y = model.op("Resize", model.dequantized("x", Y_SCALE, np.uint8(7)), *parameters, mode="nearest", **crop)
    engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(7)), np.uint8), x)


def test_movement_of_halves_that_bytes_become_keeps_their_type() -> None:
    model, x = Model(), integers(np.uint8, 3, 8)
    y = model.op("Transpose", model.dequantized("x", X_SCALE, np.uint8(9)))
    model.nodes[0].attribute.append(helper.make_attribute("output_dtype", TensorProto.FLOAT16))
    built = model.build(x, model.op("Relu", y), np.float16)
    built.opset_import[0].version, built.ir_version = 23, 11
    engines_beside_onnxruntime(built, x, 1e-3)


@pytest.mark.parametrize("op", ["HardSwish", "Sigmoid", "Gelu", "LeakyRelu"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_function_of_a_byte_is_a_table(op: str, dtype: Any) -> None:
    model, x = Model(), integers(dtype, 3, 2000)
    y = model.op(op, model.dequantized("x", X_SCALE, dtype(33)))
    built = model.build(x, model.quantized(y, dtype(-30 if dtype is np.int8 else 30)), dtype)
    engines_beside_onnxruntime(built, x)
    (step,) = hipdnn_mlir.compile(built).session().steps
    assert "table" in step["summary"] + str(step)


def test_bytes_that_others_read_too_are_not_stored_as_floats() -> None:
    x = integers(np.uint8, 1, 16, 8, 8)
    model = Model()
    y = model.op("HardSigmoid", model.dequantized("x", X_SCALE, np.uint8(128)), alpha=0.25, beta=0.5)
    shared = model.dequantized(model.quantized(y, np.uint8(3)), Y_SCALE, np.uint8(3))
    w = model.dequantized(model.constant(weights(16, 16, 1, 1)), W_SCALE, np.int8(0))
    summed = model.dequantized(model.quantized(model.op("Conv", shared, w), np.uint8(9)), Y_SCALE, np.uint8(9))
    total = model.op("Add", summed, shared)
    built = model.build(x, model.quantized(total, np.uint8(0)), np.uint8)
    engines_beside_onnxruntime(built, x)
    session = hipdnn_mlir.compile(built).session()
    buffers = session.arena[: -len(session.steps)]
    assert max(size for _, size, _, _ in buffers) <= x.size


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_floats_become_the_nearest_bytes(dtype: Any) -> None:
    model = Model()
    x = (np.arange(-2000, 2000) * (0.5 * 0.25)).astype(np.float32)  # every second one is halfway
    x[:4] = [np.inf, -np.inf, 1e30, -1e30]
    y = model.op("QuantizeLinear", "x", model.constant(np.float32(0.25)), model.constant(dtype(11)))
    built = model.build(x, y, dtype)
    reference = ort.InferenceSession(built.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    np.testing.assert_array_equal(hipdnn_mlir.compile(built).session().run(None, {"x": x})[0], reference[0])


@pytest.mark.parametrize("case", ["unsigned", "zero point", "bias"])
def test_other_weights_are_computed_in_floats(case: str) -> None:
    model, x = Model(), integers(np.uint8, 1, 4, 6, 6)
    w, zero = weights(4, 4, 3, 3), np.int8(2 if case == "zero point" else 0)
    if case == "unsigned":
        w, zero = (w.astype(np.int16) // 2 + 64).astype(np.uint8), np.uint8(64)
    scale = np.float32(3) if case == "bias" else np.float32(1)
    y = model.op(
        "Conv",
        model.dequantized("x", X_SCALE, np.uint8(5)),
        model.dequantized(model.constant(w), W_SCALE, zero),
        model.dequantized(model.constant(np.arange(4, dtype=np.int32)), X_SCALE * W_SCALE * scale, np.int32(0)),
    )
    engines = engines_beside_onnxruntime(model.build(x, model.quantized(y, np.uint8(9)), np.uint8), x)
    assert ENGINE not in engines


def test_halves_round_to_even() -> None:
    model = Model()
    x = np.array(
        [-2.5, -1.5, -0.5, -0.49999997, 0.5, 0.49999997, 1.5, 2.5, 4194304.5, 8388607.5, 1e30, -np.inf], np.float32
    )
    built = model.build(x, model.op("Round", model.op("Mul", "x", model.constant(np.float32(1)))), np.float32)
    (got,) = hipdnn_mlir.compile(built).session().run(None, {"x": x})
    np.testing.assert_array_equal(got, np.round(x))


def _quantized_lstm(folder: Path) -> onnx.ModelProto:
    """Both directions, with a bias and an open length."""
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 17]>
      g (float[steps,3,24] x) => (float[steps,2,3,40] y, float[2,3,40] h, float[2,3,40] c) {
        y, h, c = LSTM<hidden_size=40, direction="bidirectional">(x, w, r, b) }""")
    rng = np.random.default_rng(0)
    for name, dims in {"w": (2, 160, 24), "r": (2, 160, 40), "b": (2, 320)}.items():
        array = rng.standard_normal(dims, np.float32) / np.float32(np.sqrt(dims[-1]))
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return quantized_in_each_run(model, folder, "LSTM")


def test_an_lstm_that_is_quantized_in_each_run_multiplies_integers(tmp_path: Path) -> None:
    model, options = _quantized_lstm(tmp_path), ort.SessionOptions()
    options.intra_op_num_threads = 1  # threads share the rows of a batch, and have a range each
    reference = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model).session()
    for steps in (2, 9):
        x = np.random.default_rng(steps).standard_normal((steps, 3, 24), np.float32)
        for got, want in zip(session.run(None, {"x": x}), reference.run(None, {"x": x}), strict=True):
            assert np.abs(want).max() > 0.3
            np.testing.assert_allclose(got, want, atol=2e-3)
    assert "quantized_recurrence" in {step["summary"] for step in session.steps}
    assert ENGINE in {step.get("engine") for step in session.steps}


def test_an_lstm_of_bytes_has_weights_of_floats_when_compiled_for_a_gpu(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    model = _quantized_lstm(tmp_path)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    (node,) = (node for node in model.graph.node if node.op_type == "DynamicQuantizeLSTM")
    recurrence, scale = arrays[node.input[2]], arrays[node.input[10]]
    zero = arrays[node.input[11]].reshape(2, 1, -1)
    floats = (recurrence.astype(np.float32) - zero) * scale.reshape(2, 1, -1)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 5
    program = hipdnn_mlir.compile(model, target="sm_90")
    assert program.model.summary(program.model.steps[-1]) == "recurrence"
    wanted = panels(np.ascontiguousarray(floats.transpose(0, 2, 1)), 4)
    stored = [array.view(np.float32) for array in program.weights.values() if array.nbytes == wanted.nbytes]
    assert any(np.array_equal(array.reshape(-1), wanted) for array in stored)
