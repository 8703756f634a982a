"""Which elements of a dim a resized one takes, and with which weights: ONNX Resize, one dim at a time."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Table = np.ndarray[Any, Any]
_FARTHEST = 1e15
"""Farther outside all results are the border's."""


@dataclass(frozen=True)
class ResizeAxis:
    """One dim: per result `positions` and `weights` [size, taps], and whether it lies `outside` and has the extrapolation value."""

    positions: Table
    weights: Table
    outside: Table

    @property
    def taps(self) -> int:
        """Elements of one result."""
        return int(self.positions.shape[1])

    @property
    def is_still(self) -> bool:
        """Whether results are the elements at their own positions."""
        return (
            self.taps == 1
            and not self.outside.any()
            and np.array_equal(self.positions[:, 0], np.arange(len(self.positions)))
        )


_NEAREST: dict[str, Callable[[Any], Any]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def resize_axis(attributes: Any, size: int, out_size: int, scale: float, region: tuple[float, float]) -> ResizeAxis:
    """The table of a dim.

    Args:
        attributes: of the kernel.
        size: of the input's dim.
        out_size: of the result's.
        scale: of the latter to the former, not always their quotient.
        region: start and end, for `tf_crop_and_resize`.
    """
    x = _coordinates(attributes["coordinates"], size, out_size, scale, region)
    outside = np.zeros(out_size, np.bool_)
    if attributes["coordinates"] == "tf_crop_and_resize":
        outside = ~((x >= 0) & (x <= size - 1))
    x = np.clip(x, -_FARTHEST, _FARTHEST)
    if attributes["mode"] == "nearest":
        positions = _NEAREST[attributes["nearest"]](x)[:, None]
        weights = np.ones_like(positions)
    else:
        positions, weights = _taps(attributes, size, scale, x)
    return _simplified(np.clip(positions, 0, size - 1).astype(np.int64), weights, outside)


def _coordinates(rule: str, size: int, out_size: int, scale: float, region: tuple[float, float]) -> Table:
    """Where each result lies in the input, in elements."""
    x = np.arange(out_size, dtype=np.float64)
    stretched = scale * size  # not always the result's size, which is a whole number
    if rule == "asymmetric":
        return x / scale
    if rule == "align_corners":
        return np.zeros_like(x) if stretched == 1 else x * (size - 1) / (stretched - 1)
    if rule == "tf_crop_and_resize":
        start, extent = region[0], region[1] - region[0]
        inner = extent * (size - 1) / 2 + 0 * x if stretched == 1 else x * extent * (size - 1) / (stretched - 1)
        return start * (size - 1) + inner
    if rule == "pytorch_half_pixel" and stretched == 1:
        return np.full_like(x, -0.5)
    centred = (x + 0.5) / scale - 0.5
    return size / 2 * (1 - out_size / stretched) + centred if rule == "half_pixel_symmetric" else centred


def _taps(attributes: Any, size: int, scale: float, x: Table) -> tuple[Table, Table]:
    support = 1 if attributes["mode"] == "linear" else 2
    shrink = min(scale, 1.0) if attributes["antialias"] else 1.0
    reach = math.floor(support / shrink)
    reach += math.floor(-support / shrink) != -support / shrink
    positions = (np.ceil(x) - 1)[:, None] + np.arange(1 - reach, reach + 1)
    distance = np.abs((positions - x[:, None]) * shrink)
    weights = np.maximum(0, 1 - distance) if support == 1 else _cubic(distance, attributes["cubic"])
    total = weights.sum(1, keepdims=True)
    if attributes["exclude_outside"]:
        weights = np.where((positions >= 0) & (positions < size), weights, 0)
        inside = weights.sum(1, keepdims=True)
        total = np.where(inside != 0, inside, total)
    return positions, weights / total


def _cubic(x: Table, a: float) -> Table:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _simplified(positions: Table, weights: Table, outside: Table) -> ResizeAxis:
    """Without taps that no result has; one tap where a single one counts for every result."""
    single = (weights == 1).any(1) & ((weights == 0).sum(1) == weights.shape[1] - 1)
    if single.all():
        only = np.argmax(weights == 1, 1)[:, None]
        return ResizeAxis(np.take_along_axis(positions, only, 1), np.ones_like(only, np.float64), outside)
    used = (weights != 0).any(0)
    return ResizeAxis(positions[:, used], weights[:, used], outside)
