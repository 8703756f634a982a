"""Programs with reductions: softmax, norms, sums. A row is what one reduction folds; several threads share it.

Where a row lies along memory, adjacent threads take adjacent elements of it and combine by shuffles, then through shared memory where a
row has more than one wave. Where rows lie beside each other (channels-last averages, softmax over channels), adjacent threads take adjacent
rows. Rows that fit stay in registers between reductions; longer ones are read again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod

from hipdnn_mlir_runtime.walks import operands_first

from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import value_type
from ..core.space import Space, arranged, is_wide, vector_size
from ..math.instructions import number
from .body import Body, identity
from .elementwise import elementwise_launch
from .evaluate import Evaluator, Lanes, functions_of, leaders_of

_BLOCK = 256
_VALUES_OF_THREAD = 32
"""Elements of a row that a thread keeps in registers."""
_VALUES_OF_BLOCK = 16384
_STEPS_AT_ONCE = 16
_LEAST_STEPS = 8
"""Of a thread, before a long row gets more."""


@dataclass(frozen=True)
class _Plan:
    """How threads share rows.

    Attributes:
        space: row dims and column dims; the dims of adjacent lanes come last.
        rows, columns: sizes of the dims of either.
        along: whether lanes are columns, else rows.
        lanes: adjacent positions of one thread.
        sharing: threads of one row (along), or one group of rows.
        beside: rows, or groups of `lanes` rows, of one block.
        once: whether each element is looked at once.
    """

    space: Space
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    along: bool
    lanes: int
    sharing: int
    beside: int
    once: bool

    @property
    def row_groups(self) -> int:
        """What blocks divide among themselves."""
        return prod(self.rows) // (1 if self.along else self.lanes)

    @property
    def steps(self) -> int:
        """What the threads of a row divide among themselves: groups of lanes, or columns."""
        return prod(self.columns) // (self.lanes if self.along else 1)

    @property
    def steps_each(self) -> int:
        """Steps of one thread."""
        return ceil(self.steps / self.sharing)

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.sharing * self.beside

    def in_wave(self, wave: int) -> int:
        """How many threads of one wave share a row, or a group of them."""
        return min(self.sharing, wave if self.along else max(1, wave // self.beside))

    @property
    def keeps(self) -> bool:
        """Whether rows stay in registers, or steps are written one by one so that many loads are under way."""
        values = self.steps_each * self.lanes
        if self.once:
            return self.steps_each <= _STEPS_AT_ONCE
        return values <= _VALUES_OF_THREAD and values * self.threads <= _VALUES_OF_BLOCK


def body_launch(body: Body, architecture: Architecture) -> Launch:
    """The launch of a body with or without reductions."""
    has_reductions = any(step.name == "reduce" for step in body.code)
    return (rowwise_launch if has_reductions else elementwise_launch)(body, architecture)


def rowwise_launch(body: Body, architecture: Architecture) -> Launch:
    """The launch of a body with reductions."""
    plan = _plan(body, architecture)
    slots = [index for index, step in enumerate(body.code) if step.name == "reduce"]
    in_wave = plan.in_wave(architecture.wave_size)
    widest = max(max(body.code[slot].dtype.bytes, 4) for slot in slots)
    per_thread = 1 if plan.along else plan.lanes
    slot_bytes = widest * per_thread * (plan.threads // in_wave) if plan.sharing > in_wave else 0
    shared_bytes = slot_bytes * len(slots)
    if shared_bytes > architecture.shared_bytes:
        raise Refusal(
            "size",
            f"{len(slots)} reductions need {shared_bytes} bytes of shared memory, expected at most {architecture.shared_bytes}",
        )
    blocks = ceil(plan.row_groups / plan.beside)
    writer = _Writer(body, plan, architecture.wave_size, slot_bytes)
    wide = is_wide(body.operands, blocks * plan.threads)
    return Launch(writer.write, blocks, plan.threads, shared_bytes, wide, body.overwrites())


def _plan(body: Body, architecture: Architecture) -> _Plan:
    functions, leaders = functions_of(body), leaders_of(body.operands)
    axes = [a for a in range(len(body.dims)) if a not in body.reduced], sorted(body.reduced)
    rows, columns = (
        arranged(tuple(body.dims[a] for a in some), [tuple(f[a] for a in some) for f in functions], leaders)
        for some in axes
    )
    along = _is_along(body, rows, columns)
    outer, inner = (rows, columns) if along else (columns, rows)
    space = Space(
        (*outer.dims, *inner.dims), tuple((*a, *b) for a, b in zip(outer.strides, inner.strides, strict=True))
    )
    lanes = vector_size(space, body.operands, divides=True) if inner.dims else 1
    share = _share_along if along else _share_beside
    sharing, beside = share(
        rows.size // (1 if along else lanes), columns.size // (lanes if along else 1), lanes, architecture
    )
    varies = body.varying()
    stores = [varies[index] for index, step in enumerate(body.code) if step.name == "store"]
    once = max(body.stages()) == 1 and not any(stores)
    return _Plan(space, rows.dims, columns.dims, along, lanes, sharing, beside, once)


def _is_along(body: Body, rows: Space, columns: Space) -> bool:
    """Whether the dim in which most memory is contiguous is reduced."""
    if not rows.dims or not columns.dims:
        return bool(columns.dims) or not rows.dims
    weight = 0
    for operand, of_row, of_column in zip(body.operands, rows.strides, columns.strides, strict=False):
        weight += operand.extent * operand.dtype.bytes * ((of_column[-1] == 1) - (of_row[-1] == 1))
    return weight >= 0


def _power_of_two(least: int) -> int:
    return 1 << max(least - 1, 0).bit_length()


def _share_along(rows: int, steps: int, lanes: int, architecture: Architecture) -> tuple[int, int]:
    """Threads of a row and rows of a block: a wave or less for a row where that leaves enough waves, else a block."""
    wave = architecture.wave_size
    fits_wave = ceil(steps / wave) * lanes <= _VALUES_OF_THREAD
    if steps <= 2 * wave or (fits_wave and rows >= 4 * architecture.units):
        sharing = min(wave, _power_of_two(steps))
        return sharing, max(1, min(_BLOCK // sharing, _power_of_two(rows)))
    sharing = 128
    while sharing < architecture.max_threads and ceil(steps / sharing) * lanes > _VALUES_OF_THREAD // 2:
        sharing *= 2
    return sharing, 1


def _share_beside(row_groups: int, steps: int, lanes: int, architecture: Architecture) -> tuple[int, int]:
    """Threads of a group of rows and groups of a block: fewer groups where there are few blocks."""
    sharing = 1
    while sharing < 8 and sharing * 2 <= steps:
        sharing *= 2
    beside = min(_BLOCK // sharing, _power_of_two(row_groups))
    while beside > 8 and row_groups < beside * architecture.units and sharing * 4 <= steps:
        sharing, beside = sharing * 2, beside // 2
    # Long rows and few of them: fewer groups leave more blocks, and more threads wait for memory together.
    least = max(2, 8 // lanes)
    while row_groups < 2 * beside * architecture.units and sharing * _LEAST_STEPS <= steps:
        if beside > least:
            beside //= 2
        elif sharing * beside >= architecture.max_threads:
            break
        sharing *= 2
    return sharing, beside


class _Writer:
    """Writes the kernel; `slot_bytes` of shared memory for each reduction."""

    def __init__(self, body: Body, plan: _Plan, wave: int, slot_bytes: int) -> None:
        self.body, self.plan, self.wave, self.slot_bytes = body, plan, wave, slot_bytes
        self.in_wave, self.step = plan.in_wave(wave), 1 if plan.along else plan.beside
        """Threads of a wave that share a row, and how far apart they are."""
        self.stages, self.varying = body.stages(), body.varying()

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        plan = self.plan
        self.b, self.evaluator = b, Evaluator(b, self.body, plan.space, plan.lanes)
        thread = b.thread()
        inner = plan.sharing if plan.along else plan.beside
        fast, slow = b.mod(thread, inner), b.div(thread, inner)
        self.part, beside = (fast, slow) if plan.along else (slow, fast)
        group = b.add(b.mul(b.block(), plan.beside), beside)
        self.row_inside = b.less(group, plan.row_groups) if plan.row_groups % plan.beside else None
        group = b.least(group, plan.row_groups - 1) if self.row_inside is not None else group
        self.row = self._coordinates(group, plan.rows, 1 if plan.along else plan.lanes)
        self.beside = beside
        self.of_row: dict[int, Lanes] = {}
        kept = [self._step(part) for part in range(plan.steps_each)] if plan.keeps else []
        self.kept: list[tuple[list[Value], Value, dict[int, Lanes]]] = kept
        for stage in range(max(self.stages) + 1):
            self._compute_row(stage)
            folds = [i for i, s in enumerate(self.body.code) if s.name == "reduce" and self.stages[i] == stage + 1]
            if folds:
                self._reduce(folds)
        self._store()

    def _coordinates(self, position: Value, dims: Sequence[int], lanes: int) -> list[Value]:
        if not dims:
            return []
        found = self.b.coordinates(position, (*dims[:-1], dims[-1] // lanes))
        return [*found[:-1], self.b.mul(found[-1], lanes)]

    def _at(self, columns: Sequence[Value]) -> list[Value]:
        return [*self.row, *columns] if self.plan.along else [*columns, *self.row]

    def _columns(self, step: Value) -> list[Value]:
        return self._coordinates(step, self.plan.columns, self.plan.lanes if self.plan.along else 1)

    def _step(self, number_: int) -> tuple[list[Value], Value, dict[int, Lanes]]:
        """Coordinates of a thread's step, whether it is one, and the values computed there."""
        b, plan = self.b, self.plan
        step = b.add(self.part, number_ * plan.sharing)
        is_last = (number_ + 1) * plan.sharing > plan.steps
        inside = b.less(step, plan.steps) if is_last else None
        return self._at(self._columns(b.least(step, plan.steps - 1) if is_last else step)), inside, {}

    def _compute_row(self, stage: int) -> None:
        """What does not differ within a row and follows from the reductions so far."""
        nowhere = self._at([0] * len(self.plan.columns))
        for index, step in enumerate(self.body.code):
            if step.name in ("store", "reduce") or self.varying[index] or self.stages[index] != stage:
                continue
            self.of_row[index] = self.evaluator.value(step, [self.of_row[o] for o in step.operands], nowhere)

    def _value(self, index: int, at: Sequence[Value], made: dict[int, Lanes]) -> Lanes:
        def unknown(number: int) -> list[int]:
            return [o for o in self.body.code[number].operands if self.varying[o] and o not in made]

        if not self.varying[index]:
            return self.of_row[index]
        for known in operands_first(index, unknown) if index not in made else ():
            step = self.body.code[known]
            operands = [made[o] if self.varying[o] else self.of_row[o] for o in step.operands]
            made[known] = self.evaluator.value(step, operands, at)
        return made[index]

    def _each_step(
        self, initial: Sequence[Value], body: Callable[[list[Value], Value, dict[int, Lanes], list[Value]], list[Value]]
    ) -> list[Value]:
        """Carry values through the thread's steps."""
        if not self.plan.keeps:
            plan = self.plan
            return self.b.loop(
                self.part, plan.steps, plan.sharing, initial,
                lambda step, carried: body(self._at(self._columns(step)), None, {}, carried),
            )  # fmt: skip
        carried = list(initial)
        for at, inside, made in self.kept:
            carried = body(at, inside, made, carried)
        return carried

    # -- reductions -----------------------------------------------------------------------------------------------

    def _fold(self, index: int, x: Value, y: Value) -> Value:
        step = self.body.code[index]
        return self.evaluator.instructions.apply(step.data, step.dtype, x, y)

    def _reduce(self, folds: Sequence[int]) -> None:
        """Fold the operands of several reductions in one pass."""
        b, code, lanes = self.b, self.body.code, self.plan.lanes
        nothing = {
            i: b.constant(number(identity(code[i].data, code[i].dtype), code[i].dtype), value_type(b, code[i].dtype))
            for i in folds
        }

        def body(at: list[Value], inside: Value, made: dict[int, Lanes], carried: list[Value]) -> list[Value]:
            result = []
            for place, index in enumerate(folds):
                values = self._value(code[index].operands[0], at, made)
                values = values * lanes if len(values) < lanes else values
                for lane, value in enumerate(values):
                    taken = value if inside is None else b.select(inside, value, nothing[index])
                    result.append(self._fold(index, carried[place * lanes + lane], taken))
            return result

        totals = self._each_step([nothing[i] for i in folds for _ in range(lanes)], body)
        partial = {i: totals[place * lanes : (place + 1) * lanes] for place, i in enumerate(folds)}
        if self.plan.along:
            partial = {i: [self._over_lanes(i, values)] for i, values in partial.items()}
        partial = {i: [self._over_wave(i, value) for value in values] for i, values in partial.items()}
        if self.slot_bytes:
            partial = self._over_block(partial)
        self.of_row.update(partial)

    def _over_lanes(self, index: int, values: Lanes) -> Value:
        """One value of a thread's lanes."""
        while len(values) > 1:
            half = len(values) // 2
            values = [self._fold(index, values[i], values[half + i]) for i in range(half)]
        return values[0]

    def _over_wave(self, index: int, total: Value) -> Value:
        """One value of the threads of a wave that share the row."""
        offset = self.in_wave // 2
        while offset:
            total = self._fold(index, total, self.b.shuffle(total, offset * self.step, self.wave))
            offset //= 2
        return total

    def _over_block(self, partial: dict[int, Lanes]) -> dict[int, Lanes]:
        """Through shared memory: each wave's part of a row writes what it has, all read all in the same order."""
        b, plan = self.b, self.plan
        slots = [i for i, step in enumerate(self.body.code) if step.name == "reduce"]
        stored = {i: self._shared_type(i) for i in partial}
        beside, apart = 0 if plan.along else self.beside, plan.threads // self.in_wave
        for index, values in partial.items():
            base = b.shared(slots.index(index) * self.slot_bytes)
            place = b.add(b.mul(b.div(self.part, self.in_wave), self.step), beside)
            with b.when(b.compare("eq", b.at(b.mod(self.part, self.in_wave)), b.at(0))):
                for lane, value in enumerate(values):
                    b.store(base, b.add(place, lane * apart), [self._to_shared(value)])
        b.barrier()
        made: dict[int, Lanes] = {}
        for index, values in partial.items():
            base = b.shared(slots.index(index) * self.slot_bytes)
            totals: Lanes = []
            for lane in range(len(values)):
                place = b.add(beside, lane * apart)
                read = [
                    self._from_shared(b.load(base, b.add(place, part * self.step), stored[index])[0], index)
                    for part in range(plan.sharing // self.in_wave)
                ]
                total = read[0]
                for value in read[1:]:
                    total = self._fold(index, total, value)
                totals.append(total)
            made[index] = totals
        return made

    def _shared_type(self, index: int) -> Value:
        dtype = self.body.code[index].dtype
        return self.b.i8 if dtype.name == "bool" else value_type(self.b, dtype)

    def _to_shared(self, value: Value) -> Value:
        return self.b.op("arith.extui", [value], self.b.i8) if value.type == self.b.i1 else value

    def _from_shared(self, value: Value, index: int) -> Value:
        is_bool = self.body.code[index].dtype.name == "bool"
        return self.b.op("arith.trunci", [value], self.b.i1) if is_bool else value

    # -- results --------------------------------------------------------------------------------------------------

    def _store(self) -> None:
        b, code = self.b, self.body.code
        stores = [i for i, step in enumerate(code) if step.name == "store"]
        whole = [i for i in stores if self.varying[i]]

        def body(at: list[Value], inside: Value, made: dict[int, Lanes], carried: list[Value]) -> list[Value]:
            values = {i: self._value(code[i].operands[0], at, made) for i in whole}
            with b.when(self._both(inside, self.row_inside)):
                for i in whole:
                    self.evaluator.store(code[i].data, values[i], at)
            return carried

        if whole:
            self._each_step([], body)
        if len(whole) < len(stores):
            is_first = b.compare("eq", b.at(self.part), b.at(0)) if self.plan.sharing > 1 else None
            with b.when(self._both(is_first, self.row_inside)):
                for i in stores:
                    if not self.varying[i]:
                        self.evaluator.store(
                            code[i].data, self.of_row[code[i].operands[0]], self._at([0] * len(self.plan.columns))
                        )

    def _both(self, a: Value, c: Value) -> Value:
        """Both conditions; None always holds."""
        found = [condition for condition in (a, c) if condition is not None]
        if not found:
            return self.b.constant(1, self.b.i1)
        return found[0] if len(found) == 1 else self.b.same("arith.andi", *found)
