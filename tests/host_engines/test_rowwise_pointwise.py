"""Every forward pointwise mode on the rowwise engine, against numpy in float64 (or the integer type itself)."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import DataType, Pointwise
from host_engines.host_graph import ROWWISE, HostError, HostGraph

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def relu(x: np.ndarray, lower: float = 0.0, upper: float = math.inf, slope: float = 0.0) -> np.ndarray:
    return np.where(x <= lower, slope * (x - lower) + lower, np.minimum(x, upper))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


REAL_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ABS": np.abs,
    "CEIL": np.ceil,
    "ELU_FWD": lambda x: np.where(x > 0, x, np.expm1(x)),
    "ERF": erf,
    "EXP": np.exp,
    "FLOOR": np.floor,
    "GELU_APPROX_TANH_FWD": gelu_tanh,
    "GELU_FWD": lambda x: 0.5 * x * erfc(-x / math.sqrt(2)),
    "IDENTITY": lambda x: x,
    "NEG": np.negative,
    "RECIPROCAL": lambda x: 1 / x,
    "RELU_FWD": relu,
    "SIGMOID_FWD": sigmoid,
    "SIN": np.sin,
    "SOFTPLUS_FWD": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "SWISH_FWD": lambda x: x * sigmoid(x),
    "TAN": np.tan,
    "TANH_FWD": np.tanh,
}
POSITIVE_UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "LOG": np.log,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "ADD": np.add,
    "ADD_SQUARE": lambda a, b: a + b * b,
    "DIV": np.divide,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "MUL": np.multiply,
    "SUB": np.subtract,
}
COMPARE: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "CMP_EQ": np.equal,
    "CMP_GE": np.greater_equal,
    "CMP_GT": np.greater,
    "CMP_LE": np.less_equal,
    "CMP_LT": np.less,
    "CMP_NEQ": np.not_equal,
}
FLOATS = {
    np.float32: (DataType.FLOAT, 1e-6),
    np.float64: (DataType.DOUBLE, 1e-14),
    np.float16: (DataType.FLOAT, 1e-3),
    ml_dtypes.bfloat16: (DataType.FLOAT, 8e-3),
}
INTEGERS = (np.int8, np.uint8, np.int32, np.int64)


def apply(
    mode: str, inputs: list[np.ndarray], dtype: type, *, math_type: int = DataType.FLOAT, **parameters: float
) -> np.ndarray:
    """The mode's result with the operands' broadcast shape."""
    out = np.empty(np.broadcast_shapes(*(a.shape for a in inputs)), dtype)
    graph = HostGraph()
    operands = [graph.tensor(a) for a in inputs]
    graph.pointwise(Pointwise[mode], operands, graph.tensor(out), math=math_type, **parameters)
    graph.run(ROWWISE)
    return out


def test_modes_cover_every_forward_mode() -> None:
    tested = {*REAL_UNARY, *POSITIVE_UNARY, *BINARY, *COMPARE}
    tested |= {"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "BINARY_SELECT", "GEN_INDEX"}
    assert tested == {mode.name for mode in Pointwise if not mode.name.endswith("_BWD")}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", [*REAL_UNARY, *POSITIVE_UNARY])
def test_unary_mode_equals_numpy(mode: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(-5, 5, (3, 7, 37)).astype(dtype)
    if mode in POSITIVE_UNARY:
        x = np.abs(x)
    math_type, tolerance = FLOATS[dtype]
    expected = {**REAL_UNARY, **POSITIVE_UNARY}[mode](x.astype(np.float64))
    got = apply(mode, [x], dtype, math_type=math_type).astype(np.float64)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", BINARY)
def test_binary_mode_equals_numpy(mode: str, dtype: type) -> None:
    rng = np.random.default_rng(2)
    a = rng.uniform(-5, 5, (3, 7, 37)).astype(dtype)
    b = rng.uniform(0.5, 5, (3, 7, 37)).astype(dtype)
    math_type, tolerance = FLOATS[dtype]
    expected = BINARY[mode](a.astype(np.float64), b.astype(np.float64))
    got = apply(mode, [a, b], dtype, math_type=math_type).astype(np.float64)
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("mode", ["ADD", "SUB", "MUL", "MAX", "MIN", "ADD_SQUARE"])
def test_integer_arithmetic_wraps_as_stored_integers_do(mode: str, dtype: type) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(3)
    a = rng.integers(info.min, info.max, (5, 33), dtype=dtype, endpoint=True)
    b = rng.integers(info.min, info.max, (5, 33), dtype=dtype, endpoint=True)
    with np.errstate(over="ignore"):
        expected = BINARY[mode](a, b)
    np.testing.assert_array_equal(apply(mode, [a, b], dtype, math_type=DataType.INT32), expected)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integer_division_truncates_toward_zero(dtype: type) -> None:
    a = np.array([7, -7, 7, -7, 0, 100, -100], dtype)
    b = np.array([2, 2, -2, -2, 5, -1, 7], dtype)
    np.testing.assert_array_equal(apply("DIV", [a, b], dtype), np.array([3, -3, -3, 3, 0, -100, -14], dtype))


def test_integer_division_by_zero_is_zero_and_least_by_minus_one_wraps() -> None:
    a = np.array([5, np.iinfo(np.int64).min], np.int64)
    b = np.array([0, -1], np.int64)
    np.testing.assert_array_equal(apply("DIV", [a, b], np.int64), [0, np.iinfo(np.int64).min])


@pytest.mark.parametrize("mode", ["ABS", "NEG", "RELU_FWD", "CEIL", "FLOOR"])
def test_integer_unary_is_exact_beyond_float_precision(mode: str) -> None:
    x = np.array([2**53 + 1, -(2**53) - 1, 0, 17], np.int64)
    expected = {"ABS": np.abs(x), "NEG": -x, "RELU_FWD": np.maximum(x, 0)}.get(mode, x)
    np.testing.assert_array_equal(apply(mode, [x], np.int64), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.int64])
@pytest.mark.parametrize("mode", COMPARE)
def test_comparison_equals_numpy(mode: str, dtype: type) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-3, 3, (4, 41)).astype(dtype)
    b = rng.integers(-3, 3, (4, 41)).astype(dtype)
    np.testing.assert_array_equal(apply(mode, [a, b], np.bool_, math_type=DataType.BOOLEAN), COMPARE[mode](a, b))


def test_comparison_of_large_int64_is_exact() -> None:
    a = np.array([2**60, 2**60 + 1], np.int64)
    b = np.array([2**60 + 1, 2**60], np.int64)
    np.testing.assert_array_equal(apply("CMP_LT", [a, b], np.bool_), [True, False])


def test_nan_compares_as_unordered() -> None:
    x = np.array([np.nan, 1], np.float32)
    for mode, expected in {"CMP_EQ": False, "CMP_NEQ": True, "CMP_GE": False, "CMP_LT": False}.items():
        assert apply(mode, [x, np.ones_like(x)], np.bool_)[0] == expected


def test_logical_modes_equal_numpy() -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    np.testing.assert_array_equal(apply("LOGICAL_AND", [a, b], np.bool_), a & b)
    np.testing.assert_array_equal(apply("LOGICAL_OR", [a, b], np.bool_), a | b)
    np.testing.assert_array_equal(apply("LOGICAL_NOT", [a], np.bool_), ~a)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.int64, np.bool_])
def test_select_takes_first_operand_where_mask_is_true(dtype: type) -> None:
    rng = np.random.default_rng(5)
    mask = rng.integers(0, 2, (1, 6, 1)).astype(np.bool_)
    a = rng.integers(0, 90, (3, 6, 11)).astype(dtype)
    b = rng.integers(0, 90, (3, 1, 11)).astype(dtype)
    np.testing.assert_array_equal(apply("BINARY_SELECT", [a, b, mask], dtype), np.where(mask, a, b))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_gen_index_counts_along_its_axis(axis: int, dtype: type) -> None:
    x, out = np.zeros((3, 5, 300), np.float32), np.empty((3, 5, 300), dtype)
    graph = HostGraph()
    graph.pointwise(Pointwise.GEN_INDEX, [graph.tensor(x)], graph.tensor(out), math=DataType.INT32, axis=axis)
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, np.indices(x.shape)[axis])


def test_causal_mask_from_indices_equals_numpy() -> None:
    x = np.random.default_rng(6).standard_normal((2, 3, 50, 50), dtype=np.float32)
    out = np.empty_like(x)
    graph = HostGraph()
    scores = graph.tensor(x)
    row = graph.pointwise(Pointwise.GEN_INDEX, [scores], graph.virtual(x.shape, np.int32), axis=2)
    col = graph.pointwise(Pointwise.GEN_INDEX, [scores], graph.virtual(x.shape, np.int32), axis=3)
    keep = graph.pointwise(Pointwise.CMP_GE, [row, col], graph.virtual(x.shape, np.bool_), math=DataType.BOOLEAN)
    graph.pointwise(Pointwise.BINARY_SELECT, [scores, graph.scalar(-np.inf), keep], graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_array_equal(out, np.where(np.tril(np.ones((50, 50), bool)), x, -np.inf))


@pytest.mark.parametrize(
    ("mode", "parameters", "expected"),
    [
        ("RELU_FWD", {"lower": -1.0, "upper": 2.0}, lambda x: np.clip(x, -1, 2)),
        ("RELU_FWD", {"slope": 0.125}, lambda x: np.where(x > 0, x, 0.125 * x)),
        ("RELU_FWD", {"lower": 0.5, "upper": 3.0, "slope": 0.1}, lambda x: relu(x, 0.5, 3.0, np.float32(0.1))),
        ("SWISH_FWD", {"swish_beta": 1.5}, lambda x: x * sigmoid(1.5 * x)),
        ("ELU_FWD", {"elu_alpha": 0.75}, lambda x: np.where(x > 0, x, 0.75 * np.expm1(x))),
        ("SOFTPLUS_FWD", {"softplus_beta": 2.0}, lambda x: np.log1p(np.exp(2 * x)) / 2),
    ],
)
def test_parameters_of_activations(
    mode: str, parameters: dict[str, float], expected: Callable[[np.ndarray], np.ndarray]
) -> None:
    x = np.linspace(-6, 6, 1003, dtype=np.float32)
    np.testing.assert_allclose(
        apply(mode, [x], np.float32, **parameters), expected(x.astype(np.float64)), rtol=1e-6, atol=1e-6
    )


def largest_ulp(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest error in units of the last place of the float32 nearest to the expected value."""
    spacing = np.spacing(np.maximum(np.abs(expected.astype(np.float32)), np.float32(2e-38))).astype(np.float64)
    return float((np.abs(got.astype(np.float64) - expected) / spacing).max())


