"""Products of which known positions are read, as DeBERTa has them: equal to ONNX Runtime, with the columns alone that are read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime.abi import Attribute
from models import GraphBuilder

FORMS = ("transposed", "repeated", "read twice", "no vector of its own")


def model_of(form: str, positions: np.ndarray, *, shows_product: bool = False) -> onnx.ModelProto:
    b = GraphBuilder("positions", opset=17)
    x = b.input("x", [6, 5, 16])
    keys = b.op("Relu", b.normal([3, 200, 16] if form == "repeated" else [6, 200, 16], 1.0))
    if form == "repeated":
        keys = b.op("Tile", keys, b.constant([2, 1, 1], np.int64))
    columns = b.op("Transpose", keys, perm=[0, 2, 1])
    product = b.op("MatMul", x, columns)
    at = b.constant(positions, np.int64)
    if form != "no vector of its own":
        at = b.op("Expand", at, b.constant([6, 5, 9], np.int64))
    outputs = {b.op("GatherElements", product, at, axis=-1 if form == "repeated" else 2): [6, 5, 9]}
    if form == "read twice":
        outputs[b.op("ReduceMax", columns, axes=[1], keepdims=0)] = [6, 200]
    if shows_product:
        outputs[product] = [6, 5, 200]
    return b.model(outputs)


def columns_of(program: hipdnn_mlir.Program) -> int:
    """Columns of the product: the last dim of the largest tensor that a matmul has."""
    found = [
        values
        for executable in program.model.executables
        if "matmul" in executable.summary
        for _, attributes in executable.descriptors
        for number, _, values in attributes
        if number == Attribute.TENSOR_DIMENSIONS
    ]
    return max(dims[-1] for dims in found)


def check(model: onnx.ModelProto) -> int:
    program = hipdnn_mlir.compile(model)
    feeds = {"x": np.random.default_rng(3).standard_normal((6, 5, 16), np.float32)}
    wanted = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for got, want in zip(program.session().run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return columns_of(program)


@pytest.mark.parametrize("form", FORMS)
def test_only_columns_that_are_read_are_computed(form: str) -> None:
    dims = (6, 5, 9) if form == "no vector of its own" else (5, 9)
    assert check(model_of(form, np.random.default_rng(1).integers(101, 150, dims))) == 56


@pytest.mark.parametrize(
    ("positions", "shows"),
    [(np.arange(45).reshape(5, 9) * 4, False), (np.full((5, 9), -3), False), (np.full((5, 9), 7), True)],
    ids=["most columns", "counted from the end", "an output"],
)
def test_a_product_that_is_read_otherwise_stays_whole(positions: np.ndarray, shows: bool) -> None:
    assert check(model_of("transposed", positions, shows_product=shows)) == 200


def test_positions_in_a_file_of_their_own_are_known(tmp_path: Path) -> None:
    positions = np.random.default_rng(1).integers(101, 150, (6, 5, 900))
    b = GraphBuilder("positions", opset=17)
    product = b.op("MatMul", b.input("x", [6, 5, 16]), b.op("Relu", b.normal([6, 16, 200], 1.0)))
    y = b.op("GatherElements", product, b.constant(positions, np.int64), axis=2)
    onnx.save(b.model({y: [6, 5, 900]}), tmp_path / "model.onnx", save_as_external_data=True, size_threshold=1024)
    assert columns_of(hipdnn_mlir.compile(tmp_path / "model.onnx")) == 56
