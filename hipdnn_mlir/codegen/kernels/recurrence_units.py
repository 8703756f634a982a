"""`recurrence` on NVIDIA's matrix units: a block goes through all steps with 16 rows of the batch, and its weights stay in registers.

A wave computes 8 units: the products of each gate are one multiplication for every 16 elements of the state, and a lane gets all gates of
two neighbouring units of two rows. The state lies in shared memory; the rows' elements of a step are asked for a step ahead.

More units than one block has room for are shared by a cluster of blocks. They write their parts of a state into scratch memory, wait for
each other, and read the whole state. Weights that have no room in registers lie in shared memory; those that have none there come from the
cache at every step.
"""

from math import ceil, prod

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
_FEW_UNITS, _MOST_UNITS = 96, 128
"""Of a block alone: so few that others would not help, and as many as have room for their weights in registers."""
_MOST_WAVES = 16
_BESIDE = 8
"""Elements between rows in shared memory, so that lanes meet other banks."""
_REGISTERS, _MOST_REGISTERS, _OTHER_REGISTERS = 65536, 255, 112
"""Of a multiprocessor; of a thread, and of these those that do not hold weights."""
_LINE = 4
"""Words that a thread copies at once."""


def takes_units(found: Recurrence, architecture: Architecture) -> bool:
    """Whether matrix units compute it: floats of 16 bits, pairs of units beside each other, and room in a block or a cluster."""
    pairs = [found.rows, found.y]
    return (
        architecture.vendor == "nvidia"
        and found.rows.dtype in (F16, BF16)
        and found.steps > 0
        and found.hidden % 2 == 0
        and _cluster_for(found, architecture) is not None
        and all(o.strides[-1] == 1 and all(n % 2 == 0 for n in (*o.strides[:-1], o.alignment // 2)) for o in pairs)
    )


def _cluster_for(found: Recurrence, architecture: Architecture) -> int | None:
    """How many blocks share the units, None where no number does; several as long as there are multiprocessors for them."""
    is_alone = found.hidden <= _MOST_UNITS
    most = architecture.cluster
    if is_alone:
        most = min(most, architecture.units // (found.directions * ceil(found.batch / _ROWS)))
    fits = (
        size
        for size in (8, 4, 2)
        if size <= most
        and found.hidden > _FEW_UNITS
        and found.hidden % _INNER == found.hidden % (size * _TILE) == 0
        and found.hidden <= size * _MOST_WAVES * _TILE
    )
    return next(fits, 1 if is_alone else None)


def recurrence_units_launch(found: Recurrence, architecture: Architecture) -> Launch:
    """The only launch."""
    cluster = _cluster_for(found, architecture)
    assert cluster is not None, "takes_units has to be asked first"
    writer = (_Writer if cluster == 1 else _ClusterWriter)(found, cluster, architecture)
    wide = is_wide(found.operands, writer.blocks * writer.threads)
    return Launch(writer.write, writer.blocks, writer.threads, writer.shared_bytes, wide, cluster=cluster)


class _Writer:
    """Writes the kernel of blocks on their own: the state is in shared memory twice, for what a step reads and what it writes."""

    buffers = 2

    def __init__(self, found: Recurrence, cluster: int, architecture: Architecture) -> None:
        self.found, self.cluster = found, cluster
        self.inner = ceil(found.hidden / _INNER) * _INNER
        self.waves = ceil(found.hidden / cluster / _TILE)
        self.threads, self.row_blocks = self.waves * _WAVE, ceil(found.batch / _ROWS)
        self.blocks = found.directions * self.row_blocks * cluster
        self.line = self.inner + _BESIDE
        self.state_bytes = self.buffers * _ROWS * self.line * 2
        room = min(_MOST_REGISTERS, _REGISTERS // self.threads) - _OTHER_REGISTERS
        self.held = self.inner if cluster == 1 else min(max(room // (2 * found.gates), 0) * _INNER, self.inner)
        """Elements of the state whose weights are in registers."""
        room = (architecture.asked_shared_bytes - self.state_bytes) // (self._shared_words(1) * 4)
        self.kept = min(self.held + room * _INNER, self.inner)
        """Elements whose weights are there or in shared memory."""
        self.shared_bytes = self.state_bytes + self._shared_words((self.kept - self.held) // _INNER) * 4

    def _shared_words(self, lines: int) -> int:
        """Of this many times `_INNER` elements of the state: two for each thread and gate."""
        return lines * self.found.gates * self.threads * 2

    def write(self, b: KernelBuilder) -> None:
        """Write the kernel."""
        self.b, found = b, self.found
        self.pairs, self.cells = Pairs(b, found.rows.dtype), Cells(b, found.cell, is_short=True)
        self.kind = memory_type(b, found.rows.dtype)
        place, part = b.div(b.block(), self.cluster), b.mod(b.block(), self.cluster)
        self.direction, block = b.div(place, self.row_blocks), b.mod(place, self.row_blocks)
        wave, lane = b.div(b.thread(), _WAVE), b.mod(b.thread(), _WAVE)
        self.group, self.quad = b.div(lane, _LANES), b.mod(lane, _LANES)
        self.first = b.mul(block, _ROWS)
        self.own = [b.add(self.first, self.group, more) for more in (0, _TILE)]
        self.row = [b.least(row, found.batch - 1) for row in self.own]
        units = b.mul(b.add(b.mul(part, self.waves), wave), _TILE)
        self.unit = b.add(units, b.mul(self.quad, 2))
        self.known = b.least(self.unit, found.hidden - 2)
        self.has_units = b.less(self.unit, found.hidden)
        self.weights = b.address(
            b.arguments[1],
            b.add(found.weights_at(b, self.direction, b.add(units, self.group)), b.mul(self.quad, 2 * PANEL)),
            b.i16,
        )
        held = [[self._weight(gate, k) for k in range(0, self.held, _TILE)] for gate in range(found.gates)]
        for k in range(self.held, self.kept, _INNER):
            for gate in range(found.gates):
                b.store(b.shared(self.state_bytes), self._shared_at(gate, k), self._weights(gate, k))
        states = self._first(2)
        cells = self._first(3) if found.cell == "lstm" else []
        bias = [found.bias(b, self.direction, b.add(self.known, j)) for j in range(2)] if found.cell == "gru" else []
        self._begin(states)
        carried = [*states, *cells, *self._asked(0), b.at(0)]

        def step(number: Value, carried: list[Value]) -> list[Value]:
            return self._step(number, carried, held, bias)

        self._end(b.loop(0, found.steps, 1, carried, step))

    # -- where states are ------------------------------------------------------------------------------------------

    def _begin(self, states: list[Value]) -> None:
        """The first states, with zeros behind the units."""
        b = self.b

        def body(at: Value, _: list[Value]) -> list[Value]:
            b.store(b.shared(0), at, [b.constant(0, b.i32)])
            return []

        b.loop(b.thread(), self.state_bytes // 4, self.threads, [], body)
        b.barrier()
        self._hand_on(b.at(0), states)

    def _hand_on(self, buffer: Value, states: list[Value]) -> None:
        """Give this lane's states to the next step, which reads `buffer`."""
        b = self.b
        with b.when(self.has_units):
            for r in range(2):
                row = b.mul(b.add(self.group, r * _TILE), self.line)
                at = b.div(b.add(b.mul(buffer, _ROWS * self.line), row, self.unit), 2)
                b.store(b.shared(0), at, [self._word(states[2 * r : 2 * r + 2])])
        b.barrier()

    def _line_of(self, buffer: Value) -> Value:
        """Where this lane's words of the state that a step reads begin in shared memory."""
        b = self.b
        start = b.add(b.mul(buffer, _ROWS * self.line // 2), b.mul(self.group, self.line // 2), self.quad)
        return b.address(b.shared(0), start, b.i32)

    # -- a step ----------------------------------------------------------------------------------------------------

    def _weight(self, gate: int, k: int) -> Value:
        """This lane's word for a gate and 8 elements of the state: two of one unit."""
        b, found = self.b, self.found
        if k >= found.depth:
            return b.constant(0, b.i32)
        low, high = (b.load(self.weights, (gate * found.depth + k + j) * PANEL, b.i16)[0] for j in range(2))
        low, high = (b.op("arith.extui", [x], b.i32) for x in (low, high))
        return b.same("arith.ori", low, b.same("arith.shli", high, b.constant(16, b.i32)))

    def _weights(self, gate: int, k: int) -> list[Value]:
        return [self._weight(gate, k + more) for more in (0, _TILE)]

    def _shared_at(self, gate: int, k: int) -> Value:
        """Where this thread's words of a gate and 16 elements of the state are in shared memory, behind the state."""
        lines = (k - self.held) // _INNER * self.found.gates + gate
        return self.b.mul(self.b.add(self.b.thread(), lines * self.threads), 2)

    def _first(self, argument: int) -> list[Value]:
        """What states of this lane begin with: of two units of two rows."""
        return [
            self.found.first_state(self.b, argument, self.direction, row, self.b.add(self.known, j))
            for row in self.row
            for j in range(2)
        ]

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

    def _step(self, number: Value, carried: list[Value], held: list[list[Value]], bias: list[Value]) -> list[Value]:
        b, found = self.b, self.found
        states, rest = carried[:4], carried[4:]
        cells, rest = (rest[:4], rest[4:]) if found.cell == "lstm" else ([], rest)
        *asked, buffer = rest
        ahead = self._asked(b.least(b.add(number, 1), found.steps - 1))
        sums = self._products(buffer, held)
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
        self._show(time, shown)
        self._hand_on(other, new_states)
        return [*new_states, *new_cells, *ahead, other]

    def _half(self, word: Value, place: int) -> Value:
        """One of a word's two numbers."""
        b = self.b
        bits = b.same("arith.shrui", word, b.constant(16, b.i32)) if place else word
        narrow = b.op("arith.bitcast", [b.op("arith.trunci", [bits], b.i16)], self.kind)
        return from_memory(b, narrow, self.found.rows.dtype)

    def _products(self, buffer: Value, held: list[list[Value]]) -> list[list[Value]]:
        """Of the state, for each gate: two units of two rows."""
        b = self.b
        sums = [[b.constant(0, b.f32)] * 4 for _ in held]
        line = self._line_of(buffer)
        for k in range(0, self.inner, _INNER):
            columns = [
                [self.pairs.of_word(self._state_word(line, r, k + more)) for more in (0, _TILE)] for r in range(2)
            ]
            for gate, words in enumerate(held):
                if k < self.held:
                    row = words[k // _TILE : k // _TILE + 2]
                elif k < self.kept:
                    row = b.load(b.shared(self.state_bytes), self._shared_at(gate, k), b.i32, 2)
                else:
                    row = self._weights(gate, k)
                sums[gate] = self.pairs.multiplied(columns, row, sums[gate])
        return sums

    def _state_word(self, line: Value, row: int, k: int) -> Value:
        """A lane's word of its first or second row; zeros of rows that there are not."""
        b = self.b
        if row and self.found.batch <= _TILE:
            return b.constant(0, b.i32)
        return b.load(line, (row * _TILE * self.line + k) // 2, b.i32)[0]

    # -- results ---------------------------------------------------------------------------------------------------

    def _is_there(self, row: int) -> Value:
        """Whether this lane has units of its first or second row."""
        return self.b.same("arith.andi", self.has_units, self.b.less(self.own[row], self.found.batch))

    def _show(self, time: Value, states: list[Value]) -> None:
        """Write the states of a step."""
        b, found = self.b, self.found
        for r in range(2):
            with b.when(self._is_there(r)):
                at = b.div(b.dot([time, self.direction, self.row[r], self.unit], found.y.strides), 2)
                b.store(b.arguments[found.y_at], at, [self._word(states[2 * r : 2 * r + 2])])

    def _end(self, carried: list[Value]) -> None:
        """The last states."""
        b, found = self.b, self.found
        for place in range(4):
            r, j = divmod(place, 2)
            with b.when(self._is_there(r)):
                for number, argument in enumerate(found.lasts):
                    last = found.operands[argument]
                    at = b.dot([self.direction, self.row[r], b.add(self.unit, j)], last.strides)
                    narrow = b.op("arith.truncf", [carried[4 * number + place]], self.kind)
                    b.store(b.arguments[argument], at, [narrow])


class _ClusterWriter(_Writer):
    """Writes that of clusters: the state is in shared memory once, and twice in scratch memory, where all blocks of a cluster write it."""

    buffers = 1

    def _begin(self, states: list[Value]) -> None:
        self._hand_on(self.b.at(0), states)

    def _hand_on(self, buffer: Value, states: list[Value]) -> None:
        b, found = self.b, self.found
        scratch, words = b.arguments[len(found.operands) - 1], found.hidden // 2
        plane = b.mul(b.add(b.mul(buffer, found.directions), self.direction), found.batch)
        for r in range(2):
            with b.when(self._is_there(r)):
                at = b.add(b.mul(b.add(plane, self.row[r]), words), b.div(self.unit, 2))
                b.store(scratch, at, [self._word(states[2 * r : 2 * r + 2])])
        b.cluster_barrier()
        dims = min(_ROWS, found.batch), words // _LINE
        asked = []  # all before any is stored: each takes as long as a loop's turn
        for start in range(0, prod(dims), self.threads):
            at = b.add(b.thread(), start)
            row, line = b.coordinates(b.least(at, prod(dims) - 1), dims)
            known = b.least(b.add(self.first, row), found.batch - 1)
            source = b.add(b.mul(b.add(plane, known), words), b.mul(line, _LINE))
            target = b.add(b.mul(row, self.line // 2), b.mul(line, _LINE))
            asked.append((at, target, b.load(scratch, source, b.i32, _LINE)))
        for at, target, values in asked:
            with b.when(b.less(at, prod(dims))):
                b.store(b.shared(0), target, values)
        b.barrier()

    def _line_of(self, _: Value) -> Value:
        return super()._line_of(0)
