"""Products with one matrix of float16 or bfloat16, against numpy in float64.

References start from the rounded operands: what is left are the roundings of float32 sums, and one to the type of the result.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Pointwise
from host_engines.anchor_graph import AnchorGraph, assert_close, refusal
from host_engines.cpu_caps import assert_passes_under_cap, uncapped
from host_engines.host_graph import Operand, strided_like

ENGINE = "HOST_PANEL_MATMUL_ENGINE"
F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
TOLERANCE = {F32: 1e-5, F16: 2.0**-10, BF16: 2.0**-7}

half_types = pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
constant_or_not = pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])


def random(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int = 0) -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng([*shape, seed]).standard_normal(shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    """The same values in float64."""
    return array.astype(np.float64)


def compare(a: np.ndarray, w: np.ndarray, y: np.ndarray, is_constant: bool = True, threads: int = 2) -> str:
    """Assert the product of a and w, twice; how it was computed."""
    y[...] = np.nan
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.matmul(graph.tensor(a), weights, graph.tensor(y))
    plan = graph.plan(ENGINE, threads, (weights,) if is_constant else ())
    for _ in range(2):
        plan.execute()
        assert_close(y, wide(a) @ wide(w), TOLERANCE[y.dtype])
    return plan.describe()


@half_types
@constant_or_not
@pytest.mark.parametrize("m", [*range(1, 14), 24, 25, 61, 250])
def test_product_of_any_number_of_rows(dtype: np.dtype[Any], is_constant: bool, m: int) -> None:
    described = compare(random((m, 200), dtype), random((200, 53), dtype), np.empty((m, 53), dtype), is_constant)
    assert f"panels of {'f16' if dtype == F16 else 'bf16'}," in described


@half_types
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 16), (8, 17), (513, 33), (1030, 300), (2048, 31)])
@pytest.mark.parametrize("m", [1, 5, 40])
def test_product_of_any_depth_and_number_of_columns(dtype: np.dtype[Any], m: int, k: int, n: int) -> None:
    compare(random((m, k), dtype), random((k, n), dtype), np.empty((m, n), F32))


@half_types
@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("m", [1, 300])
def test_product_is_the_same_on_any_number_of_threads(dtype: np.dtype[Any], threads: int, m: int) -> None:
    compare(random((m, 600), dtype), random((600, 330), dtype), np.empty((m, 330), dtype), threads=threads)


@half_types
@constant_or_not
@pytest.mark.parametrize("m", [2, 30])
def test_weights_may_lie_by_columns_or_have_gaps(dtype: np.dtype[Any], is_constant: bool, m: int) -> None:
    w = random((70, 39), dtype)
    for order, gap in (((1, 0), 0), ((1, 0), 3), ((0, 1), 5)):
        stored = strided_like(w.shape, dtype, order, gap)
        stored[...] = w
        compare(random((m, 70), dtype), stored, np.empty((m, 39), dtype), is_constant)


@half_types
def test_operand_and_result_may_have_any_strides_and_batches(dtype: np.dtype[Any]) -> None:
    a = strided_like((3, 15, 72), dtype, (1, 2, 0), gap=2)
    a[...] = random(a.shape, dtype)
    y = strided_like((3, 15, 33), F32, (2, 0, 1), gap=1)
    compare(a, random((1, 72, 33), dtype), y)


@half_types
@pytest.mark.parametrize("other", [F16, BF16, F32], ids=str)
def test_left_operand_and_result_may_be_of_other_types(dtype: np.dtype[Any], other: np.dtype[Any]) -> None:
    compare(random((3, 48), other), random((48, 20), dtype), np.empty((3, 20), F32))
    compare(random((30, 48), F32), random((48, 20), dtype), np.empty((30, 20), other))


@half_types
@pytest.mark.parametrize("m", [1, 20])
def test_every_finite_and_infinite_number_is_widened_exactly(dtype: np.dtype[Any], m: int) -> None:
    w = np.arange(2**16, dtype=np.uint16).view(dtype).reshape(1, -1)
    a = np.ones((m, 1), F32)
    y = np.empty((m, w.size), F32)
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.matmul(graph.tensor(a), weights, graph.tensor(y))
    graph.plan(ENGINE, constants=(weights,)).execute()
    np.testing.assert_array_equal(y, np.repeat(w.astype(F32), m, 0))


def test_plans_share_constants_of_the_same_memory() -> None:
    w, results = random((64, 16), BF16), np.full((2, 2, 16), np.nan, F32)
    a = random((2, 64), BF16)
    for index in range(2):
        graph = AnchorGraph()
        weights = graph.tensor(w)
        graph.matmul(graph.tensor(a), weights, graph.tensor(results[index]))
        graph.plan(ENGINE, constants=(weights,)).execute()
        assert_close(results[index], wide(a) @ wide(w))
    w[...] = random((64, 16), BF16, seed=1)
    graph = AnchorGraph()
    weights = graph.tensor(w)
    graph.matmul(graph.tensor(a), weights, graph.tensor(results[0]))
    graph.plan(ENGINE, constants=(weights,)).execute()
    assert_close(results[0], wide(a) @ wide(w))


def graph_with_epilogue(
    a: np.ndarray, w: np.ndarray, y: np.ndarray, steps: list[tuple[Pointwise, Any, dict[str, float]]]
) -> tuple[AnchorGraph, Operand]:
    """A matmul and pointwise nodes behind it, each with another operand or none."""
    graph = AnchorGraph()
    weights = graph.tensor(w)
    value = graph.matmul(graph.tensor(a), weights, graph.virtual(y.shape, a.dtype))
    for index, (mode, other, parameters) in enumerate(steps):
        operands = [] if other is None else [graph.scalar(other) if np.isscalar(other) else graph.tensor(other)]
        out = graph.tensor(y) if index + 1 == len(steps) else None
        value = graph.then(mode, value, *operands, out=out, **parameters)
    return graph, weights


@half_types
@pytest.mark.parametrize("m", [1, 14, 30])
def test_epilogue_follows_in_float32(dtype: np.dtype[Any], m: int) -> None:
    a, w = random((m, 64), dtype) / dtype.type(16), random((64, 37), dtype)
    residual, factor = random((m, 37), dtype, 1), random((m, 37), dtype, 2)
    bias, y = random((1, 37), dtype, 3), np.zeros((m, 37), dtype)
    steps: list[tuple[Pointwise, Any, dict[str, float]]] = [
        (Pointwise.ADD, bias, {}),
        (Pointwise.ADD, residual, {}),
        (Pointwise.SWISH_FWD, None, {"swish_beta": 1.0}),
        (Pointwise.MUL, factor, {}),
    ]
    graph, weights = graph_with_epilogue(a, w, y, steps)
    plan = graph.plan(ENGINE, constants=(weights,))
    plan.execute()
    assert plan.describe().endswith("+ epilogue")
    value = wide(a) @ wide(w) + wide(bias) + residual
    assert_close(y, value / (1 + np.exp(-value)) * factor, TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("mode", "parameters", "function"),
    [
        (Pointwise.RELU_FWD, {}, lambda x: np.maximum(x, 0)),
        (Pointwise.RELU_FWD, {"slope": 0.25}, lambda x: np.where(x > 0, x, x / 4)),
        (Pointwise.RELU_FWD, {"lower": -1.0, "upper": 2.0}, lambda x: np.clip(x, -1, 2)),
        (Pointwise.ELU_FWD, {"elu_alpha": 0.5}, lambda x: np.where(x > 0, x, np.expm1(x) / 2)),
        (Pointwise.TANH_FWD, {}, np.tanh),
    ],
    ids=lambda value: value.name if isinstance(value, Pointwise) else None,
)
def test_epilogue_has_common_activations(mode: Pointwise, parameters: dict[str, float], function: Any) -> None:
    a, w, y = random((5, 32), BF16), random((32, 20), BF16), np.zeros((5, 20), F32)
    graph, weights = graph_with_epilogue(a, w, y, [(mode, None, parameters)])
    graph.plan(ENGINE, constants=(weights,)).execute()
    assert_close(y, function(wide(a) @ wide(w)))


def test_epilogue_scales_and_shifts_by_numbers_in_the_graph() -> None:
    a, w, y = random((5, 32), BF16), random((32, 20), BF16), np.zeros((5, 20), F32)
    steps: list[tuple[Pointwise, Any, dict[str, float]]] = [
        (Pointwise.MUL, 0.125, {}),
        (Pointwise.ADD, 0.5, {}),
        (Pointwise.TANH_FWD, None, {}),
        (Pointwise.MUL, 30.0, {}),
    ]
    graph, weights = graph_with_epilogue(a, w, y, steps)
    graph.plan(ENGINE, constants=(weights,)).execute()
    assert_close(y, 30 * np.tanh(wide(a) @ wide(w) / 8 + 0.5))


@pytest.mark.parametrize("m", [3, 30])
def test_result_may_take_the_place_of_the_residual(m: int) -> None:
    a, w, y = random((m, 32), BF16), random((32, 20), BF16), np.ones((m, 20), F32)
    graph = AnchorGraph()
    c = graph.virtual(y.shape, BF16)
    graph.matmul(graph.tensor(a), graph.tensor(w), c)
    graph.then(Pointwise.ADD, c, graph.tensor(y), out=graph.tensor(y))
    graph.run(ENGINE)
    assert_close(y, wide(a) @ wide(w) + 1)


def refused(a: np.ndarray, w: np.ndarray, y: np.ndarray) -> str:
    """Why the engine does not take a product."""
    graph = AnchorGraph()
    graph.matmul(graph.tensor(a), graph.tensor(w), graph.tensor(y))
    return refusal(graph, ENGINE)


def test_misfits_are_refused_with_a_reason() -> None:
    a, w, y = (np.zeros(shape, BF16) for shape in ((2, 3, 8), (2, 8, 4), (2, 3, 4)))
    assert "has batches of weights" in refused(a, w, y)
    assert "expected 16-bit floats" in refused(a[0], w[0].astype(F32), y[0])
    assert "the left operand is" in refused(a[0].astype(np.float64), w[0], y[0])
    assert "the result is" in refused(a[0], w[0], y[0].astype(np.float64))
    graph, _ = graph_with_epilogue(a[0], w[0], y[0], [(Pointwise.SQRT, None, {})])
    assert "epilogue" in refusal(graph, ENGINE)


@uncapped
@pytest.mark.parametrize("cap", ["AVX2", "SSE41"])
def test_results_are_right_when_the_cpu_has_fewer_instructions(cap: str) -> None:
    assert_passes_under_cap(__file__, cap)
