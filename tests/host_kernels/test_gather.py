"""`gather` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import draws
from hipdnn_mlir_runtime.errors import DeviceError, ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, TensorSpec, run_kernel


@draws(40)
@given(data=st.data(), shape=runs.full_shapes, indices_shape=runs.shapes, dtype=st.sampled_from(DTYPES))
def test_values_equal_numpy(
    data: st.DataObject, shape: tuple[int, ...], indices_shape: tuple[int, ...], dtype: str
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    table = data.draw(runs.strided(dtype, shape))
    index_type = data.draw(st.sampled_from(["i32", "i64"]))
    indices = data.draw(runs.strided(index_type, indices_shape)) % (2 * shape[axis]) - shape[axis]
    want = np.take(table, indices, axis, mode="wrap")
    out = data.draw(runs.out_spec(dtype, want.shape))
    (got,) = run_kernel("gather", [table, indices], [out], {"axis": axis})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("shape", "axis", "count"), [((3000, 96), 0, 9000), ((4, 300_000), 1, 7), ((300_000, 2), 1, 1)]
)
def test_values_equal_numpy_when_large(shape: tuple[int, ...], axis: int, count: int) -> None:
    table = runs.values("f32", shape, 1)
    indices = np.random.default_rng(2).integers(-shape[axis], shape[axis], count)
    want = np.take(table, indices, axis, mode="wrap")
    (got,) = run_kernel("gather", [table, indices], [TensorSpec("f32", want.shape)], {"axis": axis})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("index", "count"), [(3, 1), (-4, 1), (2**62, 1), (-(2**63), 1), (3, 100_000)])
def test_error_when_index_is_out_of_range(index: int, count: int) -> None:
    indices = np.zeros(count, np.int64)
    indices[-1] = index
    with pytest.raises(
        DeviceError, match=rf"step gather step\): tensors\[1\]: index {index} is out of range for a dim of 3"
    ):
        run_kernel("gather", [np.zeros((3, 8), np.float32), indices], [TensorSpec("f32", (count, 8))], {"axis": 0})


def test_error_when_nothing_can_be_indexed() -> None:
    with pytest.raises(DeviceError, match="index 0 is out of range for a dim of 0"):
        run_kernel("gather", [np.zeros((0, 2)), np.zeros(1, np.int64)], [TensorSpec("f64", (1, 2))], {"axis": 0})


@pytest.mark.parametrize(
    ("tensors", "axis", "message"),
    [
        (("f32", "i64", (3,)), 2, "attributes.axis: expected an integer from 0 to 1, got 2"),
        (("f32", "i64", (3,)), -1, "attributes.axis: expected an integer from 0 to 1, got -1"),
        (("f32", "f32", (3,)), 0, r"tensors\[1\].dtype: expected i32 or i64, got f32"),
        (("f64", "i64", (3,)), 0, r"tensors\[2\].dtype: expected f64 as tensors\[0\], got f32"),
        (("f32", "i64", (4,)), 0, r"tensors\[2\].dims: expected \[4, 2\], got \[3, 2\]"),
    ],
)
def test_refused_when_it_does_not_fit(tensors: tuple[str, str, tuple[int, ...]], axis: int, message: str) -> None:
    dtype, index_dtype, count = tensors
    table, indices = np.zeros((5, 2), runs.numpy_dtype(dtype)), np.zeros(count, runs.numpy_dtype(index_dtype))
    with pytest.raises(ProgramError, match=f"kernel k_gather.*{message}"):
        run_kernel("gather", [table, indices], [TensorSpec("f32", (3, 2))], {"axis": axis})
