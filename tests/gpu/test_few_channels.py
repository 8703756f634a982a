"""Convolutions of images of few channels on matrix units, against ONNX Runtime's of the rounded operands."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import Body, graph_of, run_graph
from gpu.layers import op
from gpu.test_contractions import onnxruntime_of, spec, stored
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.few_channels import few_channels
from hipdnn_mlir.ops.spec import Refusal
from hipdnn_mlir_runtime.abi import Pointwise
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import Array, TensorSpec

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16)}
LIMITS = {"f16": 1e-3, "bf16": 8e-3}

CASES = [  # x, w, strides, pads
    ((1, 3, 21, 18), (16, 3, 7, 7), (2, 2), (3, 3)),
    ((2, 3, 11, 9), (8, 3, 3, 3), (1, 1), (1, 1)),
    ((2, 3, 12, 40), (24, 3, 3, 3), (2, 2), (0, 1)),
    ((1, 1, 9, 14), (64, 1, 5, 5), (1, 2), (4, 0)),
    ((1, 4, 8, 8), (72, 4, 4, 4), (4, 4), (0, 0)),
    ((1, 2, 5, 40), (8, 2, 1, 9), (1, 3), (0, 5)),
    ((3, 3, 1, 1), (8, 3, 3, 3), (1, 1), (2, 2)),
]  # fmt: skip


def drawn(dtype: str, *dims: int, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(TYPES[dtype])


def expected(x: Array, w: Array, case: tuple[Any, ...]) -> Array:
    _, _, strides, pads = case
    given = [array.astype(np.float32) for array in (x, w)]
    return onnxruntime_of("Conv", given, strides=strides, pads=pads * 2)


def convolution(e: Emitter, x: Value, w: Value, case: tuple[Any, ...], dims: tuple[int, ...], **options: Any) -> Value:
    strides, pads = (list(values) for values in case[2:])
    return op(e, "aten.convolution", x, w, None, strides, pads, [1, 1], False, [0, 0], 1, dims=dims, **options)


def of_case(case: tuple[Any, ...], dims: tuple[int, ...]) -> Body:
    return lambda e, x, w: convolution(e, x, w, case, dims)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_onnxruntime(case: tuple[Any, ...], dtype: str) -> None:
    x, w = drawn(dtype, *case[0]), drawn(dtype, *case[1], seed=2)
    want = expected(x, w, case)
    out = spec(dtype, want.shape, channels_last=True)
    graph = graph_of(of_case(case, want.shape), [x, w], [out])
    assert few_channels(graph).steps == (case[1][2], -(-case[1][3] // 4))
    (got,) = run_graph(of_case(case, want.shape), [x, w], [out])
    assert np.linalg.norm(got.astype(np.float64) - want) < LIMITS[dtype] * np.linalg.norm(want)


@pytest.mark.parametrize("of_image", [False, True])
@pytest.mark.parametrize("of_result", [False, True])
def test_any_order_of_memory_and_an_epilogue(of_result: bool, of_image: bool) -> None:
    case = CASES[0]
    x, w = stored(drawn("f16", *case[0]), of_image), stored(drawn("f16", *case[1], seed=2), of_image)
    bias, plain = drawn("f16", 1, 16, 1, 1, seed=3), expected(x, w, case)
    residual = stored(drawn("f16", *plain.shape, seed=4), of_result)
    out = spec("f16", plain.shape, of_result)

    def body(e: Emitter, *values: Value) -> list[Value]:
        sums = e.pointwise(Pointwise.ADD, convolution(e, *values[:2], case, plain.shape), values[2])
        return [e.pointwise(Pointwise.RELU_FWD, e.pointwise(Pointwise.ADD, sums, values[3]))]

    (got,) = run_graph(body, [x, w, bias, residual], [out])
    want = np.maximum(plain + bias.astype(np.float64) + residual.astype(np.float64), 0)
    assert np.linalg.norm(got.astype(np.float64) - want) < 1e-3 * np.linalg.norm(want)


def test_blocks_that_compute_several_tiles() -> None:
    case = ((1, 3, 80, 80), (88, 3, 3, 3), (1, 1), (1, 1))
    x, w = drawn("f16", *case[0]), drawn("f16", *case[1], seed=2)
    want = expected(x, w, case)
    out = spec("f16", want.shape, channels_last=True)
    (got,) = run_graph(of_case(case, want.shape), [x, w], [out])
    assert np.linalg.norm(got.astype(np.float64) - want) < LIMITS["f16"] * np.linalg.norm(want)


@pytest.mark.parametrize("of_image", [False, True])
def test_the_image_is_rounded_where_it_is_read(of_image: bool) -> None:
    case = CASES[0]
    x = stored(drawn("f16", *case[0]).astype(np.float32) * 1.001, of_image)
    w = drawn("f16", *case[1], seed=2)
    want = expected((np.maximum(x, np.float32(-0.5)) * np.float32(3)).astype(np.float16), w, case)
    out = spec("f32", want.shape, channels_last=True)

    def body(e: Emitter, a: Value, factor: Value, b: Value) -> Value:
        scaled = e.pointwise(Pointwise.MUL, op(e, "aten.clamp", a, -0.5, None), factor)
        return convolution(
            e,
            op(e, "aten.to.dtype", scaled, 5, False, False, None, dtype=BY_NAME["f16"]),
            b,
            case,
            want.shape,
            dtype=BY_NAME["f32"],
        )

    factor = np.full((1, 1, 1, 1), 3, np.float32)
    graph = graph_of(body, [x, factor, w], [out])
    assert few_channels(graph).image.dtype is BY_NAME["f32"]
    (got,) = run_graph(body, [x, factor, w], [out])
    assert np.linalg.norm(got.astype(np.float64) - want) < 1e-6 * np.linalg.norm(want)


def test_an_image_that_others_read_is_not_computed_here() -> None:
    case = ((1, 3, 9, 9), (8, 3, 3, 3), (1, 1), (1, 1))
    x, w = drawn("f16", *case[0]), drawn("f16", *case[1], seed=2)
    outs = [spec("f16", (1, 8, 9, 9), channels_last=True), spec("f16", (1, 3, 9, 9), channels_last=False)]

    def body(e: Emitter, a: Value, b: Value) -> list[Value]:
        cut = e.pointwise(Pointwise.RELU_FWD, a)
        return [convolution(e, cut, b, case, (1, 8, 9, 9)), cut]

    with pytest.raises(Refusal):
        few_channels(graph_of(body, [x, w], outs))


def test_sums_of_bytes_are_exact() -> None:
    case, rng = CASES[0], np.random.default_rng(5)
    x = rng.integers(-255, 256, case[0]).astype(np.float16)
    w = rng.integers(-128, 128, case[1]).astype(np.float16)
    want = expected(x, w, case)
    out = TensorSpec("f32", want.shape)
    (got,) = run_graph(lambda e, a, b: convolution(e, a, b, case, want.shape, dtype=BY_NAME["f32"]), [x, w], [out])
    np.testing.assert_array_equal(got, want)


def test_what_the_image_does_not_have_is_nothing_whatever_lies_there() -> None:
    case = ((1, 3, 8, 8), (8, 3, 3, 3), (1, 1), (1, 1))
    x, w = drawn("f16", *case[0]), drawn("f16", *case[1], seed=2)
    x[0, 0, 0, 0] = x[0, 2, 5, 3] = np.inf
    want = expected(x, w, case)
    out = spec("f16", want.shape, channels_last=True)
    (got,) = run_graph(of_case(case, want.shape), [x, w], [out])
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))


@pytest.mark.parametrize(
    ("x", "w"), [((1, 5, 9, 9), (8, 5, 3, 3)), ((1, 3, 9, 9), (6, 3, 3, 3)), ((1, 3, 30, 30), (8, 3, 9, 9))], ids=str
)
def test_others_are_refused(x: tuple[int, ...], w: tuple[int, ...]) -> None:
    case = (x, w, (1, 1), (4, 4))
    arrays = [drawn("f16", *x), drawn("f16", *w)]
    dims = expected(*arrays, case).shape
    with pytest.raises(Refusal):
        few_channels(graph_of(of_case(case, dims), arrays, [TensorSpec("f16", dims)]))


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_nvidia(arch: str) -> None:
    case = ((1, 3, 224, 224), (64, 3, 7, 7), (2, 2), (3, 3))
    arrays = [np.empty(dims, np.float16) for dims in case[:2]]
    out = spec("f16", (1, 64, 112, 112), channels_last=True)
    made = generate_graph(graph_of(of_case(case, out.dims), arrays, [out]), find_architecture(arch))
    assert not isinstance(made, Reject)
    compiled.check(made)
    assert ("mma.sync" in str(made.code)) == arch.startswith("sm_")
