"""Softmax, norms and other graphs whose reductions come back to their rows, against ONNX Runtime and numpy."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from hipdnn_mlir_runtime.abi import Pointwise, Reduce
from host_engines.host_graph import ROWWISE, HostError, HostGraph, strided_like


def ort_node(operation: str, inputs: list[np.ndarray], **attributes: object) -> np.ndarray:
    """The result of one ONNX node on ONNX Runtime's CPU EP."""
    names = [f"i{i}" for i in range(len(inputs))]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, inputs, strict=True)]
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(operation, names, ["y"], **attributes)], "g", infos, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(2, 3, 17, 129), (4, 33, 5, 8), (1, 1, 3, 5000), (3, 70, 1, 1)])
def test_softmax_over_any_axis_equals_ort(shape: tuple[int, ...], axis: int, log: bool) -> None:
    x = np.random.default_rng(0).uniform(-20, 20, shape).astype(np.float32)
    out = np.empty_like(x)
    graph = HostGraph()
    graph.softmax(graph.tensor(x), graph.tensor(out), axis, log=log)
    graph.run(ROWWISE)
    np.testing.assert_allclose(out, ort_node("LogSoftmax" if log else "Softmax", [x], axis=axis), rtol=3e-6, atol=3e-6)


def test_softmax_on_channels_last_equals_ort() -> None:
    x = np.random.default_rng(1).standard_normal((2, 21, 9, 11), dtype=np.float32)
    stored = strided_like(x.shape, np.float32, (0, 2, 3, 1))
    stored[...] = x
    out = strided_like(x.shape, np.float32, (0, 2, 3, 1))
    graph = HostGraph()
    graph.softmax(graph.tensor(stored), graph.tensor(out), 1)
    graph.run(ROWWISE)
    np.testing.assert_allclose(out, ort_node("Softmax", [x], axis=1), rtol=3e-6, atol=1e-7)


def test_scaled_and_masked_attention_scores_equal_ort() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((2, 4, 40, 40), dtype=np.float32)
    mask = np.where(rng.random((2, 1, 1, 40)) < 0.3, -np.inf, 0).astype(np.float32)
    mask[..., 0] = 0
    out = np.empty_like(x)
    graph = HostGraph()
    scaled = graph.pointwise(Pointwise.MUL, [graph.tensor(x), graph.scalar(0.125)], graph.virtual(x.shape))
    masked = graph.pointwise(Pointwise.ADD, [scaled, graph.tensor(mask)], graph.virtual(x.shape))
    graph.softmax(masked, graph.tensor(out))
    graph.run(ROWWISE)
    np.testing.assert_allclose(out, ort_node("Softmax", [x * np.float32(0.125) + mask], axis=-1), rtol=3e-6, atol=1e-7)
    assert (out[np.broadcast_to(np.isinf(mask), x.shape)] == 0).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_softmax_of_narrow_floats_computes_in_float(dtype: type) -> None:
    x = np.random.default_rng(3).uniform(-8, 8, (6, 200)).astype(dtype)
    out = np.empty_like(x)
    graph = HostGraph()
    graph.softmax(graph.tensor(x), graph.tensor(out))
    graph.run(ROWWISE)
    power = np.exp(x.astype(np.float64) - x.astype(np.float64).max(-1, keepdims=True))
    expected = (power / power.sum(-1, keepdims=True)).astype(dtype)
    np.testing.assert_allclose(
        out.astype(np.float64), expected.astype(np.float64), rtol=8e-3 if dtype != np.float16 else 1e-3, atol=1e-7
    )


def test_row_of_nan_stays_in_its_row() -> None:
    x = np.random.default_rng(4).standard_normal((5, 64), dtype=np.float32)
    x[2, 7] = np.nan
    out = np.empty_like(x)
    graph = HostGraph()
    graph.softmax(graph.tensor(x), graph.tensor(out))
    graph.run(ROWWISE)
    assert np.isnan(out[2]).all()
    assert np.isfinite(np.delete(out, 2, 0)).all()


