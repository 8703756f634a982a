"""Caches of attention with new rows at computed positions, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir_runtime.errors import DeviceError, ProgramError
from hipdnn_mlir_runtime.session.session import Session
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, Array, TensorSpec, run_kernel
from runtime_programs import kernel_program


def updated(cache: Array, new: Array, start: Array, rows: int) -> Array:
    """Return what the kernel computes; one start is for all of the batch."""
    batch, heads, before, width = cache.shape
    result = np.zeros((batch, heads, rows, width), cache.dtype)
    result[:, :, :before] = cache
    for index, first in enumerate(np.broadcast_to(start, batch)):
        result[index, :, first : first + new.shape[2]] = new[index]
    return result


@settings(deadline=None, max_examples=120)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), index=st.sampled_from(["i32", "i64"]))
def test_cache_update_equals_numpy(data: st.DataObject, dtype: str, index: str) -> None:
    batch, heads, width = (data.draw(st.integers(1, 4)) for _ in range(3))
    before, more, count = (data.draw(st.integers(0, 5)) for _ in range(3))
    rows = max(before + more, count)
    cache = data.draw(runs.strided(dtype, (batch, heads, before, width)))
    new = data.draw(runs.strided(dtype, (batch, heads, count, width)))
    starts = data.draw(runs.strided(index, (data.draw(st.sampled_from([1, batch])),)))
    starts = (starts.astype(np.int64) % (rows - count + 1)).astype(starts.dtype)
    out = data.draw(runs.out_spec(dtype, (batch, heads, rows, width)))
    (got,) = run_kernel("cache_update", [cache, new, starts], [out], {}, data.draw(st.integers(1, 3)))
    np.testing.assert_array_equal(got, updated(cache, new, starts, rows))


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("threads", [1, 4])
def test_cache_update_equals_numpy_when_large(dtype: str, threads: int) -> None:
    cache, new = runs.values(dtype, (2, 8, 700, 64), 1), runs.values(dtype, (2, 8, 9, 64), 2)
    start = np.array([691, 30], np.int64)
    out = TensorSpec(dtype, (2, 8, 800, 64))
    (got,) = run_kernel("cache_update", [cache, new, start], [out], {}, threads)
    np.testing.assert_array_equal(got, updated(cache, new, start, 800))


def in_pages(pool: Array, new: Array, start: Array, table: Array) -> Array:
    """Return what the kernel computes where the cache lies in pages."""
    result, page_rows = pool.copy(), pool.shape[2]
    for index, first in enumerate(np.broadcast_to(start, len(new))):
        for number in range(new.shape[2]):
            page, row = divmod(int(first) + number, page_rows)
            result[table[index, page], :, row] = new[index, :, number]
    return result


@settings(deadline=None, max_examples=120)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), index=st.sampled_from(["i32", "i64"]))
def test_rows_go_to_the_pages_of_their_sequence(data: st.DataObject, dtype: str, index: str) -> None:
    batch, heads, width, page_rows, most = (data.draw(st.integers(1, 4)) for _ in range(5))
    count = data.draw(st.integers(0, most * page_rows))
    pages = batch * most + data.draw(st.integers(0, 3))
    pool = data.draw(runs.strided(dtype, (pages, heads, page_rows, width)))
    new = data.draw(runs.strided(dtype, (batch, heads, count, width)))
    starts = data.draw(runs.strided(index, (data.draw(st.sampled_from([1, batch])),)))
    starts = (starts.astype(np.int64) % (most * page_rows - count + 1)).astype(starts.dtype)
    table = np.array(data.draw(st.permutations(range(pages))), np.int32)[: batch * most].reshape(batch, most)
    out = data.draw(runs.out_spec(dtype, pool.shape))
    (got,) = run_kernel("cache_update", [pool, new, starts, table], [out], {}, data.draw(st.integers(1, 3)))
    np.testing.assert_array_equal(got, in_pages(pool, new, starts, table))


@pytest.mark.parametrize("page", [-1, 3])
def test_error_when_there_is_no_such_page(page: int) -> None:
    arrays = [np.zeros((3, 1, 2, 4), np.float32), np.ones((1, 1, 3, 4), np.float32), np.zeros(1, np.int64)]
    table = np.array([[0, page]], np.int32)
    with pytest.raises(DeviceError, match=rf"tensors\[3\]: page 1 of batch 0 is {page}, there are pages 0 to 2"):
        run_kernel("cache_update", [*arrays, table], [TensorSpec("f32", (3, 1, 2, 4))], {})


def in_place(cache: Array, new: Array, start: Array, rows: int) -> None:
    """Run the kernel with the memory of its result, which the cache is the first rows of for each batch and head, as the cache's, too."""
    batch, heads, _, width = cache.shape
    dims = (batch, heads, rows, width)
    steps = TensorSpec("f32", dims).steps
    ins = [TensorSpec("f32", cache.shape, steps), runs.spec_of(new), runs.spec_of(start)]
    session = Session(kernel_program("cache_update", ins, [TensorSpec("f32", dims)], {}))
    memory = cache if cache.base is None else cache.base
    flat = memory.reshape(-1)
    session.bind({"x0": flat[: ins[0].extent], "x1": new.reshape(-1), "x2": start}, {"y0": flat})()


