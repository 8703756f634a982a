"""Which dims of one shape merge into which of another: what collapse_shape and expand_shape need."""

from math import prod

from ..ops.strides import Dims


def common_dims(old: Dims, new: Dims) -> Dims:
    """The finest shape that both collapse to.

    Example: (2, 3, 4) and (6, 2, 2) -> (6, 4). A shape without elements collapses to (0,).
    """
    if 0 in old:
        return (0,)
    result = []
    i = j = 0
    while i < len(old) and j < len(new):
        left, right = old[i], new[j]
        i, j = i + 1, j + 1
        while left != right:
            if left < right:
                left, i = left * old[i], i + 1
            else:
                right, j = right * new[j], j + 1
        result.append(left)
    return tuple(size for size in result if size != 1)  # any neighbour takes a unit dim along


def groups(fine: Dims, coarse: Dims) -> list[list[int]]:
    """Indices of `fine` that make each dim of `coarse`; unit dims of `fine` join the group before (or the first).

    Raises:
        ValueError: the shapes do not nest.
    """
    if not coarse:
        return []
    if 0 in coarse:
        return [list(range(len(fine)))]
    result: list[list[int]] = []
    at = 0
    for size in coarse:
        group: list[int] = []
        while at < len(fine) and (not group or prod(fine[i] for i in group) != size):
            group.append(at)
            at += 1
        result.append(group)
    result[-1].extend(range(at, len(fine)))
    if any(prod(fine[i] for i in group) != size for group, size in zip(result, coarse, strict=True)):
        raise ValueError(f"{fine} does not collapse to {coarse}")
    return result
