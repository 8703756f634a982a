"""hipdnn-write-in-place: producers write where their result would be copied to: a slot of a concatenation, the caller's buffer."""

from torch_mlir import ir
from torch_mlir.dialects import memref

from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import functions, operations
from ..ir.buffers import erase_allocation, hoist, storage
from ..ir.dialect import GraphOp, RegionOp
from ..ir.module_pass import module_pass
from ..ir.region import region_graph
from ..ir.view import producer, readers
from ..ir.views import (
    RESHAPES,
    WHOLE_VIEWS,
    allocation,
    base,
    can_retype,
    reshaped_back,
    retype_uses,
    uses_through_views,
)
from ..ops.graph import Graph
from ..targets.table import find_target
from ..targets.target import Target


@module_pass("hipdnn-write-in-place")
def write_in_place(module: ir.Operation, *, target: str = "host") -> None:
    """Replace a buffer that is copied somewhere by the place it is copied to, and drop the copy.

    Buffers are written once, by one graph, so the place may be written earlier than the copy did, unless something else fills it in
    between (the border of a pad: its fill moves up together with the buffer).

    A reshape between the two moves to the other side: the place is seen in the buffer's shape. Where no engine takes a graph with the
    strides of the place, it keeps its buffer, and the copy stays.

    Before: `%a = memref.alloc()`; `hipdnn.graph ins(%x) outs(%a)`; `%s = memref.subview %whole[...]`; `memref.copy %a, %s`.
    After: `%s = memref.subview %whole[...]`; `hipdnn.graph ins(%x) outs(%s)`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, memref.CopyOp):
                _redirect(op, library)


def _redirect(found: memref.CopyOp, target: Target) -> None:
    copy = _move_reshapes(found)
    source, destination = copy.source, copy.target
    made = allocation(source)
    if source == destination:
        copy.erase()
        return
    if made is None or not can_retype(source, destination.type, ignored=copy) or not _may_write_early(destination):
        return
    if not all(_is_taken(reader, source, destination, target) for reader in readers(source)):
        return
    shown = producer(destination)
    if shown is not None:
        hoist(shown, made)
    _hoist_fills(base(destination), made)
    copy.erase()
    source.replace_all_uses_with(destination)
    retype_uses(destination)
    erase_allocation(source)


def _is_taken(op: ir.OpView, source: ir.Value, destination: ir.Value, target: Target) -> bool:
    """Whether an engine still takes a graph that writes a buffer, once it writes the place instead; anything else can."""
    if not isinstance(op, GraphOp) or source not in op.outs:
        return True

    def graph(place: ir.Value) -> Graph | Reject:
        stored = [storage(place if out == source else out) for out in op.outs]
        return region_graph(op, list(map(storage, op.ins)), stored)

    def has_engine(graph: Graph | Reject) -> bool:
        return isinstance(graph, Graph) and target.engine_for(graph) is not None

    return has_engine(graph(destination)) or not has_engine(graph(source))


def _move_reshapes(copy: memref.CopyOp) -> memref.CopyOp:
    """A copy of an allocation into a reshaped view of the destination in place of one of a reshaped view of the allocation."""
    source, destination = copy.source, copy.target
    reshapes = []
    while allocation(source) is None and isinstance(reshape := producer(source), RESHAPES):
        reshapes.append(reshape)
        source = reshape.src
    if not reshapes or allocation(source) is None:
        return copy
    with ir.InsertionPoint(copy), copy.location:
        for reshape in reshapes:
            shown = reshaped_back(reshape, destination)
            if shown is None:
                return copy
            destination = shown
        moved = memref.CopyOp(source, destination)
    copy.erase()
    return moved


def _writers(root: ir.Value) -> list[RegionOp]:
    """Regions that write the whole of `root`, as it is or through views of all its elements."""
    uses = ((use.owner, use.operand_number) for use in uses_through_views(root, WHOLE_VIEWS))
    return [user for user, place in uses if isinstance(user, RegionOp) and place >= len(user.body.arguments)]


def _may_write_early(destination: ir.Value) -> bool:
    """Whether nothing but a fill without operands writes the whole buffer under `destination`."""
    return all(len(region.body.arguments) == 0 for region in _writers(base(destination)))


def _hoist_fills(root: ir.Value, before: ir.OpView) -> None:
    for region in _writers(root):
        if not region.is_before_in_block(before):
            hoist(region, before)
