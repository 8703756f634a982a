"""`elementwise` against NumPy: every operation and type, strides, tiles, uniform values, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, FLOATS, INTEGERS, NUMBERS, Array, TensorSpec, numpy_dtype, run_kernel

Code = list[list[Any]]


def run_elementwise(code: Code, arrays: list[Array], dtype: str, shape: tuple[int, ...]) -> Array:
    """Run an elementwise kernel with one dense output."""
    return run_kernel("elementwise", arrays, [TensorSpec(dtype, shape)], {"code": code})[0]


def apply(operation: str, arrays: list[Array], dtype: str) -> Array:
    """Run one operation on whole arrays."""
    count = len(arrays)
    code: Code = [["load", i] for i in range(count)]
    code += [[operation, *range(count)], ["store", count, count]]
    return run_elementwise(code, arrays, dtype, arrays[0].shape)


def wide(array: Array) -> Array:
    """Return float values in float64, others as they are."""
    return array.astype(np.float64) if array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16 else array


TOLERANCE = {"f32": 2e-6, "f64": 1e-14, "f16": 1e-3, "bf16": 8e-3}

REAL: dict[str, tuple[Callable[..., Any], float, float]] = {
    "floor": (np.floor, -5, 5),
    "ceil": (np.ceil, -5, 5),
    "round": (np.rint, -5, 5),
    "trunc": (np.trunc, -5, 5),
    "sqrt": (np.sqrt, 0, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "exp": (np.exp, -5, 5),
    "log": (np.log, 0.1, 9),
    "sin": (np.sin, -5, 5),
    "cos": (np.cos, -5, 5),
    "tan": (np.tan, -1.2, 1.2),
    "asin": (np.arcsin, -1, 1),
    "acos": (np.arccos, -1, 1),
    "atan": (np.arctan, -5, 5),
    "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3),
    "asinh": (np.arcsinh, -3, 3),
    "acosh": (np.arccosh, 1, 5),
    "atanh": (np.arctanh, -0.9, 0.9),
    "reciprocal": (np.reciprocal, 0.1, 5),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", REAL)
def test_function_equals_float64_when_real(name: str, dtype: str) -> None:
    reference, least, greatest = REAL[name]
    x = np.random.default_rng(1).uniform(least, greatest, 700).astype(numpy_dtype(dtype))
    got = wide(apply(name, [x], dtype))
    np.testing.assert_allclose(got, reference(wide(x)), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


def test_erf_equals_float64() -> None:
    import math

    x = np.random.default_rng(1).uniform(-3, 3, 700)
    want = np.array([math.erf(v) for v in x])
    np.testing.assert_allclose(apply("erf", [x], "f64"), want, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(apply("erf", [x.astype(np.float32)], "f32"), want, rtol=1e-5, atol=1e-6)


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "mod": np.mod,
    "fmod": np.fmod,
}
COMPARISONS: dict[str, Callable[..., Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def extremes(dtype: str, seed: int) -> Array:
    """Return integers over the whole range of a type, its ends among them."""
    info = np.iinfo(numpy_dtype(dtype))
    array = np.random.default_rng(seed).integers(info.min, info.max, 600, numpy_dtype(dtype), endpoint=True)
    array[:4] = [info.min, info.max, 1, info.max]
    return array


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps_when_integer(dtype: str) -> None:
    a, b = extremes(dtype, 1), extremes(dtype, 2)
    b[b == 0] = 3
    with np.errstate(over="ignore"):
        for name, reference in ARITHMETIC.items():
            np.testing.assert_array_equal(apply(name, [a, b], dtype), reference(a, b), err_msg=name)
        for name, unary in (("neg", np.negative), ("abs", np.abs), ("sign", np.sign), ("bit_not", np.invert)):
            np.testing.assert_array_equal(apply(name, [a], dtype), unary(a), err_msg=name)
        for name, bits in (("bit_and", np.bitwise_and), ("bit_or", np.bitwise_or), ("bit_xor", np.bitwise_xor)):
            np.testing.assert_array_equal(apply(name, [a, b], dtype), bits(a, b), err_msg=name)
        for name, compare in COMPARISONS.items():
            np.testing.assert_array_equal(apply(name, [a, b], "bool"), compare(a, b), err_msg=name)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_truncates_and_never_traps(dtype: str) -> None:
    a, b = extremes(dtype, 1), runs.values(dtype, (600,), 3)
    b[:2] = 0
    least = int(np.iinfo(numpy_dtype(dtype)).min)
    want = [
        0 if y == 0 or (y == -1 and x == least) else (abs(x) // abs(y)) * (-1 if (x < 0) != (y < 0) else 1)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(apply("div", [a, b], dtype), np.array(want, numpy_dtype(dtype)))
    zero = np.zeros_like(a)
    for name in ("mod", "fmod"):
        np.testing.assert_array_equal(apply(name, [a, zero], dtype), zero)
    if least < 0:
        np.testing.assert_array_equal(apply("mod", [a, np.full_like(a, -1)], dtype), zero)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_power_and_shift_when_integer(dtype: str) -> None:
    base, exponent = runs.values(dtype, (600,), 1), np.abs(runs.values(dtype, (600,), 2))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(apply("pow", [base, exponent], dtype), np.power(base, exponent))
    a = extremes(dtype, 4)
    amount = (np.arange(600) % (a.itemsize * 8 + 3)).astype(a.dtype)
    np.testing.assert_array_equal(apply("shl", [a, amount], dtype), np.left_shift(a, amount))
    np.testing.assert_array_equal(apply("shr", [a, amount], dtype), np.right_shift(a, amount))


def test_negative_powers_truncate() -> None:
    base, exponent = np.array([1, -1, -1, 2, 0, -3]), np.array([-3, -3, -2, -1, -1, -2])
    np.testing.assert_array_equal(apply("pow", [base, exponent], "i64"), [1, -1, 1, 0, 0, 0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_arithmetic_rounds_once_when_float(dtype: str) -> None:
    generator = np.random.default_rng(7)
    a, b = (generator.standard_normal(700).astype(numpy_dtype(dtype)) for _ in range(2))
    single = np.float64 if dtype == "f64" else np.float32
    for name, reference in (*ARITHMETIC.items(), ("div", np.divide), ("atan2", np.arctan2)):
        want = reference(a.astype(single), b.astype(single)).astype(a.dtype)
        got = apply(name, [a, b], dtype)
        if name == "atan2":
            np.testing.assert_allclose(wide(got), wide(want), rtol=TOLERANCE[dtype])
        else:
            np.testing.assert_array_equal(wide(got), wide(want), err_msg=name)
    np.testing.assert_allclose(
        wide(apply("pow", [np.abs(a), b], dtype)), wide(np.abs(a)) ** wide(b), rtol=2 * TOLERANCE[dtype]
    )


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_propagate(dtype: str) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -1.5], np.float64).astype(numpy_dtype(dtype))
    one = np.ones_like(x)
    for name, want in (
        ("is_nan", np.isnan(wide(x))),
        ("is_inf", np.isinf(wide(x))),
        ("is_pos_inf", np.isposinf(wide(x))),
        ("is_neg_inf", np.isneginf(wide(x))),
    ):
        np.testing.assert_array_equal(apply(name, [x], "bool"), want)
    for name, reference in (("min", np.minimum), ("max", np.maximum)):
        np.testing.assert_array_equal(wide(apply(name, [x, one], dtype)), reference(wide(x), 1.0))
        np.testing.assert_array_equal(wide(apply(name, [one, x], dtype)), reference(1.0, wide(x)))
    np.testing.assert_array_equal(wide(apply("sign", [x], dtype)), np.sign(wide(x)))
    np.testing.assert_array_equal(wide(apply("abs", [x], dtype)), np.abs(wide(x)))


def test_logic_when_bool() -> None:
    a, b = runs.values("bool", (600,), 1), runs.values("bool", (600,), 2)
    for names, reference in (
        (("and", "bit_and", "min"), np.logical_and),
        (("or", "bit_or", "max"), np.logical_or),
        (("xor", "bit_xor", "ne"), np.logical_xor),
    ):
        for name in names:
            np.testing.assert_array_equal(apply(name, [a, b], "bool"), reference(a, b), err_msg=name)
    for name in ("not", "bit_not"):
        np.testing.assert_array_equal(apply(name, [a], "bool"), ~a)


@pytest.mark.parametrize("dtype", DTYPES)
def test_where_selects(dtype: str) -> None:
    condition = runs.values("bool", (3, 400), 1)
    a, b = runs.values(dtype, (3, 400), 2), runs.values(dtype, (3, 1), 3)
    got = run_elementwise(
        [["load", 0], ["load", 1], ["load", 2], ["where", 0, 1, 2], ["store", 3, 3]],
        [condition, a, np.broadcast_to(b, (3, 400))],
        dtype,
        (3, 400),
    )
    np.testing.assert_array_equal(got, np.where(condition, a, b))


def cast(x: Array, dtype: str, operation: str = "cast") -> Array:
    """Run a conversion."""
    return run_elementwise([["load", 0], [operation, dtype, 0], ["store", 1, 1]], [x], dtype, x.shape)


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_cast_equals_numpy(source: str, target: str) -> None:
    x = extremes(source, 5) if source in INTEGERS else runs.values(source, (600,), 5)
    if source in FLOATS and target in INTEGERS and target.startswith("u"):
        x = np.abs(x)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(cast(x, target), x.astype(numpy_dtype(target)))


def test_cast_rounds_once_when_f64_becomes_16_bits() -> None:
    # Between two f16 values, a hair above the middle: through f32 it would become the middle, and round down to even.
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1e300, -1e300, np.nan, 2**-25 + 2**-60])
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(cast(x, "f16"), x.astype(np.float16))
    y = np.array([1 + 2**-8 + 2**-40, -1 - 2**-8 - 2**-40, np.inf])
    np.testing.assert_array_equal(cast(y, "bf16").astype(np.float64), [1 + 2**-7, -1 - 2**-7, np.inf])


def test_cast_wraps_when_a_float_is_out_of_range() -> None:
    x = np.array([300.7, -1.5, 1e30, -1e30, np.nan, 2.0**63], np.float32)
    np.testing.assert_array_equal(cast(x, "u8"), [300 - 256, 255, 255, 0, 0, 255])
    limits = np.iinfo(np.int64)
    np.testing.assert_array_equal(cast(x, "i64")[2:], [limits.max, limits.min, 0, limits.max])
    np.testing.assert_array_equal(cast(x, "u64")[2:], [2**64 - 1, 2**63, 0, 2**63])


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", NUMBERS)
def test_saturate_rounds_and_clamps(source: str, target: str) -> None:
    x = np.array([0.5, 1.5, 2.5, 126.5, 127.5, 300, 70000, 0, 3], np.float64)
    x = np.concatenate([x, -x]) if not source.startswith("u") else x
    if source in INTEGERS:
        info = np.iinfo(numpy_dtype(source))
        x = np.concatenate([np.clip(x, info.min, info.max).astype(numpy_dtype(source)), extremes(source, 1)])
    else:
        x = x[np.abs(x) < 60000].astype(numpy_dtype(source))
    info = np.iinfo(numpy_dtype(target))
    want = [min(max(round(v), info.min), info.max) for v in (x.tolist() if source in INTEGERS else wide(x).tolist())]
    np.testing.assert_array_equal(cast(x, target, "saturate"), np.array(want, info.dtype))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=runs.shapes, dtype=st.sampled_from(DTYPES))
def test_values_equal_numpy_when_strides_vary(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    a, b = data.draw(runs.strided(dtype, shape)), data.draw(runs.strided(dtype, shape))
    out = data.draw(runs.out_spec(dtype, shape))
    flags = data.draw(runs.out_spec("bool", shape))
    code: Code = [["load", 1], ["load", 0], ["max", 1, 0], ["store", 2, 2], ["lt", 1, 0], ["store", 3, 4]]
    larger, less = run_kernel("elementwise", [a, b], [out, flags], {"code": code})
    np.testing.assert_array_equal(larger, np.maximum(a, b))
    np.testing.assert_array_equal(less, a < b)


@settings(deadline=None, max_examples=30)
@given(data=st.data(), shape=runs.full_shapes)
def test_positions_when_indexed(data: st.DataObject, shape: tuple[int, ...]) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    out = data.draw(runs.out_spec("i64", shape))
    (got,) = run_kernel("elementwise", [], [out], {"code": [["index", axis], ["store", 0, 0]]})
    np.testing.assert_array_equal(got, np.indices(shape)[axis])


@pytest.mark.parametrize("shape", [(300_001,), (7, 100_003), (100_003, 3), (3, 5, 7000)])
def test_values_equal_numpy_when_large(shape: tuple[int, ...]) -> None:
    x, row = runs.values("i32", shape, 1), runs.values("i32", shape[-1:], 2)
    column = np.broadcast_to(runs.values("i32", (shape[0],) + (1,) * (len(shape) - 1), 3), shape)
    code: Code = [["load", 0], ["load", 1], ["load", 2], ["mul", 0, 1], ["add", 3, 2], ["store", 3, 4]]
    got = run_elementwise(code, [x, np.broadcast_to(row, shape), column], "i32", shape)
    np.testing.assert_array_equal(got, x * row + column)


def test_uniform_values_are_computed_with_the_rest() -> None:
    scale = np.broadcast_to(np.float32(3), (5, 400))
    x = runs.values("f32", (5, 400), 1)
    code: Code = [
        ["load", 0],
        ["const", "f32", 0.5],
        ["mul", 0, 1],
        ["load", 1],
        ["const", "f32", "inf"],
        ["min", 2, 4],
        ["mul", 3, 5],
        ["store", 2, 6],
        ["store", 3, 2],
    ]
    dense = TensorSpec("f32", (5, 400))
    scaled, factor = run_kernel("elementwise", [scale, x], [dense, dense], {"code": code})
    np.testing.assert_array_equal(scaled, x * np.float32(1.5))
    np.testing.assert_array_equal(factor, np.full((5, 400), 1.5, np.float32))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("i64", -(2**63)), ("u64", 2**64 - 1), ("i8", -128), ("bool", True), ("f16", 0.1), ("bf16", 0.1), ("f64", 0.1)],
)
def test_constants_are_exact(dtype: str, value: float) -> None:
    got = run_elementwise([["const", dtype, value], ["store", 0, 0]], [], dtype, (3,))
    np.testing.assert_array_equal(got, np.full(3, value, numpy_dtype(dtype)))


def test_many_registers_share_little_scratch() -> None:
    x = runs.values("i64", (1000,), 1)
    code: Code = [["load", 0]] + [["add", i, 0] for i in range(1000)] + [["store", 1, 1000]]
    np.testing.assert_array_equal(run_elementwise(code, [x], "i64", (1000,)), x * 1001)
    together: Code = [["load", 0]] + [["add", i, 0] for i in range(300)]
    together += [["add", 1, 2]] + [["add", 301 + i, 3 + i] for i in range(298)] + [["store", 1, 599]]
    np.testing.assert_array_equal(run_elementwise(together, [x], "i64", (1000,)), x * (301 * 302 // 2 - 1))


LOAD: Code = [["load", 0]]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([["load", 1], ["store", 1, 0]], r"code\[0\]: expected the number of an in, got 1"),
        ([*LOAD, ["add", 0, 1], ["store", 1, 1]], r"code\[1\]: expected the number of an earlier instruction, got 1"),
        ([*LOAD, ["add", 0, -1], ["store", 1, 1]], r"earlier instruction, got -1"),
        ([*LOAD, ["add", 0], ["store", 1, 1]], r"'add' has 2 arguments, got 1"),
        ([*LOAD, ["frobnicate", 0]], "no operation is named 'frobnicate'"),
        ([*LOAD, ["and", 0, 0], ["store", 1, 1]], "'and' is not defined for f32"),
        ([*LOAD, ["shl", 0, 0], ["store", 1, 1]], "'shl' is not defined for f32"),
        ([*LOAD, ["cast", "i32", 0], ["add", 0, 1]], "expected instruction 1 to be f32, it is i32"),
        ([*LOAD, ["cast", "i32", 0], ["store", 1, 1]], "expected instruction 1 to be f32, it is i32"),
        ([*LOAD, ["where", 0, 0, 0]], "expected instruction 0 to be bool"),
        ([*LOAD, ["saturate", "f16", 0]], "'saturate' makes integers"),
        ([*LOAD, ["store", 0, 0]], "tensor 0 is an in"),
        ([*LOAD, ["store", 1, 0], ["store", 1, 0]], r"code\[2\]: tensor 1 is stored twice"),
        ([*LOAD, ["store", 1, 0], ["neg", 1]], "instruction 1 is a store and has no result"),
        (LOAD, r"nothing is stored to tensors\[1\]"),
        ([["const", "i8", 128], ["store", 1, 0]], "expected a value of i8, got 128"),
        ([["const", "u8", -1]], "expected a value of u8"),
        ([["const", "f32", "much"]], "expected a number"),
        ([["index", 1]], "expected a dim, got 1"),
        ([["load"]], "'load' has 1 arguments, got 0"),
        ([5], r"code\[0\]: expected a list that starts with an operation's name, got 5"),
        ({"load": 0}, "expected a list of at most 4096 instructions"),
        ([["const", "i64", 0]] * 4097, "expected a list of at most 4096 instructions"),
    ],
)
def test_refused_when_code_is_wrong(code: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=f"kernel k_elementwise.*{message}"):
        run_elementwise(code, [np.zeros(4, np.float32)], "f32", (4,))


def test_refused_when_too_much_is_alive() -> None:
    code: Code = [["load", 0]] + [["add", i, 0] for i in range(600)] + [["add", i, i + 1] for i in range(600)]
    code += [["add", 601, 602]] + [["add", 1201 + i, 603 + i] for i in range(598)] + [["store", 1, 1799]]
    with pytest.raises(ProgramError, match="values are alive at once"):
        run_elementwise(code, [np.zeros(1000)], "f64", (1000,))


def test_refused_when_dims_differ() -> None:
    with pytest.raises(ProgramError, match=r"tensors\[0\].dims: expected \[4\], got \[3\]"):
        run_elementwise([["load", 0], ["store", 1, 0]], [np.zeros(3, np.float32)], "f32", (4,))


@pytest.mark.parametrize(("first", "last"), [("u8", "i8"), ("i8", "u8")])
def test_what_a_load_has_converted_is_cast_again(first: str, last: str) -> None:
    x = np.arange(-5, 250).astype(numpy_dtype(first))
    code = [["load", 0], ["cast", "i64", 0], ["cast", last, 1], ["store", 1, 2]]
    (got,) = run_kernel("elementwise", [x], [TensorSpec(last, x.shape)], {"code": code})
    np.testing.assert_array_equal(got, x.astype(np.int64).astype(numpy_dtype(last)))
