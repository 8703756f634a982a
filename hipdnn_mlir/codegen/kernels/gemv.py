"""Matmuls of few rows (GEMV): bound by reading the matrix, so a wave reads columns along memory and keeps the sums of all rows.

What surrounds the matmuls is part of the kernel. A norm of the rows is a factor of each sum, found on the way; weights of 4 and 8 bits
become floats in registers; the epilogue is computed by one thread of a wave.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.dtypes import F32, I4, DType

from ...ops.few_rows import FewRows, Product, codes_at_once, few_rows
from ...ops.graph import Graph, Tensor
from ...ops.spec import Refusal
from ..core.arch import Architecture
from ..core.assemble import Launch
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, load, memory_type
from ..core.space import ACCESS_BYTES, Space, is_wide
from ..math.instructions import Instructions, number
from .body import Body
from .evaluate import Evaluator
from .graph_body import graph_body
from .stream import stream

_WAVES = 4
"""Of a block."""
_ACCESSES = 16
"""Of weights that a thread has under way at once."""
_MOST_SUMS = 32
"""Of a thread."""
_MOST_KNOWN = 8
"""Elements whose epilogue's operands a thread reads before it needs them."""
_Raw = tuple[list[Value], Value]
_MAGIC = 0x4B000000
"""The bits of 2^23 as f32: an integer below 2^23 in its lower bits is added to it."""


def gemv_launch(graph: Graph, architecture: Architecture, constants: Collection[int] = ()) -> Launch:
    """The launch of a graph that `few_rows` reads; raises Refusal. For `constants` see `generate_graph`."""
    found = few_rows(graph)
    body = body_behind(graph, found)
    plan = _plan(graph, found, architecture)
    early = reads_early(graph, found, architecture, constants)
    writer = _Writer(graph, found, body, plan, architecture.wave_size, early=early)
    positions = max(plan.blocks * _WAVES * architecture.wave_size, 2 * found.inner)
    return Launch(
        writer.write,
        plan.blocks,
        _WAVES * architecture.wave_size,
        4 * _WAVES * writer.sums if plan.sharing > 1 else 0,
        is_wide(body.operands, positions),
    )


def body_behind(graph: Graph, found: FewRows) -> Body:
    """What is computed on the results of the matmuls; raises Refusal."""
    matmuls = [product.node for product in found.products]
    before = [node for node in found.before if all(node is not matmul for matmul in matmuls)]
    body = graph_body(graph, given=matmuls, before=before)
    (result,) = matmuls[0].outputs.values()
    if body.dims != graph.tensors[result].dims:
        raise Refusal("shape", "the epilogue changes the shape")
    return body


def reads_early(graph: Graph, found: FewRows, architecture: Architecture, constants: Collection[int]) -> bool:
    """Whether weights, and the scale of a norm, may be loaded before the kernel in front has ended."""
    read = [index for p in found.products for index in (p.weights, p.scales) if index is not None]
    if found.norm is not None:
        read.append(found.norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT])
    return architecture.waits_in_kernels and all(graph.tensors[index].operand in constants for index in read)


def norm_factor(b: KernelBuilder, graph: Graph, found: FewRows, squares: Value) -> Value:
    """What the norm multiplies a row by, whose squares have this sum."""
    assert found.norm is not None
    epsilon = graph.tensors[found.norm.inputs[A.OPERATION_RMSNORM_EPSILON_EXT]]
    assert epsilon.value is not None
    known = float(np.frombuffer(epsilon.value, epsilon.dtype.numpy)[0])
    mean = b.same("arith.mulf", squares, b.constant(1.0 / found.inner, b.f32))
    moved = b.same("arith.addf", mean, b.constant(number(known, F32), b.f32))
    return Instructions(b, rounds=False).apply("rsqrt", F32, moved, is_short=graph.tensors[found.left].dtype.bytes == 2)


@dataclass(frozen=True)
class _Plan:
    """How threads share the matrix.

    Attributes:
        count: adjacent elements of a column that a thread takes at once.
        columns: of one wave, of each matrix.
        sharing: waves of a block that share columns, along the inner dim; 1 or all.
        unrolled: steps of a thread whose loads are under way together.
        blocks: of the grid.
    """

    count: int
    columns: int
    sharing: int
    unrolled: int
    blocks: int


