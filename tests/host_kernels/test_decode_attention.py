"""The step of one token of attention over a cache, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hipdnn_mlir_runtime.errors import DeviceError, ProgramError
from hipdnn_mlir_runtime.session.session import Session
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype, run_kernel, spec_of
from runtime_programs import kernel_program

BOUND = {"f32": 2e-6, "f16": 2e-3, "bf16": 1.6e-2}
Q, KEY, VALUE, KEYS, VALUES, START, COUNT, COS, SIN = range(9)
PLAIN = {"scale": 0.2, "left": -1}
SIZES = pytest.mark.parametrize(
    ("batch", "heads", "rows", "width", "half", "left"),
    [(1, (4, 2), 40, 64, 32, -1), (2, (2, 2), 300, 96, 24, -1), (2, (3, 1), 130, 128, 0, 50),
     (1, (1, 1), 1, 32, 16, -1), (1, (2, 1), 70, 256, 128, 8)],
)  # fmt: skip
"""Batch, heads of queries and of keys, rows of the cache, width of a head, rotated pairs of it, keys that are seen."""


def turned(x: Array, cos: Array, sin: Array) -> Array:
    """Rotate the first numbers of each head, by halves."""
    half = cos.shape[3]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], -1)


def attended(arrays: Sequence[Array], *, scale: float, left: int) -> list[Array]:
    """Return the result and both caches; a bias is the last operand where there is one."""
    q, k, v, keys, values, start, count, *angles = (np.asarray(array).astype(np.float64) for array in arrays)
    bias = angles.pop() if len(angles) % 2 else np.zeros(())
    bias = np.broadcast_to(bias, (*q.shape[:3], keys.shape[2]))
    dtype = arrays[0].dtype
    if angles:
        q, k = turned(q, *angles), turned(k, *angles).astype(dtype).astype(np.float64)
    keys, values, y = keys.copy(), values.copy(), np.zeros_like(q)
    for row in range(q.shape[0]):
        place, valid = int(start[row % len(start)]), int(count[row % len(count)])
        keys[row, :, place], values[row, :, place] = k[row, :, 0], v[row, :, 0]
        low = max(valid - left, 0) if left > 0 else 0
        for head in range(q.shape[1]):
            kv = head * keys.shape[1] // q.shape[1]
            scores = keys[row, kv, low:valid] @ q[row, head, 0] * scale + bias[row, head, 0, low:valid]
            weights = np.exp(scores - scores.max())
            y[row, head, 0] = weights / weights.sum() @ values[row, kv, low:valid]
    return [y, keys, values]


def operands(
    dtype: str, batch: int, heads: tuple[int, int], rows: int, width: int, half: int, seed: int = 0
) -> list[Array]:
    """Queries, keys and values as parts of one packed row, angles of `half`, and caches with NaN behind what is valid."""
    rng = np.random.default_rng(seed)
    kind, (many, few) = numpy_dtype(dtype), heads
    packed = rng.standard_normal((batch, 1, many + 2 * few, width)).astype(kind).transpose(0, 2, 1, 3)
    parts = [packed[:, :many], packed[:, many : many + few], packed[:, many + few :]]
    angle = rng.uniform(0, 6, (batch, 1, 1, half))
    angles = [np.cos(angle).astype(kind), np.sin(angle).astype(kind)] if half else []
    caches = [rng.standard_normal((batch, few, rows, width)).astype(kind) for _ in range(2)]
    start = rng.integers(0, rows, batch)
    for cache in caches:
        for row, first in enumerate(start):
            cache[row, :, first:] = np.nan
    return [*parts, *caches, start.astype(np.int64), (start + 1).astype(np.int32), *angles]


PAGED_SIZES = pytest.mark.parametrize(
    ("batch", "heads", "rows", "width", "half", "left", "page_rows"),
    [(1, (4, 2), 40, 64, 32, -1, 16), (3, (2, 2), 200, 96, 24, -1, 32), (2, (3, 1), 130, 128, 0, 50, 1), (2, (2, 1), 70, 32, 16, 8, 7)],
)  # fmt: skip


def in_pages(arrays: Sequence[Array], page_rows: int, seed: int = 0) -> list[Array]:
    """The same operands with caches in pages of a random order, some of which nobody has, and the table of pages."""
    batch, few, rows, width = arrays[KEYS].shape
    most = -(-rows // page_rows)
    pages = batch * most + 3
    table = np.random.default_rng(seed).permutation(pages)[: batch * most].reshape(batch, most).astype(np.int32)
    pools = []
    for cache in arrays[KEYS : VALUES + 1]:
        pool = np.full((pages, few, page_rows, width), np.nan, cache.dtype)
        for row in range(rows):
            pool[table[:, row // page_rows], :, row % page_rows] = cache[:, :, row]
        pools.append(pool)
    return [*arrays[:KEYS], *pools, *arrays[START:], table]


def attended_in_pages(arrays: Sequence[Array], **attributes: Any) -> list[Array]:
    """Return the result and both caches, where these lie in pages."""
    *plain, table = arrays
    (batch, most), page_rows = table.shape, arrays[KEYS].shape[2]
    for place in (KEYS, VALUES):
        pool = arrays[place][table].transpose(0, 2, 1, 3, 4)  # [batch, heads, pages, rows, width]
        plain[place] = pool.reshape(batch, pool.shape[1], most * page_rows, -1)
    y, *caches = attended(plain, **attributes)
    pools = [arrays[place].astype(np.float64) for place in (KEYS, VALUES)]
    for pool, cache in zip(pools, caches, strict=True):
        for row in range(batch):
            start = int(plain[START][row % len(plain[START])])
            pool[table[row, start // page_rows], :, start % page_rows] = cache[row, :, start]
    return [y, *pools]


@pytest.mark.parametrize("dtype", BOUND)
@PAGED_SIZES
def test_the_step_of_one_token_over_pages(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, page_rows: int, dtype: str
) -> None:
    arrays = in_pages(operands(dtype, batch, heads, rows, width, half), page_rows)
    attributes = {"scale": 0.2, "left": left}
    got = run_kernel("decode_attention", arrays, outs_of(arrays), attributes)
    assert_close(got, attended_in_pages(arrays, **attributes), dtype)


BIASED_SIZES = pytest.mark.parametrize(
    ("batch", "heads", "rows", "width", "half", "left", "dims"),
    [(1, (4, 2), 40, 64, 32, -1, (1, 1, 1, 40)), (2, (2, 2), 300, 96, 24, -1, (2, 1, 1, 300)), (2, (3, 1), 130, 128, 0, 50, (1, 3, 1, 1)),
     (2, (4, 1), 70, 32, 16, 8, (2, 4, 1, 70))],
)  # fmt: skip


def biased(arrays: Sequence[Array], dims: tuple[int, ...], dtype: str) -> list[Array]:
    """The same operands with a bias: of each row one key in three is hidden, by infinity or by the least number, but not the new one."""
    rng = np.random.default_rng(5)
    kind = numpy_dtype(dtype)
    bias = rng.standard_normal(dims).astype(kind)
    if dims[3] > 1:
        least = np.array([-np.inf, np.finfo(np.float16).min], kind)
        bias = np.where(rng.random(dims) < 0.3, rng.choice(least, dims), bias)
        for row, place in enumerate(arrays[START]):
            bias[row % dims[0], ..., place] = 0.5
    return [*arrays, bias]


@pytest.mark.parametrize("dtype", BOUND)
@BIASED_SIZES
def test_the_step_of_one_token_with_a_bias(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, dims: tuple[int, ...], dtype: str
) -> None:
    arrays = biased(operands(dtype, batch, heads, rows, width, half), dims, "f32" if dtype == "f16" else dtype)
    attributes = {"scale": 0.2, "left": left}
    got = run_kernel("decode_attention", arrays, outs_of(arrays), attributes)
    assert_close(got, attended(arrays, **attributes), dtype)


@pytest.mark.parametrize("dims", [(1, 1, 1, 23), (3, 1, 1, 24), (1, 2, 1, 24), (24,)])
def test_refused_when_a_bias_does_not_fit(dims: tuple[int, ...]) -> None:
    arrays = [*operands("f32", 2, (4, 2), 24, 32, 16), np.zeros(dims, np.float32)]
    with pytest.raises(ProgramError, match=r"tensors\[9\].dims: expected a bias for scores of \[2, 4, 1, 24\]"):
        run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)


@pytest.mark.parametrize("page", [-1, 99])
def test_error_on_the_host_when_there_is_no_such_page(page: int) -> None:
    arrays = in_pages(operands("f32", 1, (4, 2), 40, 64, 32), 4)
    arrays[-1][0, 0] = page
    with pytest.raises(DeviceError, match=rf"page 0 of batch 0 is {page}, there are pages 0 to 12"):
        run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)


def outs_of(arrays: Sequence[Array]) -> list[TensorSpec]:
    """The result and the caches, without gaps."""
    dtype = spec_of(arrays[0]).dtype
    return [TensorSpec(dtype, arrays[place].shape) for place in (Q, KEYS, VALUES)]


def assert_close(got: Sequence[Array], want: Sequence[Array], dtype: str) -> None:
    """The result and the caches are those."""
    for found, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("dtype", BOUND)
@SIZES
def test_the_step_of_one_token(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, dtype: str
) -> None:
    arrays, attributes = operands(dtype, batch, heads, rows, width, half), {"scale": 0.2, "left": left}
    got = run_kernel("decode_attention", arrays, outs_of(arrays), attributes)
    assert_close(got, attended(arrays, **attributes), dtype)


@pytest.mark.parametrize("start", [0, 39])
def test_the_first_and_the_last_place(start: int) -> None:
    arrays = operands("f16", 1, (4, 2), 40, 64, 32)
    arrays[START][:], arrays[COUNT][:] = start, start + 1
    for cache in arrays[KEYS : VALUES + 1]:
        cache[:, :, :start] = 0.5
        cache[:, :, start:] = np.nan
    assert_close(run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN), attended(arrays, **PLAIN), "f16")


@pytest.mark.parametrize(("start", "left"), [(3, -1), (3, 4), (20, -1), (20, 12)])
def test_a_place_that_is_not_the_last_one_seen(start: int, left: int) -> None:
    """The new row may be one of others that are seen, one in front of those, or behind them."""
    arrays, attributes = operands("f32", 1, (4, 2), 40, 64, 32), {"scale": 0.2, "left": left}
    arrays[START][:], arrays[COUNT][:] = start, 16
    for seed, cache in enumerate(arrays[KEYS : VALUES + 1]):
        cache[:] = np.random.default_rng(seed).standard_normal(cache.shape)
    got = run_kernel("decode_attention", arrays, outs_of(arrays), attributes)
    assert_close(got, attended(arrays, **attributes), "f32")


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_counts_and_angles_for_all_of_the_batch(index: type) -> None:
    arrays = operands("f32", 3, (4, 2), 24, 32, 8)
    arrays[START], arrays[COUNT] = np.array([7], index), np.array([8], index)
    arrays[COS], arrays[SIN] = (angles[:1] for angles in arrays[COS:])
    for seed, cache in enumerate(arrays[KEYS : VALUES + 1]):
        cache[:] = np.random.default_rng(seed).standard_normal(cache.shape)
    assert_close(run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN), attended(arrays, **PLAIN), "f32")


def test_caches_and_results_of_other_orders() -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    for place in (KEYS, VALUES):  # rows of all heads lie beside each other
        arrays[place] = np.ascontiguousarray(arrays[place].transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    arrays[COS], arrays[SIN] = (np.repeat(angles, 2, -1)[..., ::2] for angles in arrays[COS:])
    outs = [TensorSpec("f32", (2, 4, 1, 32), (128, 32, 128, 1))]
    outs += [TensorSpec("f32", (2, 2, 24, 32), (24 * 64, 32, 64, 1))] * 2
    assert_close(run_kernel("decode_attention", arrays, outs, PLAIN), attended(arrays, **PLAIN), "f32")


def test_heads_of_any_width_on_the_host() -> None:
    for width, half in ((1, 0), (5, 2), (7, 3), (65, 1), (130, 64)):
        arrays = operands("f32", 2, (6, 3), 9, width, half)
        assert_close(run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN), attended(arrays, **PLAIN), "f32")


def test_threads_of_the_host_share_heads() -> None:
    arrays = operands("f32", 2, (16, 4), 600, 64, 32)
    one, four = (run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN, threads) for threads in (1, 4))
    assert_close(one, attended(arrays, **PLAIN), "f32")
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("half", [0, 16])
def test_results_in_the_memory_of_the_caches_on_the_host(half: int) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, half)
    want = attended(arrays, **PLAIN)
    session = Session(kernel_program("decode_attention", [spec_of(array) for array in arrays], outs_of(arrays), PLAIN))
    feeds = {f"x{place}": runs.memory_of(array, spec_of(array)) for place, array in enumerate(arrays)}
    y = np.empty(want[0].size, np.float32)
    session.bind(feeds, {"y0": y, "y1": feeds[f"x{KEYS}"], "y2": feeds[f"x{VALUES}"]})()
    got = [y, feeds[f"x{KEYS}"], feeds[f"x{VALUES}"]]
    assert_close([flat.reshape(array.shape) for flat, array in zip(got, want, strict=True)], want, "f32")


@pytest.mark.parametrize(
    ("place", "wrong", "message"),
    [
        (START, [0, 24], r"tensors\[5\]: there is no row 24 in a cache of 24"),
        (START, [-1, 0], r"tensors\[5\]: there is no row -1 in a cache of 24"),
        (START, [2**40, 0], rf"tensors\[5\]: there is no row {2**40} in a cache of 24"),
        (COUNT, [1, 0], r"tensors\[6\]: expected 1 to 24 keys, got 0"),
        (COUNT, [25, 1], r"tensors\[6\]: expected 1 to 24 keys, got 25"),
        (COUNT, [-(2**63), 1], rf"tensors\[6\]: expected 1 to 24 keys, got {-(2**63)}"),
    ],
    ids=str,
)
def test_error_when_counts_do_not_fit(place: int, wrong: list[int], message: str) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    arrays[place] = np.array(wrong, np.int64)
    with pytest.raises(DeviceError, match=f"decode_attention step.*{message}"):
        run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)


@pytest.mark.parametrize(
    ("place", "dims", "message"),
    [
        (Q, (2, 4, 2, 32), r"tensors\[0\].dims: expected one query of 4 dims"),
        (Q, (2, 4, 32), r"tensors\[0\].dims: expected one query of 4 dims"),
        (Q, (2, 3, 1, 32), r"tensors\[3\].dims: expected a cache of rows for a divisor of the heads"),
        (KEYS, (2, 3, 24, 32), r"tensors\[3\].dims: expected a cache of rows for a divisor of the heads"),
        (KEYS, (2, 24, 32), r"tensors\[3\].dims: expected a cache of rows for a divisor of the heads"),
        (KEYS, (2, 2, 0, 32), r"tensors\[3\].dims: expected a cache of rows for a divisor of the heads"),
        (KEYS, (2, 2, 24, 16), r"tensors\[3\].dims"),
        (VALUES, (2, 2, 23, 32), r"tensors\[4\].dims"),
        (KEY, (2, 4, 1, 32), r"tensors\[1\].dims"),
        (VALUE, (1, 2, 1, 32), r"tensors\[2\].dims"),
        (START, (3,), r"tensors\[5\].dims: expected one number, or one for each batch"),
        (COUNT, (2, 1), r"tensors\[6\].dims: expected one number, or one for each batch"),
        (COS, (2, 1, 1, 17), r"tensors\[7\].dims: expected \[batch or 1, 1, 1, up to half a head\]"),
        (COS, (3, 1, 1, 16), r"tensors\[7\].dims: expected \[batch or 1, 1, 1, up to half a head\]"),
        (SIN, (2, 1, 1, 8), r"tensors\[8\].dims"),
    ],
    ids=str,
)
def test_refused_when_dims_do_not_fit(place: int, dims: tuple[int, ...], message: str) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    outs = outs_of(arrays)
    arrays[place] = np.zeros(dims, arrays[place].dtype)
    with pytest.raises(ProgramError, match=message):
        run_kernel("decode_attention", arrays, outs, PLAIN)


@pytest.mark.parametrize("place", range(3))
def test_refused_when_results_do_not_fit(place: int) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    outs = outs_of(arrays)
    outs[place] = TensorSpec("f32", (*outs[place].dims[:3], 16))
    with pytest.raises(ProgramError, match=rf"tensors\[{9 + place}\].dims"):
        run_kernel("decode_attention", arrays, outs, PLAIN)


@pytest.mark.parametrize(
    ("place", "dtype"), [(Q, "f64"), (KEY, "f16"), (VALUES, "f16"), (SIN, "f16"), (START, "f32"), (COUNT, "i8")]
)
def test_refused_when_types_do_not_fit(place: int, dtype: str) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    outs = outs_of(arrays)
    arrays[place] = arrays[place].astype(numpy_dtype(dtype))
    with pytest.raises(ProgramError, match="dtype"):
        run_kernel("decode_attention", arrays, outs, PLAIN)


@pytest.mark.parametrize(
    ("left_out", "attributes", "message"),
    [
        ([SIN, COS, COUNT], PLAIN, "expected 7 ins and 3 outs"),
        ([SIN], PLAIN, r"tensors\[7\].dims: expected a bias"),
        ([], {"left": -1}, "scale"),
        ([], {"scale": 1.0}, "left"),
        ([], {"scale": 1.0, "left": -2}, "left"),
        ([], {**PLAIN, "softcap": 1.0}, "softcap"),
    ],
    ids=str,
)
def test_refused_when_the_image_is_another(left_out: list[int], attributes: dict[str, Any], message: str) -> None:
    arrays = operands("f32", 2, (4, 2), 24, 32, 16)
    outs = outs_of(arrays)
    for place in left_out:
        del arrays[place]
    with pytest.raises(ProgramError, match=message):
        run_kernel("decode_attention", arrays, outs, attributes)
