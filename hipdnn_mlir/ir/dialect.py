"""The `hipdnn` dialect: regions for hipDNN (graph) and for kernels (launch), what they compile to (executable, kernel) and its calls.

IRDL variadics force one type on all elements, so operands and results are a fixed number of optional slots; a region that needs more is
split by the offload pass.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Optional, TypeVar

from torch_mlir import ir
from torch_mlir.dialects import ext
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.dialects.ext import Operand, Region, Result

from .types import same_storage

MAX_INPUTS = 24
MAX_RESULTS = 8
_BUILT = ["bufferization", "func", "irdl", "memref", "tensor"]
"""MLIR's dialects that Python builds operations of; others are loaded by passes, and where they are parsed."""
_OF_LINALG = "[#linalg.iterator_type<parallel>]"
"""Loads linalg where it is parsed, inside a list for Python not to look at it."""
_LINALG = "torch_mlir.dialects.linalg"
"""Python's module of linalg takes a tenth of a second to import, and nothing here uses it but `linalg.transpose`."""
OVERWRITES = "hipdnn.overwrites"
"""Of a `hipdnn.kernel`: ins in whose memory its out may lie, by their places among the ins of a call."""


class _Later(ModuleType):
    """A module in the place of one that is imported where something of it is used."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


class HipDNN(ext.Dialect, name="hipdnn"):
    """The dialect; its operations register with it when it is loaded."""

    _written: ClassVar[str] = ""

    @classmethod
    def _emit_module(cls) -> ir.Module:
        """Built once, and read for every other context: building it takes a twentieth of a small model's compilation."""
        cls._written = cls._written or str(super()._emit_module())
        return ir.Module.parse(cls._written)


def _slots(**groups: tuple[Any, int]) -> dict[str, Any]:
    """Annotations of `count` optional slots per group: ins0, ins1, ..."""
    return {
        f"{prefix}{i}": Optional[kind[Any]]  # noqa: UP045 - what torch-mlir's dialect builder reads
        for prefix, (kind, count) in groups.items()
        for i in range(count)
    }


class _NoEffects(ir.MemoryEffectsOpInterface):
    """Pure in tensor form: equal graphs merge, dead ones vanish."""

    @staticmethod
    def get_effects(op: ir.OpView, effects: list[Any]) -> None:
        """Report nothing."""


class _BufferEffects(ir.MemoryEffectsOpInterface):
    """Memref operands are read (ins) or written (outs); tensor form has no effects."""

    @staticmethod
    def get_effects(op: "StepOp", effects: list[Any]) -> None:
        """Report reads and writes per memref operand."""
        ins = op.ins_count
        for value, use in zip(op.operands, op.op_operands, strict=True):
            if isinstance(value.type, ir.MemRefType):
                effects.append(ir.MemoryEffect.Read if use.operand_number < ins else ir.MemoryEffect.Write, use)


class StepOp(HipDNN.Operation, traits=[_BufferEffects]):
    """What becomes one step of a program: a region, or a call of what it was compiled to."""

    __annotations__ = _slots(ins=(Operand, MAX_INPUTS), outs=(Operand, MAX_RESULTS))

    @property
    def ins(self) -> list[ir.Value]:
        """What the step reads."""
        return list(self.operands)[: self.ins_count]

    @property
    def outs(self) -> list[ir.Value]:
        """The buffers that the step writes: none in tensor form."""
        return list(self.operands)[self.ins_count :]

    @property
    def ins_count(self) -> int:
        """How many values the step reads."""
        return _ins_slots(self)


class YieldOp(HipDNN.Operation, name="yield", traits=[ir.IsTerminatorTrait, _NoEffects]):
    """Ends a region's body: its results, in order."""

    __annotations__ = _slots(results=(Operand, MAX_RESULTS))


class RegionOp(StepOp, traits=[ir.IsIsolatedFromAboveTrait]):
    """Torch ops on block arguments that become one step.

    Tensor form: ins and results are `!torch.vtensor`. Buffer form (after legalization): ins and outs are memrefs, no results.
    """

    __annotations__ = {**_slots(r=(Result, MAX_RESULTS)), "region": Region}

    @property
    def ins_count(self) -> int:
        """As of any step; each is an argument of the body, whose number is read in a fifth of the time."""
        return len(self.body.arguments)

    @property
    def body(self) -> ir.Block:
        """The block with the torch ops."""
        return self.region.blocks[0]

    @property
    def yielded(self) -> list[ir.Value]:
        """The values in the body that results or outs get."""
        return list(self.body.operations[-1].operands)

    def add_body(self, types: Sequence[ir.Type]) -> ir.Block:
        """The block of a region that has none yet, with arguments of the types of what it reads."""
        return self.region.blocks.append(*types, arg_locs=[self.location] * len(types))

    def verify_invariants(self) -> bool:
        """Block arguments match ins; yielded values match results (tensor form) or outs (buffer form)."""
        fault = _fault(self)
        if fault:
            self.location.emit_error(f"'{self.OPERATION_NAME}' op {fault}")
        return not fault


