"""Arithmetic on dims and strides (both in elements): packing, reshaping without a copy, broadcasting."""

from collections.abc import Sequence
from math import prod

Dims = tuple[int, ...]
Strides = tuple[int, ...]


def packed(dims: Sequence[int], order: Sequence[int] | None = None) -> Strides:
    """Strides of a packed tensor whose dimensions lie in memory in `order`, outermost first (default: C order)."""
    strides = [0] * len(dims)
    step = 1
    for axis in reversed(range(len(dims)) if order is None else list(order)):
        strides[axis] = step
        step *= dims[axis]
    return tuple(strides)


def channels_last_order(rank: int) -> tuple[int, ...]:
    """Memory order n, spatial..., c of a logical n, c, spatial... tensor."""
    return (0, *range(2, rank), 1)


def memory_order(dims: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the slowest to the fastest in memory; ties keep their logical order."""
    return tuple(sorted(range(len(dims)), key=lambda axis: (-strides[axis], axis)))


def restride(dims: Sequence[int], strides: Sequence[int], new_dims: Sequence[int]) -> Strides | None:
    """Strides that show a strided tensor under `new_dims` without moving data, or None where that is impossible.

    Example: dims (2, 3, 4), strides (12, 4, 1), new_dims (6, 4) -> (4, 1).
    """
    if prod(dims) != prod(new_dims):
        return None
    if 0 in dims:
        return packed(new_dims)
    old = [(size, stride) for size, stride in zip(dims, strides, strict=True) if size != 1]
    result = [0] * len(new_dims)
    at = 0
    axis = 0
    while axis < len(new_dims):
        if new_dims[axis] == 1:
            axis += 1
            continue
        group_old, group_new = [old[at]], [axis]
        size_old, size_new = old[at][0], new_dims[axis]
        while size_old != size_new:
            if size_old < size_new:
                at += 1
                if group_old[-1][1] != old[at][0] * old[at][1]:
                    return None
                group_old.append(old[at])
                size_old *= old[at][0]
            else:
                axis += 1
                group_new.append(axis)
                size_new *= new_dims[axis]
        step = group_old[-1][1]
        for index in reversed(group_new):
            result[index] = step
            step *= new_dims[index]
        at += 1
        axis += 1
    return _fill_unit_strides(new_dims, result)


def _fill_unit_strides(dims: Sequence[int], strides: list[int]) -> Strides:
    """Give unit dims the stride a packed tensor would have there, so that equal layouts compare equal."""
    for axis in reversed(range(len(dims))):
        if dims[axis] == 1:
            strides[axis] = strides[axis + 1] * dims[axis + 1] if axis + 1 < len(dims) else 1
    return tuple(strides)


def broadcast(*shapes: Sequence[int]) -> Dims | None:
    """NumPy's broadcast of the shapes, or None where they do not fit."""
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def extent(dims: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to one past the last that the strided tensor touches; 0 where it is empty."""
    if 0 in dims:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(dims, strides, strict=True))
