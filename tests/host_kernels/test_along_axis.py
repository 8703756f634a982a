"""`top_k`, `arg_reduce`, `scan`, `reduce` and `reverse_sequence` against NumPy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drawing import draws
from hipdnn_mlir_runtime.errors import DeviceError, ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, INTEGERS, NUMBERS, Array, TensorSpec, numpy_dtype, run_kernel


def ranked(x: Array, axis: int, largest: bool) -> Array:
    """Return positions along an axis, best first, equal ones in order."""
    numbers = x.astype(np.float64 if x.dtype == ml_dtypes.bfloat16 else x.dtype)
    if x.dtype == np.bool_:
        numbers = x.astype(np.int8)
    keys = numbers if not largest else (-numbers if numbers.dtype.kind in "if" else ~numbers)
    return np.argsort(keys, axis, kind="stable")


@draws(40)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES), largest=st.booleans())
def test_top_k_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str, largest: bool) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    x = data.draw(runs.strided(dtype, shape))
    positions = np.take(ranked(x, axis, largest), range(k), axis)
    outs = [data.draw(runs.out_spec(kind, positions.shape)) for kind in (dtype, "i64")]
    values, indices = run_kernel("top_k", [x], outs, {"axis": axis, "largest": largest, "sorted": True})
    np.testing.assert_array_equal(indices, positions)
    np.testing.assert_array_equal(values, np.take_along_axis(x, positions, axis))


@pytest.mark.parametrize("k", [1, 10, 1000, 5000])
def test_top_k_equals_numpy_when_large(k: int) -> None:
    x = np.random.default_rng(1).integers(0, 900, (40, 5000)).astype(np.float32)
    outs = [TensorSpec("f32", (40, k)), TensorSpec("i64", (40, k))]
    values, indices = run_kernel("top_k", [x], outs, {"axis": 1, "largest": True, "sorted": True})
    want = np.argsort(-x, 1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, want)
    np.testing.assert_array_equal(values, np.take_along_axis(x, want, 1))
    _, unsorted = run_kernel("top_k", [x], outs, {"axis": 1, "largest": True, "sorted": False})
    np.testing.assert_array_equal(np.sort(unsorted, 1), np.sort(want, 1))


def test_nan_is_greatest() -> None:
    x = np.array([1, np.nan, 3, np.nan, np.inf], np.float32)
    outs = [TensorSpec("f32", (3,)), TensorSpec("i64", (3,))]
    for largest, want in ((True, [1, 3, 4]), (False, [0, 2, 4])):
        _, indices = run_kernel("top_k", [x], outs, {"axis": 0, "largest": largest, "sorted": True})
        np.testing.assert_array_equal(indices, want)


@draws(30)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES), last=st.booleans())
def test_arg_reduce_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str, last: bool) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = data.draw(runs.strided(dtype, shape))
    for mode, find in (("max", np.argmax), ("min", np.argmin)):
        numbers = x.astype(np.float64) if x.dtype == ml_dtypes.bfloat16 else x
        want = shape[axis] - 1 - find(np.flip(numbers, axis), axis) if last else find(numbers, axis)
        out = data.draw(runs.out_spec("i64", (*shape[:axis], 1, *shape[axis + 1 :])))
        attributes = {"axis": axis, "mode": mode, "select_last": last}
        (got,) = run_kernel("arg_reduce", [x], [out], attributes)
        np.testing.assert_array_equal(got, np.expand_dims(want, axis))


def test_arg_reduce_finds_nan() -> None:
    x = np.array([1, np.nan, 3, np.nan], np.float64)
    for last, want in ((False, 1), (True, 3)):
        attributes = {"axis": 0, "mode": "min", "select_last": last}
        (got,) = run_kernel("arg_reduce", [x], [TensorSpec("i64", (1,))], attributes)
        np.testing.assert_array_equal(got, [want])


@draws(40)
@given(
    data=st.data(),
    shape=runs.full_shapes,
    dtype=st.sampled_from(NUMBERS),
    operator=st.sampled_from(["add", "mul"]),
    flags=st.tuples(st.booleans(), st.booleans()),
)
def test_scan_equals_numpy(
    data: st.DataObject, shape: tuple[int, ...], dtype: str, operator: str, flags: tuple[bool, bool]
) -> None:
    axis = data.draw(st.integers(0, len(shape) - 1))
    exclusive, reverse = flags
    x = data.draw(runs.strided(dtype, shape))
    kind = x.dtype if dtype in INTEGERS else np.dtype(np.float64)
    with np.errstate(over="ignore"):
        flipped = np.flip(x.astype(kind), axis) if reverse else x.astype(kind)
        if exclusive:
            unit = np.full_like(np.take(flipped, [0], axis), 0 if operator == "add" else 1)
            flipped = np.concatenate([unit, np.take(flipped, range(shape[axis] - 1), axis)], axis)
        want = (np.cumsum if operator == "add" else np.cumprod)(flipped, axis, dtype=kind)
        want = np.flip(want, axis) if reverse else want
    attributes = {"axis": axis, "operator": operator, "exclusive": exclusive, "reverse": reverse}
    (got,) = run_kernel("scan", [x], [data.draw(runs.out_spec(dtype, shape))], attributes)
    # Quarters of small integers: sums are exact, products of up to five need a little more than bfloat16 holds.
    np.testing.assert_array_equal(got.astype(kind), want.astype(numpy_dtype(dtype)).astype(kind))


REDUCE: dict[str, Any] = {"add": np.sum, "mul": np.prod, "min": np.min, "max": np.max, "and": np.all, "or": np.any}


@draws(50)
@given(data=st.data(), shape=runs.full_shapes, dtype=st.sampled_from(DTYPES))
def test_reduce_equals_numpy(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    operator = data.draw(st.sampled_from(["and", "or"] if dtype == "bool" else ["add", "mul", "min", "max"]))
    axes = tuple(d for d in range(len(shape)) if data.draw(st.booleans()))
    x = data.draw(runs.strided(dtype, shape))
    kind = x.dtype if dtype in INTEGERS or dtype == "bool" else np.dtype(np.float64)
    options = {"dtype": kind} if operator in ("add", "mul") else {}
    with np.errstate(over="ignore"):
        want = REDUCE[operator](x.astype(kind), axes, keepdims=True, **options)
    (got,) = run_kernel("reduce", [x], [data.draw(runs.out_spec(dtype, want.shape))], {"operator": operator})
    if dtype in ("f16", "bf16", "f32"):
        with np.errstate(over="ignore", under="ignore"):
            want = want.astype(numpy_dtype(dtype)).astype(
                kind
            )  # what no number of the type stands for is infinite, or nothing
        np.testing.assert_allclose(got.astype(kind), want, rtol=1e-2 if dtype != "f32" else 1e-6)
    else:
        # The order of a product is free.
        np.testing.assert_allclose(got, want, rtol=1e-14 if (dtype, operator) == ("f64", "mul") else 0)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1), (0, 1, 2)])
def test_reduce_equals_numpy_when_large(axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-100, 100, (70, 90, 130))
    want = x.sum(axes, keepdims=True)
    (got,) = run_kernel("reduce", [x], [TensorSpec("i64", want.shape)], {"operator": "add"})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("operator", "want"), [("add", 0), ("mul", 1), ("min", np.inf), ("max", -np.inf)])
def test_identity_when_nothing_is_reduced(operator: str, want: float) -> None:
    x = np.zeros((2, 0, 3), np.float32)
    (got,) = run_kernel("reduce", [x], [TensorSpec("f32", (2, 1, 3))], {"operator": operator})
    np.testing.assert_array_equal(got, np.full((2, 1, 3), want, np.float32))
    if operator in ("min", "max"):
        limits = np.iinfo(np.int16)
        y = np.zeros((0,), np.int16)
        (got,) = run_kernel("reduce", [y], [TensorSpec("i16", (1,))], {"operator": operator})
        np.testing.assert_array_equal(got, [limits.max if operator == "min" else limits.min])


def test_nan_survives_reduction() -> None:
    x = np.array([[1, np.nan, 3], [4, 5, 6]], np.float32)
    for operator, want in (("min", np.nan), ("max", np.nan)):
        (got,) = run_kernel("reduce", [x], [TensorSpec("f32", (2, 1))], {"operator": operator})
        np.testing.assert_array_equal(got, [[want], [4 if operator == "min" else 6]])


@draws(30)
@given(
    data=st.data(), shape=st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple), dtype=st.sampled_from(DTYPES)
)
def test_reverse_sequence_equals_loop(data: st.DataObject, shape: tuple[int, ...], dtype: str) -> None:
    batch, time = data.draw(st.permutations(range(len(shape))))[:2]
    x = data.draw(runs.strided(dtype, shape))
    lengths = np.array([data.draw(st.integers(0, shape[time])) for _ in range(shape[batch])])
    want = x.copy()
    for b, length in enumerate(lengths):
        source, target = np.moveaxis(x, (batch, time), (0, 1))[b], np.moveaxis(want, (batch, time), (0, 1))[b]
        target[:length] = source[:length][::-1]
    out = data.draw(runs.out_spec(dtype, shape))
    (got,) = run_kernel("reverse_sequence", [x, lengths], [out], {"batch_axis": batch, "time_axis": time})
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("length", [-1, 4, 2**62])
def test_error_when_a_length_is_out_of_range(length: int) -> None:
    arrays = [np.zeros((3, 2)), np.array([1, length])]
    with pytest.raises(DeviceError, match="a length is not from 0 to 3"):
        run_kernel("reverse_sequence", arrays, [TensorSpec("f64", (3, 2))], {"batch_axis": 1, "time_axis": 0})


F32 = np.zeros((3, 4), np.float32)


@pytest.mark.parametrize(
    ("function", "x", "outs", "attributes", "message"),
    [
        ("top_k", F32, [("f32", (3, 5)), ("i64", (3, 5))], {"axis": 1}, "attributes.largest: missing"),
        (
            "top_k",
            F32,
            [("f32", (3, 5)), ("i64", (3, 5))],
            {"axis": 1, "largest": True, "sorted": True},
            "5 of only 4 elements",
        ),
        (
            "top_k",
            F32,
            [("f32", (3, 2)), ("i32", (3, 2))],
            {"axis": 1, "largest": True, "sorted": True},
            "expected i64, got i32",
        ),
        (
            "arg_reduce",
            F32[:, :0],
            [("i64", (3, 1))],
            {"axis": 1, "mode": "max", "select_last": False},
            "nothing to choose",
        ),
        ("arg_reduce", F32, [("i64", (3, 1))], {"axis": 1, "mode": "mean", "select_last": False}, 'one of "max" "min"'),
        (
            "scan",
            F32 > 0,
            [("bool", (3, 4))],
            {"axis": 1, "operator": "add", "exclusive": False, "reverse": False},
            "got bool",
        ),
        ("reduce", F32, [("f32", (3, 2))], {"operator": "add"}, "expected 1 or 4 at dim 1, got 2"),
        ("reduce", F32, [("f32", (3, 1))], {"operator": "and"}, "bool has 'and' and 'or'"),
        ("reduce", F32, [("f64", (3, 1))], {"operator": "add"}, "expected f32"),
        ("frobnicate", F32, [("f32", (3, 4))], {}, "no function is named 'frobnicate'; known are elementwise, gather,"),
    ],
)
def test_refused_when_it_does_not_fit(
    function: str, x: Array, outs: list[tuple[str, tuple[int, ...]]], attributes: dict[str, object], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        run_kernel(function, [x], [TensorSpec(*out) for out in outs], attributes)
