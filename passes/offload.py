"""hipdnn-offload: outline every maximal region that one engine of the target takes as a `hipdnn.graph`."""

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir

from hipdnn_mlir.errors import Reject
from hipdnn_mlir.ir_types import is_tensor, tensor_type
from hipdnn_mlir.ir_view import is_constant, lookup
from hipdnn_mlir.ops.emitter import Operand, emit_region
from hipdnn_mlir.ops.spec import OpView, Refusal, TensorType
from hipdnn_mlir.target import Target, find_target

from .outline_launches import Launches
from .outlining import Found, Region, outline, try_members
from .registration import body, functions, module_pass

ENGINE = "hipdnn.engine"
LAST_RESORT = "hipdnn.last_resort"
"""Attribute of a graph that no library takes."""


@module_pass("hipdnn-offload")
def offload(module: Any, *, target: str = "host") -> None:
    """Group torch ops into `hipdnn.graph` regions: an op joins its producers' regions as long as an engine takes the whole.

    The test is a dry run of the emission that later compiles the region, checked against the target's engine tables. Constants are cloned
    inside. What no engine takes stays where it is.

    Before: `%y = torch.aten.convolution %x, %w, ...`; `%z = torch.aten.relu %y`.
    After: `%z = "hipdnn.graph"(%x, %w) ({ ^bb0(%a, %b): ...convolution...; ...relu...; "hipdnn.yield"(%r) })`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        if "sym_visibility" not in function.attributes:
            outline(function, Graphs(library))


@dataclass(frozen=True)
class Graphs:
    """Regions that one engine of a target takes.

    Attributes:
        falls_back: whether an op that no engine takes by the tables' order goes to that of last resort.
    """

    target: Target
    operation: str = "hipdnn.graph"
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

    def is_second_choice(self, region: Region) -> bool:
        """Where the engine is that of last resort."""
        return LAST_RESORT in region.attributes

    def take(
        self,
        pairs: list[tuple[OpView, list[Any]]],
        operands: dict[Any, Operand],
        results: list[tuple[Any, TensorType]],
    ) -> dict[str, Any] | Reject:
        """Dry-run the emission and ask the target's engines."""
        graph = emit_region(pairs, operands, results)
        if isinstance(graph, Reject):
            return graph
        engine = self.target.engine_for(graph)
        if engine is None and self.falls_back and len(pairs) == 1:  # several nodes of one op cannot be torn apart here
            engine = self.target.last_resort(graph)
        if engine is None:
            return Reject(pairs[-1][0].label, "engine", self.target.why_not(graph), pairs[-1][0].node)
        attributes: dict[str, Any] = {ENGINE: ir.StringAttr.get(engine.name)}
        if engine.is_last_resort:
            attributes[LAST_RESORT] = ir.UnitAttr.get()
        return attributes


def try_region(members: list[Any], views: dict[Any, Any], target: Target) -> Region | Reject:
    """Dry-run the emission of `members` as one graph and ask the target's engines; `views` are what `lookup` finds."""
    return try_members(members, views, Graphs(target))


def is_taken(operation: Any, target: Target) -> bool:
    """Whether an engine takes an op as a graph of its own, other than for want of a better one."""
    found = lookup(operation)
    if isinstance(found, Reject):
        return False
    operands = {
        value: Operand(kind.static_dims(), kind.dtype)
        for value in operation.operands
        if is_tensor(value.type) and (kind := tensor_type(value.type)).is_static
    }
    results = [(value, tensor_type(value.type)) for value in operation.results]
    taken = Graphs(target, falls_back=False).take([(found[1], list(operation.results))], operands, results)
    return not isinstance(taken, Reject)


def rejects(module: Any, target: Target) -> list[Reject]:
    """Every op left outside regions that is not a data movement either, with the reason."""
    found = []
    for function in functions(module):
        if "sym_visibility" in function.attributes:
            continue
        for operation in body(function):
            if operation.name.startswith("hipdnn.") or operation.name == "func.return" or is_constant(operation):
                continue
            entry = lookup(operation)
            reject = entry if isinstance(entry, Reject) else _why_outside(operation, entry, target)
            if reject is not None:
                found.append(reject)
    return found


def _why_outside(operation: Any, found: Found, target: Target) -> Reject | None:
    """None for a data movement that legalization takes; else the reason, hipDNN's before a kernel's."""
    row, op = found
    try:
        if row.move is not None and row.move(op):
            return None
    except Refusal as refusal:
        if row.call is None and row.launch is None:
            return Reject(op.label, refusal.rule, refusal.reason, op.node)
    taker = Graphs(target) if row.emit is not None and row.move is None else Launches(target)
    region = try_members([operation], {operation: found}, taker)
    return region if isinstance(region, Reject) else None
