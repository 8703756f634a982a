"""Functions whose results are stored in 16 bits: every operand of f16 and bf16 against float64, and where the long forms stay."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gpu import compiled
from gpu.emulated import describe, run_kernel
from gpu.graphs import graph_of, run_graph
from hipdnn_mlir.codegen import find_architecture, generate, generate_graph
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R
from hipdnn_mlir_runtime.dtypes import BOOL, F16, F32
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype

_erf, _erfc = np.vectorize(math.erf, [float]), np.vectorize(math.erfc, [float])


def _sigmoid(x: Array) -> Array:
    raised = np.exp(-np.abs(x))
    return np.where(x < 0, raised, 1) / (1 + raised)


def _gelu_tanh(x: Array) -> Array:
    return np.where(x == -np.inf, np.nan, x * _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


MODES: dict[P, Callable[[Array], Array]] = {
    P.EXP: np.exp, P.LOG: np.log, P.ERF: _erf, P.TANH_FWD: np.tanh, P.SIGMOID_FWD: _sigmoid, P.RSQRT: lambda x: 1 / np.sqrt(x),
    P.RECIPROCAL: lambda x: 1 / x, P.SWISH_FWD: lambda x: x * _sigmoid(x), P.GELU_FWD: lambda x: x * (0.5 * _erfc(-x * math.sqrt(0.5))),
    P.GELU_APPROX_TANH_FWD: _gelu_tanh, P.SOFTPLUS_FWD: lambda x: np.logaddexp(0, x),
    P.ELU_FWD: lambda x: np.where(x > 0, x, np.expm1(x)),
}  # fmt: skip


def every(dtype: str) -> Array:
    """All numbers of a type of 16 bits."""
    return np.arange(2**16, dtype=np.uint16).view(numpy_dtype(dtype))


def as_f64(x: Array) -> Array:
    """The same numbers; NaN of any bits are no reason to warn."""
    with np.errstate(invalid="ignore"):
        return x.astype(np.float64)


def rounded(x: Array, dtype: str) -> Array:
    """The nearest numbers of a type, rounded once."""
    with np.errstate(all="ignore"):
        return x.astype(np.float16) if dtype == "f16" else _rounded_to_bf16(x)


def _rounded_to_bf16(x: Array) -> Array:
    near = x.astype(np.float32)  # made odd where inexact, which the second rounding cannot mistake for a tie
    inexact = (near.astype(np.float64) != x) & np.isfinite(near)
    outside = np.abs(near.astype(np.float64)) > np.abs(x)
    return np.where(inexact, ((near.view(np.int32) - outside) | 1).view(np.float32), near).astype(ml_dtypes.bfloat16)


def places(x: Array) -> Array:
    """Numbers of a type in order; either zero is 0."""
    bits = x.view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def check(got: Array, want: Array, dtype: str, least: float = 0) -> None:
    """One unit in the last place at most; infinities and NaN as they are; results below `least` may be 0."""
    want = rounded(want, dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    is_number = ~np.isnan(want)
    np.testing.assert_array_equal(np.isinf(got)[np.isinf(want)], True)
    off = np.abs(places(got) - places(want))
    off[(np.abs(want.astype(np.float64)) < least) & (got == 0)] = 0
    assert off[is_number].max() <= 1


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("mode", MODES)
def test_error_of_graphs_is_a_unit_in_the_last_place(mode: P, dtype: str) -> None:
    x = every(dtype)
    with np.errstate(all="ignore"):
        want = MODES[mode](x.astype(np.float64))
    (got,) = run_graph(lambda e, v: e.pointwise(mode, v), [x], [TensorSpec(dtype, x.shape)])
    if mode in (P.SWISH_FWD, P.GELU_FWD, P.GELU_APPROX_TANH_FWD):  # the limit, or infinity times 0
        x, got, want = x[x != -np.inf], got[x != -np.inf], want[x != -np.inf]
    check(got, want, dtype, 2.0**-126)


NAMES: dict[str, Callable[[Array], Array]] = {
    "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "tan": np.tan, "atan": np.arctan,
    "tanh": np.tanh, "erf": _erf, "exp": np.exp, "log": np.log, "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x),
    "log1p": lambda x: np.where(x >= 0, np.log1p(x), np.nan),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", NAMES)
def test_error_of_maps_is_a_unit_in_the_last_place(name: str, dtype: str) -> None:
    x = every(dtype)
    if name == "tan":  # circular functions are right up to 2^30
        x = x[np.abs(as_f64(x)) < 2**30]
    elif name == "log1p":
        x = x[~(as_f64(x) < 0)]
    with np.errstate(all="ignore"):
        want = NAMES[name](x.astype(np.float64))
    code = {"code": [["load", 0], [name, 0], ["store", 1, 1]]}
    check(run_kernel("elementwise", [x], [TensorSpec(dtype, x.shape)], code)[0], want, dtype, 2.0**-126)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("seed", range(4))
def test_error_of_quotients_is_a_unit_in_the_last_place(seed: int, dtype: str) -> None:
    x, y = every(dtype), np.random.default_rng(seed).permutation(every(dtype))
    if seed == 0:  # infinities, NaN, zeros, and the ends of the subnormal and of the normal numbers
        ends = np.array([0, 1, 0x7F, 0x80, 0x3FF, 0x400, 0x3F80, 0x7BFF, 0x7C00, 0x7F7F, 0x7F80, 0x7FFF], np.uint16)
        ends = np.concatenate([ends, ends | 0x8000]).view(x.dtype)
        x, y = (grid.reshape(-1).copy() for grid in np.meshgrid(ends, ends))
    with np.errstate(all="ignore"):
        want = x.astype(np.float64) / y.astype(np.float64)
    (got,) = run_graph(lambda e, a, b: e.pointwise(P.DIV, a, b), [x, y], [TensorSpec(dtype, x.shape)])
    check(got, want, dtype)


@pytest.mark.parametrize("divisor", [8.0, -0.25])
def test_a_power_of_two_divides_exactly(divisor: float) -> None:
    x = every("f16")
    (got,) = run_graph(lambda e, v: e.pointwise(P.DIV, v, e.scalar(divisor, F16)), [x], [TensorSpec("f16", x.shape)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, rounded(as_f64(x) / divisor, "f16"))


@pytest.mark.parametrize("mode", [P.EXP, P.LOG, P.ERF, P.TANH_FWD, P.GELU_FWD, P.SOFTPLUS_FWD, P.RSQRT])
def test_operands_may_be_of_f32(mode: P) -> None:
    generator = np.random.default_rng(1)
    x = np.concatenate(
        [
            generator.standard_normal(5000) * 10.0 ** generator.integers(-9, 3, 5000),
            1 + generator.standard_normal(5000) * 1e-3,
        ]
    )
    x = np.abs(x.astype(np.float32)) if mode in (P.LOG, P.RSQRT) else x.astype(np.float32)
    with np.errstate(all="ignore"):
        want = MODES[mode](x.astype(np.float64))
    (got,) = run_graph(lambda e, v: e.pointwise(mode, v, dtype=F16), [x], [TensorSpec("f16", x.shape)])
    check(got, want, "f16")


def test_a_difference_of_functions_keeps_its_small_results() -> None:
    """1 + erf(x / sqrt(2)) of what exporters write for GELU: for negative x nearly all cancels."""
    x = np.linspace(-5, -0.5, 4001).astype(np.float16)

    def body(e: Emitter, v: Value) -> Value:
        inner = e.pointwise(P.ERF, e.pointwise(P.MUL, v, e.scalar(math.sqrt(0.5), F32), dtype=F32), dtype=F32)
        return e.pointwise(P.MUL, v, e.pointwise(P.ADD, inner, e.scalar(1.0, F32), dtype=F32), dtype=F16)

    (got,) = run_graph(body, [x], [TensorSpec("f16", x.shape)])
    wide = x.astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), wide * _erfc(-wide * math.sqrt(0.5)), rtol=1e-3, atol=2e-6)


def code_of(body: Callable[..., Any], x: Array, *outs: TensorSpec) -> str:
    """The PTX text of a graph of one operand."""
    return generate_graph(graph_of(body, [x], outs), find_architecture("sm_90")).code


def test_long_forms_stay_where_more_than_16_bits_count() -> None:
    x = np.zeros((64,), np.float16)
    narrow, wide, flag = TensorSpec("f16", (64,)), TensorSpec("f32", (64,)), TensorSpec("bool", (64,))

    def exponential(e: Emitter, v: Value) -> Value:
        return e.pointwise(P.EXP, v, dtype=F32)

    assert ".approx" in code_of(lambda e, v: e.pointwise(P.IDENTITY, exponential(e, v), dtype=F16), x, narrow)
    assert ".approx" not in code_of(exponential, x, wide)
    assert ".approx" not in code_of(
        lambda e, v: [exponential(e, v), e.pointwise(P.IDENTITY, exponential(e, v), dtype=F16)], x, wide, narrow
    )
    compared = code_of(lambda e, v: e.pointwise(P.CMP_GT, exponential(e, v), v, dtype=BOOL), x, flag)
    assert ".approx" not in compared
    rounded_down = code_of(lambda e, v: e.pointwise(P.FLOOR, exponential(e, v), dtype=F16), x, narrow)
    assert ".approx" not in rounded_down


def test_functions_before_and_after_reductions_are_short() -> None:
    x = np.zeros((8, 64), np.float16)

    def body(e: Emitter, v: Value) -> Value:
        raised = e.pointwise(P.EXP, v, dtype=F32)
        return e.pointwise(P.DIV, raised, e.reduction(R.ADD, raised, (1,)), dtype=F16)

    code = code_of(body, x, TensorSpec("f16", x.shape))
    assert "ex2.approx.ftz.f32" in code
    assert "rcp.approx.ftz.f32" in code
    assert "div.rn" not in code


@pytest.mark.parametrize("name", ["gfx90a", "gfx1250", "sm_80", "sm_90"])  # the oldest and newest of each vendor
def test_code_is_whole_when_functions_are_short(name: str) -> None:
    x, out = np.zeros((64,), np.float16), TensorSpec("f16", (64,))
    code: list[list[Any]] = [["load", 0]]
    for function in NAMES:
        code.append([function, len(code) - 1])
    code.append(["store", 1, len(code) - 1])
    compiled.check(generate(describe("elementwise", [x], [out], {"code": code}), find_architecture(name)))
    for mode in MODES:
        compiled.check(
            generate_graph(graph_of(lambda e, v, m=mode: e.pointwise(m, v), [x], [out]), find_architecture(name))
        )
