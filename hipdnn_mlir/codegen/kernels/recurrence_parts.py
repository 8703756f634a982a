"""What kernels of `recurrence` have in common: their operands, and a cell's arithmetic."""

from collections.abc import Sequence
from typing import Any

from hipdnn_mlir_runtime.dtypes import F32

from ...ops.families.recurrence import GATES, PANEL, depth_of, panels_of
from ..core.builder import KernelBuilder, Value
from ..core.elements import load
from ..core.kernel import Operand
from ..math.instructions import Instructions


class Recurrence:
    """The operands of a kernel, and numbers of its arguments.

    Attributes:
        cell: what a step computes.
        rows, weights, state, held, y: operands; `held` is the state of an LSTM's cell, the bias of a GRU, else None.
        lengths: the argument that lengths are, None without.
        lasts: the arguments that the last states are: of the state, then of an LSTM's cell.
    """

    def __init__(self, operands: Sequence[Operand], attributes: Any) -> None:
        self.operands, self.cell, self.is_reversed = operands, attributes["cell"], attributes["reverse"]
        count = sum(operand.role == "in" for operand in operands)
        self.rows, self.weights, self.state = operands[:3]
        self.held = operands[3] if self.cell in ("lstm", "gru") else None
        self.lengths = count - 1 if count == (3 if self.held is None else 4) + 1 else None
        self.y, self.y_at, self.lasts = operands[count], count, range(count + 1, len(operands) - 1)
        self.gates = GATES[self.cell]
        self.steps, self.directions, self.batch, self.hidden = self.y.dims
        self.depth, self.panels = depth_of(self.hidden), panels_of(self.hidden)

    def weights_at(self, b: KernelBuilder, direction: Value, unit: Value) -> Value:
        """Where the weights of a unit's first gate begin; the next element is PANEL further, the next gate `depth` elements."""
        panel = b.add(b.mul(direction, self.panels), b.least(b.div(unit, PANEL), self.panels - 1))
        return b.add(b.mul(panel, self.gates * self.depth * PANEL), b.mod(unit, PANEL))

    def time_of(self, b: KernelBuilder, step: Value, direction: Value) -> Value:
        """The place in time of a step."""
        back = b.sub(self.steps - 1, step)
        if self.is_reversed:
            return back
        return (
            step
            if self.directions == 1
            else b.select(b.compare("eq", b.at(direction), b.at(1)), b.at(back), b.at(step))
        )

    def rows_at(self, b: KernelBuilder, time: Value, row: Value, direction: Value, unit: Value) -> Value:
        """Where the element of a unit's first gate is."""
        column = b.add(b.mul(direction, self.gates * self.hidden), unit)
        return b.dot([time, row, column], self.rows.strides)

    @property
    def gate_step(self) -> int:
        """Elements of the rows from one gate to the next."""
        return self.hidden * self.rows.strides[2]

    def first_state(self, b: KernelBuilder, index: int, direction: Value, row: Value, unit: Value) -> Value:
        """What a state begins with: argument 2, and 3 of an LSTM's cell."""
        operand = self.operands[index]
        place = [direction, 0 if operand.dims[1] == 1 else row, unit]
        return load(b, b.arguments[index], b.dot(place, operand.strides), operand.dtype)[0]

    def is_within(self, b: KernelBuilder, time: Value, row: Value) -> Value | None:
        """Whether a row is longer than a place in time; None where all are."""
        if self.lengths is None:
            return None
        lengths = self.operands[self.lengths]
        length = load(b, b.arguments[self.lengths], b.mul(row, lengths.strides[0]), lengths.dtype)[0]
        time = b.at(time)
        if time.type != length.type:
            time, length = (x if x.type == b.i64 else b.op("arith.extsi", [x], b.i64) for x in (time, length))
        return b.compare("slt", time, length)

    def bias(self, b: KernelBuilder, direction: Value, unit: Value) -> Value:
        """A GRU's of a unit."""
        assert self.held is not None
        return load(b, b.arguments[3], b.dot([direction, unit], self.held.strides), self.held.dtype)[0]


class Cells:
    """Writes a cell's arithmetic; `is_short`: with the approximations of 16-bit results."""

    def __init__(self, b: KernelBuilder, cell: str, *, is_short: bool) -> None:
        self._b, self._cell, self._is_short = b, cell, is_short
        self._instructions = Instructions(b, rounds=False)

    def advanced(
        self, given: Sequence[Value], products: Sequence[Value], state: Value, cell: Value | None, bias: Value | None
    ) -> tuple[Value, Value | None]:
        """The next state, and that of an LSTM's cell, from a unit's elements of the rows and products of the state, gate by gate."""
        b = self._b
        if self._cell == "gru":
            update, reset = (self._sigmoid(x, y) for x, y in zip(given[:2], products[:2], strict=True))
            inner = b.same("arith.addf", products[2], bias)
            candidate = self._apply("tanh", b.intrinsic("fma", reset, inner, given[2]))
            rest = b.same("arith.subf", b.constant(1, b.f32), update)
            return b.intrinsic("fma", rest, candidate, b.same("arith.mulf", update, state)), None
        if cell is None:
            total = b.same("arith.addf", given[0], products[0])
            zero = b.constant(0, b.f32)
            return (self._apply("max", total, zero) if self._cell == "relu" else self._apply("tanh", total)), None
        enter, leave, keep = (self._sigmoid(x, y) for x, y in zip(given[:3], products[:3], strict=True))
        candidate = self._apply("tanh", b.same("arith.addf", given[3], products[3]))
        new = b.intrinsic("fma", keep, cell, b.same("arith.mulf", enter, candidate))
        return b.same("arith.mulf", leave, self._apply("tanh", new)), new

    def _sigmoid(self, x: Value, y: Value) -> Value:
        return self._apply("sigmoid", self._b.same("arith.addf", x, y))

    def _apply(self, name: str, *values: Value) -> Value:
        return self._instructions.apply(name, F32, *values, is_short=self._is_short)
