"""Padded dims through a data movement."""

from collections.abc import Sequence
from typing import Any

from ...ops.spec import Concat, Movement, Pad, Permute, Reshape, Slice
from .dependence import Dependence
from .dims import Column, Dim, padded_by, plain
from .rules import Dims, Mixes, Sizes, apply, made_dim, refuse_numbers


def move_dims(moves: Sequence[Any], operands: Sequence[Dims], columns: Sequence[Column], sizes: Sizes) -> Dims:
    """The dims of what a movement makes, before dims of one come or go."""
    refuse_numbers([_numbers(move) for move in moves], sizes)
    first: Movement = moves[0]
    x = operands[0]
    match first:
        case Reshape():
            return x
        case Permute(order):
            return [x[axis] for axis in order]
        case Slice():
            return _sliced(moves, x, sizes)
        case Concat(axis):
            return _concatenated(axis, operands, columns, sizes)
        case Pad(low, high):
            for dim, before, after in zip(x, low, high, strict=True):
                symbol = padded_by(dim)
                if symbol is not None and (before or after):
                    raise Mixes(symbol, "it adds a border to a padded dimension")
            pairs = zip(x, low, high, columns, strict=True)
            return [plain(column) if before or after else dim for dim, before, after, column in pairs]


def _numbers(move: Movement) -> Any:
    """The numbers of a movement that are no sizes."""
    match move:
        case Slice(offsets, _, steps):
            return offsets, steps
        case Pad(low, high, value):
            return low, high, value
    return None


def _sliced(moves: Sequence[Slice], x: Dims, sizes: Sizes) -> Dims:
    made = []
    parts = zip(*([*zip(m.offsets, m.sizes, m.steps, strict=True)] for m in moves), strict=True)
    for axis, (dim, cuts) in enumerate(zip(x, parts, strict=True)):
        column = tuple(size for _, size, _ in cuts)
        is_whole = all(offset == 0 and step == 1 for offset, _, step in cuts) and _size_of(dim, len(cuts)) == column
        symbol = padded_by(dim)
        if symbol is not None and not is_whole:
            raise Mixes(symbol, f"it slices dimension {axis}, which is padded")
        made.append(dim if is_whole else made_dim(column, sizes))
    return made


def _size_of(dim: Dim, points: int) -> Column:
    size = (1,) * points
    for factor in dim:
        size = tuple(a * b for a, b in zip(size, factor.sizes, strict=True))
    return size


def _concatenated(axis: int, operands: Sequence[Dims], columns: Sequence[Column], sizes: Sizes) -> Dims:
    for position, dims in enumerate(operands):
        symbol = padded_by(dims[axis])
        if symbol is not None and len(operands) > 1:
            raise Mixes(symbol, f"it concatenates dimension {axis} of operand {position}, which is padded, with others")
    rank = len(columns)
    labels = tuple(None if i == axis else i for i in range(rank))
    if len(operands) == 1:
        return list(operands[0])
    rule = Dependence([labels for _ in operands], [labels])
    return apply(rule, operands, [columns], sizes)[0]
