"""Floats of 8 bits: conversions equal those of ml_dtypes, quantized products ONNX Runtime's CPU provider."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import hipdnn_mlir

E4M3, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
GREATEST = {E4M3: 448.0, E5M2: 57344.0}
X_SCALE = np.float32(0.01)


def model_of(nodes: list[Any], x: Any, y: Any, constants: dict[str, Any] | None = None) -> onnx.ModelProto:
    """A model of one input and one output, each a dtype and dims."""
    inputs, outputs = (
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)]
        for name, (dtype, dims) in (("x", x), ("y", y))
    )
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def product(
    rows: int = 6,
    *,
    kinds: tuple[Any, Any] = (E4M3, E4M3),
    per_channel: bool = False,
    gemm: bool = False,
    dtype: Any = np.float32,
) -> onnx.ModelProto:
    """A linear layer as quantizers write it: x[rows, 48] by 48 x 32 weights, plus a bias."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((48, 32)).astype(np.float32)
    scale = (np.abs(weights).max(0 if per_channel else None) / GREATEST[kinds[1]]).astype(dtype)
    stored = (weights / scale).astype(kinds[1])
    constants = {
        "w": stored.T.copy() if gemm else stored, "ws": scale, "xs": X_SCALE.astype(dtype), "xz": np.zeros((), kinds[0]),
        "wz": np.zeros(scale.shape, kinds[1]), "b": rng.standard_normal(32).astype(dtype),
    }  # fmt: skip
    node = helper.make_node
    nodes = [
        node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0 if gemm else 1),
    ]
    if gemm:
        nodes.append(node("Gemm", ["xd", "wd", "b"], ["y"], transB=1))
    else:
        nodes += [node("MatMul", ["xd", "wd"], ["p"]), node("Add", ["p", "b"], ["y"])]
    return model_of(nodes, (dtype, [rows, 48]), (dtype, [rows, 32]), constants)


def values(rows: int = 6, dtype: Any = np.float32) -> Any:
    """Inputs of `product`, some beyond the greatest number."""
    return (np.random.default_rng(1).standard_normal((rows, 48)) * 2).astype(dtype)


def reference(model: onnx.ModelProto, x: Any) -> Any:
    """What ONNX Runtime's CPU provider gives."""
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


def run(model: onnx.ModelProto, x: Any) -> Any:
    """What the host gives."""
    return hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, {"x": x})[0]


def numbers() -> Any:
    """Numbers of all exponents, halves between neighbours, the ends of both types, and what is no number."""
    rng = np.random.default_rng(2)
    drawn = rng.standard_normal(4000) * 2.0 ** rng.integers(-20, 18, 4000)
    every = np.concatenate([np.arange(256, dtype=np.uint8).view(kind).astype(np.float64) for kind in GREATEST])
    every = np.sort(every[np.isfinite(every)])
    special = [np.inf, -np.inf, np.nan, -0.0, 464.0, 464.1, -480.0, 61439.0, 61440.0]
    return np.concatenate([drawn, every, (every[1:] + every[:-1]) / 2, special]).astype(np.float32)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", [E4M3, E5M2], ids=str)
def test_cast_to_eight_bits_and_back(kind: Any, saturate: int) -> None:
    x = numbers()
    cast = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(kind), saturate=saturate)
    y = run(model_of([cast], (np.float32, x.shape), (kind, x.shape)), x)
    wanted = (np.clip(x, -GREATEST[kind], GREATEST[kind]) if saturate else x).astype(kind)
    assert y.dtype == kind
    np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))
    codes = np.arange(256, dtype=np.uint8).view(kind)
    cast = helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)
    back = run(model_of([cast], (kind, [256]), (np.float32, [256])), codes)
    np.testing.assert_array_equal(back, codes.astype(np.float32))


@pytest.mark.parametrize(
    "options",
    [{}, {"per_channel": True}, {"gemm": True, "per_channel": True}, {"kinds": (E5M2, E4M3)}, {"dtype": np.float16}],
    ids=["scale", "channels", "gemm", "e5m2", "f16"],
)
@pytest.mark.parametrize("opset", [19, 21])  # Transpose takes them from 21 on
def test_product_keeps_weights_of_eight_bits(options: Any, opset: int) -> None:
    model, x = product(**options), values(dtype=options.get("dtype", np.float32))
    model.opset_import[0].version = opset
    program = hipdnn_mlir.compile(model)
    (y,) = hipdnn_mlir.load(program).run(None, {"x": x})
    kept = [array for array in program.tensors.values() if array.ndim == 2]
    assert [array.itemsize for array in kept] == [1]
    wanted = reference(model, x)
    rounding = 2e-3 if x.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(y.astype(np.float64), wanted, rtol=rounding, atol=rounding * np.abs(wanted).max())


def test_rounding_between_two_operators_stays() -> None:
    """A fused product that left it out would be nearer to the f32 model, and wrong."""
    node, w = helper.make_node, np.random.default_rng(3).standard_normal((48, 32)).astype(np.float32)
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("QuantizeLinear", ["p", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    constants = {"w": w, "s": np.float32(0.25), "z": np.zeros((), E4M3)}
    model, x = model_of(nodes, (np.float32, [6, 48]), (np.float32, [6, 32]), constants), values()
    y, wanted = run(model, x), reference(model, x)
    assert np.mean(y != wanted) < 0.01, "a sum next to a half may round to the other side"


def test_data_movement() -> None:
    node, x = helper.make_node, np.arange(24, dtype=np.uint8).view(E4M3).reshape(2, 3, 4)
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
        node("Reshape", ["t", "d"], ["r"]),
        node("Unsqueeze", ["r", "a"], ["y"]),
    ]
    constants = {"d": np.array([8, 3]), "a": np.array([0])}
    y = run(model_of(nodes, (E4M3, x.shape), (E4M3, [1, 8, 3]), constants), x)
    np.testing.assert_array_equal(y.view(np.uint8), x.transpose(2, 0, 1).reshape(1, 8, 3).view(np.uint8))
