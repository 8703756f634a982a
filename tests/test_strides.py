"""Arithmetic on strides agrees with what NumPy does to arrays."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib.stride_tricks import as_strided

from hipdnn_mlir.ops.strides import broadcast, channels_last_order, extent, memory_order, packed, restride

SIZES = st.integers(1, 5)
DIMS = st.lists(SIZES, max_size=5).map(tuple)


@st.composite
def strided_arrays(draw: st.DrawFn) -> np.ndarray:
    """Views of a packed array: permuted, sliced with steps, so that strides are anything a program has."""
    dims = draw(DIMS)
    array = np.arange(prod(dims), dtype=np.int64).reshape(dims)
    array = array.transpose(draw(st.permutations(range(len(dims)))))
    steps = [slice(draw(st.integers(0, size - 1)), None, draw(st.integers(1, 2))) for size in array.shape]
    return array[tuple(steps)]


@st.composite
def other_dims(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """Dims with `count` elements: its factors in some grouping, unit dims strewn in."""
    dims = []
    while count > 1:
        size = draw(st.sampled_from([n for n in range(2, count + 1) if count % n == 0]))
        dims.append(size)
        count //= size
    for _ in range(draw(st.integers(0, 2))):
        dims.insert(draw(st.integers(0, len(dims))), 1)
    return tuple(dims)


def element_strides(array: np.ndarray) -> tuple[int, ...]:
    return tuple(step // array.itemsize for step in array.strides)


def reshaped_without_copy(array: np.ndarray, dims: tuple[int, ...]) -> np.ndarray | None:
    """NumPy's own answer: None where reshaping has to move data."""
    try:
        return array.reshape(dims, copy=False)
    except ValueError:
        return None


@given(st.data())
def test_restride_shows_what_reshape_shows_when_no_copy_is_needed(data: st.DataObject) -> None:
    array = data.draw(strided_arrays())
    dims = data.draw(other_dims(array.size))
    reference = reshaped_without_copy(array, dims)
    strides = restride(array.shape, element_strides(array), dims)
    assert (strides is None) == (reference is None)
    if strides is not None and reference is not None:
        shown = as_strided(array, dims, [step * array.itemsize for step in strides])
        np.testing.assert_array_equal(shown, reference)


@given(st.data())
def test_restride_gives_packed_strides_when_the_operand_is_packed(data: st.DataObject) -> None:
    dims = data.draw(DIMS)
    new = data.draw(other_dims(prod(dims)))
    assert restride(dims, packed(dims), new) == packed(new)


def test_restride_refuses_another_number_of_elements() -> None:
    assert restride((2, 3), (3, 1), (4, 2)) is None


@pytest.mark.parametrize(("old", "new"), [((0, 3), (3, 0)), ((2, 0), (0,)), ((0,), (0, 5, 2))])
def test_restride_has_strides_for_every_dim_when_empty(old: tuple[int, ...], new: tuple[int, ...]) -> None:
    strides = restride(old, packed(old), new)
    assert strides is not None
    assert len(strides) == len(new)


@given(DIMS)
def test_packed_is_numpys_c_order(dims: tuple[int, ...]) -> None:
    # NumPy leaves the strides of unit dims open: compare what they address.
    array = np.arange(prod(dims), dtype=np.int64).reshape(dims)
    shown = as_strided(np.arange(prod(dims), dtype=np.int64), dims, [step * 8 for step in packed(dims)])
    np.testing.assert_array_equal(shown, array)


@given(st.data())
def test_packed_in_an_order_is_a_transposed_array(data: st.DataObject) -> None:
    dims = data.draw(DIMS)
    order = tuple(data.draw(st.permutations(range(len(dims)))))
    physical = np.arange(prod(dims), dtype=np.int64).reshape([dims[axis] for axis in order])
    logical = physical.transpose(np.argsort(order))
    shown = as_strided(physical, dims, [step * 8 for step in packed(dims, order)])
    np.testing.assert_array_equal(shown, logical)


@given(st.data())
def test_memory_order_restores_the_order_of_packing(data: st.DataObject) -> None:
    dims = tuple(data.draw(st.lists(st.integers(2, 5), max_size=5)))
    order = tuple(data.draw(st.permutations(range(len(dims)))))
    assert memory_order(dims, packed(dims, order)) == order


@pytest.mark.parametrize(("rank", "order"), [(3, (0, 2, 1)), (4, (0, 2, 3, 1)), (5, (0, 2, 3, 4, 1))])
def test_channels_last_order_puts_channels_last(rank: int, order: tuple[int, ...]) -> None:
    assert channels_last_order(rank) == order


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=4))
def test_broadcast_is_numpys(shapes: hnp.BroadcastableShapes) -> None:
    assert broadcast(*shapes.input_shapes) == shapes.result_shape


@given(DIMS, DIMS)
def test_broadcast_refuses_what_numpy_refuses(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        expected = None
    assert broadcast(a, b) == expected


@given(strided_arrays())
def test_extent_is_one_past_the_last_address(array: np.ndarray) -> None:
    first, end = np.lib.array_utils.byte_bounds(array)
    assert extent(array.shape, element_strides(array)) * array.itemsize == end - first


def test_extent_is_nothing_when_empty() -> None:
    assert extent((3, 0, 2), (5, 2, 1)) == 0
