"""Every reduction operator over any axes on the reduction engine, against numpy in float64 or int64."""

import itertools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import DataType, Pointwise, Reduce
from host_engines.host_graph import REDUCTION, HostError, HostGraph, strided_like

Axes = tuple[int, ...]
OPERATORS: dict[str, Callable[[np.ndarray, Axes], np.ndarray]] = {
    "ADD": lambda x, axes: x.sum(axes, keepdims=True),
    "MUL": lambda x, axes: x.prod(axes, keepdims=True),
    "MIN": lambda x, axes: x.min(axes, keepdims=True),
    "MAX": lambda x, axes: x.max(axes, keepdims=True),
    "AMAX": lambda x, axes: np.abs(x).max(axes, keepdims=True),
    "AVG": lambda x, axes: x.mean(axes, keepdims=True),
    "NORM1": lambda x, axes: np.abs(x).sum(axes, keepdims=True),
    "NORM2": lambda x, axes: np.sqrt((x * x).sum(axes, keepdims=True)),
    "MUL_NO_ZEROS": lambda x, axes: np.where(x == 0, 1, x).prod(axes, keepdims=True),
}
ALL_AXES = [a for n in (1, 2, 3, 4) for a in itertools.combinations(range(4), n)]


def kept_shape(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    return tuple(1 if i in axes else d for i, d in enumerate(shape))


def reduced(
    operator: str, x: np.ndarray, axes: Axes, dtype: type, *, math: int = DataType.FLOAT, threads: int = 2
) -> np.ndarray:
    out = np.empty(kept_shape(x.shape, axes), dtype)
    graph = HostGraph()
    graph.reduction(Reduce[operator], graph.tensor(x), graph.tensor(out), math=math)
    graph.run(REDUCTION, threads)
    return out


def test_operators_are_complete() -> None:
    assert set(OPERATORS) == {operator.name for operator in Reduce}


@pytest.mark.parametrize("axes", ALL_AXES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operator_over_any_axes_equals_numpy(operator: str, axes: Axes) -> None:
    x = np.random.default_rng(0).uniform(-1.5, 1.5, (3, 5, 7, 11)).astype(np.float32)
    x[0, :, 0, 0] = 0
    got = reduced(operator, x, axes, np.float32)
    np.testing.assert_allclose(got, OPERATORS[operator](x.astype(np.float64), axes), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("axes", ALL_AXES)
@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
def test_any_layout_equals_numpy(axes: Axes, order: tuple[int, ...]) -> None:
    shape = (4, 70, 9, 13)
    x = strided_like(shape, np.float32, order, gap=3)
    x[...] = np.random.default_rng(1).standard_normal(shape)
    got = reduced("AVG", x, axes, np.float32)
    np.testing.assert_allclose(got, x.astype(np.float64).mean(axes, keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 2048, 7, 7), (2, 64, 56, 56), (1, 3, 224, 224)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1)])
def test_global_average_pool_equals_numpy(shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = strided_like(shape, np.float32, order)
    x[...] = np.random.default_rng(2).standard_normal(shape)
    np.testing.assert_allclose(
        reduced("AVG", x, (2, 3), np.float32), x.mean((2, 3), keepdims=True, dtype=np.float64), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("axes", [(0, 1), (0,), (1,)])
def test_long_sums_stay_accurate(axes: Axes, threads: int) -> None:
    x = (np.random.default_rng(3).random((1500, 2000)) + 1).astype(np.float32)
    got = reduced("ADD", x, axes, np.float32, threads=threads)
    np.testing.assert_allclose(got, x.sum(axes, keepdims=True, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("operator", ["ADD", "MAX", "NORM2"])
def test_other_floats_equal_numpy(operator: str, dtype: type) -> None:
    x = np.random.default_rng(4).uniform(-1, 1, (6, 400)).astype(dtype)
    math = DataType.DOUBLE if dtype is np.float64 else DataType.FLOAT
    got = reduced(operator, x, (1,), dtype, math=math).astype(np.float64)
    expected = OPERATORS[operator](x.astype(np.float64), (1,))
    tolerance = {np.float16: 1e-3, ml_dtypes.bfloat16: 8e-3, np.float64: 1e-13}[dtype]
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
@pytest.mark.parametrize("operator", ["ADD", "MIN", "MAX", "AMAX", "NORM1"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2)])
def test_integers_are_exact(operator: str, dtype: type, axes: Axes) -> None:
    x = np.random.default_rng(5).integers(0 if dtype is np.uint8 else -100, 100, (70, 9, 33)).astype(dtype)
    got = reduced(operator, x, axes, np.int64, math=DataType.INT64)
    np.testing.assert_array_equal(got, OPERATORS[operator](x.astype(np.int64), axes))


def test_integer_average_truncates_and_float_average_does_not() -> None:
    x = np.array([[1, 2, 4], [-1, -2, -4]], np.int32)
    np.testing.assert_array_equal(reduced("AVG", x, (1,), np.int32)[:, 0], [2, -2])
    np.testing.assert_allclose(reduced("AVG", x, (1,), np.float32)[:, 0], [7 / 3, -7 / 3], rtol=1e-6)


@pytest.mark.parametrize("operator", ["MIN", "MAX", "AMAX", "ADD"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("size", [50, 3000])
def test_nan_reaches_the_result(operator: str, axes: Axes, size: int) -> None:
    x = np.random.default_rng(6).standard_normal((size, 131), dtype=np.float32)
    x[size // 3, 17] = np.nan
    np.testing.assert_allclose(
        reduced(operator, x, axes, np.float32), OPERATORS[operator](x.astype(np.float64), axes), rtol=1e-4, atol=1e-4
    )


def test_infinities_are_extremes() -> None:
    x = np.random.default_rng(7).standard_normal((4, 200), dtype=np.float32)
    x[0, 3], x[1, 5], x[2, 7] = np.inf, -np.inf, np.inf
    x[2, 8] = -np.inf
    for operator in ("MIN", "MAX", "AMAX"):
        np.testing.assert_array_equal(reduced(operator, x, (1,), np.float32), OPERATORS[operator](x, (1,)))


@pytest.mark.parametrize("axes", [(1,), (2, 3), (0, 2, 3), (0, 1, 2, 3)])
@pytest.mark.parametrize("shape", [(2, 6, 10, 14), (3, 40, 64, 33)])
def test_pointwise_before_and_after(shape: tuple[int, ...], axes: Axes) -> None:
    rng = np.random.default_rng(8)
    x, channel = (
        rng.standard_normal(shape, dtype=np.float32),
        rng.standard_normal((1, shape[1], 1, 1), dtype=np.float32),
    )
    rows = kept_shape(shape, axes)
    factor = rng.uniform(0.5, 2, rows).astype(np.float32)
    moved, out = np.empty_like(x), np.empty(rows, np.float32)
    g = HostGraph()
    tx, tc, tf = g.tensor(x), g.tensor(channel), g.tensor(factor)
    shifted = g.pointwise(Pointwise.ADD, [tx, tc], g.tensor(moved))
    square = g.pointwise(Pointwise.MUL, [shifted, shifted], g.virtual(shape))
    total = g.reduction(Reduce.AVG, square, g.virtual(rows))
    root = g.pointwise(Pointwise.SQRT, [total], g.virtual(rows))
    g.pointwise(Pointwise.MUL, [root, tf], g.tensor(out))
    g.run(REDUCTION)
    wide = x.astype(np.float64) + channel
    np.testing.assert_array_equal(moved, x + channel)
    np.testing.assert_allclose(out, np.sqrt((wide**2).mean(axes, keepdims=True)) * factor, rtol=1e-5)


def test_operand_broadcast_along_a_reduced_axis_counts_every_time() -> None:
    row = np.random.default_rng(9).standard_normal(40).astype(np.float32)
    x, out = np.broadcast_to(row, (50, 40)), np.empty((1, 40), np.float32)
    graph = HostGraph()
    graph.reduction(Reduce.ADD, graph.tensor(x), graph.tensor(out))
    graph.run(REDUCTION)
    np.testing.assert_allclose(out[0], 50 * row.astype(np.float64), rtol=1e-6)


def test_result_into_strided_memory() -> None:
    x = np.random.default_rng(10).standard_normal((6, 8, 50), dtype=np.float32)
    out = strided_like((6, 8, 1), np.float32, (1, 0, 2))[..., :]
    graph = HostGraph()
    graph.reduction(Reduce.MAX, graph.tensor(x), graph.tensor(out))
    graph.run(REDUCTION)
    np.testing.assert_array_equal(out, x.max(-1, keepdims=True))


def test_graph_that_spreads_the_result_back_is_refused() -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    graph = HostGraph()
    graph.softmax(graph.tensor(x), graph.tensor(out))
    with pytest.raises(HostError, match="has 2 reductions, expected one"):
        graph.run(REDUCTION)


def test_centring_is_refused_with_the_engine_that_takes_it() -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    graph = HostGraph()
    tx = graph.tensor(x)
    mean = graph.reduction(Reduce.AVG, tx, graph.virtual((4, 1)))
    graph.pointwise(Pointwise.SUB, [tx, mean], graph.tensor(out))
    with pytest.raises(HostError, match="HOST_ROWWISE_ENGINE takes such graphs"):
        graph.run(REDUCTION)
