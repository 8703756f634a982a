"""Functions of one byte that are a byte: a block computes all 256 results, and then looks them up."""

from collections.abc import Sequence
from math import prod

from ..core.builder import KernelBuilder, Value
from ..core.elements import to_memory
from ..core.kernel import Operand
from ..core.space import Space
from .body import LOOKUP, Body, Instruction
from .evaluate import Evaluator, Lanes

TABLE_BYTES = 256
LEAST_ELEMENTS = 1 << 16
"""Fewer are computed sooner than a table for each multiprocessor."""
_LEAST_INSTRUCTIONS = 8
"""Of the function, beside constants: what is shorter is computed as fast as memory moves."""


def looked_up(body: Body) -> Body | None:
    """The body with the function of a byte as one instruction; None where it is none, or too short or for too few elements."""
    names = [step.name for step in body.code]
    bytes_only = len(body.operands) == 2 and all(operand.dtype.name in ("i8", "u8") for operand in body.operands)
    if (
        not bytes_only
        or names.count("load") != 1
        or names.count("store") != 1
        or {"index", "reduce", "given"} & {*names}
    ):
        return None
    computed = len(names) - names.count("const") - 2
    (store,) = (step for step in body.code if step.name == "store")
    if prod(body.dims) < LEAST_ELEMENTS or computed < _LEAST_INSTRUCTIONS:
        return None
    (load,) = (step for step in body.code if step.name == "load")
    code = [load, Instruction(LOOKUP, store.dtype, (0,)), Instruction("store", store.dtype, (1,), store.data)]
    return Body(body.dims, body.operands, code)


def write_table(b: KernelBuilder, body: Body, space: Space) -> None:
    """Have each of as many threads as there are bytes write the result of its number into shared memory, and wait for all."""
    evaluator, thread = Evaluator(b, body, space, 1), b.thread()
    byte = b.op("arith.trunci", [thread], b.i8)
    made: list[Lanes] = []
    for step in body.code:
        operands: Sequence[Lanes] = [made[number] for number in step.operands]
        if step.name == "store":
            b.store(b.shared(0), thread, [_stored(b, operands[0][0], body.operands[step.data])])
            made.append([])
        else:
            made.append([byte] if step.name == "load" else evaluator.value(step, operands, []))
    b.barrier()


def _stored(b: KernelBuilder, value: Value, operand: Operand) -> Value:
    return to_memory(b, value, operand.dtype)
