"""Functions of real numbers: errors in units in the last place against wider arithmetic, and what is special."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from gpu.emulated import run_kernel
from hipdnn_mlir.codegen.core.float_literals import respelled
from host_kernels.kernel_runs import Array, TensorSpec

# Name: reference, least and greatest operand, greatest error in units in the last place of f32 and of f64 (measured, rounded up).
FUNCTIONS = {
    "exp": (np.exp, -100, 88, 1), "log": (np.log, 1e-30, 1e30, 1), "sin": (np.sin, -1e4, 1e4, 2), "cos": (np.cos, -1e4, 1e4, 2),
    "tan": (np.tan, -100, 100, 3), "asin": (np.arcsin, -1, 1, 3), "acos": (np.arccos, -1, 1, 2), "atan": (np.arctan, -50, 50, 3),
    "sinh": (np.sinh, -88, 88, 4), "cosh": (np.cosh, -88, 88, 4), "tanh": (np.tanh, -9, 9, 2), "asinh": (np.arcsinh, -1e3, 1e3, 2.5),
    "acosh": (np.arccosh, 1, 1e3, 2.5), "atanh": (np.arctanh, -1, 1, 3), "erf": (np.vectorize(math.erf), -4, 4, 3),
    "sqrt": (np.sqrt, 0, 1e30, 0.51), "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 1.6),
    "reciprocal": (lambda x: 1 / x, 1e-3, 1e3, 0.51),
}  # fmt: skip


def computed(name: str, *xs: Array) -> Array:
    """One function of arrays."""
    kinds = {np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
    code = [["load", i] for i in range(len(xs))]
    code += [[name, *range(len(xs))], ["store", len(xs), len(xs)]]
    return run_kernel("elementwise", xs, [TensorSpec(kinds[xs[0].dtype], xs[0].shape)], {"code": code})[0]


def operands(low: float, high: float, count: int, dtype: type) -> Array:
    """Operands over a range, and many near its middle or, where it is of one sign, over its orders of magnitude."""
    generator = np.random.default_rng(1)
    x = generator.uniform(low, high, count)
    near = (
        np.exp(generator.uniform(math.log(low), math.log(high), count))
        if low > 0
        else x * 10 ** generator.uniform(-4, 0, count)
    )
    return np.clip(np.concatenate([x, near]), low, high).astype(dtype)


def units(got: Array, want: Array) -> float:
    """Greatest error in units in the last place of what is right."""
    return float(
        np.max(np.abs(got.astype(want.dtype) - want) / np.spacing(np.abs(want).astype(got.dtype)).astype(want.dtype))
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_few_units_in_the_last_place(name: str) -> None:
    reference, low, high, limit = FUNCTIONS[name]
    x = operands(low, high, 100_000, np.float32)
    assert units(computed(name, x), reference(x.astype(np.float64))) <= limit
    if name == "erf":  # no wider one to compare with
        x = operands(low, high, 10_000, np.float64)
        np.testing.assert_allclose(computed(name, x), reference(x), rtol=1e-15)
        return
    x = operands(low, high, 20_000, np.float64)
    assert units(computed(name, x), reference(x.astype(np.longdouble))) <= limit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "erf"])
def test_special_operands_have_the_right_results(name: str, dtype: type) -> None:
    tiny, info = np.nextafter(dtype(0), dtype(1)), np.finfo(dtype)
    x = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, tiny, -tiny, info.tiny, info.max, 2, -2], dtype)
    if name in ("sin", "cos", "tan"):
        x = x[x != info.max]  # reduced exactly up to 2^30
    with np.errstate(all="ignore"):
        want = FUNCTIONS[name][0](x.astype(np.longdouble)).astype(dtype)
    np.testing.assert_allclose(computed(name, x), want, rtol=4 * info.eps, atol=4 * tiny)


def test_acosh_has_no_value_below_one() -> None:
    x = -np.logspace(-3, 38, 400).astype(np.float32)
    assert np.isnan(computed("acosh", x)).all()


def test_erf_saturates() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 30, -30, 1e-40], np.float32)
    np.testing.assert_array_equal(computed("erf", x)[:7], np.array([0, 0, 1, -1, np.nan, 1, -1], np.float32))


POWER = {np.float32: 0.6, np.float64: 128}
"""Units in the last place; f64 has no wider type to compute the logarithm in."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_power_equals_the_c_library(dtype: type) -> None:
    special = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, -1e-30]
    a, b = (grid.reshape(-1).astype(dtype) for grid in np.meshgrid(special, special))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            computed("pow", a, b), np.power(a, b), rtol=max(2, POWER[dtype]) * np.finfo(dtype).eps
        )
    generator = np.random.default_rng(1)
    a, b = generator.uniform(0.01, 50, 50_000).astype(dtype), generator.uniform(-20, 20, 50_000).astype(dtype)
    wide = np.float64 if dtype is np.float32 else np.longdouble
    assert units(computed("pow", a, b), np.power(a.astype(wide), b.astype(wide))) <= POWER[dtype]


def test_remainder_is_exact() -> None:
    generator = np.random.default_rng(1)
    a = (generator.standard_normal(20_000) * 10.0 ** generator.integers(-3, 6, 20_000)).astype(np.float32)
    b = (generator.standard_normal(20_000) * 10.0 ** generator.integers(-3, 3, 20_000)).astype(np.float32)
    np.testing.assert_array_equal(computed("fmod", a, b), np.fmod(a, b))
    np.testing.assert_array_equal(computed("mod", a, np.abs(b)), np.mod(a, np.abs(b)))


def test_literals_are_bits_of_the_type_named_before_them() -> None:
    text = "  %1 = fmul float %0, 2.958040e-01\n  %2 = call double @f(double f0x3FF8000000000000, double +inf)\n"
    text += (
        "  %3 = select i1 %c, half 1.5, half %h\n  %4 = fadd bfloat %b, -2.0\n  %5 = fsub float f0x3FB8AA3B, +qnan\n"
    )
    lines = respelled(text).splitlines()
    exact = int(np.array(np.float32(0.295804), np.float64).view(np.uint64))
    assert lines[0].endswith(f"0x{exact:016X}")
    assert lines[1].endswith("@f(double 0x3FF8000000000000, double 0x7FF0000000000000)")
    assert lines[2].endswith("half 0xH3E00, half %h")
    assert lines[3].endswith(f"0xR{int(np.array(-2, ml_dtypes.bfloat16).view(np.uint16)):04X}")
    assert lines[4].endswith("float 0x3FF7154760000000, 0x7FF8000000000000")


@pytest.mark.parametrize("divisor", [0.0406296, -3.0, 1.7294966, 1e-15, float(np.nextafter(np.float32(2), 0)), 1e-30])
def test_quotient_by_a_number_is_the_nearest(divisor: float) -> None:
    divisor = float(np.float32(divisor))
    generator = np.random.default_rng(2)
    x = (generator.standard_normal(100_000) * 10.0 ** generator.uniform(-20, 20, 100_000)).astype(np.float32)
    x[:6] = 0.0, -0.0, np.inf, -np.inf, np.nan, 3e38
    code = [["load", 0], ["const", "f32", divisor], ["div", 0, 1], ["store", 1, 2]]
    (got,) = run_kernel("elementwise", [x], [TensorSpec("f32", x.shape)], {"code": code})
    with np.errstate(over="ignore"):
        want = x / np.float32(divisor)
    normal = (np.abs(want) >= np.finfo(np.float32).tiny) | (x == 0) | np.isnan(x)
    np.testing.assert_array_equal(got.view(np.int32)[normal], want.view(np.int32)[normal])
