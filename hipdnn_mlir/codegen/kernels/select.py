"""`arg_reduce` and `top_k`: the best elements of each line along one dim, one after the other.

The threads of a line look through all of it for the best element behind the one found last, in the order of values and then of positions;
so nothing is sorted or stored in between, and equal elements are found in order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from hipdnn_mlir_runtime.dtypes import DType

from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, store, value_type
from ..core.kernel import Operand
from ..core.lines import Lines, lines_of
from ..core.space import is_wide
from ..math.instructions import Instructions
from .best import best_of_block, best_of_wave

_NONE = -1
"""The position of no element."""


@dataclass(frozen=True)
class _Order:
    """Which of two elements comes first.

    Attributes:
        greatest: the greater one, else the lesser.
        nan_first: a NaN comes before all numbers, else behind them.
        last: of equal ones the one at the higher position.
    """

    greatest: bool
    nan_first: bool
    last: bool


def arg_reduce_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`arg_reduce`: where the best element is."""
    order = _Order(attributes["mode"] == "max", True, attributes["select_last"])
    return _launch(operands[0], None, operands[1], attributes["axis"], order, architecture)


def top_k_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """`top_k`: the best elements and where they are, sorted."""
    x, values, positions = operands
    order = _Order(attributes["largest"], attributes["largest"], False)
    return _launch(x, values, positions, attributes["axis"], order, architecture)


def _launch(
    x: Operand, values: Operand | None, positions: Operand, axis: int, order: _Order, architecture: Architecture
) -> Launch:
    outs = [out for out in (values, positions) if out is not None]
    lines = lines_of([x, *outs], axis, architecture)
    writer = _Writer(lines, x, values, positions, axis, order)
    blocks = ceil(lines.space.size / lines.beside)
    waves = lines.sharing // architecture.wave_size
    shared_bytes = 16 * waves if waves > 1 else 0
    return Launch(writer.write, blocks, lines.threads, shared_bytes, is_wide([x, *outs], blocks * lines.threads))


class _Writer:
    def __init__(
        self, lines: Lines, x: Operand, values: Operand | None, positions: Operand, axis: int, order: _Order
    ) -> None:
        self.lines, self.x, self.order = lines, x, order
        self.values, self.positions, self.axis = values, positions, axis
        self.wave = lines.wave

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, self.instructions = b, Instructions(b, rounds=False)
        thread = self.lines.thread(b)
        starts = [b.dot(thread.line, strides) for strides in self.lines.space.strides]
        kind = value_type(b, self.x.dtype)
        count = self.positions.dims[self.axis]
        nothing = [b.constant(0, kind), b.constant(_NONE, b.i32)]

        def step(number: Value, last: list[Value]) -> list[Value]:
            value, position = self._next(thread.part, starts[0], last)
            with b.when(thread.is_first):
                if self.values is not None:
                    at = b.add(starts[1], b.mul(number, self.values.strides[self.axis]))
                    store(b, b.arguments[1], at, [value], self.x.dtype)
                at = b.add(starts[-1], b.mul(number, self.positions.strides[self.axis]))
                wide = b.op("arith.extsi", [position], b.i64)
                b.store(b.arguments[2 if self.values is not None else 1], at, [wide])
            return [value, position]

        if count == 1:
            step(0, nothing)
        else:
            b.loop(0, count, 1, nothing, step)

    def _next(self, part: Value, start: Value, last: list[Value]) -> list[Value]:
        """The best element behind `last` in the order, for all threads of the line."""
        b, dtype = self.b, self.x.dtype
        nothing = [last[0], b.constant(_NONE, b.i32)]

        def body(at: Value, best: list[Value]) -> list[Value]:
            offset = b.add(start, b.mul(at, self.x.strides[self.axis]))
            value = load(b, b.arguments[0], offset, dtype)[0]
            number = at if at.type == b.i32 else b.op("arith.trunci", [at], b.i32)
            found = [value, number]
            is_open = b.same("arith.ori", self._is_none(last), self._before(last, found))
            takes = b.same("arith.andi", is_open, b.same("arith.ori", self._is_none(best), self._before(found, best)))
            return [b.select(takes, new, old) for new, old in zip(found, best, strict=True)]

        best = b.loop(part, self.x.dims[self.axis], self.lines.sharing, nothing, body)
        best = best_of_wave(b, best, self.lines.sharing, self.wave, self._better)
        waves = self.lines.sharing // self.wave
        return best_of_block(b, part, best, self.wave, waves, self._better) if waves > 1 else best

    def _is_none(self, element: list[Value]) -> Value:
        return self.b.compare("eq", element[1], self.b.constant(_NONE, self.b.i32))

    def _better(self, x: list[Value], y: list[Value]) -> list[Value]:
        b = self.b
        takes_y = b.same("arith.ori", self._is_none(x), self._before(y, x))
        is_some = b.compare("ne", y[1], b.constant(_NONE, b.i32))
        takes_y = b.same("arith.andi", takes_y, is_some)
        return [b.select(takes_y, new, old) for new, old in zip(y, x, strict=True)]

    def _before(self, x: list[Value], y: list[Value]) -> Value:
        """Whether element x comes before y."""
        b, dtype = self.b, self.x.dtype
        first = self._compare("gt" if self.order.greatest else "lt", dtype, x[0], y[0])
        equal = self._compare("eq", dtype, x[0], y[0])
        if dtype.is_float:
            x_nan, y_nan = b.compare("uno", x[0], x[0]), b.compare("uno", y[0], y[0])
            one, other = (x_nan, y_nan) if self.order.nan_first else (y_nan, x_nan)
            only = b.same("arith.andi", one, b.same("arith.xori", other, b.constant(1, b.i1)))
            first = b.same("arith.ori", first, only)
            equal = b.same("arith.ori", equal, b.same("arith.andi", x_nan, y_nan))
        earlier = b.compare("sgt" if self.order.last else "slt", x[1], y[1])
        return b.same("arith.ori", first, b.same("arith.andi", equal, earlier))

    def _compare(self, name: str, dtype: DType, x: Value, y: Value) -> Value:
        return self.instructions.apply(name, dtype, x, y)
