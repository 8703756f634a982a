"""Matrix products of the oneDNN engine with their epilogues against numpy in float64."""

from collections.abc import Callable
from math import erf

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Pointwise
from host_engines.anchor_graph import ONEDNN, AnchorGraph, assert_close, refusal
from host_engines.host_graph import HostError, HostPlan, Operand, strided_like


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape, np.float32)


def error_function(x: np.ndarray) -> np.ndarray:
    return np.vectorize(erf, otypes=[np.float64])(x)


def in_order(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The same values with the axes in that order in memory, outermost first."""
    copy = strided_like(array.shape, array.dtype, order)
    copy[...] = array
    return copy


HEADS = (0, 2, 1, 3)
MATMULS = [
    ((128, 64), (64, 96)),
    ((1, 768), (768, 10)),
    ((7, 1), (1, 7)),
    ((1, 128, 64), (1, 64, 96)),
    ((2, 3, 5, 7), (2, 3, 7, 4)),
    ((2, 3, 5, 7), (1, 1, 7, 4)),
    ((1, 1, 5, 7), (2, 3, 7, 4)),
    ((1, 3, 5, 7), (2, 1, 7, 4)),
    ((2, 2, 2, 2, 2, 2, 3, 4), (1, 2, 1, 2, 1, 2, 4, 5)),
]


@pytest.mark.parametrize("is_constant", [True, False], ids=["packed", "unpacked"])
@pytest.mark.parametrize("transposed", ["", "a", "b", "c"])
@pytest.mark.parametrize(("a_shape", "b_shape"), MATMULS, ids=str)
def test_product_equals_numpy(
    a_shape: tuple[int, ...], b_shape: tuple[int, ...], transposed: str, is_constant: bool
) -> None:
    arrays = {"a": random(*a_shape), "b": random(*b_shape)}
    expected = np.matmul(arrays["a"].astype(np.float64), arrays["b"].astype(np.float64))
    arrays["c"] = np.full(expected.shape, np.nan, np.float32)
    for name in transposed:
        rank = arrays[name].ndim
        arrays[name] = in_order(arrays[name], (*range(rank - 2), rank - 1, rank - 2))
    graph = AnchorGraph()
    a, b, c = (graph.tensor(arrays[name]) for name in "abc")
    graph.matmul(a, b, c)
    graph.plan(ONEDNN, constants=(b,) if is_constant else ()).execute()
    assert_close(arrays["c"], expected)


def assert_no_copy(plan: HostPlan) -> None:
    """One matmul of oneDNN's, of those that are fast on this processor, and nothing that moves its operands."""
    steps = plan.describe().split(" + ")
    assert steps[0].startswith(("brg", "gemm:jit")), steps
    assert steps[1:] in ([], ["linear"]), steps


@pytest.mark.parametrize("batch", [1, 2])
def test_heads_of_attention_are_read_and_written_as_views(batch: int) -> None:
    query = in_order(random(batch, 12, 128, 64), HEADS)
    key = in_order(0.1 * random(batch, 12, 128, 64), HEADS)
    scores = np.zeros((batch, 12, 128, 128), np.float32)
    graph = AnchorGraph()
    product = graph.virtual(scores.shape)
    graph.matmul(graph.tensor(query), graph.tensor(np.swapaxes(key, 2, 3)), product)
    graph.then(Pointwise.MUL, product, graph.scalar(0.125), out=graph.tensor(scores))
    plan = graph.plan(ONEDNN)
    plan.execute()
    expected = 0.125 * np.matmul(query.astype(np.float64), np.swapaxes(key, 2, 3).astype(np.float64))
    assert_close(scores, expected)
    assert_no_copy(plan)

    context = strided_like((batch, 12, 128, 64), np.float32, HEADS)
    graph = AnchorGraph()
    graph.matmul(graph.tensor(scores), graph.tensor(key), graph.tensor(context))
    plan = graph.plan(ONEDNN)
    plan.execute()
    assert_close(context, np.matmul(scores.astype(np.float64), key.astype(np.float64)))
    assert_no_copy(plan)


Apply = Callable[[AnchorGraph, Operand, Operand], Operand]


def hard_swish(divide: bool, first: bool) -> Apply:
    """X * clip(x + 3, 0, 6) / 6; `first` scales before the product."""

    def apply(graph: AnchorGraph, value: Operand, out: Operand) -> Operand:
        scale = (Pointwise.DIV, graph.scalar(6.0)) if divide else (Pointwise.MUL, graph.scalar(1.0 / 6.0))
        gate = graph.then(Pointwise.ADD, value, graph.scalar(3.0))
        gate = graph.then(Pointwise.RELU_FWD, gate, lower=0.0, upper=6.0)
        if first:
            return graph.then(Pointwise.MUL, value, graph.then(scale[0], gate, scale[1]), out=out)
        return graph.then(scale[0], graph.then(Pointwise.MUL, gate, value), scale[1], out=out)

    return apply


def written_out_gelu(graph: AnchorGraph, value: Operand, out: Operand) -> Operand:
    inner = graph.then(Pointwise.ERF, graph.then(Pointwise.DIV, value, graph.scalar(2.0**0.5)))
    product = graph.then(Pointwise.MUL, value, graph.then(Pointwise.ADD, inner, graph.scalar(1.0)))
    return graph.then(Pointwise.MUL, product, graph.scalar(0.5), out=out)


def written_out_swish(graph: AnchorGraph, value: Operand, out: Operand) -> Operand:
    return graph.then(Pointwise.MUL, graph.then(Pointwise.SIGMOID_FWD, value), value, out=out)


def written_out_mish(graph: AnchorGraph, value: Operand, out: Operand) -> Operand:
    gate = graph.then(Pointwise.TANH_FWD, graph.then(Pointwise.SOFTPLUS_FWD, value))
    return graph.then(Pointwise.MUL, value, gate, out=out)


def mode(pointwise: Pointwise, **parameters: float) -> Apply:
    return lambda graph, value, out: graph.then(pointwise, value, out=out, **parameters)


def with_scalar(pointwise: Pointwise, number: float, value_first: bool = True) -> Apply:
    def apply(graph: AnchorGraph, value: Operand, out: Operand) -> Operand:
        operands = [value, graph.scalar(number)]
        return graph.pointwise(pointwise, operands if value_first else operands[::-1], out)

    return apply


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


EPILOGUES: dict[str, tuple[Apply, Callable[[np.ndarray], np.ndarray], str]] = {
    "relu": (mode(Pointwise.RELU_FWD), lambda x: np.maximum(x, 0), "relu"),
    "relu6": (mode(Pointwise.RELU_FWD, lower=0.0, upper=6.0), lambda x: np.clip(x, 0, 6), "clip"),
    "clip": (mode(Pointwise.RELU_FWD, lower=-1.0, upper=2.0), lambda x: np.clip(x, -1, 2), "clip"),
    "leaky": (mode(Pointwise.RELU_FWD, slope=0.1), lambda x: np.where(x > 0, x, 0.1 * x), "relu"),
    "leaky_shifted": (
        mode(Pointwise.RELU_FWD, lower=1.0, upper=2.0, slope=0.5),
        lambda x: np.where(x <= 1, 1 + 0.5 * (x - 1), np.minimum(x, 2)),
        "linear + relu + linear + clip",
    ),
    "tanh": (mode(Pointwise.TANH_FWD), np.tanh, "tanh"),
    "sigmoid": (mode(Pointwise.SIGMOID_FWD), sigmoid, "sigmoid"),
    "gelu": (mode(Pointwise.GELU_FWD), lambda x: 0.5 * x * (1 + error_function(x / 2**0.5)), "gelu"),
    "gelu_tanh": (
        mode(Pointwise.GELU_APPROX_TANH_FWD),
        lambda x: 0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))),
        "gelu_tanh",
    ),
    "swish": (mode(Pointwise.SWISH_FWD, swish_beta=1.5), lambda x: x * sigmoid(1.5 * x), "swish"),
    "elu": (mode(Pointwise.ELU_FWD, elu_alpha=0.7), lambda x: np.where(x > 0, x, 0.7 * np.expm1(x)), "elu"),
    "softplus": (mode(Pointwise.SOFTPLUS_FWD, softplus_beta=2.0), lambda x: np.logaddexp(0, 2 * x) / 2, "softplus"),
    "abs": (mode(Pointwise.ABS), np.abs, "abs"),
    "exp": (mode(Pointwise.EXP), np.exp, "exp"),
    "neg": (mode(Pointwise.NEG), np.negative, "linear"),
    "sub_scalar": (with_scalar(Pointwise.SUB, 3.0), lambda x: x - 3, "linear"),
    "scalar_sub": (with_scalar(Pointwise.SUB, 3.0, False), lambda x: 3 - x, "linear"),
    "div_scalar": (with_scalar(Pointwise.DIV, 8.0), lambda x: x / 8, "linear"),
    "min_scalar": (with_scalar(Pointwise.MIN, 0.5), lambda x: np.minimum(x, 0.5), "clip"),
    "max_scalar": (with_scalar(Pointwise.MAX, -0.5), lambda x: np.maximum(x, -0.5), "clip"),
    "hard_swish_div": (hard_swish(True, False), lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish"),
    "hard_swish_mul": (hard_swish(False, False), lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish"),
    "hard_swish_gate_first": (hard_swish(False, True), lambda x: x * np.clip(x + 3, 0, 6) / 6, "hardswish"),
    "written_out_gelu": (written_out_gelu, lambda x: 0.5 * x * (1 + error_function(x / 2**0.5)), "gelu"),
    "written_out_swish": (written_out_swish, lambda x: x * sigmoid(x), "swish"),
    "written_out_mish": (written_out_mish, lambda x: x * np.tanh(np.logaddexp(0, x)), "mish"),
}


@pytest.mark.parametrize("is_constant", [True, False], ids=["packed", "unpacked"])
@pytest.mark.parametrize("name", EPILOGUES)
def test_function_of_the_result_becomes_a_post_operation(name: str, is_constant: bool) -> None:
    apply, function, words = EPILOGUES[name]
    a, b, y = random(9, 31), 0.4 * random(31, 17), np.full((9, 17), np.nan, np.float32)
    graph = AnchorGraph()
    product = graph.virtual(y.shape)
    weights = graph.tensor(b)
    graph.matmul(graph.tensor(a), weights, product)
    apply(graph, product, graph.tensor(y))
    plan = graph.plan(ONEDNN, constants=(weights,) if is_constant else ())
    plan.execute()
    assert_close(y, function(np.matmul(a.astype(np.float64), b.astype(np.float64))))
    assert plan.describe().endswith(f" + {words}")


BROADCASTS = [(2, 3, 5, 7), (1, 1, 1, 7), (7,), (1, 1, 5, 7), (2, 1, 1, 7), (2, 1, 5, 7), (1, 1, 5, 1), (1, 1, 1, 1)]
BINARY: dict[Pointwise, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    Pointwise.ADD: np.add,
    Pointwise.SUB: np.subtract,
    Pointwise.MUL: np.multiply,
    Pointwise.DIV: np.divide,
    Pointwise.MIN: np.minimum,
    Pointwise.MAX: np.maximum,
}


@pytest.mark.parametrize("value_first", [True, False], ids=["value_op_other", "other_op_value"])
@pytest.mark.parametrize("pointwise", BINARY, ids=lambda p: p.name)
@pytest.mark.parametrize("shape", BROADCASTS, ids=str)
def test_operand_of_the_epilogue_broadcasts(shape: tuple[int, ...], pointwise: Pointwise, value_first: bool) -> None:
    # Positive throughout, so that a quotient stays away from zero.
    a, b, y = np.abs(random(2, 3, 5, 9)), np.abs(random(2, 3, 9, 7)), np.full((2, 3, 5, 7), np.nan, np.float32)
    other = np.abs(random(*shape)) + 0.5
    graph = AnchorGraph()
    product = graph.virtual(y.shape)
    graph.matmul(graph.tensor(a), graph.tensor(b), product)
    operands = [product, graph.tensor(other)]
    graph.pointwise(pointwise, operands if value_first else operands[::-1], graph.tensor(y))
    graph.run(ONEDNN)
    value = np.matmul(a.astype(np.float64), b.astype(np.float64))
    function = BINARY[pointwise]
    assert_close(y, function(value, other) if value_first else function(other, value))


@pytest.mark.parametrize("value_first", [True, False], ids=["value_op_other", "other_op_value"])
@pytest.mark.parametrize("pointwise", BINARY, ids=lambda p: p.name)
@pytest.mark.parametrize("shape", [(13, 7), (1, 7), (7,), (13, 1), (1, 1)], ids=str)
def test_operand_of_the_epilogue_of_packed_weights_broadcasts(
    shape: tuple[int, ...], pointwise: Pointwise, value_first: bool
) -> None:
    a, b, y = np.abs(random(13, 9)), np.abs(random(9, 7)), np.full((13, 7), np.nan, np.float32)
    other = np.abs(random(*shape)) + 0.5
    graph = AnchorGraph()
    product, weights = graph.virtual(y.shape), graph.tensor(b)
    graph.matmul(graph.tensor(a), weights, product)
    operands = [product, graph.tensor(other)]
    graph.pointwise(pointwise, operands if value_first else operands[::-1], graph.tensor(y))
    graph.plan(ONEDNN, constants=(weights,)).execute()
    value = np.matmul(a.astype(np.float64), b.astype(np.float64))
    function = BINARY[pointwise]
    assert_close(y, function(value, other) if value_first else function(other, value))


@pytest.mark.parametrize("shape", BROADCASTS[:6], ids=str)
def test_operand_of_the_epilogue_broadcasts_when_its_elements_lie_apart(shape: tuple[int, ...]) -> None:
    a, b, y = random(2, 3, 5, 9), random(2, 3, 9, 7), np.full((2, 3, 5, 7), np.nan, np.float32)
    other = random(*shape[:-1], 14)[..., ::2]
    graph = AnchorGraph()
    product = graph.virtual(y.shape)
    graph.matmul(graph.tensor(a), graph.tensor(b), product)
    graph.pointwise(Pointwise.ADD, [product, graph.tensor(other)], graph.tensor(y))
    graph.run(ONEDNN)
    assert_close(y, np.matmul(a.astype(np.float64), b.astype(np.float64)) + other)


def test_bias_gelu_and_residual_of_a_flattened_batch() -> None:
    x, w, bias = random(2, 16, 32), 0.2 * random(1, 32, 48), random(1, 1, 48)
    residual, y = random(2, 16, 48), np.zeros((2, 16, 48), np.float32)
    graph = AnchorGraph()
    value = graph.virtual(y.shape)
    weights = graph.tensor(w)
    graph.matmul(graph.tensor(x), weights, value)
    value = graph.then(Pointwise.ADD, value, graph.tensor(bias))
    value = graph.then(Pointwise.GELU_FWD, value)
    graph.then(Pointwise.ADD, value, graph.tensor(residual), out=graph.tensor(y))
    plan = graph.plan(ONEDNN, constants=(weights,))
    plan.execute()
    value = np.matmul(x.astype(np.float64), w.astype(np.float64)) + bias
    assert_close(y, 0.5 * value * (1 + error_function(value / 2**0.5)) + residual)
    assert plan.describe().endswith(" + bias + gelu + add")


def test_bfloat16_operands_give_a_float_result() -> None:
    a, b = random(16, 64).astype(ml_dtypes.bfloat16), random(64, 32).astype(ml_dtypes.bfloat16)
    y = np.zeros((16, 32), np.float32)
    graph = AnchorGraph()
    graph.matmul(graph.tensor(a), graph.tensor(b), graph.tensor(y))
    graph.run(ONEDNN)
    assert_close(y, np.matmul(a.astype(np.float64), b.astype(np.float64)))


def test_a_lone_error_function_is_refused() -> None:
    graph = AnchorGraph()
    product = graph.virtual((4, 4))
    graph.matmul(graph.tensor(random(4, 3)), graph.tensor(random(3, 4)), product)
    graph.then(Pointwise.ERF, product, out=graph.tensor(np.zeros((4, 4), np.float32)))
    assert "ERF" in refusal(graph)


def test_a_mode_without_post_operation_is_refused_by_name() -> None:
    graph = AnchorGraph()
    product = graph.virtual((4, 4))
    graph.matmul(graph.tensor(random(4, 3)), graph.tensor(random(3, 4)), product)
    graph.then(Pointwise.FLOOR, product, out=graph.tensor(np.zeros((4, 4), np.float32)))
    assert "no post-operation" in refusal(graph)


def test_an_unrelated_fork_is_refused() -> None:
    graph = AnchorGraph()
    product = graph.virtual((4, 4))
    graph.matmul(graph.tensor(random(4, 3)), graph.tensor(random(3, 4)), product)
    left, right = graph.then(Pointwise.TANH_FWD, product), graph.then(Pointwise.EXP, product)
    graph.then(Pointwise.MUL, left, right, out=graph.tensor(np.zeros((4, 4), np.float32)))
    assert "is read by 2 nodes" in refusal(graph)


def test_a_factor_for_each_head_is_never_applied_in_generic_loops() -> None:
    graph = AnchorGraph()
    product = graph.virtual((2, 3, 4, 4))
    graph.matmul(graph.tensor(random(2, 3, 4, 8)), graph.tensor(random(2, 3, 8, 4)), product)
    graph.then(
        Pointwise.MUL, product, graph.tensor(random(3, 1, 1)), out=graph.tensor(np.zeros((2, 3, 4, 4), np.float32))
    )
    try:
        found = graph.plan(ONEDNN).describe()
    except HostError as error:  # with AVX-512, where oneDNN has no generated code for it
        found = str(error)
    assert "ref:" not in found


@pytest.mark.parametrize("order", [(0, 1, 2, 3), HEADS, (1, 0, 2, 3)], ids=str)
@pytest.mark.parametrize("gap", [0, 1])
@pytest.mark.parametrize(("batch", "heads", "m", "n"), [(1, 2, 1, 4), (2, 3, 5, 20), (3, 2, 1, 7)])
@pytest.mark.parametrize("added", ["all", "columns", "batches", "rows"])
def test_what_is_added_to_a_result_with_gaps(
    order: tuple[int, ...], gap: int, batch: int, heads: int, m: int, n: int, added: str
) -> None:
    a, b = random(batch, heads, m, 16), random(batch, heads, 16, n)
    dims = {"all": (batch, heads, m, n), "columns": (1, 1, 1, n), "batches": (batch, 1, 1, n), "rows": (1, 1, m, 1)}
    mask = random(*dims[added])
    result = strided_like((batch, heads, m, n), np.float32, order, gap)
    graph = AnchorGraph()
    product = graph.virtual(result.shape)
    graph.matmul(graph.tensor(a), graph.tensor(b), product)
    scaled = graph.then(Pointwise.MUL, product, graph.scalar(0.25))
    graph.then(Pointwise.ADD, scaled, graph.tensor(mask), out=graph.tensor(result))
    graph.plan(ONEDNN).execute()
    assert_close(result, 0.25 * np.matmul(a.astype(np.float64), b.astype(np.float64)) + mask.astype(np.float64))
