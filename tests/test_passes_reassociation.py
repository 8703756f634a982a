"""Shapes that reshapes go through."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipdnn_mlir.ir.reassociation import common_dims, groups

Dims = tuple[int, ...]


@st.composite
def shape_pairs(draw: st.DrawFn) -> tuple[Dims, Dims]:
    """Two shapes of one number of elements, unit dims in both."""
    factors = draw(st.lists(st.sampled_from([2, 3, 4]), max_size=4))

    def grouped(order: list[int]) -> Dims:
        dims: list[int] = []
        for factor in order:
            if dims and draw(st.booleans()):
                dims[-1] *= factor
            else:
                dims.append(factor)
        for _ in range(draw(st.integers(0, 2))):
            dims.insert(draw(st.integers(0, len(dims))), 1)
        return tuple(dims)

    return grouped(factors), grouped(draw(st.permutations(factors)))


def boundaries(dims: Dims) -> set[int]:
    """Numbers of elements behind each cut between dims: a shape collapses to another if it has all its cuts."""
    return {prod(dims[:at]) for at in range(len(dims) + 1)}


def test_common_dims_is_the_finest_when_shapes_nest_partly() -> None:
    assert common_dims((2, 3, 4), (6, 2, 2)) == (6, 4)


@given(shape_pairs())
def test_common_dims_has_exactly_the_cuts_that_both_shapes_have(pair: tuple[Dims, Dims]) -> None:
    old, new = pair
    middle = common_dims(old, new)
    assert prod(middle) == prod(old)
    assert boundaries(middle) == boundaries(old) & boundaries(new) | {1, prod(old)}


@given(shape_pairs())
def test_groups_partition_both_shapes_and_keep_the_products(pair: tuple[Dims, Dims]) -> None:
    middle = common_dims(*pair)
    for fine in pair:
        found = groups(fine, middle)
        if middle:
            assert [index for group in found for index in group] == list(range(len(fine)))
        assert [prod(fine[i] for i in group) for group in found] == list(middle)


@pytest.mark.parametrize(("old", "new"), [((0, 3), (3, 0)), ((2, 0, 4), (0,))])
def test_empty_shapes_go_through_one_empty_dim(old: Dims, new: Dims) -> None:
    assert common_dims(old, new) == (0,)
    assert groups(old, (0,)) == [list(range(len(old)))]


def test_groups_raises_when_shapes_do_not_nest() -> None:
    with pytest.raises(ValueError, match="does not collapse"):
        groups((2, 3), (3, 2))


@given(shape_pairs())
def test_going_through_the_common_shape_is_a_reshape(pair: tuple[Dims, Dims]) -> None:
    old, new = pair
    array = np.arange(prod(old)).reshape(old)
    np.testing.assert_array_equal(array.reshape(common_dims(old, new)).reshape(new), array.reshape(new))
