"""The `hipdnn` dialect: regions for hipDNN (graph) and for kernels (launch), what they compile to (executable, kernel) and its calls.

IRDL variadics force one type on all elements, so operands and results are a fixed number of optional slots; a region that needs more is
split by the offload pass.
"""

import sys
from typing import Any, Optional

from torch_mlir import ir
from torch_mlir.dialects import ext
from torch_mlir.dialects import torch as torch_dialect
from torch_mlir.dialects.ext import Operand, Region, Result

from .types import same_storage

MAX_INPUTS = 24
MAX_RESULTS = 8
REGIONS = ("hipdnn.graph", "hipdnn.launch")
"""Ops with a body of torch ops that becomes one step."""


class HipDNN(ext.Dialect, name="hipdnn"):
    """The dialect; its operations register with it when it is loaded."""


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
    def get_effects(op: Any, effects: Any) -> None:
        """Report nothing."""


class _BufferEffects(ir.MemoryEffectsOpInterface):
    """Memref operands are read (ins) or written (outs); tensor form has no effects."""

    @staticmethod
    def get_effects(op: Any, effects: Any) -> None:
        """Report reads and writes per memref operand."""
        operation = op.operation
        ins = input_count(operation)
        for index, use in enumerate(operation.op_operands):
            if isinstance(operation.operands[index].type, ir.MemRefType):
                effects.append(ir.MemoryEffect.Read if index < ins else ir.MemoryEffect.Write, use)


class YieldOp(HipDNN.Operation, name="yield", traits=[ir.IsTerminatorTrait, _NoEffects]):
    """Ends a graph's body: its results, in order."""

    __annotations__ = _slots(results=(Operand, MAX_RESULTS))


class GraphOp(HipDNN.Operation, name="graph", traits=[ir.IsIsolatedFromAboveTrait, _BufferEffects]):
    """One hipDNN graph: torch ops on block arguments.

    Tensor form: ins and results are `!torch.vtensor`. Buffer form (after legalization): ins and outs are memrefs, no results.
    """

    __annotations__ = {
        **_slots(ins=(Operand, MAX_INPUTS), outs=(Operand, MAX_RESULTS), r=(Result, MAX_RESULTS)),
        "body": Region,
    }

    def verify_invariants(self) -> bool:
        """Block arguments match ins; yielded values match results (tensor form) or outs (buffer form)."""
        return _verify_graph(self.operation)


class LaunchOp(HipDNN.Operation, name="launch", traits=[ir.IsIsolatedFromAboveTrait, _BufferEffects]):
    """One kernel: torch ops on block arguments, in the two forms of `hipdnn.graph`."""

    __annotations__ = dict(GraphOp.__annotations__)

    def verify_invariants(self) -> bool:
        """As for a graph."""
        return _verify_graph(self.operation)


class ExecutableOp(HipDNN.Operation, name="executable", traits=[_NoEffects]):
    """A compiled graph: its backend descriptors as JSON text (docs/program-format.md), one line for people, and its operands."""

    sym_name: ir.StringAttr
    summary: ir.StringAttr
    engine: ir.StringAttr
    operands_json: ir.StringAttr
    descriptors: ir.StringAttr


class ExecuteOp(HipDNN.Operation, name="execute", traits=[_BufferEffects]):
    """Run an executable on buffers: ins are read, outs are written."""

    __annotations__ = {
        **_slots(ins=(Operand, MAX_INPUTS), outs=(Operand, MAX_RESULTS)),
        "executable": ir.FlatSymbolRefAttr,
    }


class KernelOp(HipDNN.Operation, name="kernel", traits=[_NoEffects]):
    """A kernel: function, tensors and attributes as JSON text (docs/program-format.md), one line for people, and its operands."""

    sym_name: ir.StringAttr
    summary: ir.StringAttr
    operands_json: ir.StringAttr
    description: ir.StringAttr


class LaunchKernelOp(HipDNN.Operation, name="launch_kernel", traits=[_BufferEffects]):
    """Run a kernel on buffers: ins are read, outs are written."""

    __annotations__ = {
        **_slots(ins=(Operand, MAX_INPUTS), outs=(Operand, MAX_RESULTS)),
        "kernel": ir.FlatSymbolRefAttr,
    }


