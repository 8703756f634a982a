"""`pad` and `slice` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, TensorSpec, run_kernel


@settings(deadline=None, max_examples=100)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_pad_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    mode = data.draw(st.sampled_from(["reflect", "edge", "wrap"]))
    borders = [(data.draw(st.integers(-2, 7)), data.draw(st.integers(-2, 7))) for _ in shape]
    borders = [(low, max(high, -size - low)) for (low, high), size in zip(borders, shape, strict=True)]
    x = data.draw(runs.strided(dtype, shape))
    # What is cut off still shows in the border of the other side.
    want = x
    for d, (low, high) in enumerate(borders):
        positions = np.pad(np.arange(shape[d]), (max(low, 0) + 2, max(high, 0) + 9), mode)
        want = np.take(want, positions[max(low, 0) + 2 - low :][: shape[d] + low + high], d)
    out = data.draw(runs.out_spec(dtype, want.shape))
    (got,) = run_kernel("pad", [x], [out], {"low": [low for low, _ in borders], "mode": mode})
    np.testing.assert_array_equal(got, want)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_pad_with_zeros_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    borders = [(data.draw(st.integers(-2, 7)), data.draw(st.integers(-2, 7))) for _ in shape]
    borders = [(low, max(high, -size - low)) for (low, high), size in zip(borders, shape, strict=True)]
    x = data.draw(runs.strided(dtype, shape))
    want = np.pad(x, [(max(low, 0), max(high, 0)) for low, high in borders])
    kept = [
        slice(max(-low, 0), max(-low, 0) + low + size + high) for (low, high), size in zip(borders, shape, strict=True)
    ]
    want = want[tuple(kept)]
    out = data.draw(runs.out_spec(dtype, want.shape))
    (got,) = run_kernel("pad", [x], [out], {"low": [low for low, _ in borders], "mode": "zeros"})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("dtype", "fill"), [("i8", -128), ("i8", 127), ("u8", 255), ("u8", 3)])
def test_pad_with_another_byte_equals_numpy(dtype: str, fill: int) -> None:
    x = runs.values(dtype, (2, 3, 40), 1)
    want = np.pad(x, ((0, 0), (1, 2), (3, 4)), constant_values=fill)
    (got,) = run_kernel("pad", [x], [TensorSpec(dtype, want.shape)], {"low": [0, 1, 3], "mode": "zeros", "fill": fill})
    np.testing.assert_array_equal(got, want)


def test_pad_equals_numpy_when_large() -> None:
    x = runs.values("f32", (3, 400, 500), 1)
    want = np.pad(x, ((0, 0), (5, 6), (7, 8)), "reflect")
    (got,) = run_kernel("pad", [x], [TensorSpec("f32", want.shape)], {"low": [0, 5, 7], "mode": "reflect"})
    np.testing.assert_array_equal(got, want)


@settings(deadline=None, max_examples=100)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_slice_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    x = data.draw(runs.strided(dtype, shape))
    want, starts, steps = x, [], []
    for d, size in enumerate(shape):
        start, step = data.draw(st.integers(0, size - 1)), data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
        room = (size - 1 - start if step > 0 else start) // abs(step) + 1
        count = data.draw(st.integers(0, room))
        want = np.take(want, [start + i * step for i in range(count)], d)
        starts.append(start)
        steps.append(step)
    out = data.draw(runs.out_spec(dtype, want.shape))
    (got,) = run_kernel("slice", [x], [out], {"starts": starts, "steps": steps})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("steps", [(1, -1), (-1, 1), (-2, -3)])
def test_slice_equals_numpy_when_large(steps: tuple[int, int]) -> None:
    x = runs.values("f32", (700, 900), 1)
    want = x[:: steps[0], :: steps[1]]
    starts = [0 if step > 0 else size - 1 for step, size in zip(steps, x.shape, strict=True)]
    (got,) = run_kernel("slice", [x], [TensorSpec("f32", want.shape)], {"starts": starts, "steps": list(steps)})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("starts", "steps", "message"),
    [
        ([0, 0], [1, 0], r"attributes.steps\[1\]: a step of 0"),
        ([0, 0], [1, 3], "dim 1 of 4 is left by 3 elements from 0 in steps of 3"),
        ([1, 0], [-1, 1], "dim 0 of 3 is left by 3 elements from 1 in steps of -1"),
        ([0, -1], [1, 1], "dim 1 of 4 is left"),
        ([0, 2**62], [1, 2**62], "dim 1 of 4 is left"),
        ([0, 2**63], [1, 1], "attributes.starts: expected an integer"),
        ([0], [1, 1], "a list of 2 integers"),
    ],
)
def test_slice_refused_when_it_leaves_the_tensor(starts: list[int], steps: list[int], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run_kernel("slice", [np.zeros((3, 4))], [TensorSpec("f64", (3, 3))], {"starts": starts, "steps": steps})


@pytest.mark.parametrize(
    ("shape", "attributes", "message"),
    [
        ((0, 4), {"low": [1, 0], "mode": "edge"}, "no elements to make a border of"),
        ((3, 4), {"low": [1, 0], "mode": "constant"}, 'one of "reflect" "edge" "wrap"'),
        ((3, 4), {"low": [2**61, 0], "mode": "edge"}, "sizes beyond"),
        ((3, 4), {"low": [1, 0], "mode": "zeros", "fill": 1}, "elements of one byte"),
        ((3,), {"low": [1], "mode": "edge"}, "expected 1 dims"),
    ],
)
def test_pad_refused_when_it_does_not_fit(shape: tuple[int, ...], attributes: dict[str, object], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run_kernel("pad", [np.zeros(shape)], [TensorSpec("f64", (4, 4))], attributes)
