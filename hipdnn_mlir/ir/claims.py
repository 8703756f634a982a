"""Regions that a target takes: dry runs of the emission that later compiles them, judged by the target."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import Reject

from ..ops.emitter import Operand
from ..ops.graph import Graph
from ..ops.kernels import ELEMENTWISE, Kernel
from ..ops.regions import emit_region, is_elementwise, kernel_region
from ..ops.row import moves
from ..ops.spec import OpView, Pad, Refusal, TensorArg, TensorType
from ..targets.rules import POINTWISE
from ..targets.target import Target
from .blocks import operations, public_functions
from .dialect import GraphOp, LaunchOp, RegionOp
from .operators import is_operator
from .outlining import Found, Region, try_members
from .types import is_tensor, tensor_type
from .view import is_constant, lookup, readers

ENGINE = "hipdnn.engine"
LAST_RESORT = "hipdnn.last_resort"
"""Attribute of a graph that no library takes."""


@dataclass(frozen=True)
class Graphs:
    """Regions that one engine of a target takes.

    Attributes:
        falls_back: whether an op that no engine takes by their order goes to that of last resort.
    """

    target: Target
    kind: type[RegionOp] = GraphOp
    writes_all: bool = False
    falls_back: bool = True

    @property
    def looks_ahead(self) -> bool:
        """Where an engine takes an epilogue as a whole."""
        return self.target.whole_epilogues

    def joins(self, found: Found) -> bool:
        """Ops that hipDNN has operations for."""
        return found[0].emit is not None and found[0].move is None

    def absorbs(self, found: Found) -> bool:
        """Data movement that an operation of hipDNN can do by itself: borders."""
        return found[0].emit is not None and found[0].move is not None

    def begins(self, op: ir.OpView) -> bool:
        """Dequantized bytes that others read too, or that are fewer than what is made of them: nobody stores them as floats.

        Floats of 16 bits that others read too, and one operation of hipDNN in f32.
        """
        is_shared = len(readers(op.operands[0])) > 1
        return (is_shared and _is_widened_for_one(op)) or (is_dequantization(op) and (is_shared or _is_spread(op)))

    def has_siblings(self, region: Region) -> bool:
        """On GPUs, where a kernel of pointwise operations takes as long to start as to run."""
        return self.target.architecture is not None and all(map(_is_pointwise, region.ops))

    def is_second_choice(self, region: Region) -> bool:
        """Where the engine is that of last resort."""
        return LAST_RESORT in region.attributes

    def take(
        self,
        pairs: list[tuple[OpView, list[ir.Value]]],
        operands: dict[ir.Value, Operand],
        results: list[tuple[ir.Value, TensorType]],
    ) -> dict[str, ir.Attribute] | Reject:
        """Dry-run the emission and ask the target's engines."""
        graph = emit_region(pairs, operands, results)
        if isinstance(graph, Reject):
            return graph
        engine = self.target.engine_for(graph)
        if engine is None and self.falls_back and len(pairs) == 1:  # several nodes of one op cannot be torn apart here
            engine = self.target.last_resort(graph)
        if engine is None:
            return Reject(pairs[-1][0].label, "engine", self.target.why_not(graph), pairs[-1][0].node)
        attributes: dict[str, ir.Attribute] = {ENGINE: ir.StringAttr.get(engine.name)}
        if engine.is_last_resort:
            attributes[LAST_RESORT] = ir.UnitAttr.get()
        return attributes


def is_dequantization(op: ir.OpView) -> bool:
    """Whether an op makes floats of bytes, which costs next to nothing."""
    return is_operator(op, "Dequantize")


def is_widened(op: ir.OpView) -> bool:
    """Whether an op makes wider floats of floats."""
    if not isinstance(op, torch.AtenToDtypeOp):
        return False
    before, after = (tensor_type(value.type).dtype for value in (op.self_, op.result))
    return before.is_float and after.is_float and before.bytes < after.bytes


def joins(op: ir.OpView) -> bool:
    """Whether hipDNN has operations for an op, and it moves no data."""
    found = lookup(op)
    return not isinstance(found, Reject) and found[0].emit is not None and found[0].move is None


def _is_widened_for_one(op: ir.OpView) -> bool:
    return is_widened(op) and len(reading := readers(op.result)) == 1 and joins(reading[0])


def _is_spread(op: ir.OpView) -> bool:
    size = prod(tensor_type(op.result.type).static_dims())
    made = (result.type for reader in readers(op.result) for result in reader.results)
    return any(prod(tensor_type(kind).static_dims()) > size for kind in made if is_tensor(kind))


def is_taken(op: ir.OpView, target: Target) -> bool:
    """Whether an engine takes an op as a graph of its own, other than for want of a better one."""
    return why_not_taken(op, target) is None


def why_not_taken(op: ir.OpView, target: Target) -> Reject | None:
    """Why no engine takes an op as a graph of its own, or None where one does, other than for want of a better one."""
    found = lookup(op)
    return found if isinstance(found, Reject) else why_no_engine(found[1], list(op.results), target)


def why_no_engine(op: OpView, results: Sequence[ir.Value], target: Target) -> Reject | None:
    """As `why_not_taken`, of an op as the table sees it; numbers are no operands."""
    graphs = Graphs(target, falls_back=False)
    taken = graphs.take([(op, list(results))], _operands(op), list(zip(results, op.results, strict=True)))
    return taken if isinstance(taken, Reject) else None


