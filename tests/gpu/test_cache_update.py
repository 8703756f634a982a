"""Generated code for new rows of a cache: as the host's, and in the cache's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu import compiled
from gpu.emulated import describe, memory_for, results_in, run_kernel, run_launch
from hipdnn_mlir.codegen import find_architecture, generate
from hipdnn_mlir.codegen.generate import parts_of
from host_kernels import test_cache_update as of_host
from host_kernels.kernel_runs import TensorSpec


@pytest.fixture(autouse=True, scope="module")
def emulated() -> Any:
    """The host's tests name a number of threads, which the emulator has no use for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_host, "run_kernel", lambda *given: run_kernel(*given[:4]))
        yield


test_it_equals_numpy = of_host.test_cache_update_equals_numpy
test_it_equals_numpy_when_large = of_host.test_cache_update_equals_numpy_when_large
test_rows_go_to_pages = of_host.test_rows_go_to_the_pages_of_their_sequence


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_in_place_it_writes_the_new_rows_of_pages_alone(dtype: type) -> None:
    rng = np.random.default_rng(0)
    pool, new = (rng.integers(0, 9, dims).astype(dtype) for dims in ((9, 3, 4, 24), (2, 3, 6, 24)))
    start, table = np.array([3, 6], np.int32), np.array([[5, 1, 0], [8, 2, 7]], np.int32)
    name = np.dtype(dtype).name.replace("float", "f").replace("int", "i")
    arrays, out = [pool, new, start, table], TensorSpec(name, pool.shape)
    arch = find_architecture("sm_90")
    (part,) = parts_of(describe("cache_update", arrays, [out], {}), arch)
    memory = memory_for(arrays, [out])
    memory[4] = memory[0]
    written = run_launch(part.launch, memory, arch)
    (got,) = results_in(memory[4:], [out])
    np.testing.assert_array_equal(got, of_host.in_pages(pool, new, start, table))
    assert np.count_nonzero(written[4]) == new.nbytes


@pytest.mark.parametrize(("named", "taken"), [(-3, 0), (99, 2)])
def test_a_page_that_there_is_not_becomes_the_nearest_one(named: int, taken: int) -> None:
    pool, new = np.zeros((3, 1, 4, 4), np.float32), np.ones((1, 1, 2, 4), np.float32)
    arrays, out = [pool, new, np.zeros(1, np.int64), np.array([[named]], np.int32)], TensorSpec("f32", pool.shape)
    (got,) = run_kernel("cache_update", arrays, [out], {})
    np.testing.assert_array_equal(got, of_host.in_pages(pool, new, np.zeros(1), np.array([[taken]])))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8])
def test_in_place_it_writes_the_new_rows_alone(dtype: type) -> None:
    rng = np.random.default_rng(0)
    cache, new = (rng.integers(0, 9, (2, 3, rows, 24)).astype(dtype) for rows in (17, 4))
    start = np.array([13, 2], np.int32)
    arrays, out = (
        [cache, new, start],
        TensorSpec(np.dtype(dtype).name.replace("float", "f").replace("int", "i"), cache.shape),
    )
    arch = find_architecture("sm_90")
    (part,) = parts_of(describe("cache_update", arrays, [out], {}), arch)
    memory = memory_for(arrays, [out])
    memory[3] = memory[0]
    written = run_launch(part.launch, memory, arch)
    (got,) = results_in(memory[3:], [out])
    np.testing.assert_array_equal(got, of_host.updated(cache, new, start, 17))
    assert np.count_nonzero(written[3]) == new.nbytes


@pytest.mark.parametrize("first", [-5, 99])
def test_a_start_outside_becomes_the_nearest_one(first: int) -> None:
    cache, new = np.zeros((1, 1, 6, 4), np.float32), np.ones((1, 1, 2, 4), np.float32)
    arrays, out = [cache, new, np.array([first], np.int64)], TensorSpec("f32", cache.shape)
    arch = find_architecture("sm_90")
    (part,) = parts_of(describe("cache_update", arrays, [out], {}), arch)
    memory = memory_for(arrays, [out])
    run_launch(part.launch, memory, arch)
    (got,) = results_in(memory[3:], [out])
    np.testing.assert_array_equal(got, of_host.updated(cache, new, np.array([0 if first < 0 else 4]), 6))


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_every_architecture(arch: str) -> None:
    cache, new = np.zeros((1, 2, 6, 64), np.float16), np.ones((1, 2, 2, 64), np.float16)
    arrays, out = [cache, new, np.zeros(1, np.int64)], TensorSpec("f16", cache.shape)
    compiled.check(generate(describe("cache_update", arrays, [out], {}), find_architecture(arch)))
    arrays.append(np.zeros((1, 3), np.int32))
    compiled.check(generate(describe("cache_update", arrays, [out], {}), find_architecture(arch)))
