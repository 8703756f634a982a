"""Constants evaluated at compile time, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir.ops.evaluate import evaluate
from hipdnn_mlir.ops.samples import Number, Sample, f32, i32
from hipdnn_mlir.ops.samples.case import bools
from hipdnn_mlir.ops.spec import TensorArg, TensorType
from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.errors import ModelError, Reject
from models import GraphBuilder

X, ROW = np.random.default_rng(0).uniform(0.5, 2.0, (2, 3)), np.array([1.0, -2.0, 4.0])
A, B = f32(2, 3), f32(3)
Reference = Callable[..., np.ndarray]


def sample(op: str, args: list[Any], result: TensorType) -> Sample:
    return Sample(f"torch.aten.{op}", tuple(args), (result,))


COMPUTED: list[tuple[Sample, Reference]] = [
    (sample("add.Tensor", [A, B, 1], A), lambda x, y: x + y),
    (sample("add.Tensor", [A, B, 3], A), lambda x, y: x + 3 * y),
    (sample("sub.Tensor", [B, A, 1], A), lambda y, x: y - x),
    (sample("mul.Tensor", [A, Number(2.5)], A), lambda x: x * 2.5),
    (sample("mul.Scalar", [A, -1.5], A), lambda x: x * -1.5),
    (sample("div.Tensor", [A, B], A), lambda x, y: x / y),
    (sample("rsub.Scalar", [A, 1.0, 1], A), lambda x: 1 - x),
    (sample("maximum", [A, B], A), np.maximum),
    (sample("minimum", [A, B], A), np.minimum),
    (sample("neg", [A], A), np.negative),
    (sample("abs", [B], B), np.abs),
    (sample("sqrt", [A], A), np.sqrt),
    (sample("rsqrt", [A], A), lambda x: x**-0.5),
    (sample("exp", [A], A), np.exp),
    (sample("log", [A], A), np.log),
    (sample("reciprocal", [A], A), lambda x: 1 / x),
    (sample("pow.Tensor_Scalar", [A, 3], A), lambda x: x**3),
    (sample("ceil", [B], B), np.ceil),
    (sample("floor", [A], A), np.floor),
    (sample("tanh", [A], A), np.tanh),
    (sample("relu", [B], B), lambda y: np.maximum(y, 0)),
    (sample("sigmoid", [B], B), lambda y: 1 / (1 + np.exp(-y))),
    (sample("where.self", [bools(3), B, A], A), lambda c, y, x: np.where(c, y, x)),
    (sample("gt.Tensor", [A, B], bools(2, 3)), np.greater),
    (sample("sum.dim_IntList", [A, [0], True, None], f32(1, 3)), lambda x: x.sum(0, keepdims=True)),
    (sample("mean.dim", [A, [0, 1], False, None], f32()), np.mean),
    (sample("amax", [A, [1], False], f32(2)), lambda x: x.max(1)),
    (sample("softmax.int", [A, 1, None], A), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    (sample("matmul", [A, B], f32(2)), lambda x, y: x @ y),
    (sample("div.Tensor_mode", [i32(3), i32(3), "trunc"], i32(3)), lambda a, b: np.trunc(a / b)),
    (sample("remainder.Tensor", [i32(3), i32(3)], i32(3)), np.mod),
    (sample("expand", [B, [2, 3], False], A), lambda y: np.broadcast_to(y, (2, 3))),
    (sample("to.dtype", [A, 7, False, False, None], TensorType((2, 3), dtypes.F64)), lambda x: x),
    (sample("to.dtype", [B, 3, False, False, None], i32(3)), lambda y: y.astype(np.int32)),
]
MOVED: list[tuple[Sample, Reference]] = [
    (sample("view", [A, [3, -1]], f32(3, 2)), lambda x: x.reshape(3, 2)),
    (sample("t", [A], f32(3, 2)), np.transpose),
    (sample("slice.Tensor", [A, 1, 0, 9, 2], f32(2, 2)), lambda x: x[:, ::2]),
    (sample("select.int", [A, 0, -1], f32(3)), lambda x: x[-1]),
    (sample("cat", [[A, A], 0], f32(4, 3)), lambda x, z: np.concatenate([x, z])),
    (
        sample("constant_pad_nd", [A, [1, 0, 0, 2], 0.5], f32(4, 4)),
        lambda x: np.pad(x, ((0, 2), (1, 0)), constant_values=0.5),
    ),
    (sample("unsqueeze", [A, 1], f32(2, 1, 3)), lambda x: x[:, None]),
]


def arguments(case: Sample) -> list[TensorArg]:
    flat = [item for arg in case.view().args for item in (arg if isinstance(arg, list) else [arg])]
    return [arg for arg in flat if isinstance(arg, TensorArg) and arg.scalar is None]


@pytest.mark.parametrize(
    ("case", "reference"), [*COMPUTED, *MOVED], ids=lambda value: str(value) if isinstance(value, Sample) else ""
)
def test_constant_is_what_numpy_computes(case: Sample, reference: Reference) -> None:
    given = [X if arg.type.dims == (2, 3) else ROW for arg in arguments(case)]
    arrays = {arg.key: array.astype(arg.type.dtype.numpy) for arg, array in zip(arguments(case), given, strict=True)}
    found = evaluate(case.view(), arrays)
    assert not isinstance(found, Reject)
    kind = case.results[0]
    assert (found.shape, found.dtype) == (kind.dims, kind.dtype.numpy)
    expected = reference(*(array.astype(np.float64) for array in arrays.values()))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (sample("erf", [A], A), "constant"),
        (sample("cumsum", [A, 0, None], A), "no-row"),
        (sample("slice.Tensor", [A, 1, 0, 9, -1], A), "attribute"),
        (sample("sqrt", [i32(3)], i32(3)), "dtype"),
    ],
    ids=str,
)
def test_what_is_not_evaluated_is_a_reject(case: Sample, rule: str) -> None:
    found = evaluate(case.view(), {})
    assert isinstance(found, Reject)
    assert found.rule == rule


def positions(index: int) -> onnx.ModelProto:
    """A table, too large to be folded in ONNX, in which constants replace a part of a column, added to what is given."""
    b = GraphBuilder("positions")
    rng = np.random.default_rng(1)
    table = b.constant(rng.standard_normal((200, 150, 3)), np.float32)
    indices = b.constant(np.full((200, 120, 1), index), np.int64)
    updates = b.constant(rng.standard_normal((200, 120, 1)), np.float32)
    y = b.op("Add", b.input("x", [3]), b.op("ScatterElements", table, indices, updates, axis=2))
    return b.model({y: [200, 150, 3]})


@pytest.mark.parametrize("index", [2, -3])
def test_scattered_constants_are_computed_when_the_model_is_compiled(index: int) -> None:
    model = positions(index)
    program = hipdnn_mlir.compile(model)
    assert [step.kind for step in program.model.steps] == ["execute"]
    x = {"x": np.array([0.5, -1.0, 2.0], np.float32)}
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(program.session().run(None, x)[0], reference.run(None, x)[0])


def test_scattered_constants_out_of_range_are_an_error() -> None:
    with pytest.raises(ModelError, match="an index is out of range"):
        hipdnn_mlir.compile(positions(3))


GATHERS: dict[str, tuple[dict[str, int], list[int], list[int]]] = {
    "Gather": ({"axis": 1}, [2, 70], [200, 2, 70, 30]),
    "GatherElements": ({"axis": 1}, [150, 70, 30], [150, 70, 30]),
    "GatherND": ({}, [400, 2], [400, 30]),
    "GatherND of batches": ({"batch_dims": 1}, [200, 70, 1], [200, 70, 30]),
}


@pytest.mark.parametrize("case", GATHERS)
def test_what_constants_name_of_constants_is_computed_when_the_model_is_compiled(case: str) -> None:
    attributes, indices, dims = GATHERS[case]
    b = GraphBuilder("gathered")
    rng = np.random.default_rng(1)
    table = b.op("Relu", b.constant(rng.standard_normal((200, 150, 30)), np.float32))
    places = b.constant(rng.integers(-150, 150, indices), np.int64)
    y = b.op("Add", b.input("x", [30]), b.op(case.split(maxsplit=1)[0], table, places, **attributes))
    model = b.model({y: dims})
    program = hipdnn_mlir.compile(model)
    assert [step.kind for step in program.model.steps] == ["execute"]
    x = {"x": rng.standard_normal(30, np.float32)}
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(program.session().run(None, x)[0], reference.run(None, x)[0])


def test_a_mask_that_is_gathered_in_order_is_read_as_it_is() -> None:
    b = GraphBuilder("mask")
    x = b.input("x", [2, 150])
    places = b.constant(np.indices((2, 150)).transpose(1, 2, 0)[:, None, None], np.int64)
    model = b.model({b.op("Neg", b.op("GatherND", x, places)): [2, 1, 1, 150]})
    program = hipdnn_mlir.compile(model)
    assert [step.kind for step in program.model.steps] == ["execute"]
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 150), np.float32)}
    np.testing.assert_array_equal(program.session().run(None, feeds)[0], -feeds["x"].reshape(2, 1, 1, 150))
