"""Attention of shifted windows, as Swin has it: a bias for each head, and a mask for each window where images are a dim of their own."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir
from models import GraphBuilder

IMAGES, WINDOWS, HEADS, TOKENS, WIDTH = 3, 4, 2, 9, 16


def model() -> bytes:
    b = GraphBuilder("windows")
    both = IMAGES * WINDOWS
    split = b.op("Transpose", b.input("x", [both, TOKENS, 3, HEADS, WIDTH]), perm=[2, 0, 3, 1, 4])
    q, k, v = (b.op("Gather", split, b.constant(np.array(i), "int64", "i"), axis=0) for i in range(3))
    scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = b.op("Mul", scores, b.constant(np.array(0.25), "float32", "scale"))
    scores = b.op("Add", scores, b.constant(b.rng.standard_normal([1, HEADS, TOKENS, TOKENS]), "float32", "bias"))
    apart, together = ([IMAGES, WINDOWS, HEADS, TOKENS, TOKENS], [both, HEADS, TOKENS, TOKENS])
    scores = b.op("Reshape", scores, b.constant(apart, "int64", "apart"))
    hidden = np.where(b.rng.random([1, WINDOWS, 1, TOKENS, TOKENS]) < 0.3, -100.0, 0.0)
    scores = b.op(
        "Reshape", b.op("Add", scores, b.constant(hidden, "float32", "mask")), b.constant(together, "int64", "together")
    )
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), v)
    y = b.op("Transpose", y, perm=[0, 2, 1, 3])
    return b.model({y: [both, TOKENS, HEADS, WIDTH]}).SerializeToString()


def test_shifted_windows_are_one_operation() -> None:
    program = hipdnn_mlir.compile(model(), target="host")
    assert sum("sdpa_fwd" in program.model.summary(step) for step in program.model.steps) == 1
    x = np.random.default_rng(1).standard_normal([IMAGES * WINDOWS, TOKENS, 3, HEADS, WIDTH]).astype(np.float32)
    (expected,) = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    (made,) = program.session().run(None, {"x": x})
    np.testing.assert_allclose(made, expected, atol=2e-6)


def test_shifted_windows_are_a_generated_kernel_that_reads_slices() -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install '.[gpu]'")
    program = hipdnn_mlir.compile(model(), target="sm_90", precision="f16")
    summaries = [program.model.summary(step) for step in program.model.steps]
    assert sorted(set(summaries)) == ["cast", "sdpa_fwd"]
    (kernel,) = (kernel for kernel in program.model.kernels if kernel.summary == "sdpa_fwd")
    assert "mma.sync" in kernel.code["image"]
