"""The body of a kernel, what it computes at each position: an elementwise kernel's instructions, and `reduce` over dims that end with it.

An elementwise kernel, a `reduce` and every graph of pointwise nodes, reductions and norms has one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import BF16, BY_NAME, F16, I64, DType

from ...ops.strides import Dims
from ..core.kernel import Operand
from ..math.instructions import result_dtype

GIVEN = "given"
"""The instruction that stands for what is computed elsewhere; its data is a number of it."""
LOOKUP = "lookup"
"""The instruction that finds a byte's result in the block's table."""
_SENSITIVE = frozenset({"saturate", "floor", "ceil", "round", "trunc", "mod", "fmod", "sign"})


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        name: `load`, `store`, `const`, `index`, `cast`, `saturate`, `reduce`, `given`, `lookup`, or an instruction of docs/host-library.md.
        dtype: of its result; of a store, of what is stored.
        operands: numbers of instructions.
        data: the tensor of a load or store, the value of a constant, the dim of an index, the operator of a reduction, the number of
            what is given.
    """

    name: str
    dtype: DType
    operands: tuple[int, ...] = ()
    data: Any = None


@dataclass
class Body:
    """Instructions over positions of `dims`; tensors have those dims, with stride 0 where they broadcast or were reduced.

    Attributes:
        reduced: dims that `reduce` folds.
        rounds: whether every result of a 16-bit type is rounded to it.
    """

    dims: Dims
    operands: list[Operand] = field(default_factory=list)
    code: list[Instruction] = field(default_factory=list)
    reduced: frozenset[int] = frozenset()
    rounds: bool = False

    def append(self, name: str, dtype: DType, *operands: int, data: Any = None) -> int:
        """A new instruction's number, or that of an equal one."""
        made = Instruction(name, dtype, operands, data)
        for index, known in enumerate(self.code):
            if known == made and repr(known.data) == repr(data):  # 0.0 and -0.0 are equal
                return index
        self.code.append(made)
        return len(self.code) - 1

    def apply(self, name: str, *operands: int) -> int:
        """An instruction whose type follows from its operands'."""
        return self.append(name, result_dtype(name, [self.code[o].dtype for o in operands]), *operands)

    def constant(self, value: float, dtype: DType) -> int:
        """A number."""
        return self.append("const", dtype, data=value)

    def cast(self, value: int, dtype: DType) -> int:
        """A value in another type."""
        return value if self.code[value].dtype is dtype else self.append("cast", dtype, value)

    def overwrites(self) -> tuple[int, ...]:
        """Ins that lie in memory as the only out does, which has an element for each position."""
        outs = [operand for operand in self.operands if operand.role == "out"]
        if len(outs) != 1 or any(size > 1 and not step for size, step in zip(self.dims, outs[0].strides, strict=True)):
            return ()
        return tuple(
            number
            for number, operand in enumerate(self.operands)
            if operand.role == "in"
            and (operand.dims, operand.strides, operand.dtype.bytes)
            == (outs[0].dims, outs[0].strides, outs[0].dtype.bytes)
        )

    def stages(self) -> list[int]:
        """Per instruction how many reductions lie one behind the other before its result is known."""
        found: list[int] = []
        for step in self.code:
            before = max((found[o] for o in step.operands), default=0)
            found.append(before + (step.name == "reduce"))
        return found

    def short(self) -> list[bool]:
        """Per instruction whether at most 16 bits of its result count.

        It has a 16-bit float type, or all that follows from it are floats that are stored in one. Comparisons, roundings to integers and
        remainders do not pass that on: a small error may change their result altogether. Nor do floats of 8 bits, whose neighbours are far.
        """
        found = [True] * len(self.code)
        for index in reversed(range(len(self.code))):
            step = self.code[index]
            if step.name == "store":
                found[index] = self.operands[step.data].dtype in (F16, BF16)
            elif step.dtype in (F16, BF16):
                found[index] = True
            elif step.dtype.is_float8 or not step.dtype.is_float or step.dtype.name == "f64":
                found[index] = False
            for operand in step.operands:
                found[operand] &= found[index] and step.name not in _SENSITIVE
        return found

    def varying(self) -> list[bool]:
        """Per instruction whether its result differs between positions of one row, that is along the reduced dims."""
        found: list[bool] = []
        for step in self.code:
            if step.name in ("load", "store"):
                strides = self.operands[step.data].strides
                varies = any(strides[axis] and self.dims[axis] > 1 for axis in self.reduced)
                found.append(varies or (step.name == "store" and found[step.operands[0]]))
            elif step.name == "index":
                found.append(step.data in self.reduced and self.dims[step.data] > 1)
            else:
                found.append(step.name != "reduce" and any(found[o] for o in step.operands))
        return found


def elementwise_body(operands: Sequence[Operand], attributes: Mapping[str, Any]) -> Body:
    """The body of an elementwise kernel."""
    body = Body(operands[0].dims, list(operands), rounds=True)
    for name, *rest in attributes["code"]:
        code = body.code
        if name == "load":
            code.append(Instruction(name, operands[rest[0]].dtype, data=rest[0]))
        elif name == "store":
            code.append(Instruction(name, operands[rest[0]].dtype, (rest[1],), rest[0]))
        elif name == "const":
            code.append(Instruction(name, BY_NAME[rest[0]], data=rest[1]))
        elif name == "index":
            code.append(Instruction(name, I64, data=rest[0]))
        elif name in ("cast", "saturate"):
            code.append(Instruction(name, BY_NAME[rest[0]], (rest[1],)))
        else:
            code.append(Instruction(name, result_dtype(name, [code[o].dtype for o in rest]), tuple(rest)))
    return body


def identity(operator: str, dtype: DType) -> float:
    """What a reduction of nothing is."""
    if operator in ("add", "or"):
        return 0
    if operator in ("mul", "and"):
        return 1
    if dtype.is_float:
        return float("inf") if operator == "min" else float("-inf")
    info = np.iinfo(dtype.numpy)
    return int(info.max if operator == "min" else info.min)


def reduce_body(operands: Sequence[Operand], attributes: Mapping[str, Any]) -> Body:
    """The body of a `reduce`."""
    x, y = operands
    if x.elements == 0:
        body = Body(y.dims, [x, y])
        body.append("store", y.dtype, body.constant(identity(attributes["operator"], y.dtype), y.dtype), data=1)
        return body
    reduced = frozenset(axis for axis, (a, b) in enumerate(zip(x.dims, y.dims, strict=True)) if a != b)
    shown = Operand(
        y.role, y.dtype, x.dims, tuple(0 if a in reduced else s for a, s in enumerate(y.strides)), y.alignment
    )
    body = Body(x.dims, [x, shown], reduced=reduced)
    value = body.append("load", x.dtype, data=0)
    value = body.append("reduce", x.dtype, value, data=attributes["operator"])
    body.append("store", x.dtype, value, data=1)
    return body
