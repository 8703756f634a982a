"""Writes a body's instructions for a few adjacent positions at a time."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hipdnn_mlir_runtime.dtypes import F32, I4, DType

from ...ops.spec import Refusal
from ..core.builder import KernelBuilder, Value
from ..core.elements import from_memory, load_codes, memory_type, to_memory, value_type
from ..core.kernel import Operand
from ..core.space import Space, access_size
from ..math.functions import has_quotient
from ..math.instructions import Instructions, number
from .body import GIVEN, LOOKUP, Body, Instruction

_WORD_BYTES = 4
Lanes = list[Value]
"""Values of adjacent positions, or one value that they share."""


class Evaluator:
    """Loads, computes and stores the lanes of a body.

    Args:
        b: where to.
        body: what.
        space: its positions; functions are the operands' offsets, then positions along dims as `index_functions` lists them.
        lanes: adjacent positions.
        of_integers: what is given are exact sums: a product of one and what is added to it are rounded once, and no result is NaN.
    """

    def __init__(self, b: KernelBuilder, body: Body, space: Space, lanes: int, *, of_integers: bool = False) -> None:
        self.b, self.body, self.space, self.lanes, self.of_integers = b, body, space, lanes, of_integers
        sizes = [
            access_size(o, s, lanes) for o, s in zip(body.operands, space.strides, strict=False) if o.role == "out"
        ]
        self._is_packed = of_integers and all(size >= _WORD_BYTES for size in sizes)
        self.instructions = Instructions(b, rounds=body.rounds)
        # Equal instructions are one here: long if any of them is.
        self._long = {step for step, is_short in zip(body.code, body.short(), strict=True) if not is_short}
        dims = index_dims(body)
        self._index = {dim: space.strides[len(body.operands) + place] for place, dim in enumerate(dims)}

    def loads(self, coordinates: Sequence[Value], *, is_same: bool = False) -> dict[int, Lanes]:
        """What the body reads at the positions from `coordinates` on, by the number of the instruction.

        Args:
            coordinates: the first position.
            is_same: only what differs along the last dim alone.
        """
        steps = [(index, step) for index, step in enumerate(self.body.code) if step.name == "load"]
        return {
            index: self.value(step, [], coordinates)
            for index, step in steps
            if not (is_same and any(self.space.strides[step.data][:-1]))
        }

    def run(
        self, given: Sequence[Lanes], coordinates: Sequence[Value], known: Mapping[int, Lanes] = MappingProxyType({})
    ) -> None:
        """All instructions of a body without reductions, at the positions from `coordinates` on.

        Args:
            given: what is computed elsewhere.
            coordinates: the first position.
            known: results of instructions that are known already, see `loads`.
        """
        made: list[Lanes] = []
        for index, step in enumerate(self.body.code):
            operands = [made[o] for o in step.operands]
            if step.name == "store":
                self.store(step.data, operands[0], coordinates)
                made.append([])
            elif index in known:
                made.append(known[index])
            elif step.name == GIVEN:
                made.append(given[step.data])
            else:
                added = self._product_added(step, operands, made)
                made.append(self.value(step, operands, coordinates) if added is None else added)

    def value(self, step: Instruction, operands: Sequence[Lanes], coordinates: Sequence[Value]) -> Lanes:
        """The result of an instruction that is no reduction or store, at the positions from `coordinates` on."""
        if step.name == "load":
            return self._load(step.data, coordinates)
        if step.name == "const":
            return [self.instructions.constant(step.data, step.dtype)]
        if step.name == "index":
            return self._positions(self._index[step.data], coordinates, step.dtype)
        count = max(len(lanes) for lanes in operands)
        return [
            self._apply(step, [lanes[lane if len(lanes) > 1 else 0] for lanes in operands]) for lane in range(count)
        ]

    def _product_added(self, step: Instruction, operands: Sequence[Lanes], made: Sequence[Lanes]) -> Lanes | None:
        """A sum of which one operand is a product, in f32."""
        if not self.of_integers or step.name != "add" or step.dtype is not F32:
            return None
        product = next((o for o in step.operands if self.body.code[o].name == "mul"), None)
        if product is None:
            return None
        other = operands[1 - step.operands.index(product)]
        parts = [*(made[o] for o in self.body.code[product].operands), other]
        count = max(map(len, parts))
        return [
            self.b.intrinsic("fma", *(part[lane if len(part) > 1 else 0] for part in parts)) for lane in range(count)
        ]

    def _apply(self, step: Instruction, operands: Sequence[Value]) -> Value:
        source = self.body.code[step.operands[-1]].dtype
        if step.name == "cast":
            return self.instructions.cast(operands[0], source, step.dtype)
        if step.name == LOOKUP:
            place = self.b.op("arith.extui", [operands[0]], self.b.position_type)
            return self.b.load(self.b.shared(0), place, self.b.i8)[0]
        if step.name == "saturate":
            return self.instructions.saturate(
                operands[0], source, step.dtype, is_number=self.of_integers, is_packed=self._is_packed
            )
        if step.name == "pow" and (special := self._known_power(step, operands)) is not None:
            return special
        divisor = self._known_divisor(step)
        # LLVM makes the division by a power of two an exact multiplication.
        is_exact = divisor is not None and abs(math.frexp(divisor)[0]) == 0.5
        is_short = step not in self._long and not is_exact
        if divisor is not None and step.dtype is F32 and not (is_exact or is_short) and has_quotient(divisor):
            return self.instructions.quotient(operands[0], divisor)
        return self.instructions.apply(step.name, source, *operands, is_short=is_short)

    def _known_power(self, step: Instruction, operands: Sequence[Value]) -> Value | None:
        """Powers that are a multiplication or nothing."""
        exponent = self.body.code[step.operands[1]]
        if exponent.name != "const" or exponent.data not in (1, 2):
            return None
        return (
            operands[0] if exponent.data == 1 else self.instructions.apply("mul", step.dtype, operands[0], operands[0])
        )

    def _known_divisor(self, step: Instruction) -> float | None:
        """The constant that it divides by."""
        divisor = self.body.code[step.operands[-1]]
        while divisor.name == "cast":
            divisor = self.body.code[divisor.operands[0]]
        known = step.name == "div" and divisor.name == "const"
        return number(divisor.data, divisor.dtype) if known else None

    def _positions(self, strides: Sequence[int], coordinates: Sequence[Value], dtype: DType) -> Lanes:
        b = self.b
        start = b.at(b.dot(coordinates, strides))
        first = start if start.type == b.i64 else b.op("arith.extui", [start], b.i64)
        step = strides[-1] if strides else 0
        kind = value_type(b, dtype)
        count = self.lanes if step else 1
        return [
            first if lane == 0 else b.same("arith.addi", first, b.constant(lane * step, kind)) for lane in range(count)
        ]

    def _load(self, number: int, coordinates: Sequence[Value]) -> Lanes:
        b, operand, strides = self.b, self.body.operands[number], self.space.strides[number]
        offset = b.dot(coordinates, strides)
        size = access_size(operand, strides, self.lanes)
        kind, base = memory_type(b, operand.dtype), b.arguments[number]
        if operand.dtype is I4:
            if size < 2:
                raise Refusal("alignment", "numbers of 4 bits that are read one by one")
            firsts = range(0, self.lanes, size)
            return [v for lane in firsts for v in load_codes(b, base, b.add(offset, lane), size)]
        if size == 0:
            raw = b.load(base, offset, kind)
        else:
            step = strides[-1]
            raw = [
                v for lane in range(0, self.lanes, size) for v in b.load(base, b.add(offset, lane * step), kind, size)
            ]
        return [from_memory(b, value, operand.dtype) for value in raw]

    def store(self, number: int, lanes: Lanes, coordinates: Sequence[Value]) -> None:
        """Write lanes to an out."""
        b, operand, strides = self.b, self.body.operands[number], self.space.strides[number]
        offset = b.dot(coordinates, strides)
        size = access_size(operand, strides, self.lanes)
        raw = [to_memory(b, value, operand.dtype) for value in lanes]
        if size == 0:
            b.store(b.arguments[number], offset, raw[:1])
            return
        if len(raw) < self.lanes:
            raw *= self.lanes
        for lane in range(0, self.lanes, size):
            b.store(b.arguments[number], b.add(offset, lane * strides[-1]), raw[lane : lane + size])


def index_dims(body: Body) -> list[int]:
    """Dims whose positions the body reads."""
    return sorted({step.data for step in body.code if step.name == "index"})


def functions_of(body: Body) -> list[tuple[int, ...]]:
    """Linear functions of the body's positions: the operands' offsets, then positions along `index_dims`."""
    units = [tuple(int(axis == dim) for axis in range(len(body.dims))) for dim in index_dims(body)]
    return [operand.strides for operand in body.operands] + units


def leaders_of(operands: Sequence[Operand]) -> list[int]:
    """Operands in the order in which their layout counts: outs, then ins, the largest first."""
    return sorted(range(len(operands)), key=lambda i: (operands[i].role == "in", -operands[i].extent))