@pytest.mark.parametrize("shape", [(7, 768), (2, 5, 96), (3, 4, 6, 10)])
@pytest.mark.parametrize("axes", [1, 2])
def test_layer_norm_node_equals_ort(shape: tuple[int, ...], axes: int) -> None:
    if axes >= len(shape):
        axes = len(shape) - 1
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(shape) * 3 + 100).astype(np.float32)
    spanned = (1,) * (len(shape) - axes) + shape[-axes:]
    scale, bias = (rng.standard_normal(spanned, dtype=np.float32) for _ in range(2))
    out = np.empty_like(x)
    graph = HostGraph()
    graph.norm(
        "LAYERNORM",
        graph.tensor(x),
        graph.tensor(scale),
        graph.scalar(1e-5),
        graph.tensor(out),
        bias=graph.tensor(bias),
    )
    graph.run(ROWWISE)
    wide = x.astype(np.float64)
    over = tuple(range(len(shape) - axes, len(shape)))
    centred = wide - wide.mean(over, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(over, keepdims=True) + 1e-5) * scale + bias
    np.testing.assert_allclose(out, exact, rtol=1e-4, atol=1e-4)
    last = shape[-axes:]
    expected = ort_node("LayerNormalization", [x, scale.reshape(last), bias.reshape(last)], axis=-axes, epsilon=1e-5)
    np.testing.assert_allclose(out, expected, rtol=1e-3, atol=1e-3)


def test_layer_norm_writes_its_statistics() -> None:
    x = np.random.default_rng(6).standard_normal((9, 130), dtype=np.float32)
    one, zero = np.ones((1, 130), np.float32), np.zeros((1, 130), np.float32)
    out, mean, inverse = np.empty_like(x), np.empty((9, 1), np.float32), np.empty((9, 1), np.float32)
    graph = HostGraph()
    tx, ts, tb, ty = (graph.tensor(a) for a in (x, one, zero, out))
    statistics = {"mean": graph.tensor(mean), "inv_variance": graph.tensor(inverse)}
    graph.norm("LAYERNORM", tx, ts, graph.scalar(1e-3), ty, bias=tb, **statistics)
    graph.run(ROWWISE)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(-1, keepdims=True), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(inverse, 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-3), rtol=1e-5)


def test_rms_norm_node_equals_numpy() -> None:
    rng = np.random.default_rng(7)
    x, scale = rng.standard_normal((4, 6, 256), dtype=np.float32), rng.standard_normal((1, 1, 256), dtype=np.float32)
    out = np.empty_like(x)
    graph = HostGraph()
    graph.norm("RMSNORM", graph.tensor(x), graph.tensor(scale), graph.scalar(1e-6), graph.tensor(out))
    graph.run(ROWWISE)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(
        out, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-6) * scale, rtol=2e-6, atol=2e-6
    )


def test_layer_norm_written_out_with_residual_and_two_outputs() -> None:
    rng = np.random.default_rng(8)
    x, residual = (rng.standard_normal((12, 384), dtype=np.float32) for _ in range(2))
    scale = rng.standard_normal((1, 384), dtype=np.float32)
    total, out = np.empty_like(x), np.empty_like(x)
    rows = (12, 1)
    g = HostGraph()
    added = g.pointwise(Pointwise.ADD, [g.tensor(x), g.tensor(residual)], g.tensor(total))
    mean = g.reduction(Reduce.AVG, added, g.virtual(rows))
    centred = g.pointwise(Pointwise.SUB, [added, mean], g.virtual(x.shape))
    square = g.pointwise(Pointwise.MUL, [centred, centred], g.virtual(x.shape))
    variance = g.reduction(Reduce.AVG, square, g.virtual(rows))
    stable = g.pointwise(Pointwise.ADD, [variance, g.scalar(1e-5)], g.virtual(rows))
    inverse = g.pointwise(Pointwise.RSQRT, [stable], g.virtual(rows))
    normal = g.pointwise(Pointwise.MUL, [centred, inverse], g.virtual(x.shape))
    g.pointwise(Pointwise.MUL, [normal, g.tensor(scale)], g.tensor(out))
    g.run(ROWWISE)
    wide = x.astype(np.float64) + residual
    np.testing.assert_array_equal(total, x + residual)
    expected = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * scale
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [a for n in (1, 2, 3) for a in itertools.combinations(range(4), n)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_difference_from_the_mean_over_any_axes(axes: tuple[int, ...], order: tuple[int, ...]) -> None:
    shape = (3, 7, 5, 12)
    x = strided_like(shape, np.float32, order, gap=1)
    x[...] = np.random.default_rng(9).standard_normal(shape)
    out = strided_like(shape, np.float32, order[::-1])
    kept = tuple(1 if i in axes else d for i, d in enumerate(shape))
    graph = HostGraph()
    tx = graph.tensor(x)
    mean = graph.reduction(Reduce.AVG, tx, graph.virtual(kept))
    graph.pointwise(Pointwise.SUB, [tx, mean], graph.tensor(out))
    graph.run(ROWWISE)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(out, wide - wide.mean(axes, keepdims=True), rtol=1e-5, atol=1e-6)


def test_single_reduction_is_left_to_the_reduction_engine() -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 1), np.float32)
    graph = HostGraph()
    graph.reduction(Reduce.ADD, graph.tensor(x), graph.tensor(out))
    with pytest.raises(HostError, match="HOST_REDUCTION_ENGINE takes it"):
        graph.run(ROWWISE)


