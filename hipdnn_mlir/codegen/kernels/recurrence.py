"""`recurrence`: LSTM, GRU and RNN. A block goes through all steps with a few rows of the batch; a thread has all gates of a unit.

The state lies in shared memory, that of an LSTM's cell in registers. A thread sums over a part of the state where there are fewer units
than threads; the first part adds up and computes the gates. Weights come from the caches at every step.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

from ...ops.families.recurrence import PANEL
from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import EMPTY, Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import load, memory_type, store
from ..core.kernel import Operand
from ..core.space import is_wide
from .recurrence_parts import Cells, Recurrence
from .recurrence_units import recurrence_units_launch, takes_units

_THREADS = 512
"""Of a block, as far as the units are fewer."""
_MOST_ROWS = 4
"""Of a block: each weight that is read meets so many."""
_TOGETHER = 4
"""Neighbouring elements of a state that a thread reads at once."""
_LEAST_DEPTH = 16
"""Of a part of the state."""
_FEWEST_BLOCKS = 64
"""More rows of a block leave too few blocks below that."""


def recurrence_launch(operands: Sequence[Operand], attributes: Any, architecture: Architecture) -> Launch:
    """The only launch."""
    found = Recurrence(operands, attributes)
    if not found.directions * found.batch * found.hidden:
        return EMPTY
    if takes_units(found, architecture):
        return recurrence_units_launch(found, architecture)
    writer = _Writer(found, architecture)
    wide = is_wide(operands, writer.blocks * writer.threads)
    return Launch(writer.write, writer.blocks, writer.threads, writer.shared_bytes, wide)


class _Writer:
    def __init__(self, found: Recurrence, architecture: Architecture) -> None:
        self.found = found
        units = found.panels * PANEL
        self.lanes = min(units, architecture.max_threads)
        self.units = ceil(units / self.lanes)
        self.parts = 1
        while self.lanes * self.parts * 2 <= _THREADS and found.depth // (self.parts * 2) >= _LEAST_DEPTH:
            self.parts *= 2
        self.threads = self.lanes * self.parts
        of_row = 4 * found.depth
        if self.parts > 1:
            of_row += 4 * self.parts * found.gates * self.units * self.lanes
        most = min(found.directions * found.batch // _FEWEST_BLOCKS, architecture.shared_bytes // of_row)
        if of_row > architecture.shared_bytes:
            raise Refusal("shape", f"a recurrence of {found.hidden} units: a state has no room in shared memory")
        self.together = next(n for n in (_MOST_ROWS, 2, 1) if n <= max(most, 1))
        self.row_blocks = ceil(found.batch / self.together)
        self.blocks = found.directions * self.row_blocks
        self.sums_at = self.together * found.depth * 4
        self.shared_bytes = self.together * of_row

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, found = b, self.found
        self.cells = Cells(b, found.cell, is_short=False)
        self.direction, block = b.div(b.block(), self.row_blocks), b.mod(b.block(), self.row_blocks)
        self.first = b.mul(block, self.together)
        self.part, self.lane = b.div(b.thread(), self.lanes), b.mod(b.thread(), self.lanes)
        self.is_first = b.compare("eq", b.at(self.part), b.at(0))
        self.unit = [b.add(self.lane, n * self.lanes) for n in range(self.units)]
        self.known = [b.least(unit, found.hidden - 1) for unit in self.unit]
        self.row = [b.least(b.add(self.first, r), found.batch - 1) for r in range(self.together)]
        self.places = [(n, r) for n in range(self.units) for r in range(self.together)]
        self._begin()
        cells = []
        if found.cell == "lstm":
            cells = [found.first_state(b, 3, self.direction, self.row[r], self.known[n]) for n, r in self.places]
        b.barrier()
        self._end(b.loop(0, found.steps, 1, cells, self._step))

    def _begin(self) -> None:
        """The states into shared memory, with zeros behind them."""
        b, found = self.b, self.found

        def body(at: Value, _: list[Value]) -> list[Value]:
            row, unit = b.coordinates(at, (self.together, found.depth))
            inside = b.least(b.add(self.first, row), found.batch - 1)
            known = found.first_state(b, 2, self.direction, inside, b.least(unit, found.hidden - 1))
            b.store(b.shared(0), at, [b.select(b.less(unit, found.hidden), known, b.constant(0, b.f32))])
            return []

        b.loop(b.thread(), self.together * found.depth, self.threads, [], body)

    def _step(self, step: Value, cells: list[Value]) -> list[Value]:
        b = self.b
        time = self.found.time_of(b, step, self.direction)
        given = [self._given(time, place) for place in self.places]
        sums = self._sums()
        if self.parts > 1:
            self._share(sums)
        b.barrier()  # the state is read

        def first() -> list[Value]:
            whole, gates = sums if self.parts == 1 else self._added(), self.found.gates
            made: list[Value] = []
            for number, place in enumerate(self.places):
                products = whole[number * gates : (number + 1) * gates]
                made += self._advance(time, place, given[number], products, cells[number : number + 1])
            return made

        made = first() if self.parts == 1 else b.choose(self.is_first, first, lambda: cells, [c.type for c in cells])
        b.barrier()  # the state is written
        return made

    def _given(self, time: Value, place: tuple[int, int]) -> list[Value]:
        """The rows' elements of each gate."""
        b, found, (n, r) = self.b, self.found, place
        at, kind = found.rows_at(b, time, self.row[r], self.direction, self.known[n]), found.rows.dtype
        line = b.address(b.arguments[0], at, memory_type(b, kind))
        return [load(b, line, gate * found.gate_step, kind)[0] for gate in range(found.gates)]

    def _sums(self) -> list[Value]:
        """For each unit, row and gate: the products of this thread's part of the state."""
        b, found = self.b, self.found
        share = ceil(found.depth / self.parts / _TOGETHER) * _TOGETHER
        start = b.mul(self.part, share)
        starts = [found.weights_at(b, self.direction, unit) for unit in self.unit]

        def body(k: Value, sums: list[Value]) -> list[Value]:
            states = [b.load(b.shared(r * found.depth * 4), k, b.f32, _TOGETHER) for r in range(self.together)]
            made, kind = list(sums), memory_type(b, found.weights.dtype)
            lines = [b.address(b.arguments[1], b.add(start, b.mul(k, PANEL)), kind) for start in starts]
            for i in range(_TOGETHER):
                for n, line in enumerate(lines):
                    for g in range(found.gates):
                        weight = load(b, line, (i + g * found.depth) * PANEL, found.weights.dtype)[0]
                        for r in range(self.together):
                            number = (n * self.together + r) * found.gates + g
                            made[number] = b.intrinsic("fma", weight, states[r][i], made[number])
            return made

        nothing = [b.constant(0, b.f32)] * (len(self.places) * found.gates)
        return b.loop(start, b.least(b.add(start, share), found.depth), _TOGETHER, nothing, body)

    def _share(self, sums: list[Value]) -> None:
        b = self.b
        for number, value in enumerate(sums):
            at = b.add(b.mul(b.add(b.mul(self.part, len(sums)), number), self.lanes), self.lane)
            b.store(b.shared(self.sums_at), at, [value])

    def _added(self) -> list[Value]:
        """The sums of all parts."""
        b, count = self.b, len(self.places) * self.found.gates
        totals = []
        for number in range(count):
            total = None
            for part in range(self.parts):
                at = b.add((part * count + number) * self.lanes, self.lane)
                (value,) = b.load(b.shared(self.sums_at), at, b.f32)
                total = value if total is None else b.same("arith.addf", total, value)
            totals.append(total)
        return totals

    def _advance(
        self, time: Value, place: tuple[int, int], given: list[Value], products: list[Value], cell: list[Value]
    ) -> list[Value]:
        """One unit of one row: writes its state, returns that of its cell."""
        b, found, (n, r) = self.b, self.found, place
        before = b.load(b.shared(0), self._shared_at(place), b.f32)[0]
        bias = found.bias(b, self.direction, self.known[n]) if found.cell == "gru" else None
        new, new_cell = self.cells.advanced(given, products, before, cell[0] if cell else None, bias)
        valid = found.is_within(b, time, self.row[r])
        shown = new if valid is None else b.select(valid, new, b.constant(0, b.f32))
        kept = new if valid is None else b.select(valid, new, before)
        with b.when(b.less(self.unit[n], found.hidden)):
            b.store(b.shared(0), self._shared_at(place), [kept])
            with b.when(b.less(b.add(self.first, r), found.batch)):
                at = b.dot([time, self.direction, self.row[r], self.unit[n]], found.y.strides)
                store(b, b.arguments[found.y_at], at, [shown], found.y.dtype)
        if not cell:
            return []
        return [new_cell if valid is None else b.select(valid, new_cell, cell[0])]

    def _shared_at(self, place: tuple[int, int]) -> Value:
        n, r = place
        return self.b.add(r * self.found.depth, self.known[n])

    def _end(self, cells: list[Value]) -> None:
        """The last states."""
        b, found = self.b, self.found
        for number, (n, r) in enumerate(self.places):
            inside = [b.less(self.unit[n], found.hidden), b.less(b.add(self.first, r), found.batch), self.is_first]
            with b.when(b.same("arith.andi", b.same("arith.andi", *inside[:2]), inside[2])):
                state = b.load(b.shared(0), self._shared_at((n, r)), b.f32)[0]
                for argument, value in zip(found.lasts, [state, *cells[number : number + 1]], strict=True):
                    last = found.operands[argument]
                    at = b.dot([self.direction, self.row[r], self.unit[n]], last.strides)
                    store(b, b.arguments[argument], at, [value], last.dtype)
