"""Scatters of many updates: a copy of the data, then updates put or combined at computed positions, as a second launch.

Updates that are combined may meet at a position: those that can are applied by one thread, in order, so results do not depend on timing.
Updates that replace are applied all at once: where positions repeat, which one stays is open, as in ONNX.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from ...ops.strides import Dims, Strides
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, store
from ..core.kernel import Operand
from ..core.space import arranged, is_wide
from ..math.instructions import Instructions
from .move import read_index

_THREADS = 256
DATA, INDICES, UPDATES, OUT = range(4)


@dataclass(frozen=True)
class _Scatter:
    """Updates over dims: `meeting` dims first, along which positions may repeat.

    Attributes:
        dims: of the updates; the first `meeting` of them may meet.
        updates, indices, out: strides of the linear part of the offsets.
        depth: indices of one position, `index_step` elements apart, one for each of `sizes` and `steps` of the out.
    """

    dims: Dims
    meeting: int
    updates: Strides
    indices: Strides
    out: Strides
    index_step: int
    sizes: Dims
    steps: Strides


def scatter_elements_launch(operands: Sequence[Operand], attributes: Any) -> Launch:
    """The second launch of `scatter_elements`."""
    _, indices, updates, out = operands
    axis, rank = attributes["axis"], len(indices.dims)
    order = [axis, *(dim for dim in range(rank) if dim != axis)]
    still = [0 if dim == axis else step for dim, step in enumerate(out.strides)]

    def ordered(values: Sequence[int]) -> tuple[int, ...]:
        return tuple(values[dim] for dim in order)

    scatter = _Scatter(
        ordered(indices.dims), 1, ordered(updates.strides), ordered(indices.strides), ordered(still),
        0, (out.dims[axis],), (out.strides[axis],),
    )  # fmt: skip
    return _launch(scatter, operands, attributes["reduction"])


def scatter_nd_launch(operands: Sequence[Operand], attributes: Any) -> Launch:
    """The second launch of `scatter_nd`."""
    _, indices, updates, out = operands
    rows, depth = len(indices.dims) - 1, indices.dims[-1]
    inner = len(out.dims) - depth
    scatter = _Scatter(
        (*indices.dims[:-1], *out.dims[depth:]), rows, updates.strides, (*indices.strides[:-1], *(0,) * inner),
        (*(0,) * rows, *out.strides[depth:]), indices.strides[-1], out.dims[:depth], out.strides[:depth],
    )  # fmt: skip
    return _launch(scatter, operands, attributes["reduction"])


def _launch(scatter: _Scatter, operands: Sequence[Operand], reduction: str) -> Launch:
    meeting = scatter.meeting if reduction != "none" else 0
    functions = [scatter.updates, scatter.indices, scatter.out]
    serial = arranged(scatter.dims[:meeting], [f[:meeting] for f in functions], [])
    spread = arranged(scatter.dims[meeting:], [f[meeting:] for f in functions], [2, 0])
    if 0 in scatter.dims:
        return Launch(lambda _: None, 0, 1)

    def write(b: KernelBuilder) -> None:
        thread = b.add(b.mul(b.block(), _THREADS), b.thread())
        with b.when(b.less(thread, spread.size)):
            at = b.coordinates(thread, spread.dims)
            bases = [b.dot(at, strides) for strides in spread.strides]
            if not meeting:
                return _apply(b, scatter, operands, reduction, bases)

            def body(step: Value, _: list[Value]) -> list[Value]:
                row = b.coordinates(step, serial.dims)
                offsets = [b.add(base, b.dot(row, s)) for base, s in zip(bases, serial.strides, strict=True)]
                _apply(b, scatter, operands, reduction, offsets)
                return []

            b.loop(0, serial.size, 1, [], body)
            return None

    blocks = ceil(spread.size / _THREADS)
    return Launch(write, blocks, _THREADS, 0, is_wide(operands, blocks * _THREADS))


def _apply(
    b: KernelBuilder, scatter: _Scatter, operands: Sequence[Operand], reduction: str, offsets: Sequence[Value]
) -> None:
    """One update."""
    dtype = operands[OUT].dtype
    found = [
        read_index(b, operands, INDICES, b.add(offsets[1], place * scatter.index_step), size)
        for place, size in enumerate(scatter.sizes)
    ]
    target = b.add(offsets[2], b.dot(found, scatter.steps))
    value = load(b, b.arguments[UPDATES], offsets[0], dtype)[0]
    if reduction != "none":
        old = load(b, b.arguments[OUT], target, dtype)[0]
        value = Instructions(b, rounds=False).apply(reduction, dtype, old, value)
    store(b, b.arguments[OUT], target, [value], dtype)
