"""Pooling: means, maxima and norms over windows that the op table's rows do not have."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import onnx

from ...ops.evaluate import Array
from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .call import FLOAT, INT8, UINT8, Call
from .registry import decomposes
from .steps import MAX_STEPS

_END = (1 << 63) - 1


@dataclass(frozen=True)
class _Windows:
    """A pool's windows, axis by axis behind batch and channels.

    Attributes:
        lengths: their elements.
        strides: how far one is from the next.
        dilations: how far their elements are apart.
        pads: before each axis, then behind each; those of `auto_pad` only where sizes are known.
        sizes: what they go over, without padding; empty where windows are neither dilated nor rounded up.
        rounds_up: whether a last one may reach beyond the padding.
    """

    lengths: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]
    sizes: list[int]
    rounds_up: bool

    @property
    def is_dilated(self) -> bool:
        """Whether their elements lie apart."""
        return set(self.dilations) != {1}

    def reach(self, axis: int) -> int:
        """From the first element of a window to its last."""
        return self.dilations[axis] * (self.lengths[axis] - 1) + 1

    @property
    def rounds_up_for_nothing(self) -> bool:
        """Whether no window reaches beyond the padding."""
        return not any(map(self._is_beyond, range(len(self.lengths))))

    def _rest(self, axis: int) -> int:
        """How many elements are left behind the last window that fits."""
        whole = self.sizes[axis] + self.pads[axis] + self.pads[axis + len(self.lengths)]
        return (whole - self.reach(axis)) % self.strides[axis]

    def _is_beyond(self, axis: int) -> bool:
        """Whether there is one more window for what is left: it has to start before the padding at the end."""
        end = self.pads[axis + len(self.lengths)]
        return self._rest(axis) > 0 and end - self.reach(axis) + self.strides[axis] < self._rest(axis)

    def whole_pads(self) -> list[int]:
        """Padding with which windows that reach beyond it have their place too.

        It is the same whatever the size where it can be: a few more elements that lie in no window change nothing.
        """
        count, result = len(self.lengths), [*self.pads]
        for axis in range(count) if self.rounds_up else ():
            if self.pads[axis + count] + self.strides[axis] - 1 < self.reach(axis):
                result[axis + count] += self.strides[axis] - 1
            elif self._is_beyond(axis):
                result[axis + count] += self.strides[axis] - self._rest(axis)
        return result

    def reached_pads(self) -> list[int]:
        """Padding without what lies behind the last window, where there is no more room for one."""
        count, result = len(self.lengths), [*self.pads]
        for axis in range(count):
            if self.pads[axis + count] + self.strides[axis] > self.reach(axis) and not self._is_beyond(axis):
                result[axis + count] = max(result[axis + count] - self._rest(axis), 0)
        return result

    def counts(self, *, with_pads: bool) -> Array:
        """[1, 1, windows of each axis]: how many elements of each lie in what counts."""
        count, found = len(self.lengths), np.ones((1, 1, *[1] * len(self.lengths)))
        whole = self.whole_pads()
        for axis, size in enumerate(self.sizes):
            low = self.pads[axis]
            first, end = (-low, size + self.pads[axis + count]) if with_pads else (0, size)
            places = (size + low + whole[axis + count] - self.reach(axis)) // self.strides[axis] + 1
            starts = np.arange(places) * self.strides[axis] - low
            elements = starts[:, None] + np.arange(self.lengths[axis]) * self.dilations[axis]
            inside = ((elements >= first) & (elements < end)).sum(1)
            found = found * inside.reshape(-1, *[1] * (count - 1 - axis))
        return found


def _windows(call: Call) -> _Windows:
    x, lengths = call.need(0), list(call.attr("kernel_shape"))
    spatial, auto = len(lengths), call.attr("auto_pad", "NOTSET")
    strides, dilations = (list(call.attr(name, [1] * spatial)) for name in ("strides", "dilations"))
    pads = list(call.attr("pads", [0] * 2 * spatial)) if auto == "NOTSET" else [0] * 2 * spatial
    is_same = auto.startswith("SAME")
    rounds_up = bool(call.attr("ceil_mode", 0)) and not is_same
    sizes = [call.size(x, 2 + axis) for axis in range(spatial)] if rounds_up or set(dilations) != {1} else []
    found = _Windows(lengths, strides, dilations, pads, sizes, rounds_up)
    if is_same:
        for axis, size in enumerate(sizes):
            whole = max((-(-size // strides[axis]) - 1) * strides[axis] + found.reach(axis) - size, 0)
            small, large = whole // 2, whole - whole // 2
            pads[axis], pads[axis + spatial] = (large, small) if auto == "SAME_LOWER" else (small, large)
    return found


def _sums(call: Call, x: str, windows: _Windows) -> str:
    """Sums over windows: a convolution of each channel with ones."""
    channels = call.size(x, 1)
    ones = call.const(np.ones((channels, 1, *windows.lengths)), call.kind(x))
    auto = call.attr("auto_pad", "NOTSET")
    padding = {"auto_pad": auto} if auto.startswith("SAME") else {"pads": windows.whole_pads()}
    return call.op("Conv", x, ones, group=channels, strides=windows.strides, dilations=windows.dilations, **padding)


@decomposes("AveragePool")
def average_pool(call: Call) -> Sequence[str | None] | None:
    """AveragePool of dilated windows, and of ones that reach beyond a padding that counts; the op table has the others.

    Source: ONNX, AveragePool-22.
    """
    includes, windows = bool(call.attr("count_include_pad", 0)), _windows(call)
    if windows.is_dilated:
        if not call.has_one_size:
            raise Refusal("dynamic-shape", "means over dilated windows at sizes that are not known at compile time")
        total = _sums(call, call.need(0), windows)
        shares = call.const(1 / windows.counts(with_pads=includes), call.precision(total))
        return [call.cast(call.op("Mul", call.cast(total, call.kind(shares)), shares), call.kind(total))]
    if not windows.rounds_up:
        return None
    if call.has_one_size and windows.rounds_up_for_nothing:
        return _rounded_down(call)
    if not (includes and any(windows.pads)):
        return None
    pads, count = windows.reached_pads(), len(windows.lengths)
    bordered = call.op("Pad", call.need(0), call.ints(0, 0, *pads[:count], 0, 0, *pads[count:]))
    return [call.op("AveragePool", bordered, kernel_shape=windows.lengths, strides=windows.strides, ceil_mode=1)]


def _rounded_down(call: Call) -> list[str]:
    """The node without `ceil_mode`."""
    return call.outs(call.node.op_type, call.need(0), count=1, **{**_stated(call), "ceil_mode": 0})


def _stated(call: Call) -> dict[str, Any]:
    return {a.name: onnx.helper.get_attribute_value(a) for a in call.node.attribute}


@decomposes("LpPool")
def lp_pool(call: Call) -> Sequence[str | None]:
    """LpPool: sums of powers.

    Source: ONNX, LpPool-22.
    """
    p = call.count("p", 2)
    return [_root(call, _sums(call, _powered(call, call.need(0), p), _windows(call)), p)]


def _powered(call: Call, x: str, p: int) -> str:
    if p == 1:
        return call.op("Abs", x)
    return call.op("Mul", x, x) if p == 2 else call.op("Pow", call.op("Abs", x), call.number(p, x))


def _root(call: Call, x: str, p: int) -> str:
    if p == 1:
        return x
    return call.op("Sqrt", x) if p == 2 else call.op("Pow", x, call.const(1 / p, call.precision(x)))


@decomposes("GlobalLpPool")
def global_lp_pool(call: Call) -> Sequence[str | None]:
    """GlobalLpPool.

    Source: ONNX, GlobalLpPool-22.
    """
    x, p = call.need(0), call.count("p", 2)
    total = call.reduce("ReduceSum", _powered(call, x, p), [*range(2, call.rank(x))])
    return [_root(call, total, p)]


@decomposes("MaxPool")
def max_pool(call: Call) -> Sequence[str | None] | None:
    """MaxPool with Indices, and of dilated windows; torch-mlir has the others.

    Source: ONNX, MaxPool-22.
    """
    x = call.need(0)
    windows = _windows(call)
    if call.kind(x) in (INT8, UINT8) and (call.wants(1) or windows.is_dilated):  # f32 has them exactly
        maxima, *indices = call.outs("MaxPool", call.cast(x, FLOAT), count=1 + call.wants(1), **_stated(call))
        return [call.cast(maxima, call.kind(x)), *indices]
    if call.wants(1):
        return _maxima_with_indices(call)
    if windows.is_dilated:
        return [_dilated_maxima(call, x, windows)]
    if windows.rounds_up and call.has_one_size and windows.rounds_up_for_nothing:
        return _rounded_down(call)
    return None


def _dilated_maxima(call: Call, x: str, windows: _Windows) -> str:
    """Axis by axis, the largest of the elements that are as far apart as those of a window."""
    count, pads = len(windows.lengths), windows.whole_pads()
    if max(windows.lengths) > MAX_STEPS:
        raise Refusal(
            "shape", f"dilated windows of {max(windows.lengths)} elements, expected at most {MAX_STEPS} along an axis"
        )
    if any(pads):
        border = call.ints(0, 0, *pads[:count], 0, 0, *pads[count:])
        x = call.op("Pad", x, border, call.number(-math.inf, x))
    for axis, length in enumerate(windows.lengths):
        apart, stride = windows.dilations[axis], windows.strides[axis]
        ends = [apart * (index + 1 - length) or _END for index in range(length)]
        parts = [call.slice(x, 2 + axis, apart * index, end, stride) for index, end in enumerate(ends)]
        x = reduce(partial(call.op, "Max"), parts)
    return x


def _maxima_with_indices(call: Call) -> Sequence[str | None]:
    """HipDNN's operator, which counts in each image; ONNX counts in the whole tensor."""
    x, spatial = call.need(0), call.rank(call.need(0)) - 2
    column_major = bool(call.attr("storage_order", 0))
    if set(call.attr("dilations", [1])) != {1}:
        raise Refusal("attribute", f"dilations {call.attr('dilations')}: hipDNN's resample has none")
    if call.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or (column_major and spatial > 2):
        raise Refusal("attribute", "indices with auto_pad, or in column-major order of three dims")
    stated = {name: call.attr(name) for name in ("kernel_shape", "strides", "pads", "ceil_mode")}
    maxima, indices = call.outs("MaxPoolWithIndices", x, count=2, domain=HIPDNN_DOMAIN, **stated)
    batch, channels, *sizes = (call.length(x, axis) for axis in range(spatial + 2))
    if column_major and spatial == 2:
        height, width = sizes
        indices = call.op("Add", call.op("Mul", call.op("Mod", indices, width), height), call.op("Div", indices, width))
    shape = call.concat(0, batch, channels, call.ints(*[1] * spatial))
    images = call.op("Reshape", call.range(call.op("Mul", batch, channels)), shape)
    return [maxima, call.op("Add", indices, call.op("Mul", images, reduce(partial(call.op, "Mul"), sizes)))]
