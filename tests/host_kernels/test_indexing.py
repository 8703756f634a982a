"""Gathers and scatters of elements and slices against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir_runtime.errors import DeviceError, ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, NUMBERS, Array, TensorSpec, run_kernel

REDUCTIONS = ("none", "add", "mul", "min", "max")


def draw_indices(data: st.DataObject, shape: tuple[int, ...], sizes: Array) -> Array:
    """Return indices, half of them negative, into dims of ``sizes``, which broadcast to ``shape``."""
    raw = data.draw(runs.strided(data.draw(st.sampled_from(["i32", "i64"])), shape))
    return (raw % (2 * sizes) - sizes).astype(raw.dtype)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_gather_elements_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    inner = tuple(data.draw(st.integers(0, 7 if d == axis else dim)) for d, dim in enumerate(shape))
    table = data.draw(runs.strided(dtype, shape))
    indices = draw_indices(data, inner, np.array(shape[axis]))
    part = table[tuple(slice(None) if d == axis else slice(0, dim) for d, dim in enumerate(inner))]
    want = np.take_along_axis(part, indices.astype(np.int64), axis)
    (got,) = run_kernel("gather_elements", [table, indices], [data.draw(runs.out_spec(dtype, inner))], {"axis": axis})
    np.testing.assert_array_equal(got, want)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_gather_nd_equals_loop(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    batch = data.draw(st.integers(0, len(shape) - 1))
    depth = data.draw(st.integers(1, len(shape) - batch))
    rows = shape[:batch] + data.draw(st.lists(st.integers(1, 4), max_size=2).map(tuple))
    table = data.draw(runs.strided(dtype, shape))
    indices = draw_indices(data, (*rows, depth), np.array(shape[batch : batch + depth]))
    want = np.empty(rows + shape[batch + depth :], table.dtype)
    for row in itertools.product(*map(range, rows)):
        want[row] = table[row[:batch] + tuple(indices[row])]
    out = data.draw(runs.out_spec(dtype, want.shape))
    (got,) = run_kernel("gather_nd", [table, indices], [out], {"batch_dims": batch})
    np.testing.assert_array_equal(got, want)


def combined(reduction: str, before: Array, update: Array) -> Array:
    """Return what a scatter leaves at a position."""
    operations = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    return update if reduction == "none" else operations[reduction](before, update).astype(before.dtype)


@settings(deadline=None, max_examples=80)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(NUMBERS), reduction=st.sampled_from(REDUCTIONS))
def test_scatter_elements_equals_loop(data: st.DataObject, shape: tuple[int, ...], dtype: str, reduction: str) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    inner = tuple(data.draw(st.integers(0, 7 if d == axis else dim)) for d, dim in enumerate(shape))
    table, updates = data.draw(runs.strided(dtype, shape)), data.draw(runs.strided(dtype, inner))
    indices = draw_indices(data, inner, np.array(shape[axis]))
    want = table.copy()
    with np.errstate(over="ignore"):
        for position in itertools.product(*map(range, inner)):
            target = (*position[:axis], int(indices[position]), *position[axis + 1 :])
            want[target] = combined(reduction, want[target], updates[position])
    attributes = {"axis": axis, "reduction": reduction}
    out = data.draw(runs.out_spec(dtype, shape))
    (got,) = run_kernel("scatter_elements", [table, indices, updates], [out], attributes)
    np.testing.assert_array_equal(got, want)


@settings(deadline=None, max_examples=80)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(NUMBERS), reduction=st.sampled_from(REDUCTIONS))
def test_scatter_nd_equals_loop(data: st.DataObject, shape: tuple[int, ...], dtype: str, reduction: str) -> None:
    depth = data.draw(st.integers(1, len(shape)))
    rows = data.draw(st.lists(st.integers(0, 4), max_size=2).map(tuple))
    table, updates = data.draw(runs.strided(dtype, shape)), data.draw(runs.strided(dtype, rows + shape[depth:]))
    indices = draw_indices(data, (*rows, depth), np.array(shape[:depth]))
    want = table.copy()
    with np.errstate(over="ignore"):
        for row in itertools.product(*map(range, rows)):
            target = tuple(indices[row])
            want[target] = combined(reduction, want[target], updates[row])
    out = data.draw(runs.out_spec(dtype, shape))
    (got,) = run_kernel("scatter_nd", [table, indices, updates], [out], {"reduction": reduction})
    np.testing.assert_array_equal(got, want)


def test_values_equal_numpy_when_large() -> None:
    table = runs.values("f32", (600, 500), 1)
    indices = np.random.default_rng(2).integers(-600, 600, (700, 500))
    updates = runs.values("f32", (700, 500), 3)
    want = np.take_along_axis(table, indices, 0)
    (got,) = run_kernel("gather_elements", [table, indices], [TensorSpec("f32", (700, 500))], {"axis": 0})
    np.testing.assert_array_equal(got, want)
    scattered = table.copy()
    np.add.at(scattered, (indices % 600, np.arange(500)), updates)
    attributes = {"axis": 0, "reduction": "add"}
    (got,) = run_kernel("scatter_elements", [table, indices, updates], [TensorSpec("f32", (600, 500))], attributes)
    np.testing.assert_allclose(got, scattered, atol=1e-5)


@pytest.mark.parametrize(
    ("function", "attributes", "index_shape", "out_shape"),
    [
        ("gather_elements", {"axis": 0}, (2, 4), (2, 4)),
        ("gather_nd", {"batch_dims": 0}, (2, 1), (2, 4)),
        ("scatter_elements", {"axis": 0, "reduction": "none"}, (2, 4), (3, 4)),
        ("scatter_nd", {"reduction": "add"}, (2, 1), (3, 4)),
    ],
)
@pytest.mark.parametrize("index", [3, -4, 2**62, -(2**63)])
def test_error_when_index_is_out_of_range(
    function: str, attributes: dict[str, object], index_shape: tuple[int, ...], out_shape: tuple[int, ...], index: int
) -> None:
    indices = np.zeros(index_shape, np.int64)
    indices[-1, -1] = index
    arrays = [np.zeros((3, 4), np.float32), indices]
    if function.startswith("scatter"):
        arrays.append(np.zeros((2, 4), np.float32))
    with pytest.raises(
        DeviceError, match=rf"{function} step.*tensors\[1\]: index {index} is out of range for a dim of 3"
    ):
        run_kernel(function, arrays, [TensorSpec("f32", out_shape)], attributes)


@pytest.mark.parametrize(
    ("function", "attributes", "shapes", "message"),
    [
        ("gather_elements", {"axis": 0}, [(3, 4), (3, 5), (3, 5)], "expected dims within"),
        ("gather_elements", {"axis": 0}, [(3, 4), (3,), (3,)], "expected dims within"),
        ("gather_nd", {"batch_dims": 0}, [(3, 4), (2, 3), (2,)], "rows of 3 indices, but only 2 dims"),
        ("gather_nd", {"batch_dims": 1}, [(3, 4), (2, 1), (2,)], "the first 1 are not those of the data"),
        ("gather_nd", {"batch_dims": 3}, [(3, 4), (2, 1), (2,)], "attributes.batch_dims"),
        ("gather_nd", {"batch_dims": 0, "axis": 1}, [(3, 4), (2, 1), (2,)], "attributes.axis: unknown"),
        ("gather_nd", {}, [(3, 4), (2, 1), (2,)], "attributes.batch_dims: missing"),
        ("scatter_nd", {"reduction": "avg"}, [(3, 4), (2, 1), (2, 4), (3, 4)], 'one of "none" "add"'),
        ("scatter_nd", {"reduction": "none"}, [(3, 4), (2, 1), (2, 3), (3, 4)], r"expected \[2, 4\], got \[2, 3\]"),
        ("scatter_nd", {"reduction": "none"}, [(3, 4), (2, 1), (2, 4), (3, 5)], r"expected \[3, 4\], got \[3, 5\]"),
        ("scatter_elements", {"axis": 0, "reduction": "none"}, [(3, 4), (2, 4), (3, 4)], "expected 3 ins and 1 outs"),
    ],
)
def test_refused_when_it_does_not_fit(
    function: str, attributes: dict[str, object], shapes: list[tuple[int, ...]], message: str
) -> None:
    arrays = [np.zeros(shape, np.int64 if i == 1 else np.float32) for i, shape in enumerate(shapes[:-1])]
    with pytest.raises(ProgramError, match=message):
        run_kernel(function, arrays, [TensorSpec("f32", shapes[-1])], attributes)


def test_refused_when_bool_is_combined() -> None:
    table = np.zeros((3, 4), np.bool_)
    arrays = [table, np.zeros((1, 1), np.int64), table[:1]]
    with pytest.raises(ProgramError, match="bool has none"):
        run_kernel("scatter_nd", arrays, [TensorSpec("bool", (3, 4))], {"reduction": "add"})
