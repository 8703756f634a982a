"""Generated convolutions and matmuls, with what is computed on their results, against onnx's reference evaluator and float64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from gpu import compiled
from gpu.graphs import Body, graph_of, row, run_graph
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.codegen.generate import launch_of_graph
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir_runtime.abi import Pointwise
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype
from host_kernels.onnx_reference import reference

CONVOLUTIONS = [  # x, w, groups, strides, pads, dilations
    ((2, 5, 9, 7), (6, 5, 3, 3), 1, (1, 1), (1, 1), (1, 1)),
    ((1, 8, 10, 9), (4, 8, 3, 2), 1, (2, 3), (2, 0), (1, 2)),
    ((2, 16, 6, 6), (8, 16, 1, 1), 1, (1, 1), (0, 0), (1, 1)),
    ((1, 12, 7, 7), (20, 3, 3, 3), 4, (2, 2), (1, 1), (1, 1)),
    ((1, 7, 8, 8), (7, 1, 3, 3), 7, (1, 1), (1, 1), (1, 1)),
    ((2, 4, 19), (6, 4, 5), 1, (2,), (4,), (2,)),
    ((1, 3, 5, 6, 7), (4, 3, 2, 3, 2), 1, (1, 2, 2), (1, 1, 0), (2, 1, 1)),
    ((3, 1, 1, 1), (2, 1, 1, 1), 1, (1, 1), (0, 0), (1, 1)),
    ((1, 3, 30, 30), (70, 3, 7, 7), 1, (2, 2), (3, 3), (1, 1)),
]
TRANSPOSED = [  # x, w, groups, strides, pads, dilations, output padding
    ((2, 5, 4, 6), (5, 6, 3, 3), 1, (1, 1), (1, 1), (1, 1), (0, 0)),
    ((1, 6, 5, 4), (6, 2, 3, 2), 3, (2, 3), (1, 0), (1, 2), (1, 0)),
    ((2, 8, 6), (8, 5, 4), 1, (4,), (2,), (1,), (3,)),
    ((1, 4, 3, 2, 3), (4, 3, 2, 2, 2), 1, (2, 1, 2), (0, 1, 1), (1, 1, 1), (0, 0, 0)),
    ((1, 16, 5, 5), (16, 8, 1, 1), 1, (2, 2), (0, 0), (1, 1), (1, 1)),
]
MATMULS: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((5, 7), (7, 6)), ((1, 300), (300, 33)), ((70, 18), (18, 1)), ((130, 40), (40, 96)), ((2, 3, 9, 8), (2, 3, 8, 7)),
    ((2, 3, 9, 8), (8, 7)), ((4, 5), (2, 3, 5, 6)), ((2, 1, 9, 8), (1, 3, 8, 7)), ((1, 1), (1, 1)), ((3, 1, 4), (3, 4, 1)),
]  # fmt: skip


def numbers(*shape: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stored(x: Array, channels_last: bool) -> Array:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if channels_last else x


def spec(dtype: str, dims: Sequence[int], channels_last: bool) -> TensorSpec:
    steps = stored(np.zeros(dims, np.int8), channels_last).strides
    return TensorSpec(dtype, tuple(dims), tuple(steps))


def onnxruntime_of(operator: str, arrays: Sequence[Array], **attributes: Any) -> Array:
    """What ONNX Runtime makes of f32 arrays: onnx's reference evaluator refuses transposed convolutions of several groups."""
    names = [f"x{number}" for number in range(len(arrays))]
    infos = [onnx.helper.make_tensor_value_info(n, 1, array.shape) for n, array in zip(names, arrays, strict=True)]
    node = onnx.helper.make_node(operator, names, ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "one", infos, [onnx.helper.make_tensor_value_info("y", 1, None)])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 22)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(zip(names, arrays, strict=True)))[0])


def convolution(case: tuple[Any, ...], out: TensorSpec, *, transposed: bool = False) -> Body:
    _, _, groups, strides, pads, dilations, *extra = case
    more = list(extra[0]) if extra else [0] * len(pads)
    arguments = (..., ..., None, list(strides), list(pads), list(dilations), transposed, more, groups)
    return row("aten.convolution", *arguments, results=[out])


