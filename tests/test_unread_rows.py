"""Classifiers, whose last layer is read at one token or a few: equal to ONNX Runtime, and nothing computed for the others."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime.abi import Attribute
from models import GraphBuilder

TOKENS, WIDTH, HIDDEN = 20, 16, 40


class Layer:
    """A layer of a transformer on `x[batch, 20, 16]`, without what reads it."""

    def __init__(self, batch: int | str) -> None:
        self.b = b = GraphBuilder("classifier", opset=17)
        self.x = b.input("x", [batch, TOKENS, WIDTH])
        normed = self._norm(self.x)
        q, k, v = (self._heads(self._product(normed, WIDTH)) for _ in range(3))
        scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
        masked = b.op("Add", scores, b.normal([TOKENS, TOKENS], 1.0))
        seen = b.op("Transpose", b.op("MatMul", b.op("Softmax", masked, axis=3), v), perm=[0, 2, 1, 3])
        joined = b.op("Reshape", seen, b.constant([0, 0, WIDTH], np.int64))
        first = b.op("Add", self.x, self._product(joined, WIDTH))
        inner = b.op("Erf", b.op("Mul", self._product(self._norm(first), HIDDEN), b.constant(0.3, np.float32)))
        self.result = b.op("Add", first, self._product(inner, WIDTH))

    def _norm(self, x: str) -> str:
        return self.b.op("LayerNormalization", x, self.b.normal([WIDTH], 1.0), self.b.normal([WIDTH], 1.0))

    def _product(self, x: str, columns: int) -> str:
        rows = HIDDEN if columns == WIDTH and x.startswith("Erf") else WIDTH
        return self.b.op(
            "Add", self.b.op("MatMul", x, self.b.normal([rows, columns], 0.25)), self.b.normal([columns], 1.0)
        )

    def _heads(self, x: str) -> str:
        return self.b.op(
            "Transpose", self.b.op("Reshape", x, self.b.constant([0, 0, 2, 8], np.int64)), perm=[0, 2, 1, 3]
        )

    def taken(self, how: str) -> tuple[str, list[int]]:
        b = self.b
        if how in SLICES:
            numbers = (b.constant([number], np.int64) for number in (*SLICES[how], 1))
            return b.op("Slice", self.result, *numbers), [SPANS[how]]
        return b.op("Gather", self.result, b.constant(TAKES[how], np.int64), axis=1), [2] if how == "several" else []


TAKES = {"first": 0, "middle": 7, "last": -1, "several": [4, 2]}
SLICES = {"slice": (3, 5), "slice of the end": (-2, 2**63 - 1)}
SPANS = {"first": 1, "middle": 1, "last": 1, "several": 3, "slice": 2, "slice of the end": 2}


def inner_rows(program: hipdnn_mlir.Program) -> set[int]:
    """Rows of the values, which are no weights, with as many columns as the layer has inside."""
    found = (
        values
        for executable in program.model.executables
        for _, attributes in executable.descriptors
        for number, _, values in attributes
        if number == Attribute.TENSOR_DIMENSIONS
    )
    return {dims[-2] for dims in found if dims[-1] == HIDDEN and dims[:-1] != [1, 1] and dims[-2] != WIDTH}


def check(model: onnx.ModelProto, *batches: int) -> set[int]:
    program = hipdnn_mlir.compile(model)
    session = program.session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for batch in batches:
        feeds = {"x": np.random.default_rng(batch).standard_normal((batch, TOKENS, WIDTH), np.float32)}
        for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    return inner_rows(program)


@pytest.mark.parametrize("batch", [2, "n"], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("how", SPANS)
def test_only_rows_that_are_read_are_computed(how: str, batch: int | str) -> None:
    layer = Layer(batch)
    value, rows = layer.taken(how)
    model = layer.b.model({layer.b.op("Relu", value): [batch, *rows, WIDTH]})
    is_known = batch == 2 or how in ("first", "middle")  # at other sizes several rows may be most, or all
    assert check(model, *((2,) if batch == 2 else (1, 3))) == {SPANS[how] if is_known else TOKENS}


def test_readers_of_the_same_rows_share_them() -> None:
    layer = Layer(2)
    b = layer.b
    values = [b.op(name, layer.taken("middle")[0]) for name in ("Relu", "Neg")]
    assert check(b.model({value: [2, WIDTH] for value in values}), 2) == {1}


OTHERS = {
    "an output": lambda b, x: {x: [2, TOKENS, WIDTH]},
    "another row": lambda b, x: {b.op("Gather", x, b.constant(3, np.int64), axis=1): [2, WIDTH]},
    "a sum of rows": lambda b, x: {b.op("ReduceMean", x, axes=[1], keepdims=0): [2, WIDTH]},
    "softmax of rows": lambda b, x: {
        b.op("Gather", b.op("Softmax", x, axis=1), b.constant(0, np.int64), axis=1): [2, WIDTH]
    },
}


@pytest.mark.parametrize("other", OTHERS)
def test_all_rows_are_computed_where_something_else_reads_them(other: str) -> None:
    layer = Layer(2)
    value, _ = layer.taken("first")
    model = layer.b.model({layer.b.op("Relu", value): [2, WIDTH], **OTHERS[other](layer.b, layer.result)})
    assert check(model, 2) == {TOKENS}


def test_a_branch_reads_all_rows() -> None:
    layer = Layer(2)
    b = layer.b
    value, _ = layer.taken("first")
    kind = onnx.helper.make_tensor_value_info("of_branch", onnx.TensorProto.FLOAT, [2, TOKENS, WIDTH])
    branches = [
        onnx.helper.make_graph([onnx.helper.make_node(name, [layer.result], ["of_branch"])], name, [], [kind])
        for name in ("Relu", "Neg")
    ]
    positive = b.op("Greater", b.op("ReduceMax", layer.x, keepdims=0), b.constant(0, np.float32))
    chosen = b.op("If", positive, then_branch=branches[0], else_branch=branches[1])
    assert check(b.model({b.op("Relu", value): [2, WIDTH], chosen: [2, TOKENS, WIDTH]}), 2) == {TOKENS}


@pytest.mark.parametrize("axis", [None, 2, 1], ids=["one scale", "of columns", "of rows"])
def test_products_of_quantized_rows(axis: int | None) -> None:
    b = GraphBuilder("quantized", opset=17)
    x = b.input("x", [2, TOKENS, WIDTH])
    count = {None: [], 1: [TOKENS], 2: [WIDTH]}[axis]
    scale, zero = b.constant(np.full(count, 0.02), np.float32), b.constant(np.full(count, 3), np.int8)
    axes = {} if axis is None else {"axis": axis}
    codes = b.op("QuantizeLinear", x, scale, zero, **axes)
    inner = b.op("MatMul", b.op("DequantizeLinear", codes, scale, zero, **axes), b.normal([WIDTH, HIDDEN], 0.25))
    y = b.op("Gather", b.op("Erf", inner), b.constant(7, np.int64), axis=1)
    assert check(b.model({y: [2, HIDDEN]}), 2) == {1}


def test_a_dim_that_is_taken_away_without_a_name_stays() -> None:
    b = GraphBuilder("squeezed", opset=17)
    product = b.op("MatMul", b.input("x", [1, TOKENS, WIDTH]), b.normal([WIDTH, HIDDEN], 0.25))
    flat = b.op("Squeeze", product)
    assert check(b.model({b.op("Gather", flat, b.constant(0, np.int64), axis=0): [HIDDEN]}), 1) == {TOKENS}


@pytest.mark.parametrize("at", [0, -1, [2, 4, 0, 1], [3, 3]], ids=str)
def test_rows_of_a_dynamic_dimension(at: int | list[int]) -> None:
    b = GraphBuilder("dynamic", opset=17)
    product = b.op("MatMul", b.input("x", ["n", "s", WIDTH]), b.normal([WIDTH, HIDDEN], 0.25))
    rows = [len(at)] if isinstance(at, list) else []
    model = b.model({b.op("Gather", product, b.constant(at, np.int64), axis=1): ["n", *rows, HIDDEN]})
    session = hipdnn_mlir.compile(model).session()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for dims in ((2, 5), (1, 9), *([(3, 1)] if rows == [] else [])):
        feeds = {"x": np.random.default_rng(5).standard_normal((*dims, WIDTH), np.float32)}
        np.testing.assert_allclose(session.run(None, feeds)[0], reference.run(None, feeds)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("error")
def test_reversed_rows_of_a_dynamic_dimension() -> None:
    b = GraphBuilder("reversed", opset=17)
    product = b.op("MatMul", b.input("x", ["s", WIDTH]), b.normal([WIDTH, HIDDEN], 0.25))
    numbers = [b.constant([number], np.int64) for number in (-1, -(2**63), 0, -1)]
    model = b.model({b.op("Slice", product, *numbers): ["s", HIDDEN]})
    feeds = {"x": np.random.default_rng(5).standard_normal((5, WIDTH), np.float32)}
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]
    np.testing.assert_allclose(hipdnn_mlir.compile(model).session().run(None, feeds)[0], want, rtol=1e-4, atol=1e-4)