def logarithmic(low: float, high: float) -> np.ndarray:
    magnitude = np.geomspace(low, high, 50_001)
    return np.concatenate([-magnitude[::-1], magnitude]).astype(np.float32)


@pytest.mark.parametrize(
    ("mode", "x", "limit"),
    [
        ("EXP", np.linspace(-86.9, 88.7, 200_001, dtype=np.float32), 2),
        ("LOG", np.abs(logarithmic(1.2e-38, 3e38)), 2),
        ("LOG", np.linspace(0.5, 2, 100_001, dtype=np.float32), 2),
        ("TANH_FWD", logarithmic(1e-30, 20), 2),
        ("ERF", logarithmic(1e-30, 6), 4),
        ("SIGMOID_FWD", np.linspace(-80, 80, 200_001, dtype=np.float32), 4),
        ("GELU_FWD", np.linspace(-1, 10, 100_001, dtype=np.float32), 4),
        ("SOFTPLUS_FWD", np.linspace(-80, 80, 200_001, dtype=np.float32), 4),
        ("SWISH_FWD", np.linspace(-80, 80, 200_001, dtype=np.float32), 4),
        ("ELU_FWD", logarithmic(1e-20, 20), 2),
        ("RSQRT", np.abs(logarithmic(1e-30, 1e30)), 2),
    ],
)
def test_float_functions_are_accurate_to_the_last_places(mode: str, x: np.ndarray, limit: float) -> None:
    expected = {**REAL_UNARY, **POSITIVE_UNARY}[mode](x.astype(np.float64))
    assert largest_ulp(apply(mode, [x], np.float32), expected) <= limit


