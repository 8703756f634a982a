"""Pooling: the greatest element or the average of a window around each result."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Padding, Resample
from hipdnn_mlir_runtime.dtypes import I8, U8, DType

from ...ops.graph import Graph, Node
from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type, to_memory
from ..core.kernel import Operand
from ..core.space import access_size, arranged, is_wide, vector_size
from ..math.functions import Functions
from ..math.instructions import Instructions
from .body import Body
from .rowwise import body_launch

_THREADS = 256
_MAX_UNROLLED = 64
"""Elements of a window that are written one by one, else in a loop."""


@dataclass(frozen=True)
class _Axis:
    """One dim that windows move along: size of the input, window, step, padding before; `checked` where a window may leave the input."""

    size: int
    window: int
    step: int
    low: int
    checked: bool


def pooling_launch(graph: Graph, architecture: Architecture) -> Launch:
    """The launch of a graph of one resample node."""
    node = graph.nodes[0]
    if set(node.outputs) != {A.OPERATION_RESAMPLE_FWD_YDESC}:
        raise Refusal("kernel", "no GPU code for pooling with indices")
    source = graph.tensors[node.inputs[A.OPERATION_RESAMPLE_FWD_XDESC]]
    target = graph.tensors[node.outputs[A.OPERATION_RESAMPLE_FWD_YDESC]]
    x = Operand("in", source.dtype, source.dims, source.strides, source.alignment)
    y = Operand("out", target.dtype, target.dims, target.strides, target.alignment)
    mode = Resample(node.get(A.RESAMPLE_MODE))
    is_known = x.dtype.is_float or (mode is Resample.MAXPOOL and x.dtype in (I8, U8))
    if x.dtype is not y.dtype or not is_known:
        raise Refusal("dtype", f"pooling of {x.dtype} to {y.dtype}")
    order = [operand["role"] for operand in graph.operands()]
    if order != ["in", "out"]:
        raise Refusal("operand", "pooling whose input is its output")
    axes = _axes(node, x, y)
    if all(a.window == a.size and not a.checked for a in axes) and prod(y.dims[2:]) == 1:
        return _global(x, y, mode, architecture)
    pads_zero = mode is Resample.MAXPOOL and node.get(A.RESAMPLE_PADDING_MODE) == Padding.ZERO_PAD
    return _Pooling(x, y, axes, mode, 0.0 if pads_zero or mode is not Resample.MAXPOOL else _least(x.dtype)).launch()


def _least(dtype: DType) -> float:
    return -math.inf if dtype.is_float else float(np.iinfo(dtype.numpy).min)


def _axes(node: Node, x: Operand, y: Operand) -> list[_Axis]:
    values = {name: values for name, _, values in node.attributes}
    made = []
    for dim, (window, step, low) in enumerate(
        zip(values[A.RESAMPLE_WINDOW_DIMS], values[A.RESAMPLE_STRIDES], values[A.RESAMPLE_PRE_PADDINGS], strict=True), 2
    ):
        checked = low > 0 or (y.dims[dim] - 1) * step + window - low > x.dims[dim]
        made.append(_Axis(x.dims[dim], window, step, low, checked))
    return made


def _global(x: Operand, y: Operand, mode: Resample, architecture: Architecture) -> Launch:
    """One window: a reduction."""
    reduced = frozenset(axis for axis in range(2, len(x.dims)) if x.dims[axis] > 1)
    shown = Operand(y.role, y.dtype, x.dims, (*y.strides[:2], *(0,) * (len(x.dims) - 2)), y.alignment)
    body = Body(x.dims, [x, shown], reduced=reduced)
    value = body.append("load", x.dtype, data=0)
    if reduced:
        value = body.append("reduce", x.dtype, value, data="max" if mode is Resample.MAXPOOL else "add")
    if mode is not Resample.MAXPOOL:
        value = body.apply("div", value, body.constant(prod(x.dims[2:]), x.dtype))
    body.append("store", x.dtype, value, data=1)
    return body_launch(body, architecture)


class _Pooling:
    def __init__(self, x: Operand, y: Operand, axes: Sequence[_Axis], mode: Resample, border: float) -> None:
        self.x, self.y, self.axes, self.mode, self.border = x, y, axes, mode, border
        rank = len(y.dims)
        moved = (*x.strides[:2], *(s * a.step for s, a in zip(x.strides[2:], axes, strict=True)))
        units = [tuple(int(dim == axis + 2) for dim in range(rank)) for axis, a in enumerate(axes) if a.checked]
        self.space = arranged(y.dims, [y.strides, moved, *units], [0])
        lanes = vector_size(self.space, [y, x], divides=True)
        varies = any(strides and strides[-1] for strides in self.space.strides[2:])
        self.lanes = 1 if varies else lanes

    def launch(self) -> Launch:
        """The launch."""
        groups = self.space.size // self.lanes
        blocks = ceil(groups / _THREADS)
        return Launch(self.write, blocks, _THREADS, 0, is_wide([self.x, self.y], (blocks + 1) * _THREADS * self.lanes))

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        groups = self.space.size // self.lanes
        group = b.add(b.mul(b.block(), _THREADS), b.thread())
        inside = b.less(group, groups) if groups % _THREADS else b.constant(1, b.i1)
        with b.when(inside):
            dims = (*self.space.dims[:-1], self.space.dims[-1] // self.lanes) if self.space.dims else ()
            at = b.coordinates(group, dims)
            at = [*at[:-1], b.mul(at[-1], self.lanes)] if at else []
            self._one(b, at)

    def _one(self, b: KernelBuilder, at: Sequence[Value]) -> None:
        self.b, self.instructions = b, Instructions(b, rounds=False)
        self.f = Functions(b, 64 if self.x.dtype.name == "f64" else 32)
        first, units = b.dot(at, self.space.strides[1]), iter(self.space.strides[2:])
        self.base = b.sub(first, sum(a.low * s for a, s in zip(self.axes, self.x.strides[2:], strict=True)))
        self.starts = [b.sub(b.mul(b.dot(at, next(units)), a.step), a.low) if a.checked else None for a in self.axes]
        initial = self._number(_least(self.x.dtype) if self.mode is Resample.MAXPOOL else 0)
        totals = [initial] * self.lanes
        windows = [a.window for a in self.axes]
        if prod(windows) <= _MAX_UNROLLED:
            for tap in range(prod(windows)):
                totals = self._tap(b.coordinates(tap, windows), totals)
        else:
            totals = b.loop(0, prod(windows), 1, totals, lambda tap, t: self._tap(b.coordinates(tap, windows), t))
        if self.mode is not Resample.MAXPOOL:
            count = self._count()
            totals = [self.f.div(total, count) for total in totals]
        raw = [to_memory(b, total, self.y.dtype) for total in totals]
        offset = b.dot(at, self.space.strides[0])
        size = max(access_size(self.y, self.space.strides[0], self.lanes), 1)
        step = self.space.strides[0][-1] if self.space.dims else 0
        for lane in range(0, self.lanes, size):
            b.store(b.arguments[1], b.add(offset, lane * step), raw[lane : lane + size])

    def _tap(self, tap: Sequence[Value], totals: Sequence[Value]) -> list[Value]:
        """Fold one element of the window, the same for all lanes."""
        b = self.b
        checks = [
            b.less(b.add(start, k), a.size)
            for a, start, k in zip(self.axes, self.starts, tap, strict=True)
            if a.checked
        ]
        inside = None
        for check in checks:
            inside = check if inside is None else b.same("arith.andi", inside, check)
        offset = b.at(b.add(self.base, b.dot(tap, self.x.strides[2:])))
        if inside is not None:
            offset = b.select(inside, offset, b.at(0))  # some element that exists
        values = self._load(offset)
        if inside is not None:
            values = [b.select(inside, value, self._number(self.border)) for value in values]
        operator = "max" if self.mode is Resample.MAXPOOL else "add"
        return [
            self.instructions.apply(operator, self.x.dtype, total, value)
            for total, value in zip(totals, values, strict=True)
        ]

    def _number(self, number: float) -> Value:
        return self.f.number(number) if self.x.dtype.is_float else self.b.constant(int(number), self.b.i8)

    def _load(self, offset: Value) -> list[Value]:
        b, strides = self.b, self.space.strides[1]
        size = max(access_size(self._shifted(), strides, self.lanes), 1)
        step = strides[-1] if strides else 0
        kind = memory_type(b, self.x.dtype)
        raw = [
            v
            for lane in range(0, self.lanes, size)
            for v in b.load(b.arguments[0], b.add(offset, lane * step), kind, size)
        ]
        return [from_memory(b, value, self.x.dtype) for value in raw]

    def _shifted(self) -> Operand:
        """The input with an alignment that its elements at any offset within a window have."""
        steps = [
            s * self.x.dtype.bytes for s, a in zip(self.x.strides[2:], self.axes, strict=True) if a.window > 1 or a.low
        ]
        alignment = math.gcd(self.x.alignment, *steps) if steps else self.x.alignment
        return Operand("in", self.x.dtype, self.x.dims, self.x.strides, alignment)

    def _count(self) -> Value:
        """Elements that the average divides by."""
        whole = prod(a.window for a in self.axes)
        if self.mode is Resample.AVGPOOL_INCLUDE_PADDING or not any(a.checked for a in self.axes):
            return self.f.number(whole)
        b, f = self.b, self.f
        total = f.number(prod(a.window for a in self.axes if not a.checked))
        for a, start in zip(self.axes, self.starts, strict=True):
            if not a.checked:
                continue
            # From the later of the window's and the input's start to the earlier of their ends.
            ends = b.same("arith.minsi", b.at(b.add(start, a.window)), b.at(a.size))
            starts = b.same("arith.maxsi", b.at(start), b.at(0))
            total = f.mul(total, b.op("arith.sitofp", [b.same("arith.subi", ends, starts)], f.type))
        return total