def _plan(graph: Graph, found: FewRows, architecture: Architecture) -> _Plan:
    count = min(_adjacent(graph, found, product) for product in found.products)
    steps, waves = ceil(found.inner / count), architecture.wave_size
    enough = 16 * architecture.units
    columns = 1
    while found.columns // (2 * columns) >= enough and columns * 2 * len(found.products) * found.rows <= _MOST_SUMS:
        columns *= 2
        if columns * len(found.products) >= _WAVES:
            break
    sharing = _WAVES if found.columns < 4 * architecture.units and steps >= 2 * _WAVES * waves else 1
    unrolled = max(1, min(_ACCESSES // (columns * len(found.products)), ceil(steps / (waves * sharing))))
    groups = ceil(found.columns / columns)
    return _Plan(count, columns, sharing, unrolled, groups if sharing > 1 else ceil(groups / _WAVES))


def _adjacent(graph: Graph, found: FewRows, product: Product) -> int:
    """Elements of one access of the weights, with which those of the left operand can be read in whole accesses, too."""
    weights = graph.tensors[product.weights]
    if product.scales is not None:
        return codes_at_once(weights)
    count = ACCESS_BYTES // weights.dtype.bytes
    steps = [stride for size, stride in zip(weights.dims, weights.strides, strict=True) if size > 1 and stride != 1]
    while found.inner % count or weights.alignment % (count * weights.dtype.bytes) or any(s % count for s in steps):
        count //= 2
    return count


class _Writer:
    """Writes the kernel; `early`: the first weights are loaded while the kernel in front still runs."""

    def __init__(self, graph: Graph, found: FewRows, body: Body, plan: _Plan, wave: int, *, early: bool) -> None:
        self.early = early
        self.graph, self.found, self.body, self.plan, self.wave = graph, found, body, plan, wave
        pointers = [tensor for _, tensor in graph.by_uid() if tensor.has_pointer]
        self.places = {id(tensor): place for place, tensor in enumerate(pointers)}
        self.steps = found.inner // plan.count
        self.products = [(product, column) for product in found.products for column in range(plan.columns)]
        self.sums = found.rows * (len(self.products) + (found.norm is not None))
        """Of a thread: of each row one for each column, and one of squares."""
        self.space = Space(body.dims, tuple(operand.strides for operand in body.operands))

    def write(self, b: KernelBuilder) -> None:
        """Write it."""
        plan, found = self.plan, self.found
        self.b = b
        thread = b.thread()
        self.lane, wave = b.mod(thread, self.wave), b.div(thread, self.wave)
        shared = plan.sharing > 1
        group = b.block() if shared else b.add(b.mul(b.block(), _WAVES), wave)
        part = b.add(b.mul(wave, self.wave), self.lane) if shared else self.lane
        self.columns = [b.add(b.mul(group, plan.columns), column) for column in range(plan.columns)]
        last = found.columns - 1
        self.read = [b.least(column, last) if self._passes() else column for column in self.columns]
        together = self.wave * plan.sharing
        chunk = together * plan.unrolled
        whole = self.steps // chunk * chunk
        rest = []
        for first in range(whole, self.steps, together):
            step = b.add(part, first)
            is_last = first + together > self.steps
            inside = b.less(step, self.steps) if is_last else None
            rest.append((b.least(step, self.steps - 1) if is_last else step, inside))

        def of_chunk(start: Value) -> list[tuple[Value, Value]]:
            return [(b.add(start, part, number_ * together), None) for number_ in range(plan.unrolled)]

        begin = of_chunk(0) if whole else rest
        loaded = self._loaded(begin)
        if self.early:
            b.await_kernel()
        self.evaluator = Evaluator(b, self.body, self.space, 1)
        cells = [(row, column) for row in range(found.rows) for column in range(plan.columns)]
        # What the epilogue reads comes while the matrix does, where threads have room for it.
        self.known = {c: self.evaluator.loads(self._at(c[0], self.read[c[1]])) for c in cells[:_MOST_KNOWN]}
        sums = [b.constant(0, b.f32)] * self.sums
        if whole:
            sums = stream(
                b,
                lambda start: _flat(self._loaded(of_chunk(start))),
                lambda start, values, so_far: self._add(of_chunk(start), _like(loaded, values), so_far),
                _flat(loaded), sums, chunk, whole,
            )  # fmt: skip
            begin, loaded = rest, self._loaded(rest)
        sums = self._add(begin, loaded, sums)
        totals = [self._over_wave(value) for value in sums]
        if shared:
            totals = self._over_block(totals, wave)
        writes = b.compare("eq", b.at(part if shared else self.lane), b.at(0))
        with b.when(writes):
            self._finish(totals)

    def _passes(self) -> bool:
        """Whether the grid has columns behind the last one."""
        groups = self.plan.blocks if self.plan.sharing > 1 else self.plan.blocks * _WAVES
        return groups * self.plan.columns > self.found.columns

    # -- sums -----------------------------------------------------------------------------------------------------

    def _loaded(self, steps: Sequence[tuple[Value, Value]]) -> list[list[_Raw]]:
        """The weights of some steps of this thread, of each column of each matrix."""
        return [[self._raw(product, column, step) for product, column in self.products] for step, _ in steps]

    def _add(
        self, steps: Sequence[tuple[Value, Value]], weights: Sequence[Sequence[_Raw]], sums: Sequence[Value]
    ) -> list[Value]:
        """Add the products of some steps of this thread; those that are not inside are zero."""
        made = list(sums)
        for (step, inside), raw in zip(steps, weights, strict=True):
            loaded = [self._weights(product, found) for (product, _), found in zip(self.products, raw, strict=True)]
            first = self.b.mul(step, self.plan.count)
            factors = self._scale(first) if self.found.norm is not None else None
            for row in range(self.found.rows):
                x = self._left(row, first, inside)
                if factors is not None:
                    place = len(made) - self.found.rows + row
                    made[place] = self._dot(x, x, made[place])
                    x = [self.b.same("arith.mulf", value, factor) for value, factor in zip(x, factors, strict=True)]
                for number_, (values, scale) in enumerate(loaded):
                    place = row * len(self.products) + number_
                    if scale is None:
                        made[place] = self._dot(x, values, made[place])
                    else:
                        part = self._dot(x, values, self.b.constant(0, self.b.f32))
                        made[place] = self.b.intrinsic("fma", scale, part, made[place])
        return made

    def _dot(self, x: Sequence[Value], y: Sequence[Value], total: Value) -> Value:
        for left, right in zip(x, y, strict=True):
            total = self.b.intrinsic("fma", left, right, total)
        return total

    def _left(self, row: int, first: Value, inside: Value) -> list[Value]:
        """Elements of a row of the left operand."""
        tensor = self.graph.tensors[self.found.left]
        start, rest = 0, row
        for size, stride in zip(reversed(tensor.dims[:-1]), reversed(tensor.strides[:-1]), strict=True):
            start, rest = start + rest % size * stride, rest // size
        values = self._elements(tensor, start, first, tensor.strides[-1])
        if inside is None:
            return values
        return [self.b.select(inside, value, self.b.constant(0, self.b.f32)) for value in values]

    def _scale(self, first: Value) -> list[Value]:
        """Elements of the norm's scale."""
        assert self.found.norm is not None
        tensor = self.graph.tensors[self.found.norm.inputs[A.OPERATION_RMSNORM_SCALE_EXT]]
        return self._elements(tensor, 0, first, tensor.strides[-1])

    def _elements(self, tensor: Tensor, start: Value, first: Value, stride: int) -> list[Value]:
        """As many elements along the inner dim as a step has."""
        b, base, count = self.b, self._base(tensor), self.plan.count
        size = min(count, ACCESS_BYTES // tensor.dtype.bytes) if stride == 1 else 1
        while size > 1 and (
            tensor.alignment % (size * tensor.dtype.bytes) or (isinstance(start, int) and start % size)
        ):
            size //= 2
        offset = b.add(start, b.mul(first, stride))
        return [
            value
            for at in range(0, count, size)
            for value in load(b, base, b.add(offset, at * stride), tensor.dtype, size)
        ]

    def _base(self, tensor: Tensor) -> Value:
        return self.b.arguments[self.places[id(tensor)]]

    def _raw(self, product: Product, column: int, step: Value) -> _Raw:
        """What memory holds of a column at a step, as words of 32 bits where it has that many, and its scale, or None."""
        b, weights, count = self.b, self.graph.tensors[product.weights], self.plan.count
        base, stride = self._base(weights), weights.strides[-1]
        at = b.add(b.mul(self.read[column], stride // count if stride % count == 0 else 0), step)
        if product.scales is None:
            size = count * weights.dtype.bytes // 4
            if size == 0:
                offset = b.add(b.mul(self.read[column], stride), b.mul(step, count))
                return b.load(base, offset, memory_type(b, weights.dtype), count), None
            return b.load(base, b.mul(at, size), b.i32, size), None
        words = b.load(base, b.mul(at, 2), b.i32, 2)
        scales = self.graph.tensors[product.scales]
        block = b.div(step, product.block // count)
        offset = b.add(b.mul(self.read[column], scales.strides[-1]), b.mul(block, scales.strides[-2]))
        (scale,) = b.load(self._base(scales), offset, memory_type(b, scales.dtype))
        return words, scale

    def _weights(self, product: Product, raw: _Raw) -> tuple[list[Value], Value]:
        """Elements of a column, and their scale, or None."""
        dtype, (words, scale) = self.graph.tensors[product.weights].dtype, raw
        if product.scales is None:
            return [value for word in words for value in self._floats(word, dtype)], None
        found = from_memory(self.b, scale, self.graph.tensors[product.scales].dtype)
        return [value for word in words for value in self._numbers(word, dtype)], found

    def _floats(self, word: Value, dtype: DType) -> list[Value]:
        """The floats in what was loaded."""
        b = self.b
        if word.type != b.i32:
            return [from_memory(b, word, dtype)]
        if dtype is F32:
            return [b.op("arith.bitcast", [word], b.f32)]
        halves = [word, b.same("arith.shrui", word, b.constant(16, b.i32))]
        bits = [b.op("arith.trunci", [half], b.i16) for half in halves]
        return [from_memory(b, b.op("arith.bitcast", [half], memory_type(b, dtype)), dtype) for half in bits]

    def _numbers(self, word: Value, dtype: DType) -> list[Value]:
        """The numbers of 32 bits as floats: with the sign bit turned they count from the least on, and are added to 2^23."""
        b = self.b
        bits = 4 if dtype is I4 else 8
        lower, middle = (1 << bits) - 1, 1 << (bits - 1)
        turned = b.same("arith.xori", word, b.constant(sum(middle << at for at in range(0, 32, bits)), b.i32))
        zero = b.constant(float(2**23 + middle), b.f32)
        found = []
        for at in range(0, 32, bits):
            low = b.same("arith.shrui", turned, b.constant(at, b.i32)) if at else turned
            code = b.same("arith.ori", b.same("arith.andi", low, b.constant(lower, b.i32)), b.constant(_MAGIC, b.i32))
            found.append(b.same("arith.subf", b.op("arith.bitcast", [code], b.f32), zero))
        return found

    def _over_wave(self, value: Value) -> Value:
        offset = self.wave // 2
        while offset:
            value = self.b.same("arith.addf", value, self.b.shuffle(value, offset, self.wave))
            offset //= 2
        return value

    def _over_block(self, totals: list[Value], wave: Value) -> list[Value]:
        """Through shared memory: each wave writes what it has, all read all in the same order."""
        b, count = self.b, len(totals)
        with b.when(b.compare("eq", b.at(self.lane), b.at(0))):
            for place, value in enumerate(totals):
                b.store(b.shared(0), b.add(b.mul(wave, count), place), [value])
        b.barrier()
        found = []
        for place in range(count):
            parts = [b.load(b.shared(0), other * count + place, b.f32)[0] for other in range(_WAVES)]
            total = parts[0]
            for part in parts[1:]:
                total = b.same("arith.addf", total, part)
            found.append(total)
        return found

    # -- results --------------------------------------------------------------------------------------------------

    def _finish(self, totals: list[Value]) -> None:
        """Compute what follows and write it."""
        b, found, plan = self.b, self.found, self.plan
        for row in range(found.rows):
            factor = (
                norm_factor(b, self.graph, found, totals[len(totals) - found.rows + row])
                if found.norm is not None
                else None
            )
            for column in range(plan.columns):
                given = []
                for product in range(len(found.products)):
                    total = totals[row * len(self.products) + product * plan.columns + column]
                    given.append([total if factor is None else b.same("arith.mulf", total, factor)])
                at, known = self._at(row, self.columns[column]), self.known.get((row, column), {})
                if not self._passes():
                    self.evaluator.run(given, at, known)
                    continue
                with b.when(b.less(self.columns[column], found.columns)):
                    self.evaluator.run(given, at, known)

    def _at(self, row: int, column: Value) -> list[Value]:
        """Coordinates of an element of the results."""
        at: list[Value] = [column]
        for size in reversed(self.body.dims[:-1]):
            at.insert(0, row % size)
            row //= size
        return at


def _flat(loaded: Sequence[Sequence[_Raw]]) -> list[Value]:
    """All that was loaded."""
    return [value for raw in loaded for words, scale in raw for value in (*words, *([] if scale is None else [scale]))]


def _like(loaded: Sequence[Sequence[_Raw]], values: Sequence[Value]) -> list[list[_Raw]]:
    """What `_flat` was made from, with other values."""
    rest = iter(values)
    return [
        [([next(rest) for _ in words], None if scale is None else next(rest)) for words, scale in raw] for raw in loaded
    ]
