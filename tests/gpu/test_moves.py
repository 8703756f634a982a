"""Generated gathers, scatters, slices and pads: the host's cases of the same functions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drawing import every
from gpu import compiled
from gpu.emulated import describe, run_kernel
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from host_kernels import kernel_runs as runs
from host_kernels import test_gather, test_indexing, test_movement
from host_kernels.kernel_runs import TensorSpec

gathers, indexing, movement = (emulation_of(module) for module in (test_gather, test_indexing, test_movement))
globals().update({**cases_of(test_gather), **cases_of(test_movement)})
globals().update(cases_of(test_indexing))
COMBINED = {"none": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize(("reduction", "axis", "dtype"), every(3, COMBINED, [0, 1], ["f32", "f16", "i8", "f64"]))
def test_scatter_elements_equals_loop_when_updates_are_many(reduction: str, axis: int, dtype: str) -> None:
    generator, count = np.random.default_rng(1), 300
    table = runs.values(dtype, (400, 6) if axis == 0 else (5, 400), 1)
    updates = runs.values(dtype, (count, 6) if axis == 0 else (5, count), 2)
    if reduction == "mul":
        updates = np.sign(updates)
    draws = [generator.choice(400, count, replace=reduction != "none") for _ in range(table.shape[1 - axis])]
    indices = np.stack(draws, axis=1 - axis)
    want = table.copy()
    for position in np.ndindex(*updates.shape):
        target = (indices[position], position[1]) if axis == 0 else (position[0], indices[position])
        want[target] = COMBINED[reduction](want[target], updates[position])
    attributes = {"axis": axis, "reduction": reduction}
    (got,) = run_kernel("scatter_elements", [table, indices, updates], [TensorSpec(dtype, table.shape)], attributes)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("reduction", "depth", "count"), every(7, COMBINED, [1, 2, 3], [40, 280]))
def test_scatter_nd_equals_loop_when_slices_are_wide(reduction: str, depth: int, count: int) -> None:
    shape, generator = (20, 20, 16) if depth > 1 else (300, 3, 16), np.random.default_rng(1)
    rows = generator.choice(math.prod(shape[:depth]), count, replace=reduction != "none")
    indices = np.stack(np.unravel_index(rows, shape[:depth]), axis=-1).reshape(2, -1, depth).astype(np.int32)
    table, updates = runs.values("f32", shape, 1), runs.values("f32", indices.shape[:-1] + shape[depth:], 2)
    if reduction == "mul":
        updates = np.sign(updates)
    want = table.copy()
    for row in np.ndindex(*indices.shape[:-1]):
        target = tuple(indices[row])
        want[target] = COMBINED[reduction](want[target], updates[row])
    arrays = [np.asfortranarray(table), indices - np.array(shape[:depth], np.int32) * (indices % 2), updates]
    (got,) = run_kernel("scatter_nd", arrays, [TensorSpec("f32", shape)], {"reduction": reduction})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", compiled.ALL)
@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("function", ["gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd"])
def test_code_is_whole_when_indexed(function: str, name: str, many: bool) -> None:
    data = np.zeros((40, 64), np.float16)
    count = 300 if many else 5
    if function.endswith("nd"):
        indices, shape = np.zeros((count, 1), np.int64), (count, 64)
        attributes = {"batch_dims": 0} if function == "gather_nd" else {"reduction": "add"}
    else:
        indices, shape = np.zeros((count, 64) if "elements" in function else (count,), np.int64), (count, 64)
        attributes = {"axis": 0, **({"reduction": "max"} if "scatter" in function else {})}
    arrays, out = [data, indices], shape
    if "scatter" in function:
        arrays, out = [data, indices, np.zeros(shape, np.float16)], data.shape
    description = describe(function, arrays, [TensorSpec("f16", out)], attributes)
    kernel = generate(description, find_architecture(name))
    compiled.check(kernel)
    assert [first.arguments for first in kernel.preceded_by] == ([(0, 3)] if many and "scatter" in function else [])


def test_rows_are_gathered_in_accesses_of_16_bytes() -> None:
    arrays = [np.zeros((1000, 768), np.float16), np.zeros((2, 128), np.int64)]
    kernel = generate(
        describe("gather", arrays, [TensorSpec("f16", (2, 128, 768))], {"axis": 0}), find_architecture("sm_90")
    )
    assert "ld.global.v4.b32" in kernel.code
    assert "st.global.v4.b32" in kernel.code
