"""`scan`: running sums and products. A wave takes its line piece by piece and carries the total; f32 is summed in f64, as on the host."""

from collections.abc import Sequence
from math import ceil
from typing import Any

from hipdnn_mlir_runtime.dtypes import F32, F64

from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, store, value_type
from ..core.kernel import Operand
from ..core.lines import Lines, lines_of
from ..core.space import is_wide
from ..math.instructions import Instructions
from .body import identity


def scan_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`scan`."""
    lines = lines_of(operands, attributes["axis"], architecture, block=False)
    writer = _Writer(lines, operands, attributes)
    blocks = ceil(lines.space.size / lines.beside)
    return Launch(writer.write, blocks, lines.threads, 0, is_wide(operands, blocks * lines.threads))


class _Writer:
    def __init__(self, lines: Lines, operands: Sequence[Operand], attributes: Any) -> None:
        self.lines, self.attributes = lines, attributes
        self.x, self.y = operands
        self.dtype = self.x.dtype
        self.sum_type = F64 if self.dtype is F32 else self.dtype

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, self.instructions = b, Instructions(b, rounds=False)
        axis, sharing = self.attributes["axis"], self.lines.sharing
        size = self.x.dims[axis]
        thread = self.lines.thread(b)
        starts = [b.dot(thread.line, strides) for strides in self.lines.space.strides]
        nothing = b.constant(identity(self.attributes["operator"], self.sum_type), value_type(b, self.sum_type))

        def piece(first: Value, carried: list[Value]) -> list[Value]:
            place = b.add(first, thread.part)
            is_element = b.less(place, size)
            at = b.least(place, size - 1)
            at = b.sub(size - 1, at) if self.attributes["reverse"] else at
            value = load(b, b.arguments[0], b.add(starts[0], b.mul(at, self.x.strides[axis])), self.dtype)[0]
            value = b.select(is_element, self.instructions.cast(value, self.dtype, self.sum_type), nothing)
            through, before, total = self._over_wave(value, thread.part, nothing)
            result = self._fold(carried[0], before if self.attributes["exclusive"] else through)
            with b.when(b.same("arith.andi", is_element, thread.inside)):
                narrow = self.instructions.cast(result, self.sum_type, self.dtype)
                store(b, b.arguments[1], b.add(starts[1], b.mul(at, self.y.strides[axis])), [narrow], self.dtype)
            return [self._fold(carried[0], total)]

        b.loop(0, size, sharing, [nothing], piece)

    def _fold(self, x: Value, y: Value) -> Value:
        return self.instructions.apply(self.attributes["operator"], self.sum_type, x, y)

    def _over_wave(self, value: Value, part: Value, nothing: Value) -> tuple[Value, Value, Value]:
        """Sums up to each thread of a line with and without its own value, and of all."""
        b, sharing = self.b, self.lines.sharing
        if sharing == 1:
            return value, nothing, value
        offset = 1
        while offset < sharing:
            other = b.shuffle(value, offset, sharing, "up")
            value = b.select(b.less(part, offset), value, self._fold(other, value))
            offset *= 2
        before = b.select(b.less(part, 1), nothing, b.shuffle(value, 1, sharing, "up"))
        return value, before, b.shuffle(value, sharing - 1, sharing, "idx")
