"""Convolutions of one tap of signed bytes on matrix units: the very sums, and all that is computed on them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, run_graph
from gpu.layers import op
from gpu.test_contractions import spec, stored
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.byte_products import byte_products
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.spec import Refusal
from hipdnn_mlir_runtime.abi import Pointwise
from hipdnn_mlir_runtime.dtypes import BY_NAME, I32
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import Array

CASES = [  # x, channels of the result, strides
    ((2, 64, 9, 8), 64, (1, 1)),
    ((1, 16, 5, 5), 8, (1, 1)),
    ((3, 80, 7, 7), 24, (2, 2)),
    ((1, 112, 6, 10), 48, (1, 3)),
    ((5, 128, 1, 1), 112, (1, 1)),
]  # fmt: skip


def drawn(*dims: int, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *dims]).integers(-128, 128, dims).astype(np.int8)


def sums(x: Array, w: Array, strides: tuple[int, int]) -> Array:
    read = x[:, :, :: strides[0], :: strides[1]]
    return np.einsum("nchw,kc->nkhw", read.astype(np.int64), w[:, :, 0, 0].astype(np.int64))


def convolution(e: Emitter, case: tuple[Any, ...], *values: Value, to: str = "f32") -> Value:
    """Of x, w, factor and offset."""
    x, w, factor, offset = values
    dims = (case[0][0], case[1], *(-(-size // step) for size, step in zip(case[0][2:], case[2], strict=True)))
    zero = e.scalar(0, I32)
    return op(e, "QuantizedConv", x, w, zero, factor, offset, dims=dims, dtype=BY_NAME[to], strides=[*case[2]], to=to)


def operands(case: tuple[Any, ...], channels_last: bool = True) -> list[Array]:
    """Of a convolution whose result has any byte."""
    (n, inner, *sizes), channels, _ = case
    rng = np.random.default_rng(channels)
    factor = rng.uniform(0.5, 1.5, channels) / (100 * np.sqrt(inner))
    offset = rng.uniform(-20, 20, channels)
    x, w = stored(drawn(n, inner, *sizes), channels_last), drawn(channels, inner, 1, 1, seed=2)
    return [x, w, factor.astype(np.float32), offset.astype(np.float32)]


def scaled(values: list[Array], strides: tuple[int, int]) -> Array:
    x, w, factor, offset = values
    factor, offset = (v[:, None, None].astype(np.float64) for v in (factor, offset))
    return sums(x, w, strides) * factor + offset


def nearest(x: Array) -> Array:
    return np.clip(np.rint(x), -128, 127)


@pytest.mark.parametrize("channels_last", [True, False])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_sums_are_exact(case: tuple[Any, ...], channels_last: bool) -> None:
    values = operands(case, channels_last)
    values[2:] = np.ones_like(values[2]), np.zeros_like(values[3])
    want = sums(values[0], values[1], case[2])
    out = spec("f32", want.shape, channels_last)
    assert byte_products(graph_of(lambda e, *v: convolution(e, case, *v), values, [out])).strides == case[2]
    (got,) = run_graph(lambda e, *v: convolution(e, case, *v), values, [out])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bytes_are_the_nearest(case: tuple[Any, ...]) -> None:
    values = operands(case)
    exact = scaled(values, case[2])
    out = spec("i8", exact.shape, channels_last=True)
    (got,) = run_graph(lambda e, *v: convolution(e, case, *v, to="i8"), values, [out])
    assert np.abs(got - exact.clip(-128, 127)).max() <= 0.5 + 1e-4
    assert got.min() == -128
    assert got.max() == 127
    (got,) = run_graph(
        lambda e, *v: op(e, "Quantize", convolution(e, case, *v), dtype=BY_NAME["u8"], scale=0.5, zero=7, to="u8"),
        values,
        [spec("u8", exact.shape, channels_last=True)],
    )
    assert np.abs(got - (2 * exact + 7).clip(0, 255)).max() <= 0.5 + 1e-4


def test_residual_of_bytes_is_added_before_the_sum_is_rounded() -> None:
    case = CASES[0]
    values = operands(case)
    exact = scaled(values, case[2])
    residual = stored(drawn(*exact.shape, seed=5), channels_last=True)

    def body(e: Emitter, *given: Value) -> Value:
        x, w, factor, offset, other = given
        wide = op(e, "Dequantize", other, dtype=BY_NAME["f32"], scale=0.25, zero=0)
        total = e.pointwise(Pointwise.ADD, convolution(e, case, x, w, factor, offset), wide)
        cut = e.pointwise(Pointwise.RELU_FWD, total)
        return op(e, "Quantize", cut, dtype=BY_NAME["i8"], scale=1.0, zero=0, to="i8")

    (got,) = run_graph(body, [*values, residual], [spec("i8", exact.shape, channels_last=True)])
    want = np.maximum(exact + 0.25 * residual.astype(np.float64), 0)
    assert np.abs(got - want.clip(-128, 127)).max() <= 0.5 + 1e-4


def test_bytes_that_others_read_are_stored_as_bytes() -> None:
    case = CASES[1]

    def body(e: Emitter, *values: Value) -> Value:
        few = convolution(e, case, *values, to="i8")
        return op(e, "Dequantize", few, dtype=BY_NAME["f32"], scale=0.25, zero=0)

    with pytest.raises(Refusal):
        byte_products(graph_of(body, operands(case), [spec("f32", (1, 8, 5, 5), channels_last=True)]))


@pytest.mark.parametrize(
    ("dims", "w"), [((1, 24, 5, 5), (8, 24)), ((1, 16, 5, 5), (12, 16)), ((1, 256, 5, 5), (64, 256))], ids=str
)
def test_others_are_refused(dims: tuple[int, ...], w: tuple[int, int]) -> None:
    case = dims, w[0], (1, 1)
    values = operands(case)
    with pytest.raises(Refusal):
        byte_products(
            graph_of(lambda e, *v: convolution(e, case, *v), values, [spec("f32", (1, w[0], *dims[2:]), True)])
        )


@pytest.mark.parametrize("channels_last", [True, False])
def test_no_byte_of_a_float_is_stored_alone(channels_last: bool) -> None:
    case = CASES[0]
    for body in (
        lambda e, *v: convolution(e, case, *v, to="i8"),
        lambda e, *v: op(e, "Quantize", convolution(e, case, *v), dtype=BY_NAME["i8"], scale=0.5, zero=3, to="i8"),
    ):
        graph = graph_of(body, operands(case), [spec("i8", (2, 64, 9, 8), channels_last)])
        made = generate_graph(graph, find_architecture("sm_90"))
        assert not isinstance(made, Reject)
        compiled.check(made)


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_nvidia(arch: str) -> None:
    case = ((32, 64, 56, 56), 256, (1, 1))
    given = [np.empty(case[0], np.int8), np.empty((256, 64, 1, 1), np.int8), *(np.empty(256, np.float32) for _ in "fo")]
    given[0] = stored(given[0], channels_last=True)
    graph = graph_of(
        lambda e, *v: convolution(e, case, *v, to="i8"), given, [spec("i8", (32, 256, 56, 56), channels_last=True)]
    )
    made = generate_graph(graph, find_architecture(arch))
    if not arch.startswith("sm_"):
        assert isinstance(made, Reject)
        return
    assert not isinstance(made, Reject)
    compiled.check(made)
    assert re.findall(r"mma\.sync\.aligned\.m16n8k32\.row\.col(?:\.satfinite)?\.s32\.s8\.s8\.s32", str(made.code))
