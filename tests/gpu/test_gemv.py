"""Generated GEMVs, with what is computed on their results, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, run_graph
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.codegen.kernels.gemv import is_gemv
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir_runtime.abi import Pointwise
from host_kernels.kernel_runs import TensorSpec, numpy_dtype


def layer(e: Emitter, x: Value, weight: Value, bias: Value) -> Value:
    return e.pointwise(Pointwise.RELU_FWD, e.pointwise(Pointwise.ADD, matmul_node(e, x, weight), bias))


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("k", "n"), [(1024, 40), (300, 33), (7, 5), (2, 3), (64, 1), (4096, 8)])
def test_a_layer_of_one_row(k: int, n: int, dtype: str, arch: str) -> None:
    rng = np.random.default_rng(k + n)
    x, rows, bias = (rng.standard_normal(shape).astype(numpy_dtype(dtype)) for shape in ((1, k), (n, k), (n,)))
    out = TensorSpec(dtype, (1, n))
    assert is_gemv(graph_of(layer, [x, rows.T, bias], [out]))
    (got,) = run_graph(layer, [x, rows.T, bias], [out], arch)
    want = np.maximum(x.astype(np.float64) @ rows.T.astype(np.float64) + bias.astype(np.float64), 0)
    bound = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}[dtype]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=bound, atol=bound * np.sqrt(k))


def test_batches_of_one_row_with_a_step() -> None:
    rng = np.random.default_rng(1)
    x, rows = (
        rng.standard_normal((1, 1, 1, 40)).astype(np.float32)[..., ::2],
        rng.standard_normal((9, 20)).astype(np.float32),
    )
    out = TensorSpec("f32", (1, 1, 1, 9))
    (got,) = run_graph(matmul_node, [x, rows.T[None, None]], [out])
    np.testing.assert_allclose(got, (x.astype(np.float64) @ rows.T)[...], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 30), (1, 30)])
def test_other_matmuls_are_none_of_these(shape: tuple[int, int]) -> None:
    weight = np.zeros((30, 8), np.float32)  # rows along memory
    assert not is_gemv(graph_of(matmul_node, [np.zeros(shape, np.float32), weight], [TensorSpec("f32", (shape[0], 8))]))


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_every_architecture(arch: str) -> None:
    x, rows, bias = np.zeros((1, 64), np.float16), np.zeros((32, 64), np.float16), np.zeros(32, np.float16)
    made = generate_graph(graph_of(layer, [x, rows.T, bias], [TensorSpec("f16", (1, 32))]), find_architecture(arch))
    compiled.check(made)
