"""One row times one matrix of float32, against numpy in float64."""

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Pointwise
from host_engines.anchor_graph import AnchorGraph, assert_close, refusal
from host_engines.cpu_caps import assert_passes_under_cap, uncapped
from host_engines.host_graph import strided_like

ENGINE = "HOST_GEMV_ENGINE"
F16, BF16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)

by_rows_or_columns = pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["by rows", "by columns"])


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng([*shape, seed]).standard_normal(shape, np.float32)


def matrix(depth: int, columns: int, order: tuple[int, int], gap: int = 0) -> np.ndarray:
    """Normal numbers, stored as `order` says, with unused elements behind each row or column."""
    stored = strided_like((depth, columns), np.dtype(np.float32), order, gap)
    stored[...] = random(depth, columns)
    return stored


def compare(a: np.ndarray, w: np.ndarray, y: np.ndarray, is_constant: bool = True, threads: int = 2) -> str:
    """Assert the product of a and w, twice; how it was computed."""
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.matmul(graph.tensor(a), weights, graph.tensor(y))
    plan = graph.plan(ENGINE, threads, (weights,) if is_constant else ())
    for _ in range(2):
        y[...] = np.nan
        plan.execute()
        expected = a.astype(np.float64) @ w.astype(np.float64)
        assert_close(y, expected, {F16: 2.0**-10, BF16: 2.0**-7}.get(y.dtype, 1e-5))
    return plan.describe()


@by_rows_or_columns
@pytest.mark.parametrize("columns", [2, 3, 15, 17, 64, 333])
@pytest.mark.parametrize("depth", [32, 37, 64, 129, 1030])
def test_product_of_any_sizes(depth: int, columns: int, order: tuple[int, int]) -> None:
    described = compare(random(1, depth), matrix(depth, columns, order), np.empty((1, columns), np.float32))
    assert ("by columns" if order == (1, 0) else "by rows") in described


@pytest.mark.parametrize(("depth", "columns"), [(40, 1), (1000, 1), (33, 16500)])
def test_one_column_and_many_columns(depth: int, columns: int) -> None:
    compare(random(1, depth), random(depth, columns), np.empty((1, columns), np.float32))


@by_rows_or_columns
@pytest.mark.parametrize("threads", [1, 3, 16])
def test_any_number_of_threads(threads: int, order: tuple[int, int]) -> None:
    compare(random(1, 1531), matrix(1531, 1003, order), np.empty((1, 1003), np.float32), threads=threads)


@by_rows_or_columns
@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])
def test_matrix_may_have_gaps_and_the_row_strides_and_other_types(order: tuple[int, int], is_constant: bool) -> None:
    w = matrix(70, 39, order, gap=3)
    a = strided_like((1, 1, 70), np.dtype(np.float32), (2, 1, 0), gap=2)
    a[...] = random(1, 1, 70)
    compare(a, w[None], strided_like((1, 1, 39), np.dtype(np.float32), (2, 0, 1), gap=1), is_constant)
    for dtype in (F16, BF16):
        compare(random(1, 70).astype(dtype), w, np.empty((1, 39), dtype), is_constant)


@by_rows_or_columns
def test_epilogue_follows(order: tuple[int, int]) -> None:
    a, w, bias = random(1, 96), matrix(96, 300, order), random(1, 300, seed=1)
    y = random(1, 300, seed=2)
    residual = y.astype(np.float64)
    graph = AnchorGraph()
    weights = graph.tensor(w)
    value = graph.matmul(graph.tensor(a), weights, graph.virtual(y.shape))
    value = graph.then(Pointwise.ADD, value, graph.tensor(bias))
    value = graph.then(Pointwise.RELU_FWD, value)
    graph.then(Pointwise.ADD, value, graph.tensor(y), out=graph.tensor(y))
    plan = graph.plan(ENGINE, constants=(weights,))
    plan.execute()
    assert plan.describe().endswith("+ epilogue")
    assert_close(y, np.maximum(a.astype(np.float64) @ w + bias, 0) + residual)


def refused(a: np.ndarray, w: np.ndarray) -> str:
    """Why the engine does not take a product."""
    graph = AnchorGraph()
    graph.matmul(graph.tensor(a), graph.tensor(w), graph.tensor(np.zeros((*a.shape[:-1], w.shape[-1]), np.float32)))
    return refusal(graph, ENGINE)


def test_misfits_are_refused_with_a_reason() -> None:
    row = np.zeros((1, 64), np.float32)
    w = np.zeros((64, 40), np.float32)
    assert "more than one row" in refused(np.zeros((2, 64), np.float32), w)
    assert "more than one row" in refused(np.zeros((3, 1, 64), np.float32), w[None])
    assert "expected float32" in refused(row, w.astype(np.float16))
    assert "gaps between its elements" in refused(row, np.zeros((64, 80), np.float32)[:, ::2])
    assert "fewer than 32 rows" in refused(row[:, :31], w[:31])


@uncapped
@pytest.mark.parametrize("cap", ["AVX2", "SSE41"])
def test_results_are_right_when_the_cpu_has_fewer_instructions(cap: str) -> None:
    assert_passes_under_cap(__file__, cap)
