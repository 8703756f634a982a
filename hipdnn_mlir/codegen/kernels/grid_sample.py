"""`grid_sample`: each result is a weighted sum of elements around a point that a grid names."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import Any

from hipdnn_mlir_runtime.dtypes import BY_NAME

from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, store
from ..core.kernel import Operand
from ..core.space import arranged, is_wide
from ..math.functions import Functions
from ..math.instructions import Instructions

_THREADS = 256
_CUBIC = -0.75
_FAR = 1e9
"""Points farther away, and NaN, count as this far."""
X, GRID, OUT = range(3)


@dataclass(frozen=True)
class _Tap:
    """One of the elements around a coordinate.

    Attributes:
        offset: of its position, within the dim.
        weight: of the element.
        inside: whether there is such an element; None where there always is.
    """

    offset: Value
    weight: Value
    inside: Value | None


def grid_sample_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`grid_sample`, as the host's library defines it: coordinates and sums in f64."""
    del architecture
    if operands[X].elements == 0:
        raise Refusal("shape", "the input has no elements")
    return _Writer(operands, attributes).launch()


class _Writer:
    def __init__(self, operands: Sequence[Operand], attributes: Any) -> None:
        self.operands = operands
        self.mode, self.padding = attributes["mode"], attributes["padding"]
        self.aligns = attributes["align_corners"]
        x, grid, out = operands
        self.spatial = len(x.dims) - 2
        element = (*x.strides[:2], *(0,) * self.spatial)
        point = (grid.strides[0], 0, *grid.strides[1:-1])
        self.space = arranged(out.dims, [out.strides, element, point], [0])

    def launch(self) -> Launch:
        """The launch: a thread for each result."""
        blocks = ceil(self.space.size / _THREADS)
        return Launch(self.write, blocks, _THREADS, 0, is_wide(self.operands, blocks * _THREADS))

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, self.f = b, Functions(b, 64)
        self.instructions = Instructions(b, rounds=False)
        thread = b.add(b.mul(b.block(), _THREADS), b.thread())
        with b.when(b.less(thread, self.space.size)):
            at = b.coordinates(thread, self.space.dims)
            to, start, point = (b.dot(at, strides) for strides in self.space.strides)
            taps = [self._taps(dim, self._coordinate(dim, point)) for dim in range(self.spatial)]
            total = self.f.number(0)
            for chosen in product(*taps):
                total = self._added(total, start, chosen)
            dtype = self.operands[OUT].dtype
            store(b, b.arguments[OUT], to, [self.instructions.cast(total, BY_NAME["f64"], dtype)], dtype)

    def _added(self, total: Value, start: Value, taps: Sequence[_Tap]) -> Value:
        """The sum with one more element; what lies outside adds nothing, whatever is read in its place."""
        b, f = self.b, self.f
        value = self._real(X, b.add(start, *(tap.offset for tap in taps)))
        weight = taps[0].weight
        for tap in taps[1:]:
            weight = f.mul(weight, tap.weight)
        added = f.fma(weight, value, total)
        for tap in taps:
            if tap.inside is not None:
                added = b.select(tap.inside, added, total)
        return added

    def _real(self, number: int, offset: Value) -> Value:
        dtype = self.operands[number].dtype
        value = load(self.b, self.b.arguments[number], offset, dtype)[0]
        return self.instructions.cast(value, dtype, BY_NAME["f64"])

    def _size(self, dim: int) -> int:
        return self.operands[X].dims[2 + dim]

    def _coordinate(self, dim: int, point: Value) -> Value:
        """Where a point lies along a dim, in elements; a point of the grid has its last dim first."""
        b, f, size = self.b, self.f, self._size(dim)
        step = self.operands[GRID].strides[-1]
        moved = f.add(self._real(GRID, b.add(point, (self.spatial - 1 - dim) * step)), f.number(1))
        if self.aligns:
            x = f.mul(f.mul(moved, f.number(0.5)), f.number(size - 1))
        else:
            x = f.mul(f.sub(f.mul(moved, f.number(size)), f.number(1)), f.number(0.5))
        x = f.where("ogt", x, -_FAR, f.where("olt", x, _FAR, x, f.number(_FAR)), f.number(-_FAR))
        if self.mode == "nearest":
            x = b.intrinsic("rint", x)
        if self.padding == "border" and self.mode != "cubic":
            x = self._clamped(x, size)
        return self._reflected(x, size) if self.padding == "reflection" else x

    def _taps(self, dim: int, x: Value) -> list[_Tap]:
        b, f = self.b, self.f
        first = b.intrinsic("floor", x)
        ratio, one = f.sub(x, first), f.number(1)
        if self.mode == "nearest":
            weights = [one]
        elif self.mode == "linear":
            weights = [f.sub(one, ratio), ratio]
        else:
            away = f.sub(one, ratio)
            weights = [self._far(f.add(one, ratio)), self._near(ratio), self._near(away), self._far(f.add(one, away))]
            first = f.sub(first, one)
        return [self._tap(dim, f.add(first, f.number(k)), weight) for k, weight in enumerate(weights)]

    def _near(self, x: Value) -> Value:
        """Weight of cubic convolution (Keys, 1981) of an element at most 1 away."""
        f = self.f
        inner = f.sub(f.mul(f.number(_CUBIC + 2), x), f.number(_CUBIC + 3))
        return f.add(f.mul(f.mul(inner, x), x), f.number(1))

    def _far(self, x: Value) -> Value:
        """The same from 1 to 2 away."""
        f, total = self.f, self.f.number(_CUBIC)
        for coefficient in (-5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC):
            total = f.add(f.mul(total, x), f.number(coefficient))
        return total

    def _tap(self, dim: int, at: Value, weight: Value) -> _Tap:
        """The element that shows at a whole coordinate."""
        b, f, size = self.b, self.f, self._size(dim)
        inside = None
        if self.padding == "zeros":
            inside = b.same("arith.andi", b.compare("oge", at, f.number(0)), b.compare("ole", at, f.number(size - 1)))
        elif self.padding == "reflection":
            at = self._reflected(at, size)
        position = b.op("arith.fptosi", [self._clamped(at, size)], b.position_type)
        return _Tap(b.mul(position, self.operands[X].strides[2 + dim]), weight, inside)

    def _clamped(self, x: Value, size: int) -> Value:
        f = self.f
        return f.where("olt", x, 0, f.number(0), f.where("ogt", x, size - 1, f.number(size - 1), x))

    def _reflected(self, x: Value, size: int) -> Value:
        """Mirrored at the borders until it lies within: at the outer elements' centers where corners are aligned, else at their edges."""
        f, low = self.f, 0 if self.aligns else -0.5
        width = size - 1 if self.aligns else size
        if width == 0:
            return f.number(0)
        distance = f.fmod(f.abs(f.sub(x, f.number(low))), f.number(2 * width))
        shown = f.where("ole", distance, width, distance, f.sub(f.number(2 * width), distance))
        return f.add(f.number(low), shown)
