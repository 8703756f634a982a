"""Operators of the domain `hipdnn` and blocks of DequantizeLinear in whole models, against ONNX Runtime and float64 NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError

RNG = np.random.default_rng(7)


def model_of(
    node: onnx.NodeProto, inputs: dict[str, Any], outputs: dict[str, int], *more: onnx.NodeProto
) -> onnx.ModelProto:
    """A model of nodes; inputs are arrays, outputs have an element type and no dims."""
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("hipdnn", 1)]
    return helper.make_model(
        helper.make_graph([node, *more], "g", values, results), opset_imports=opsets, ir_version=10
    )


def run_onnxruntime(model: onnx.ModelProto, inputs: dict[str, Any]) -> Any:
    """The first output."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def own(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, outputs, domain="hipdnn", name="n", **attributes)


def run(model: onnx.ModelProto, inputs: dict[str, Any], **options: Any) -> tuple[dict[str, Any], list[str]]:
    """Outputs, and the engines of the steps."""
    session = hipdnn_mlir.compile(model, **options).session()
    return dict(zip((o.name for o in session.outputs), session.run(None, inputs), strict=True)), [
        step.get("engine", "") for step in session.steps
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("shape", "axis", "block"), [((4, 64), -1, 32), ((6, 5), 0, 4), ((2, 3, 40), 2, 16)])
def test_quantized_blocks_are_within_half_a_step(shape: tuple[int, ...], axis: int, block: int, dtype: type) -> None:
    x = RNG.standard_normal(shape).astype(dtype)
    x[0] = 0  # a block of zeros has scale 0 and gives zeros back
    node = own("BlockScaleQuantize", ["x"], ["y", "scale"], block_size=block, axis=axis)
    got, engines = run(model_of(node, {"x": x}, {"y": TensorProto.INT8, "scale": TensorProto.FLOAT}), {"x": x})
    assert engines == ["HOST_BLOCK_SCALE_ENGINE"]
    along = axis % len(shape)
    starts = np.arange(0, shape[along], block)
    want = np.maximum.reduceat(np.abs(x.astype(np.float64)), starts, along) / 127
    np.testing.assert_allclose(got["scale"], want, rtol=1e-6)
    spread = np.repeat(want, block, along).take(range(shape[along]), along)
    exact = np.divide(x, spread, out=np.zeros(shape), where=spread > 0)
    assert got["y"].dtype == np.int8
    assert np.abs(got["y"] - exact).max() <= 0.5 + 1e-4