@pytest.mark.parametrize("architecture", ["sm_90", "gfx942"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_convolution_equals_reference(case: tuple[Any, ...], channels_last: bool, architecture: str) -> None:
    x, w = numbers(*case[0]), numbers(*case[1], seed=2)
    _, _, groups, strides, pads, dilations = case
    (want,) = reference("Conv", [x, w], group=groups, strides=strides, pads=pads * 2, dilations=dilations)
    out = spec("f32", want.shape, channels_last)
    arrays = [stored(x, channels_last), stored(w, channels_last)]
    (got,) = run_graph(convolution(case, out), arrays, [out], architecture)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed_convolution_equals_reference(case: tuple[Any, ...], channels_last: bool) -> None:
    x, w = numbers(*case[0]), numbers(*case[1], seed=2)
    _, _, groups, strides, pads, dilations, more = case
    want = onnxruntime_of(
        "ConvTranspose", [x, w], group=groups, strides=strides, pads=pads * 2, dilations=dilations, output_padding=more
    )
    out = spec("f32", want.shape, channels_last)
    arrays = [stored(x, channels_last), stored(w, channels_last)]
    (got,) = run_graph(convolution(case, out, transposed=True), arrays, [out])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_filter_reaches_over_all_borders_when_asymmetric() -> None:
    x, w = numbers(1, 2, 4, 5), numbers(3, 2, 3, 3, seed=2)
    (want,) = reference("Conv", [x, w], pads=[2, 0, 0, 3])
    out = TensorSpec("f32", want.shape)

    def body(e: Emitter, a: Value, b: Value) -> Value:
        border = Value(a.tensor, a.dims, a.dtype, ((0, 0, 2, 0), (0, 0, 0, 3), 0.0))
        e._values[0] = border
        return convolution((x.shape, w.shape, 1, (1, 1), (0, 0), (1, 1)), out)(e, border, b)  # type: ignore[return-value]

    (got,) = run_graph(body, [x, w], [out])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("shapes", MATMULS)
def test_matmul_equals_float64(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = numbers(*shapes[0]), numbers(*shapes[1], seed=2)
    want = a.astype(np.float64) @ b.astype(np.float64)
    out = TensorSpec("f32", want.shape)
    (got,) = run_graph(row("aten.matmul", ..., ..., results=[out]), [a, b], [out])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("which", ["a", "b", "out", "all"])
def test_matmul_equals_float64_when_matrices_lie_transposed(which: str) -> None:
    a, b = numbers(3, 37, 21), numbers(3, 21, 50, seed=2)
    want = a.astype(np.float64) @ b.astype(np.float64)
    if which in ("a", "all"):
        a = np.ascontiguousarray(a.swapaxes(1, 2)).swapaxes(1, 2)
    if which in ("b", "all"):
        b = np.ascontiguousarray(b.transpose(1, 2, 0)).transpose(2, 0, 1)
    out = TensorSpec("f32", want.shape, (37 * 50, 1, 37) if which in ("out", "all") else None)
    (got,) = run_graph(row("aten.matmul", ..., ..., results=[out]), [a, b], [out])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def test_sums_meet_infinities_outside_of_a_tile_unharmed() -> None:
    """What lies beside a tile is not multiplied by zero, which would make infinities nan."""
    a, b = numbers(17, 5), numbers(5, 19, seed=2)
    a[0, 0], b[0, 0] = np.inf, -np.inf
    out = TensorSpec("f32", (17, 19))
    (got,) = run_graph(row("aten.matmul", ..., ..., results=[out]), [a, b], [out])
    with np.errstate(invalid="ignore"):
        want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


def epilogue(case: tuple[Any, ...], out: TensorSpec) -> Body:
    """Bias, residual, ReLU behind a convolution."""

    def body(e: Emitter, x: Value, w: Value, bias: Value, residual: Value) -> Value:
        y = convolution(case, out)(e, x, w)
        assert isinstance(y, Value)
        y = e.pointwise(Pointwise.ADD, y, e.view(bias, (1, y.dims[1], *(1,) * (y.rank - 2))))
        return e.pointwise(Pointwise.RELU_FWD, e.pointwise(Pointwise.ADD, y, residual))

    return body


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("channels", [8, 20, 5])
def test_convolution_and_epilogue_equal_float64(dtype: str, channels_last: bool, channels: int) -> None:
    case = ((2, 4, 9, 9), (channels, 4, 3, 3), 1, (1, 1), (1, 1), (1, 1))
    arrays = [numbers(*case[0]), numbers(*case[1]), numbers(channels), numbers(2, channels, 9, 9, seed=4)]
    arrays = [array.astype(numpy_dtype(dtype)) for array in arrays]
    x, w, bias, residual = (array.astype(np.float64) for array in arrays)
    (y,) = reference("Conv", [x, w], pads=[1, 1, 1, 1])
    want = np.maximum(y + bias[:, None, None] + residual, 0)
    out = spec(dtype, want.shape, channels_last)
    given = [stored(array, channels_last) if array.ndim > 1 else array for array in arrays]
    (got,) = run_graph(epilogue(case, out), given, [out])
    rtol = {"f32": 2e-5, "f16": 2e-3, "bf16": 1e-2}[dtype]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=rtol, atol=rtol)


def test_matmul_and_epilogue_equal_float64_when_the_residual_is_an_operand() -> None:
    a, bias = numbers(40, 40), numbers(40, seed=3)

    def body(e: Emitter, x: Value, c: Value) -> Value:
        made = e.pointwise(Pointwise.ADD, matmul_node(e, x, x), c)
        return e.pointwise(Pointwise.TANH_FWD, e.pointwise(Pointwise.ADD, made, x))

    out = TensorSpec("f32", (40, 40))
    (got,) = run_graph(body, [a, bias], [out])
    wide = a.astype(np.float64)
    np.testing.assert_allclose(got, np.tanh(wide @ wide + bias + wide), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", compiled.ALL)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_code_is_whole_when_a_convolution_has_an_epilogue(dtype: str, name: str) -> None:
    case = ((8, 64, 28, 28), (128, 64, 3, 3), 1, (1, 1), (1, 1), (1, 1))
    kind = numpy_dtype(dtype)
    shapes = [case[0], case[1], (128,), (8, 128, 28, 28)]
    arrays = [stored(np.zeros(shape, kind), True) if len(shape) > 1 else np.zeros(shape, kind) for shape in shapes]
    out = spec(dtype, shapes[3], True)
    kernel = generate_graph(graph_of(epilogue(case, out), arrays, [out]), find_architecture(name))
    compiled.check(kernel)
    assert kernel.shared_bytes <= find_architecture(name).shared_bytes


def test_large_matmuls_have_large_tiles_and_small_ones_many_blocks() -> None:
    arch = find_architecture("sm_90")
    for m, n, blocks in ((4096, 4096, 1024), (1, 1000, 63), (512, 512, 256)):
        arrays = [np.zeros((m, 64), np.float32), np.zeros((64, n), np.float32)]
        out = TensorSpec("f32", (m, n))
        launch = launch_of_graph(graph_of(row("aten.matmul", ..., ..., results=[out]), arrays, [out]), arch)
        assert (launch.blocks, launch.threads) == (blocks, 256)