def test_reductions_over_different_axes_are_refused() -> None:
    x, out = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    graph = HostGraph()
    tx = graph.tensor(x)
    rows = graph.reduction(Reduce.ADD, tx, graph.virtual((4, 1)))
    columns = graph.reduction(Reduce.ADD, tx, graph.virtual((1, 8)))
    graph.pointwise(Pointwise.ADD, [rows, columns], graph.tensor(out))
    with pytest.raises(HostError, match=r"node 1.*axes \[0\].*axes \[1\]"):
        graph.run(ROWWISE)


def test_softmax_writes_over_its_input() -> None:
    x = np.random.default_rng(10).standard_normal((33, 257), dtype=np.float32)
    expected = ort_node("Softmax", [x], axis=-1)
    graph = HostGraph()
    graph.softmax(graph.tensor(x), graph.tensor(x))
    graph.run(ROWWISE)
    np.testing.assert_allclose(x, expected, rtol=3e-6, atol=1e-7)


def test_plans_run_from_several_threads_at_once() -> None:
    inputs = [np.random.default_rng(seed).standard_normal((64, 500), dtype=np.float32) for seed in range(4)]
    outputs = [np.empty_like(x) for x in inputs]
    plans = []
    for x, out in zip(inputs, outputs, strict=True):
        graph = HostGraph()
        graph.softmax(graph.tensor(x), graph.tensor(out))
        plans.append(graph.plan(ROWWISE))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda plan: [plan.execute() for _ in range(20)], plans))
    for x, out in zip(inputs, outputs, strict=True):
        np.testing.assert_allclose(out, ort_node("Softmax", [x], axis=-1), rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    ("shape", "order"),
    [((3, 5, 6, 7), (0, 1, 2, 3)), ((3, 5, 6, 7), (0, 2, 3, 1)), ((9, 4), (0, 1)), ((1, 3, 1), (0, 1, 2))],
)
def test_batch_norm_of_training_equals_float64(shape: tuple[int, ...], order: tuple[int, ...], dtype: type) -> None:
    rng = np.random.default_rng(3)
    x = strided_like(shape, dtype, order)
    x[...] = rng.standard_normal(shape) * 2 + 1
    channels = (1, shape[1], *(1,) * (len(shape) - 2))
    scale, bias, mean_before = (rng.standard_normal(channels).astype(dtype) for _ in range(3))
    variance_before = rng.uniform(0.5, 2, channels).astype(dtype)
    y = strided_like(shape, dtype, order)
    mean, inverse, mean_after, variance_after = (np.zeros(channels, dtype) for _ in range(4))
    graph = HostGraph()
    tensors = {
        "X": x, "SCALE": scale, "BIAS": bias, "PREV_RUNNING_MEAN": mean_before, "PREV_RUNNING_VARIANCE": variance_before, "Y": y,
        "MEAN": mean, "INV_VARIANCE": inverse, "NEXT_RUNNING_MEAN": mean_after, "NEXT_RUNNING_VARIANCE": variance_after,
    }  # fmt: skip
    named = {name: graph.tensor(array) for name, array in tensors.items()}
    graph.batch_norm(named | {"EPSILON": graph.scalar(1e-3), "MOMENTUM": graph.scalar(0.25)})
    graph.run(ROWWISE)

    axes = tuple(axis for axis in range(len(shape)) if axis != 1)
    wide = x.astype(np.float64)
    batch_mean, batch_variance = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    count = wide.size // shape[1]
    deviation = np.sqrt(batch_variance + 1e-3)
    expected = {
        "Y": (wide - batch_mean) / deviation * scale + bias,
        "MEAN": batch_mean,
        "INV_VARIANCE": 1 / deviation,
        "NEXT_RUNNING_MEAN": 0.75 * mean_before + 0.25 * batch_mean,
        "NEXT_RUNNING_VARIANCE": 0.75 * variance_before + 0.25 * batch_variance * count / max(count - 1, 1),
    }
    tolerance = {np.float32: 1e-5, np.float64: 1e-7, np.float16: 4e-3}[
        dtype
    ]  # epsilon and momentum are float32 numbers
    for name, wanted in expected.items():
        np.testing.assert_allclose(
            tensors[name].astype(np.float64), wanted, rtol=tolerance, atol=4 * tolerance, err_msg=name
        )