@pytest.mark.parametrize(
    ("shape", "axis", "block"), [((4, 64), 1, 32), ((6, 5), 0, 2), ((2, 3, 40), -1, 8), ((7, 5), 0, 4)]
)
def test_dequantized_blocks_equal_onnxruntime(shape: tuple[int, ...], axis: int, block: int) -> None:
    along = axis % len(shape)
    scales = tuple(-(-size // block) if index == along else size for index, size in enumerate(shape))
    inputs = {
        "x": RNG.integers(-128, 128, shape).astype(np.int8),
        "s": RNG.random(scales).astype(np.float32) + np.float32(0.1),
    }
    node = helper.make_node("DequantizeLinear", ["x", "s"], ["y"], axis=axis, block_size=block)
    model = model_of(node, inputs, {"y": TensorProto.FLOAT})
    got, engines = run(model, inputs)
    if shape[along] % block == 0:
        assert engines == ["HOST_BLOCK_SCALE_ENGINE"]
        np.testing.assert_array_equal(got["y"], run_onnxruntime(model, inputs))
    else:  # ONNX Runtime takes whole blocks only
        want = inputs["x"] * np.repeat(inputs["s"], block, along).take(range(shape[along]), along)
        np.testing.assert_array_equal(got["y"], want)


def test_weights_in_blocks_are_dequantized_when_compiled() -> None:
    x, weight = RNG.standard_normal((2, 8)).astype(np.float32), RNG.integers(-128, 128, (8, 6)).astype(np.int8)
    scale = RNG.random((2, 6)).astype(np.float32)
    nodes = (
        helper.make_node("DequantizeLinear", ["w", "s"], ["wide"], axis=0, block_size=4),
        helper.make_node("MatMul", ["x", "wide"], ["y"]),
    )
    model = model_of(nodes[0], {"x": x}, {"y": TensorProto.FLOAT}, nodes[1])
    for name, array in (("w", weight), ("s", scale)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    got, engines = run(model, {"x": x})
    assert engines == ["HOST_ONEDNN_ENGINE"]
    np.testing.assert_allclose(got["y"], run_onnxruntime(model, {"x": x}), rtol=1e-5, atol=1e-4)


def test_batch_norm_by_deviation() -> None:
    x = RNG.standard_normal((2, 5, 3, 4)).astype(np.float32)
    names = ["mean", "inverse", "scale", "bias"]
    channels = {name: RNG.random(5).astype(np.float32) for name in names}
    node = own("BatchNormalizationInference", ["x", *names], ["y"])
    got, engines = run(model_of(node, {"x": x, **channels}, {"y": TensorProto.FLOAT}), {"x": x, **channels})
    assert engines == ["HOST_ONEDNN_ENGINE"]
    wide = {name: array.astype(np.float64)[:, None, None] for name, array in channels.items()}
    np.testing.assert_allclose(
        got["y"], (x - wide["mean"]) * wide["inverse"] * wide["scale"] + wide["bias"], rtol=1e-5, atol=1e-6
    )


def test_modes_that_onnx_lacks() -> None:
    a, b = RNG.standard_normal((2, 3, 4)).astype(np.float32), RNG.standard_normal((2, 3, 4)).astype(np.float32)
    b[0, 1] = 0
    nodes = (
        own("AddSquare", ["a", "b"], ["sum"]),
        own("GenIndex", ["b"], ["place"], axis=1),
        own("ReduceProdNoZeros", ["b"], ["product"], axes=[1], keepdims=0),
    )
    outputs = dict.fromkeys(("sum", "place", "product"), TensorProto.FLOAT)
    got, engines = run(model_of(nodes[0], {"a": a, "b": b}, outputs, *nodes[1:]), {"a": a, "b": b})
    assert set(engines) == {"HOST_ROWWISE_ENGINE", "HOST_REDUCTION_ENGINE"}
    np.testing.assert_allclose(got["sum"], a.astype(np.float64) + b.astype(np.float64) ** 2, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(got["place"], np.broadcast_to(np.arange(3)[:, None], (2, 3, 4)))
    np.testing.assert_allclose(got["product"], np.where(b == 0, 1, b.astype(np.float64)).prod(1), rtol=1e-6)


def test_dynamic_dimensions_stay_dynamic() -> None:
    node = own("BlockScaleQuantize", ["x"], ["y", "scale"], block_size=16)
    model = model_of(node, {"x": np.zeros((2, 64), np.float32)}, {"y": TensorProto.INT8, "scale": TensorProto.FLOAT})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    session = hipdnn_mlir.compile(model).session()
    for rows in (1, 7):
        y, scale = session.run(None, {"x": np.full((rows, 64), 127, np.float32)})
        assert (y == 127).all()
        assert scale.shape == (rows, 4)


@pytest.mark.parametrize(
    ("node", "says"),
    [
        (own("BlockScaleQuantize", ["x"], ["y"]), "block_size is 0"),
        (own("BlockScaleQuantize", ["x"], ["y"], block_size=4, axis=2), "axis 2"),
        (own("AddSquare", ["x"], ["y"]), "1 operands, expected 2"),
        (own("Unheard", ["x"], ["y"]), "Unheard"),
    ],
)
def test_bad_nodes_are_named(node: onnx.NodeProto, says: str) -> None:
    with pytest.raises((ModelError, UnsupportedError), match=says):
        hipdnn_mlir.compile(model_of(node, {"x": np.zeros((2, 8), np.float32)}, {"y": TensorProto.FLOAT}))


POOLS = [
    ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ((2, 3, 8, 7), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((1, 5, 7, 9), {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1]}),
    ((1, 2, 7, 7), {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((2, 70, 4, 4), {"kernel_shape": [2, 2]}),
    ((2, 2, 5, 4, 6), {"kernel_shape": [2, 2, 3], "strides": [1, 2, 2], "pads": [0, 1, 0, 1, 0, 1]}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("shape", "attributes"), POOLS)
def test_max_pool_with_indices_equals_onnxruntime(
    shape: tuple[int, ...], attributes: dict[str, Any], dtype: type
) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)  # windows have several maxima: the first one counts
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = {"y": kind, "i": TensorProto.INT64}
    model = model_of(own("MaxPoolWithIndices", ["x"], ["y", "i"], **attributes), {"x": x}, outputs)
    got, engines = run(model, {"x": x})
    assert "HOST_MAX_POOL_ENGINE" in engines
    pool = helper.make_node("MaxPool", ["x"], ["y", "i"], **attributes)
    reference = ort.InferenceSession(
        model_of(pool, {"x": x.astype(np.float32)}, outputs | {"y": TensorProto.FLOAT}).SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    maxima, indices = reference.run(None, {"x": x.astype(np.float32)})
    np.testing.assert_array_equal(got["y"], maxima.astype(dtype))
    np.testing.assert_array_equal(got["i"], indices % np.prod(shape[2:]))  # ONNX counts in all images


def test_max_pool_with_indices_passes_nan_on() -> None:
    x = np.array([[[1, np.nan, 3, 2, -np.inf, -np.inf]]], np.float32)
    model = model_of(
        own("MaxPoolWithIndices", ["x"], ["y", "i"], kernel_shape=[2], strides=[2]),
        {"x": x},
        {"y": TensorProto.FLOAT, "i": TensorProto.INT64},
    )
    got, _ = run(model, {"x": x})
    np.testing.assert_array_equal(got["y"], [[[np.nan, 3, -np.inf]]])
    np.testing.assert_array_equal(got["i"], [[[1, 2, 4]]])


def test_max_pool_with_indices_is_rejected_where_a_window_has_no_element() -> None:
    model = model_of(
        own("MaxPoolWithIndices", ["x"], ["y", "i"], kernel_shape=[2], pads=[2, 0]),
        {"x": np.zeros((1, 1, 4), np.float32)},
        {"y": TensorProto.FLOAT, "i": TensorProto.INT64},
    )
    with pytest.raises(UnsupportedError, match="HOST_MAX_POOL_ENGINE: a window lies in the padding"):
        hipdnn_mlir.compile(model)


def grouped_query_attention(feeds: dict[str, Any], outputs: list[str], **attributes: Any) -> list[Any]:
    """ONNX Runtime's step of one token, whose heads lie beside each other in one dim."""
    batch, heads, _, width = feeds["q"].shape
    sizes = {name: feeds[name].shape[1] * width for name in "qkv"}
    inputs = {name: feeds[name].reshape(batch, 1, size) for name, size in sizes.items()}
    inputs |= {name: feeds[name] for name in ("past_k", "past_v")}
    inputs |= {"last": feeds["start"].astype(np.int32), "total": np.array(feeds["past_k"].shape[2], np.int32)}
    inputs |= {name: feeds[name] for name in ("all_cos", "all_sin") if name in feeds}
    attributes |= {"num_heads": heads, "kv_num_heads": feeds["k"].shape[1]}
    node = helper.make_node("GroupQueryAttention", list(inputs), outputs, domain="com.microsoft", **attributes)
    model = model_of(node, inputs, dict.fromkeys(outputs, TensorProto.FLOAT))
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    y, *caches = session.run(None, inputs)
    return [y.reshape(batch, heads, 1, width), *caches]


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_the_step_of_one_token_equals_onnxruntime(data: st.DataObject) -> None:
    draw = data.draw
    batch, kv_heads, group, rows = (draw(st.integers(1, most)) for most in (3, 3, 3, 24))
    width, half, left = 16 * draw(st.integers(1, 3)), 8 * draw(st.integers(0, 2)), draw(st.sampled_from([-1, 1, 5]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    half = min(half, width // 2)

    def normal(*dims: int) -> Any:
        return rng.standard_normal(dims, np.float32)

    start = rng.integers(0, rows, batch)
    feeds = {
        "q": normal(batch, group * kv_heads, 1, width),
        "k": normal(batch, kv_heads, 1, width),
        "v": normal(batch, kv_heads, 1, width),
    }
    feeds |= {"past_k": normal(batch, kv_heads, rows, width), "past_v": normal(batch, kv_heads, rows, width)}
    feeds |= {"start": start, "keys": start + 1}
    if half:
        angles = np.outer(np.arange(rows), 1 / 10 ** np.arange(half)).astype(np.float32)
        tables = {"all_cos": np.cos(angles), "all_sin": np.sin(angles)}
        feeds |= {name[4:]: table[start][:, None, None] for name, table in tables.items()}
    else:
        tables = {}
    outputs = ["y", "new_k", "new_v"]
    attributes = {"scale": draw(st.sampled_from([0.0, 0.3]))}
    model = model_of(
        own("DecodeAttention", list(feeds), outputs, left=left, **attributes), feeds, dict.fromkeys(outputs, TensorProto.FLOAT)
    )  # fmt: skip
    got, _ = run(model, feeds)
    window = {"local_window_size": left} if left > 0 else {}
    want = grouped_query_attention(feeds | tables, outputs, do_rotary=int(half > 0), **window, **attributes)
    for name, theirs in zip(outputs, want, strict=True):
        for row, last in enumerate(start):  # what lies behind means nothing
            valid = slice(0, last + 1) if name != "y" else slice(None)
            np.testing.assert_allclose(got[name][row, :, valid], theirs[row, :, valid], rtol=1e-5, atol=1e-5)