@pytest.mark.parametrize(
    "mode", ["EXP", "LOG", "TANH_FWD", "ERF", "SIGMOID_FWD", "SQRT", "RSQRT", "SOFTPLUS_FWD", "ELU_FWD", "ABS"]
)
def test_special_values_as_in_numpy(mode: str) -> None:
    x = np.array([0, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = {**REAL_UNARY, **POSITIVE_UNARY}[mode](wide).astype(np.float32)
    np.testing.assert_allclose(apply(mode, [x], np.float32), expected, rtol=1e-6)


@pytest.mark.parametrize("mode", ["MIN", "MAX"])
def test_min_and_max_propagate_nan(mode: str) -> None:
    a = np.array([np.nan, 1, np.nan, 2], np.float32)
    b = np.array([1, np.nan, np.nan, 3], np.float32)
    np.testing.assert_array_equal(apply(mode, [a, b], np.float32), BINARY[mode](a, b))


def test_backward_mode_is_refused_with_its_node() -> None:
    x, out = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    graph = HostGraph()
    graph.pointwise(Pointwise.RELU_BWD, [graph.tensor(x), graph.tensor(x.copy())], graph.tensor(out))
    with pytest.raises(HostError, match=r"node 0.*backward"):
        graph.run(ROWWISE)


def test_exponential_in_integer_math_is_refused() -> None:
    x, out = np.zeros(3, np.float32), np.zeros(3, np.float32)
    graph = HostGraph()
    graph.pointwise(Pointwise.EXP, [graph.tensor(x)], graph.tensor(out), math=DataType.INT32)
    with pytest.raises(HostError, match="EXP has no integer form"):
        graph.run(ROWWISE)
