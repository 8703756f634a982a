"""`recurrence` on NVIDIA's matrix units: a block goes through all steps with 16 rows of the batch, and its weights stay in registers.

A wave computes 8 units: the products of each gate are one multiplication for every 16 elements of the state, and a lane gets all gates of
two neighbouring units of two rows. The state lies in shared memory twice, for what a step reads and for what it writes; the rows'
elements of a step are asked for a step ahead.
"""

from math import ceil

from hipdnn_mlir_runtime.dtypes import BF16, F16

from ...ops.families.recurrence import PANEL
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, memory_type
from ..core.space import is_wide
from .pairs import Pairs
from .recurrence_parts import Cells, Recurrence

_WAVE, _LANES = 32, 4
"""Threads of a wave, lanes that share a row of a product."""
_ROWS, _TILE, _INNER = 16, 8, 16
"""Of one multiplication: rows of the batch, units, elements of the state."""
_MOST_UNITS = 128
"""Whose weights have room in registers."""
_BESIDE = 8
"""Elements between rows in shared memory, so that lanes meet other banks."""


def takes_units(found: Recurrence, architecture: Architecture) -> bool:
    """Whether matrix units compute it: floats of 16 bits, pairs of units that lie beside each other, and few units."""
    pairs = [found.rows, found.y]
    return (
        architecture.vendor == "nvidia"
        and found.rows.dtype in (F16, BF16)
        and found.hidden % 2 == 0
        and found.hidden <= _MOST_UNITS
        and all(o.strides[-1] == 1 and all(n % 2 == 0 for n in (*o.strides[:-1], o.alignment // 2)) for o in pairs)
    )


def recurrence_units_launch(found: Recurrence) -> Launch:
    """The only launch."""
    writer = _Writer(found)
    wide = is_wide(found.operands, writer.blocks * writer.threads)
    return Launch(writer.write, writer.blocks, writer.threads, writer.shared_bytes, wide)


class _Writer:
    def __init__(self, found: Recurrence) -> None:
        self.found = found
        self.waves, self.inner = ceil(found.hidden / _TILE), ceil(found.hidden / _INNER) * _INNER
        self.threads, self.row_blocks = self.waves * _WAVE, ceil(found.batch / _ROWS)
        self.blocks = found.directions * self.row_blocks
        self.line = self.inner + _BESIDE
        self.state_bytes = _ROWS * self.line * 2
        self.shared_bytes = 2 * self.state_bytes

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, found = b, self.found
        self.pairs, self.cells = Pairs(b, found.rows.dtype), Cells(b, found.cell, is_short=True)
        self.kind = memory_type(b, found.rows.dtype)
        self.direction, block = b.div(b.block(), self.row_blocks), b.mod(b.block(), self.row_blocks)
        wave, lane = b.div(b.thread(), _WAVE), b.mod(b.thread(), _WAVE)
        self.group, self.quad = b.div(lane, _LANES), b.mod(lane, _LANES)
        first = b.mul(block, _ROWS)
        self.own = [b.add(first, self.group, more) for more in (0, _TILE)]
        self.row = [b.least(row, found.batch - 1) for row in self.own]
        self.unit = b.add(b.mul(wave, _TILE), b.mul(self.quad, 2))
        self.known = b.least(self.unit, found.hidden - 2)
        self.has_units = b.less(self.unit, found.hidden)
        self._clear()
        weights = self._weights(b.add(b.mul(wave, _TILE), self.group))
        states = self._first(2)
        b.barrier()  # cleared
        self._keep(0, states)
        cells = self._first(3) if found.cell == "lstm" else []
        bias = [found.bias(b, self.direction, b.add(self.known, j)) for j in range(2)] if found.cell == "gru" else []
        b.barrier()
        carried = [*states, *cells, *self._asked(0), b.at(0)]

        def step(number: Value, carried: list[Value]) -> list[Value]:
            return self._step(number, carried, weights, bias)

        self._end(b.loop(0, found.steps, 1, carried, step))

    def _clear(self) -> None:
        """Zeros in shared memory, which stay behind the units."""
        b = self.b

        def body(at: Value, _: list[Value]) -> list[Value]:
            b.store(b.shared(0), at, [b.constant(0, b.i32)])
            return []

        b.loop(b.thread(), self.shared_bytes // 4, self.threads, [], body)

    def _weights(self, unit: Value) -> list[list[Value]]:
        """This lane's words for each gate, two for every 16 elements of the state: of one unit."""
        b, found = self.b, self.found
        line = b.address(
            b.arguments[1], b.add(found.weights_at(b, self.direction, unit), b.mul(self.quad, 2 * PANEL)), b.i16
        )
        made = []
        for gate in range(found.gates):
            words = []
            for k in range(0, self.inner, _TILE):
                if k >= found.depth:
                    words.append(b.constant(0, b.i32))
                    continue
                low, high = (b.load(line, (gate * found.depth + k + j) * PANEL, b.i16)[0] for j in range(2))
                low, high = (b.op("arith.extui", [x], b.i32) for x in (low, high))
                words.append(b.same("arith.ori", low, b.same("arith.shli", high, b.constant(16, b.i32))))
            made.append(words)
        return made

    def _first(self, argument: int) -> list[Value]:
        """What states of this lane begin with: of two units of two rows."""
        return [
            self.found.first_state(self.b, argument, self.direction, row, self.b.add(self.known, j))
            for row in self.row
            for j in range(2)
        ]

    def _keep(self, buffer: Value, states: list[Value]) -> None:
        """Write this lane's states into shared memory."""
        b = self.b
        with b.when(self.has_units):
            for r in range(2):
                row = b.mul(b.add(self.group, r * _TILE), self.line)
                at = b.div(b.add(b.mul(buffer, _ROWS * self.line), row, self.unit), 2)
                b.store(b.shared(0), at, [self._word(states[2 * r : 2 * r + 2])])

    def _word(self, values: list[Value]) -> Value:
        return self.b.op("llvm.bitcast", [self.pairs.joined(*values)], self.b.i32)

    def _asked(self, step: Value) -> list[Value]:
        """The rows' words of a step: two units of each row and gate."""
        b, found = self.b, self.found
        time = found.time_of(b, step, self.direction)
        made = []
        for row in self.row:
            at = b.div(found.rows_at(b, time, row, self.direction, self.known), 2)
            line = b.address(b.arguments[0], at, b.i32)
            made += [b.load(line, gate * found.gate_step // 2, b.i32)[0] for gate in range(found.gates)]
        return made

    def _step(self, number: Value, carried: list[Value], weights: list[list[Value]], bias: list[Value]) -> list[Value]:
        b, found = self.b, self.found
        states, rest = carried[:4], carried[4:]
        cells, rest = (rest[:4], rest[4:]) if found.cell == "lstm" else ([], rest)
        *asked, buffer = rest
        ahead = self._asked(b.least(b.add(number, 1), found.steps - 1))
        sums = self._products(buffer, weights)
        time, other = found.time_of(b, number, self.direction), b.sub(1, buffer)
        new_states, new_cells, shown = [], [], []
        for place in range(4):
            r, j = divmod(place, 2)
            given = [self._half(asked[r * found.gates + gate], j) for gate in range(found.gates)]
            products = [sums[gate][place] for gate in range(found.gates)]
            cell = cells[place] if cells else None
            new, new_cell = self.cells.advanced(given, products, states[place], cell, bias[j] if bias else None)
            valid = found.is_within(b, time, self.row[r])
            shown.append(new if valid is None else b.select(valid, new, b.constant(0, b.f32)))
            new_states.append(new if valid is None else b.select(valid, new, states[place]))
            if cells:
                new_cells.append(new_cell if valid is None else b.select(valid, new_cell, cell))
        self._keep(other, new_states)
        self._show(time, shown)
        b.barrier()
        return [*new_states, *new_cells, *ahead, other]

    def _half(self, word: Value, place: int) -> Value:
        """One of a word's two numbers."""
        b = self.b
        bits = b.same("arith.shrui", word, b.constant(16, b.i32)) if place else word
        narrow = b.op("arith.bitcast", [b.op("arith.trunci", [bits], b.i16)], self.kind)
        return from_memory(b, narrow, self.found.rows.dtype)

    def _products(self, buffer: Value, weights: list[list[Value]]) -> list[list[Value]]:
        """Of the state, for each gate: two units of two rows."""
        b = self.b
        sums = [[b.constant(0, b.f32)] * 4 for _ in weights]
        start = b.add(b.mul(buffer, _ROWS * self.line // 2), b.mul(self.group, self.line // 2), self.quad)
        line = b.address(b.shared(0), start, b.i32)
        for k in range(0, self.inner, _INNER):
            columns = [
                [
                    self.pairs.of_word(b.load(line, (r * _TILE * self.line + k + more) // 2, b.i32)[0])
                    for more in (0, _TILE)
                ]
                for r in range(2)
            ]
            for gate, words in enumerate(weights):
                at = k // _TILE
                sums[gate] = self.pairs.multiplied(columns, words[at : at + 2], sums[gate])
        return sums

    def _show(self, time: Value, states: list[Value]) -> None:
        """Write the states of a step."""
        b, found = self.b, self.found
        for r in range(2):
            inside = b.same("arith.andi", self.has_units, b.less(self.own[r], found.batch))
            with b.when(inside):
                at = b.div(b.dot([time, self.direction, self.row[r], self.unit], found.y.strides), 2)
                b.store(b.arguments[found.y_at], at, [self._word(states[2 * r : 2 * r + 2])])

    def _end(self, carried: list[Value]) -> None:
        """The last states."""
        b, found = self.b, self.found
        for place in range(4):
            r, j = divmod(place, 2)
            inside = b.same("arith.andi", self.has_units, b.less(self.own[r], found.batch))
            with b.when(inside):
                for number, argument in enumerate(found.lasts):
                    last = found.operands[argument]
                    at = b.dot([self.direction, self.row[r], b.add(self.unit, j)], last.strides)
                    narrow = b.op("arith.truncf", [carried[4 * number + place]], self.kind)
                    b.store(b.arguments[argument], at, [narrow])
