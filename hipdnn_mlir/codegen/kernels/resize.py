"""`resize`: each result is a weighted sum of elements whose positions and weights, dim by dim, are tables in the code."""

from collections.abc import Sequence
from math import ceil, prod
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import BY_NAME

from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import bits_type, from_memory, memory_type, to_memory
from ..core.kernel import Operand
from ..core.space import access_size, arranged, is_wide, vector_size
from ..math.functions import Functions
from ..math.instructions import Instructions
from .resize_axis import ResizeAxis, resize_axis

_THREADS = 256
_MAX_UNROLLED = 64
_MAX_TABLE = 1 << 16


def resize_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`resize`."""
    del architecture
    x, y = operands
    rank = len(x.dims)
    region = attributes.get("roi", [0.0] * rank + [1.0] * rank)
    if x.elements == 0:
        raise Refusal("shape", "the input has no elements")
    axes = []
    for dim, scale in enumerate(attributes["scales"]):
        used = scale or y.dims[dim] / x.dims[dim]
        axes.append(resize_axis(attributes, x.dims[dim], y.dims[dim], used, (region[dim], region[rank + dim])))
    if any(axis.positions.size > _MAX_TABLE for axis in axes):
        raise Refusal("size", f"the interpolation table of a dim has more than {_MAX_TABLE} entries")
    return _Writer(x, y, axes, attributes["extrapolation"]).launch()


class _Writer:
    def __init__(self, x: Operand, y: Operand, axes: Sequence[ResizeAxis], extrapolation: float) -> None:
        self.x, self.y, self.extrapolation = x, y, extrapolation
        self.moved = [(dim, axis) for dim, axis in enumerate(axes) if not axis.is_still]
        self.selects = all(axis.taps == 1 and not axis.outside.any() for _, axis in self.moved)
        still = tuple(0 if any(dim == d for d, _ in self.moved) else step for dim, step in enumerate(x.strides))
        units = [tuple(int(axis == dim) for axis in range(len(x.dims))) for dim, _ in self.moved]
        self.space = arranged(y.dims, [y.strides, still, *units], [0])
        lanes = vector_size(self.space, [y, x], divides=True)
        varies = any(strides and strides[-1] for strides in self.space.strides[2:])
        self.lanes = 1 if varies or any(x.strides[dim] % lanes for dim, _ in self.moved) else lanes
        # Sums of what is not exact in f32 are cut toward zero, or have more digits than that.
        self.wide = x.dtype.name not in ("f32", "f16", "bf16")

    def launch(self) -> Launch:
        """The launch."""
        groups = self.space.size // self.lanes
        blocks = ceil(groups / _THREADS)
        return Launch(self.write, blocks, _THREADS, 0, is_wide([self.x, self.y], (blocks + 1) * _THREADS * self.lanes))

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, self.f = b, Functions(b, 64 if self.wide else 32)
        self.instructions = Instructions(b, rounds=False)
        position_tables = [
            b.table(f"positions_{dim}", axis.positions.reshape(-1).astype(np.int32)) for dim, axis in self.moved
        ]
        weight_type = np.float64 if self.wide else np.float32
        weight_tables = [
            b.table(f"weights_{dim}", axis.weights.reshape(-1).astype(weight_type)) if axis.taps > 1 else None
            for dim, axis in self.moved
        ]
        self.tables = list(zip(position_tables, weight_tables, strict=True))
        groups = self.space.size // self.lanes
        group = b.add(b.mul(b.block(), _THREADS), b.thread())
        with b.when(b.less(group, groups)):
            dims = (*self.space.dims[:-1], self.space.dims[-1] // self.lanes) if self.space.dims else ()
            at = b.coordinates(group, dims)
            at = [*at[:-1], b.mul(at[-1], self.lanes)] if at else []
            self._one(at)

    def _one(self, at: Sequence[Value]) -> None:
        b = self.b
        places = [b.dot(at, strides) for strides in self.space.strides[2:]]
        start = b.dot(at, self.space.strides[1])
        if self.selects:
            raw = self._load(start, places, [0] * len(places), bits_type(b, self.x.dtype.bytes))[0]
        else:
            raw = [to_memory(b, value, self.y.dtype) for value in self._mixed(start, places)]
        offset = b.dot(at, self.space.strides[0])
        size = max(access_size(self.y, self.space.strides[0], self.lanes), 1)
        step = self.space.strides[0][-1] if self.space.dims else 0
        for lane in range(0, self.lanes, size):
            b.store(b.arguments[1], b.add(offset, lane * step), raw[lane : lane + size])

    def _load(
        self, start: Value, places: Sequence[Value], taps: Sequence[Value], kind: Any
    ) -> tuple[list[Value], Value]:
        """Elements at a combination of taps, and its weight."""
        b, weight = self.b, self.f.number(1)
        offset = start
        for (dim, axis), (positions, weights), place, tap in zip(self.moved, self.tables, places, taps, strict=True):
            entry = b.add(b.mul(place, axis.taps), tap)
            position = b.load(positions, entry, b.i32)[0]
            if position.type != b.position_type:
                position = b.op("arith.extui", [position], b.position_type)
            offset = b.add(offset, b.mul(position, self.x.strides[dim]))
            if weights is not None:
                weight = self.f.mul(weight, b.load(weights, entry, self.f.type)[0])
        strides = self.space.strides[1]
        size = max(access_size(self.x, strides, self.lanes), 1)
        step = strides[-1] if strides else 0
        count = self.lanes if step else 1
        raw = [
            v for lane in range(0, count, size) for v in b.load(b.arguments[0], b.add(offset, lane * step), kind, size)
        ]
        return (raw if step else raw * self.lanes), weight

    def _mixed(self, start: Value, places: Sequence[Value]) -> list[Value]:
        """Weighted sums as values of the type."""
        b, counts = self.b, [axis.taps for _, axis in self.moved]

        def fold(tap: Value, totals: list[Value]) -> list[Value]:
            raw, weight = self._load(start, places, b.coordinates(tap, counts), memory_type(b, self.x.dtype))
            values = [self._real(from_memory(b, value, self.x.dtype)) for value in raw]
            return [self.f.fma(weight, value, total) for value, total in zip(values, totals, strict=True)]

        totals = [self.f.number(0)] * self.lanes
        if prod(counts) <= _MAX_UNROLLED:
            for tap in range(prod(counts)):
                totals = fold(tap, totals)
        else:
            totals = b.loop(0, prod(counts), 1, totals, fold)
        for (dim, axis), place in zip(self.moved, places, strict=True):
            if axis.outside.any():
                table = b.table(f"outside_{dim}", axis.outside.astype(np.int8))
                is_outside = b.compare("ne", b.load(table, place, b.i8)[0], b.constant(0, b.i8))
                totals = [b.select(is_outside, self.f.number(self.extrapolation), total) for total in totals]
        return [self._stored(total) for total in totals]

    def _real(self, value: Value) -> Value:
        return self.instructions.cast(value, self.x.dtype, BY_NAME["f64"]) if self.wide else value

    def _stored(self, total: Value) -> Value:
        """A sum as a value of the type: integers toward zero within their range."""
        b, dtype = self.b, self.y.dtype
        if dtype.is_float:
            return total
        if dtype.name == "bool":
            return b.compare("une", total, self.f.number(0))
        return self.instructions.saturate(b.intrinsic("trunc", total), BY_NAME["f64"], dtype)
