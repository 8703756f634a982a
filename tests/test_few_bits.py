"""Types of few bits: conversions equal those of ml_dtypes and onnx, code by code."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import hipdnn_mlir
from hipdnn_mlir_runtime.cli.inputs import Inputs
from hipdnn_mlir_runtime.errors import UnsupportedError

INTEGERS = [np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "uint2", "int4", "uint4")]
FNUZ = [np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)]
E2M1, E8M0 = np.dtype(ml_dtypes.float4_e2m1fn), np.dtype(ml_dtypes.float8_e8m0fnu)
FLOATS = [E2M1, *FNUZ]


def model_of(nodes: list[Any], inputs: dict[str, tuple[Any, Any]], y: tuple[Any, Any]) -> onnx.ModelProto:
    """A model with inputs and one output, each a dtype and dims."""
    ports = {
        name: helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)
        for name, (dtype, dims) in {**inputs, "y": y}.items()
    }
    graph = helper.make_graph(nodes, "g", [ports[name] for name in inputs], [ports["y"]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=12)


def cast(x: np.ndarray, to: np.dtype[Any], **attributes: Any) -> np.ndarray:
    """Compile and run a Cast."""
    node = helper.make_node("Cast", ["x"], ["y"], to=helper.np_dtype_to_tensor_dtype(to), **attributes)
    program = hipdnn_mlir.compile(model_of([node], {"x": (x.dtype, x.shape)}, (to, x.shape)))
    (y,) = hipdnn_mlir.load(program).run(None, {"x": x})
    assert y.dtype == to
    return y


def around(dtype: np.dtype[Any]) -> np.ndarray:
    """All numbers of a float type, the halves between neighbours, the f32 next to those, and what is beyond."""
    known = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    known = np.unique(known[np.isfinite(known)])
    known = np.append(known, [2 * known[-1] - known[-2], 2 * known[0] - known[1]]).astype(np.float32)
    known.sort()
    halves = (known[1:] + known[:-1]) / 2
    some = np.concatenate([known, halves])
    up, down = np.nextafter(some, np.float32(np.inf)), np.nextafter(some, np.float32(-np.inf))
    rest = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 1e30, -1e30, 3e38], np.float32)
    return np.concatenate([some, up, down, rest])


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, E8M0], ids=str)
def test_every_code_is_read(dtype: np.dtype[Any]) -> None:
    x = np.arange(16 if dtype == E2M1 else 256, dtype=np.uint8).view(dtype)
    np.testing.assert_array_equal(cast(x, np.dtype(np.float32)), x.astype(np.float32))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_are_rounded(dtype: np.dtype[Any], saturate: int) -> None:
    x = around(dtype)
    wanted = numpy_helper.saturate_cast(x, dtype) if saturate and dtype in FNUZ else x.astype(dtype)
    options = {"saturate": saturate} if dtype in FNUZ else {}
    np.testing.assert_array_equal(cast(x, dtype, **options).view(np.uint8), wanted.view(np.uint8))


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("source", [np.int32, np.uint8, np.float32, np.bool_])
def test_integers_wrap(dtype: np.dtype[Any], source: Any) -> None:
    x = np.arange(-100, 156).astype(source)
    np.testing.assert_array_equal(cast(x, dtype).view(np.uint8), x.astype(dtype).view(np.uint8))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("round_mode", ["up", "down", "nearest"])
def test_powers_of_two(round_mode: str, saturate: int) -> None:
    x = np.ldexp(np.array([1, 1.25, 1.5, 1.75, 1.999], np.float32)[:, None], np.arange(-130, 128)).astype(np.float32)
    x = np.concatenate([x.reshape(-1), -x.reshape(-1), [0, np.inf, -np.inf, np.nan, np.finfo(np.float32).max]]).astype(
        np.float32
    )
    wanted = numpy_helper.to_float8e8m0(x, bool(saturate), round_mode)
    np.testing.assert_array_equal(
        cast(x, E8M0, round_mode=round_mode, saturate=saturate).view(np.uint8), wanted.view(np.uint8)
    )


@pytest.mark.parametrize("dtype", [INTEGERS[2], INTEGERS[3], E2M1], ids=str)
def test_blocks_are_quantized_and_dequantized(dtype: np.dtype[Any]) -> None:
    """With scales and zero points that are inputs, as nothing folds."""
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((4, 8)).astype(np.float32) * 4, rng.uniform(0.5, 2, (4, 2)).astype(np.float32)
    z = np.array([[1, 0], [2, 3], [0, 1], [1, 1]], np.float32).astype(dtype) * dtype.type(dtype != E2M1)
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1, block_size=4),
        helper.make_node("Transpose", ["q"], ["t"], perm=[1, 0]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]),
        helper.make_node("DequantizeLinear", ["u", "s", "z"], ["y"], axis=1, block_size=4),
    ]
    inputs = {"x": x, "s": s, "z": z}
    model = model_of(nodes, {name: (array.dtype, array.shape) for name, array in inputs.items()}, (np.float32, x.shape))
    (y,) = hipdnn_mlir.load(hipdnn_mlir.compile(model)).run(None, inputs)
    np.testing.assert_array_equal(y, ReferenceEvaluator(model).run(None, inputs)[0])


def test_ports_have_the_models_types() -> None:
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])
    x = np.arange(6).astype(ml_dtypes.int4).reshape(2, 3)
    session = hipdnn_mlir.load(hipdnn_mlir.compile(model_of([node], {"x": (x.dtype, x.shape)}, (x.dtype, (3, 2)))))
    assert [str(port) for port in (*session.inputs, *session.outputs)] == ["i4[2,3]", "i4[3,2]"]
    assert session.inputs[0].type == "tensor(int4)"
    (y,) = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, x.T)
    with pytest.raises(hipdnn_mlir.HipdnnMlirError, match=r"expected i4\[2,3\]"):
        session.run(None, {"x": x.view(np.uint8)})


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, E8M0], ids=str)
def test_random_inputs_are_numbers_of_the_type(dtype: np.dtype[Any]) -> None:
    node = helper.make_node("Identity", ["x"], ["y"])
    session = hipdnn_mlir.load(hipdnn_mlir.compile(model_of([node], {"x": (dtype, [64])}, (dtype, [64]))))
    x = Inputs(session).draw()["x"]
    assert x.dtype == dtype
    assert np.isfinite(x.astype(np.float32)).all()
    assert len(np.unique(x.astype(np.float32))) > 1


def test_what_computes_with_codes_is_refused() -> None:
    node = helper.make_node("Pad", ["x", "p"], ["y"])
    model = model_of([node], {"x": (ml_dtypes.int4, [4]), "p": (np.int64, [2])}, (ml_dtypes.int4, [6]))
    model.graph.input.pop()
    model.graph.initializer.append(numpy_helper.from_array(np.array([1, 1]), "p"))
    with pytest.raises(UnsupportedError, match="values of type INT4"):
        hipdnn_mlir.compile(model)