def input_count(operation: Any) -> int:
    """Number of `ins` of a region or a call."""
    sizes = ir.DenseI32ArrayAttr(operation.attributes["operandSegmentSizes"])
    return sum(list(sizes)[:MAX_INPUTS])


def segments(*counts: tuple[int, int]) -> ir.DenseI32ArrayAttr:
    """Segment sizes for groups of (used, slots)."""
    return ir.DenseI32ArrayAttr.get([size for used, slots in counts for size in [1] * used + [0] * (slots - used)])


def create_graph(
    ins: list[Any], outs: list[Any], results: list[Any], location: Any, *, name: str = "hipdnn.graph"
) -> Any:
    """An empty graph, or another of REGIONS, at the current insertion point; the caller fills its region."""
    return ir.Operation.create(
        name,
        results=results,
        operands=[*ins, *outs],
        regions=1,
        attributes={
            "operandSegmentSizes": segments((len(ins), MAX_INPUTS), (len(outs), MAX_RESULTS)),
            "resultSegmentSizes": segments((len(results), MAX_RESULTS)),
        },
        loc=location,
    )


def create_yield(values: list[Any], location: Any) -> None:
    """The terminator of a graph's body, at the current insertion point."""
    ir.Operation.create(
        "hipdnn.yield",
        operands=values,
        attributes={"operandSegmentSizes": segments((len(values), MAX_RESULTS))},
        loc=location,
    )


def create_execute(symbol: str, ins: list[Any], outs: list[Any], location: Any) -> Any:
    """A call of an executable, at the current insertion point."""
    return _create_call("execute", "executable", symbol, ins, outs, location)


def create_launch_kernel(symbol: str, ins: list[Any], outs: list[Any], location: Any) -> Any:
    """A call of a kernel, at the current insertion point."""
    return _create_call("launch_kernel", "kernel", symbol, ins, outs, location)


def _create_call(name: str, callee: str, symbol: str, ins: list[Any], outs: list[Any], location: Any) -> Any:
    return ir.Operation.create(
        f"hipdnn.{name}",
        operands=[*ins, *outs],
        attributes={
            callee: ir.FlatSymbolRefAttr.get(symbol),
            "operandSegmentSizes": segments((len(ins), MAX_INPUTS), (len(outs), MAX_RESULTS)),
        },
        loc=location,
    )


def _verify_graph(operation: Any) -> bool:
    def fail(message: str) -> bool:
        operation.location.emit_error(f"'{operation.name}' op {message}")
        return False

    if len(operation.regions[0].blocks) != 1:
        return fail("expects one block in its region")
    block = operation.regions[0].blocks[0]
    ins = input_count(operation)
    destinations = list(operation.operands)[ins:]
    if bool(destinations) == bool(len(operation.results)):
        return fail("expects either results (tensor form) or outs (buffer form)")
    if len(block.arguments) != ins:
        return fail(f"has {ins} ins but its body takes {len(block.arguments)} arguments")
    for index, argument in enumerate(block.arguments):
        if not same_storage(argument.type, operation.operands[index].type):
            return fail(f"ins #{index} is {operation.operands[index].type}, its body expects {argument.type}")
    yielded = list(block.operations[len(block.operations) - 1].operation.operands)
    expected = [value.type for value in (destinations or operation.results)]
    if len(yielded) != len(expected):
        return fail(f"yields {len(yielded)} values, expected {len(expected)}")
    for index, (value, kind) in enumerate(zip(yielded, expected, strict=True)):
        if not same_storage(value.type, kind):
            return fail(f"yields {value.type} as #{index}, expected {kind}")
    return True


def make_context() -> ir.Context:
    """A context with MLIR's own dialects, torch and hipdnn."""
    # The bindings look for Python classes of a dialect under this name at every operation, and remember only a success.
    sys.modules.setdefault("torch_mlir.dialects.hipdnn", sys.modules[__name__])
    context = ir.Context()
    torch_dialect.register_dialect(context)
    with context, ir.Location.unknown():
        HipDNN.load()
    return context


OVERWRITES = "hipdnn.overwrites"
"""Of a `hipdnn.kernel`: ins in whose memory its out may lie, by their places among the ins of a call."""