class GraphOp(RegionOp, name="graph"):
    """One hipDNN graph."""


class LaunchOp(RegionOp, name="launch"):
    """One kernel."""


class ExecutableOp(HipDNN.Operation, name="executable", traits=[_NoEffects]):
    """A compiled graph: its backend descriptors as JSON text (docs/program-format.md), one line for people, and its operands."""

    sym_name: ir.StringAttr
    summary: ir.StringAttr
    engine: ir.StringAttr
    operands_json: ir.StringAttr
    descriptors: ir.StringAttr


class ExecuteOp(StepOp, name="execute"):
    """Run an executable on buffers: ins are read, outs are written."""

    executable: ir.FlatSymbolRefAttr


class KernelOp(HipDNN.Operation, name="kernel", traits=[_NoEffects]):
    """A kernel: function, tensors and attributes as JSON text (docs/program-format.md), one line for people, and its operands."""

    sym_name: ir.StringAttr
    summary: ir.StringAttr
    operands_json: ir.StringAttr
    description: ir.StringAttr

    @property
    def overwrites(self) -> list[int]:
        """Ins in whose memory its out may lie, by their places among the ins of a call."""
        return list(self.attributes.get(OVERWRITES, ()))


class LaunchKernelOp(StepOp, name="launch_kernel"):
    """Run a kernel on buffers: ins are read, outs are written."""

    kernel: ir.FlatSymbolRefAttr


Made = TypeVar("Made", bound=StepOp)


def create_region(
    kind: type[Made],
    ins: Sequence[ir.Value],
    outs: Sequence[ir.Value],
    results: Sequence[ir.Type],
    location: ir.Location,
) -> Made:
    """A region without a body, at the current insertion point."""
    return _build(kind, ins, outs, location, results=_filled(results, MAX_RESULTS))


def create_yield(values: Sequence[ir.Value], location: ir.Location) -> None:
    """The terminator of a region's body, at the current insertion point."""
    YieldOp(*_filled(values, MAX_RESULTS), loc=location)


def create_call(
    kind: type[Made], symbol: str, ins: Sequence[ir.Value], outs: Sequence[ir.Value], location: ir.Location
) -> Made:
    """A call of an executable or a kernel, at the current insertion point."""
    callee = {"executable" if kind is ExecuteOp else "kernel": ir.FlatSymbolRefAttr.get(symbol)}
    return _build(kind, ins, outs, location, results=[], attributes=callee)


def _build(
    kind: type[Made], ins: Sequence[ir.Value], outs: Sequence[ir.Value], location: ir.Location, **rest: Any
) -> Made:
    # The constructors that torch-mlir makes take several times as long.
    operands = [*_filled(ins, MAX_INPUTS), *_filled(outs, MAX_RESULTS)]
    made: Made = kind.build_generic(operands=operands, loc=location, **rest).opview
    return made


def _filled(values: Sequence[ir.Value | ir.Type], slots: int) -> list[ir.Value | ir.Type | None]:
    """Values for all slots of a group."""
    return [*values, *[None] * (slots - len(values))]


def _ins_slots(step: StepOp) -> int:
    """How many of the slots for ins are taken."""
    return sum(list(step.attributes["operandSegmentSizes"])[:MAX_INPUTS])


def _fault(region: RegionOp) -> str | None:
    """What is wrong with a region."""
    if len(region.region.blocks) != 1:
        return "expects one block in its region"
    arguments, yielded, operands = region.body.arguments, region.yielded, list(region.operands)
    count = _ins_slots(region)
    ins, outs = operands[:count], operands[count:]
    if bool(outs) == bool(len(region.results)):
        return "expects either results (tensor form) or outs (buffer form)"
    if len(arguments) != len(ins):
        return f"has {len(ins)} ins but its body takes {len(arguments)} arguments"
    for index, (argument, value) in enumerate(zip(arguments, ins, strict=True)):
        if not same_storage(argument.type, value.type):
            return f"ins #{index} is {value.type}, its body expects {argument.type}"
    expected = [value.type for value in (outs or region.results)]
    if len(yielded) != len(expected):
        return f"yields {len(yielded)} values, expected {len(expected)}"
    for index, (value, kind) in enumerate(zip(yielded, expected, strict=True)):
        if not same_storage(value.type, kind):
            return f"yields {value.type} as #{index}, expected {kind}"
    return None


def make_context() -> ir.Context:
    """A context with torch, hipdnn, and of MLIR's own dialects those that are built."""
    # The bindings look for Python classes of a dialect under this name at every operation, and remember only a success.
    sys.modules.setdefault("torch_mlir.dialects.hipdnn", sys.modules[__name__])
    sys.modules.setdefault(_LINALG, _Later(_LINALG))
    context = ir.Context(_BUILT)  # all that there are would take a sixth of a small model's compilation
    torch_dialect.register_dialect(context)
    with context, ir.Location.unknown():
        HipDNN.load()
        ir.Attribute.parse(_OF_LINALG)
    return context