def test_result_is_in_the_memory_of_the_cache() -> None:
    cache, new = runs.values("f32", (2, 3, 16, 8), 1), runs.values("f32", (2, 3, 4, 8), 2)
    start = np.array([12, 3], np.int32)
    want = updated(cache, new, start, 16)
    in_place(cache, new, start, 16)
    np.testing.assert_array_equal(cache, want)


def test_result_is_longer_than_the_cache_in_its_memory() -> None:
    memory, new = runs.values("f32", (2, 3, 16, 8), 1), runs.values("f32", (2, 3, 4, 8), 2)
    cache, start = memory[:, :, :10], np.array([8], np.int64)
    want = updated(cache, new, start, 16)
    in_place(cache, new, start, 16)
    np.testing.assert_array_equal(memory, want)


@pytest.mark.parametrize("start", [[0, 4], [-1, 0], [2**40, 0], [0, 2**63 - 1], [-(2**63), 0]], ids=str)
def test_error_when_rows_do_not_fit(start: list[int]) -> None:
    cache, new = np.zeros((2, 1, 6, 4), np.float32), np.ones((2, 1, 3, 4), np.float32)
    wrong = next(first for first in start if not 0 <= first <= 3)
    message = rf"cache_update step.*tensors\[2\]: 3 rows from {wrong} on do not fit into a cache of 6"
    with pytest.raises(DeviceError, match=message):
        run_kernel("cache_update", [cache, new, np.array(start)], [TensorSpec("f32", cache.shape)], {})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(2, 1, 6, 4), (2, 1, 3, 4), (2,), (2, 1, 5, 4)], "expected dims within"),
        ([(2, 1, 6, 4), (2, 1, 3, 4), (3,), (2, 1, 6, 4)], "expected one start, or one for each batch"),
        ([(2, 1, 6, 4), (2, 1, 3, 4), (2, 1), (2, 1, 6, 4)], "expected one start, or one for each batch"),
        ([(2, 1, 6, 4), (2, 2, 3, 4), (2,), (2, 1, 6, 4)], "expected those of the cache but for dim 2"),
        ([(2, 1, 6, 4), (1, 1, 3, 4), (2,), (2, 1, 6, 4)], "expected those of the cache but for dim 2"),
        ([(2, 1, 6, 4), (2, 1, 3, 5), (2,), (2, 1, 6, 4)], "expected those of the cache but for dim 2"),
        ([(2, 6, 4), (2, 3, 4), (2,), (2, 6, 4)], "expected 4 dims"),
        ([(2, 1, 6, 4), (2, 3, 4), (2,), (2, 1, 6, 4)], "expected 4 dims"),
        ([(2, 1, 6, 4), (2,), (2, 1, 6, 4)], "expected 3 ins and 1 outs"),
        ([(5, 1, 6, 4), (2, 1, 3, 4), (2,), (3, 2), (5, 1, 6, 4)], r"tensors\[3\].dims: expected \[2, pages\]"),
        ([(5, 1, 6, 4), (2, 1, 3, 4), (5,), (2, 2), (5, 1, 6, 4)], "expected one start, or one for each batch"),
        ([(5, 1, 6, 4), (2, 1, 3, 4), (2,), (2, 2), (5, 1, 7, 4)], r"tensors\[0\].dims"),
        ([(5, 1, 0, 4), (2, 1, 0, 4), (2,), (2, 2), (5, 1, 0, 4)], "expected pages of one row or more"),
    ],
)
def test_refused_when_dims_do_not_fit(shapes: list[tuple[int, ...]], message: str) -> None:
    kinds = (np.float32, np.float32, np.int64, np.int32)
    arrays = [np.zeros(shape, kind) for shape, kind in zip(shapes[:-1], kinds, strict=False)]
    with pytest.raises(ProgramError, match=message):
        run_kernel("cache_update", arrays, [TensorSpec("f32", shapes[-1])], {})


@pytest.mark.parametrize(("new", "start"), [("f16", np.int64), ("f32", np.float32), ("f32", np.int8)])
def test_refused_when_types_do_not_fit(new: str, start: type) -> None:
    arrays = [np.zeros((1, 1, 6, 4), np.float32), runs.values(new, (1, 1, 3, 4), 0), np.zeros(1, start)]
    with pytest.raises(ProgramError, match="dtype"):
        run_kernel("cache_update", arrays, [TensorSpec("f32", (1, 1, 6, 4))], {})
