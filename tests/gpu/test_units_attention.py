"""Attention on matrix units, against float64."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, row, run_graph
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.attention_graph import units_attention
from hipdnn_mlir.ops.spec import Refusal
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import TensorSpec, spec_of
from runtime_programs import Array

TYPES = {"f16": np.dtype(np.float16), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype(np.float32)}
LIMITS = {"f16": 2e-3, "bf16": 1.6e-2}
"""Relative distance of norms: that of a rounded weight, and of a rounded result."""


def drawn(dtype: str, *dims: int, seed: int = 1) -> Array:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(TYPES[dtype])


def side_by_side(dtype: str, batch: int, heads: int, rows: int, width: int) -> list[Array]:
    """Queries, keys and values as slices of what one layer gives."""
    whole = drawn(dtype, batch, rows, 3, heads, width)
    return [whole[:, :, part].transpose(0, 2, 1, 3) for part in range(3)]


def reference(q: Array, k: Array, v: Array, mask: Array | None, scale: float, *, causal: bool = False) -> Array:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * scale
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask.astype(np.float64)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=np.bool_), scores, -np.inf)
    most = np.maximum(scores.max(-1, keepdims=True), -1e300)
    weights = np.exp(scores - most)
    total = weights.sum(-1, keepdims=True)
    return np.asarray(weights / np.where(total == 0, 1, total) @ v)


def check(
    arrays: list[Array], dtype: str, scale: float | None = None, *, causal: bool = False, out: Array | None = None
) -> None:
    q, k, v, *masks = arrays
    dims = (*q.shape[:3], v.shape[3])
    result = TensorSpec(dtype, dims, None if out is None else spec_of(out).steps)
    arguments = [..., ..., ..., ... if masks else None, 0.0, causal, scale, k.shape[1] != q.shape[1]]
    body = row("aten.scaled_dot_product_attention", *arguments, results=[result])
    (made,) = run_graph(body, arrays, [result])
    given = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    expected = reference(q, k, v, masks[0] if masks else None, given, causal=causal)
    error = np.linalg.norm(made.astype(np.float64) - expected) / np.linalg.norm(expected)
    assert error < LIMITS[dtype], f"off by {error:.1e}"


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("heads", "queries", "keys", "width", "of_values"),
    [
        (3, 49, 49, 32, 32),
        (2, 16, 64, 64, 64),
        (1, 5, 3, 16, 16),
        (2, 17, 130, 48, 80),
        (1, 1, 197, 128, 128),
        (1, 33, 128, 96, 16),
    ],
)
def test_sizes(heads: int, queries: int, keys: int, width: int, of_values: int, dtype: str) -> None:
    q, k, v = (
        drawn(dtype, 2, heads, queries, width),
        drawn(dtype, 2, heads, keys, width),
        drawn(dtype, 2, heads, keys, of_values),
    )
    check([q, k, v, 3 * drawn("f32", 2, heads, queries, keys)], dtype)


@pytest.mark.parametrize("kind", ["f16", "f32"])
@pytest.mark.parametrize(
    "dims", [(1, 3, 49, 49), (4, 3, 49, 49), (4, 1, 49, 49), (1, 1, 1, 49), (4, 3, 49, 1)], ids=str
)
def test_windows_with_a_mask_that_broadcasts(dims: tuple[int, ...], kind: str) -> None:
    out = drawn("f16", 4, 49, 3, 32).transpose(0, 2, 1, 3)
    check([*side_by_side("f16", 4, 3, 49, 32), 3 * drawn(kind, *dims)], "f16", 0.25, out=out)


def test_a_mask_whose_keys_are_not_adjacent() -> None:
    mask = np.moveaxis(drawn("f16", 49, 49, 3), -1, 0)[None]
    check([*side_by_side("f16", 2, 3, 49, 32), mask], "f16")


@pytest.mark.parametrize("shared", [1, 2])
def test_heads_that_share_keys_and_a_causal_mask(shared: int) -> None:
    q, k, v = drawn("f16", 1, 4, 70, 32), drawn("f16", 1, 4 // shared, 70, 32), drawn("f16", 1, 4 // shared, 70, 64)
    check([q, k, v], "f16", causal=True)


def test_a_mask_of_truth_values_and_a_query_that_sees_nothing() -> None:
    mask = np.random.default_rng(3).integers(0, 2, (1, 2, 20, 29)).astype(np.bool_)
    mask[0, :, 7] = False
    check([*(drawn("f16", 1, 2, rows, 32) for rows in (20, 29, 29)), mask], "f16")


def test_windows_that_hide_keys_by_infinity() -> None:
    mask = drawn("f16", 2, 1, 49, 49)
    mask[1, :, 20:, :30] = -np.inf
    mask[0, :, 3] = -np.inf
    check([*side_by_side("f16", 2, 3, 49, 32), mask], "f16")


def test_large_scores_and_values_that_are_no_numbers() -> None:
    q, k, v = side_by_side("f16", 1, 1, 49, 32)
    check([30 * q, k, v], "f16", 1.0)
    v = v.copy()
    v[:, :, -1, 5] = np.nan
    result = TensorSpec("f16", (1, 1, 49, 32))
    arguments = [..., ..., ..., None, 0.0, False, None, False]
    (made,) = run_graph(row("aten.scaled_dot_product_attention", *arguments, results=[result]), [q, k, v], [result])
    assert np.isnan(made[..., 5]).all()
    assert not np.isnan(np.delete(made, 5, -1)).any()


@pytest.mark.parametrize(
    ("dtype", "width", "steps"), [("f32", 32, 32), ("f16", 24, 24), ("f16", 144, 144), ("f16", 32, 33)], ids=str
)
def test_what_matrix_units_do_not_read(dtype: str, width: int, steps: int) -> None:
    q = drawn(dtype, 1, 2, 49, steps)[..., :width]
    arguments = [..., ..., ..., None, 0.0, False, None, False]
    out = TensorSpec(dtype, q.shape)
    graph = graph_of(
        row("aten.scaled_dot_product_attention", *arguments, results=[out]), [q, q.copy(), q.copy()], [out]
    )
    with pytest.raises(Refusal):
        units_attention(graph)


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_nvidia(arch: str) -> None:
    arrays = [*side_by_side("f16", 4, 3, 49, 32), drawn("f16", 1, 3, 49, 49)]
    arguments = [..., ..., ..., ..., 0.0, False, None, False]
    out = TensorSpec("f16", (4, 3, 49, 32))
    graph = graph_of(row("aten.scaled_dot_product_attention", *arguments, results=[out]), arrays, [out])
    made = generate_graph(graph, find_architecture(arch))
    if not arch.startswith("sm_"):
        assert isinstance(made, Reject)
        return
    compiled.check(made)
    assert "mma.sync" in str(made.code)
