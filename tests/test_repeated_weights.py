"""Weights that are repeated for each image: equal to ONNX Runtime, and what is made of them alone is computed when a model is compiled."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir
from models import GraphBuilder

IMAGES, TOKENS, WIDTH, HEADS = 3, 40, 32, 2
"""So many that weights are no part of the constant folding of small numbers."""


def repeated(b: GraphBuilder) -> str:
    return b.op("Expand", b.normal([1, TOKENS, WIDTH], 1.0), b.constant([IMAGES, TOKENS, WIDTH], np.int64))


def product(b: GraphBuilder, x: str) -> str:
    return b.op("MatMul", x, b.normal([WIDTH, WIDTH], 0.2))


def positions(b: GraphBuilder, x: str) -> str:
    """ConViT's: scores of positions beside those of what is there."""
    scores = b.op("Add", product(b, repeated(b)), b.normal([WIDTH], 1.0))
    gate = b.op("Sigmoid", b.normal([WIDTH], 1.0))
    return b.op("Add", b.op("Mul", b.op("Softmax", scores, axis=-1), gate), b.op("Softmax", x, axis=1))


def queries(b: GraphBuilder, x: str) -> str:
    """DETR's: they meet keys of each image. Norms of weights are computed in each run, and so what follows from them, but once."""
    normed = b.op("LayerNormalization", repeated(b), b.normal([WIDTH], 1.0), b.normal([WIDTH], 1.0))
    heads, keys = (
        b.op("Reshape", y, b.constant([0, TOKENS, HEADS, WIDTH // HEADS], np.int64)) for y in (product(b, normed), x)
    )
    return b.op("MatMul", b.op("Transpose", heads, perm=[0, 2, 1, 3]), b.op("Transpose", keys, perm=[0, 2, 3, 1]))


def rows(b: GraphBuilder, x: str) -> str:
    """Along another axis."""
    row = b.op("Expand", b.normal([TOKENS, 1, WIDTH], 1.0), b.constant([TOKENS, TOKENS, WIDTH], np.int64))
    return b.op("Mul", b.op("Concat", x, product(b, row), axis=0), b.constant(2.0, np.float32))


def several(b: GraphBuilder, x: str) -> str:
    """One reader has to have them all."""
    made = product(b, repeated(b))
    return b.op("Concat", b.op("Relu", made), b.op("Mul", made, x), axis=0)


@pytest.mark.parametrize(("write", "products"), [(positions, 0), (queries, 2), (rows, 0), (several, 0)])
def test_products_of_weights_are_no_part_of_the_program(
    write: Callable[[GraphBuilder, str], str], products: int
) -> None:
    b = GraphBuilder("repeated", opset=17)
    y = write(b, b.input("x", [IMAGES, TOKENS, WIDTH]))
    model = b.model({y: [f"d{axis}" for axis in range(4 if write is queries else 3)]})
    feed = np.random.default_rng(0).standard_normal((IMAGES, TOKENS, WIDTH), np.float32)
    (want,) = ort.InferenceSession(model.SerializeToString()).run(None, {"x": feed})
    program = hipdnn_mlir.compile(model)
    (got,) = program.session().run(None, {"x": feed})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert sum("matmul" in executable.summary for executable in program.model.executables) == products
    sizes = {buffer.bytes for buffer in program.model.buffers if buffer.kind == "temp"}
    assert (4 * TOKENS * WIDTH in sizes) == (write is queries)
