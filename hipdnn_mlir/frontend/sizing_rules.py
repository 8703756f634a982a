"""Operators with an operand that decides what sizes their results have: what its elements may be for sizes that are known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from ..ir.view import KNOWN
from ..ops.strides import Dims

Span = tuple[int, int]
"""From the first number to the second one, both included."""
Numbers = list[list[Span]]
"""Per element the numbers that it may be."""
LEAST, MOST = -(1 << 63), (1 << 63) - 1
Rule = Callable[[Mapping[str, Any], Dims, Sequence[Dims], int], "Numbers | None"]
"""From a node's attributes, which have the constants among its operands too, the dims of its first operand, those of its results, and how
many elements there are; None where nothing fits."""


def exactly(numbers: Iterable[int]) -> Numbers:
    """Elements that each have to be one number."""
    return [[(number, number)] for number in numbers]


def _any_of(*numbers: int) -> list[Span]:
    return [(number, number) for number in numbers]


def _reshape(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], _: int) -> Numbers:
    copies = not attributes.get("allowzero", 0)
    return [
        _any_of(size, -1, *([0] if copies and axis < len(data) and data[axis] == size else []))
        for axis, size in enumerate(results[0])
    ]


def _expand(_: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    if len(results[0]) < len(data):
        return None
    padded = (1,) * (len(results[0]) - len(data)) + tuple(data)
    pairs = list(zip(results[0], padded, strict=True))[-count:]
    return [_any_of(size, 1) if size == own else _any_of(size) for size, own in pairs]


def _tile(_: Mapping[str, Any], data: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    if len(data) != len(results[0]):
        return None
    pairs = zip(data, results[0], strict=True)
    return [_any_of(after // before) if before else [(0, MOST)] for before, after in pairs]


def _along(axis: int, data: Dims, results: Sequence[Dims]) -> Numbers | None:
    fits = -len(data) <= axis < len(data) and all(len(result) == len(data) for result in results)
    return exactly([result[axis] for result in results]) if fits else None


def _reduced(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    if not attributes.get("keepdims", 1):
        return _axes_between(data, results[0], count)
    if len(data) != len(results[0]):
        return None
    needed = [axis for axis, size in enumerate(data) if size != results[0][axis]]
    # A dim of one element may be reduced or not.
    spare = [axis for axis, size in enumerate(data) if size == 1] if count > len(needed) else []
    return _named([*needed, *spare], len(data), count)


def _axes_between(more: Dims, fewer: Dims, count: int) -> Numbers:
    """Sets of axes of `more` without which it is `fewer`, in any order."""
    sets = [
        axes
        for axes in combinations(range(len(more)), count)
        if tuple(size for axis, size in enumerate(more) if axis not in axes) == tuple(fewer)
    ]
    return _named(sorted({axis for axes in sets for axis in axes}), len(more), count)


def _named(axes: Sequence[int], rank: int, count: int) -> Numbers:
    """Each of so many elements may be any of these axes, counted from either end."""
    return [_any_of(*axes, *(axis - rank for axis in axes))] * count


def _axes_of(attributes: Mapping[str, Any], _: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    """The sizes of the result along the axes that a node names, where it takes them as they are."""
    if attributes.get("keep_aspect_ratio_policy", "stretch") != "stretch":
        return None
    return exactly([results[0][axis] for axis in attributes.get("axes", range(len(results[0])))])


def _affine_grid(_: Mapping[str, Any], theta: Dims, results: Sequence[Dims], __: int) -> Numbers:
    """Batch, channels, and the image; the channels decide nothing."""
    return [*exactly(theta[:1]), [(0, MOST)], *exactly(results[0][1:-1])]


def _range(attributes: Mapping[str, Any], _: Dims, results: Sequence[Dims], __: int) -> Numbers | None:
    """Limits of whole numbers from a start that is known."""
    start, step = (attributes.get(f"{KNOWN}{position}", ()) for position in (0, 2))
    if len(start) != 1 or len(step) != 1 or step[0] == 0:
        return None
    return [[_ends(start[0], results[0][0], step[0])]]


def _ends(start: int, count: int, step: int) -> Span:
    """Where what counts so many steps from a start may end."""
    if step < 0:
        low, high = _ends(-start, count, -step)
        return -high, -low
    return (start + (count - 1) * step + 1 if count else LEAST + 1), start + count * step


def _slice(attributes: Mapping[str, Any], data: Dims, results: Sequence[Dims], count: int) -> Numbers | None:
    """Ends of slices whose starts, axes and steps are known."""
    starts, axes = attributes.get(f"{KNOWN}1", ()), attributes.get(f"{KNOWN}3", range(count))
    steps = attributes.get(f"{KNOWN}4", [1] * count)
    if not len(starts) == len(axes) == len(steps) == count or 0 in steps:
        return None
    return [
        _slice_ends(start, data[axis], results[0][axis], step)
        for start, axis, step in zip(starts, axes, steps, strict=True)
    ]


def _slice_ends(start: int, size: int, count: int, step: int) -> list[Span]:
    """ONNX counts negative numbers from the end, once, and moves to the border what is beyond it."""
    first, last = (0, size) if step > 0 else (-1, size - 1)
    start = max(start + size if start < 0 else start, 0)
    low, high = _ends(min(start, last), count, step)
    low, high = max(low, first), min(high, last)
    if low > high:  # the result is none of a slice of this
        return []
    # From the front where an end is not negative, from the back where it is; at a border also all that is beyond.
    spans = [
        (max(low, 0), MOST if high == last else high),
        (LEAST if low == first else low - size, min(high - size, -1)),
    ]
    return [span for span in spans if span[0] <= span[1]]


def _result(_: Mapping[str, Any], __: Dims, results: Sequence[Dims], ___: int) -> Numbers:
    return exactly(results[0])


RULES: dict[str, Rule] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "Tile": _tile,
    "Split": lambda attributes, data, results, _: _along(attributes.get("axis", 0), data, results),
    "TopK": lambda attributes, data, results, _: _along(attributes.get("axis", -1), data, results[:1]),
    "AffineGrid": _affine_grid,
    "CenterCropPad": _axes_of,
    "Resize": _axes_of,
    "Range": _range,
    "Slice": _slice,
    "Col2Im": lambda _, __, results, ___: exactly(results[0][2:]),
    "OneHot": lambda attributes, _, results, __: exactly([results[0][attributes.get("axis", -1)]]),
    **dict.fromkeys(("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow"), _result),
    "Reduce": _reduced,
    "Squeeze": lambda _, data, results, count: _axes_between(data, results[0], count),
    "Unsqueeze": lambda _, data, results, count: _axes_between(results[0], data, count),
}
"""Operator -> its rule; "Reduce" for all whose names begin so."""