def _operands(op: OpView) -> dict[ir.Value, Operand]:
    tensors = [arg for arg in op.args if isinstance(arg, TensorArg) and arg.scalar is None and arg.type.is_static]
    return {arg.key: Operand(arg.type.static_dims(), arg.type.dtype) for arg in tensors}


def has_code(op: ir.OpView, target: Target) -> bool:
    """Whether the target prefers a generated kernel for an op, which reads its operands as they lie."""
    found = lookup(op)
    if isinstance(found, Reject):
        return False
    graph = emit_region([(found[1], list(op.results))], _operands(found[1]), [(op.results[0], found[1].results[0])])
    engine = target.engine_for(graph) if isinstance(graph, Graph) else None
    return engine is not None and engine.is_generated


def is_map(op: ir.OpView) -> bool:
    """Whether each element of an op's only result follows from that of one tensor of the same dims, and from numbers of rank 0."""
    found = lookup(op)
    if isinstance(found, Reject) or len(op.results) != 1:
        return False
    seen = found[1]
    tensors = [arg for arg in seen.args if isinstance(arg, TensorArg) and arg.scalar is None]
    if [arg.type.dims for arg in tensors if arg.type.dims] != [seen.results[0].dims] or not seen.results[0].is_static:
        return False
    parts = [(seen, list(op.results))], _operands(seen), [(op.results[0], seen.results[0])]
    graph, kernel = emit_region(*parts), kernel_region(*parts)
    if isinstance(graph, Graph):
        return all(node.type == POINTWISE for node in graph.nodes)
    return isinstance(kernel, Kernel) and kernel.function == ELEMENTWISE


def _is_pointwise(op: ir.OpView) -> bool:
    """Whether an op is pointwise nodes of hipDNN."""
    found = lookup(op)
    if isinstance(found, Reject):
        return False
    graph = emit_region(
        [(found[1], list(op.results))], _operands(found[1]), list(zip(op.results, found[1].results, strict=True))
    )
    return isinstance(graph, Graph) and all(node.type == POINTWISE for node in graph.nodes)


def rejects(module: ir.Operation, target: Target) -> list[Reject]:
    """Every op left outside regions that is not a data movement either, with the reason."""
    return [reject for _, reject in _left_out(module, target)]


def _left_out(module: ir.Operation, target: Target) -> Iterator[tuple[ir.OpView, Reject]]:
    for function in public_functions(module):
        for op in operations(function):
            if isinstance(op, RegionOp | func.ReturnOp) or is_constant(op):
                continue
            found = lookup(op)
            reject = found if isinstance(found, Reject) else _why_outside(op, found, target)
            if reject is not None:
                yield op, reject


def takers(module: ir.Operation, target: Target, others: Sequence[Target]) -> dict[Reject, list[str]]:
    """Which other targets take an op that this one leaves out, for the first op of each name and reason."""
    found: dict[Reject, list[str]] = {}
    seen: set[tuple[str, str, str]] = set()
    for op, reject in _left_out(module, target):
        key = (reject.op, reject.rule, reject.reason)
        known = lookup(op)
        if key in seen or isinstance(known, Reject):
            continue
        seen.add(key)
        found[reject] = [other.name for other in others if _why_outside(op, known, other) is None]
    return found


def _why_outside(op: ir.OpView, found: Found, target: Target) -> Reject | None:
    """None for a data movement that legalization takes; else the reason, hipDNN's before a kernel's."""
    row, seen = found
    try:
        if row.move is not None and row.move(seen):
            return None
    except Refusal as refusal:
        if row.call is None and row.launch is None:
            return Reject(seen.label, refusal.rule, refusal.reason, seen.node)
    taker = Graphs(target) if row.emit is not None and row.move is None else Launches(target)
    region = try_members([op], {op: found}, taker)
    return region if isinstance(region, Reject) else None


@dataclass(frozen=True)
class Launches:
    """Regions that one kernel of a target computes."""

    target: Target
    kind: type[RegionOp] = LaunchOp
    writes_all: bool = True
    looks_ahead: bool = False

    def joins(self, found: Found) -> bool:
        """Ops with a kernel that no view shows; on GPUs a border is one launch rather than a fill and a copy."""
        row, op = found
        if row.call is None and not is_elementwise(row.name):
            return False
        if not moves(row, op):
            return True
        return self.target.architecture is not None and row.move is not None and isinstance(row.move(op), Pad)

    def absorbs(self, _: Found) -> bool:
        """Nothing."""
        return False

    def begins(self, _: ir.OpView) -> bool:
        """Nothing."""
        return False

    def has_siblings(self, _: Region) -> bool:
        """Never."""
        return False

    def is_second_choice(self, _: Region) -> bool:
        """Never: kernels are equals."""
        return False

    def take(
        self,
        pairs: list[tuple[OpView, list[ir.Value]]],
        operands: dict[ir.Value, Operand],
        results: list[tuple[ir.Value, TensorType]],
    ) -> dict[str, ir.Attribute] | Reject:
        """Dry-run the kernel's description and look for its function at the target."""
        kernel = kernel_region(pairs, operands, results)
        if isinstance(kernel, Reject):
            return kernel
        refusal = self.target.refuses_kernel(kernel)
        op = pairs[-1][0]
        return {} if refusal is None else Reject(op.label, "kernel", refusal, op.node)
