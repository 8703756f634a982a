"""hipdnn-write-in-place: producers write where their result would be copied to: a slot of a concatenation, the caller's buffer."""

from torch_mlir import ir
from torch_mlir.dialects import memref

from ..ir.blocks import functions, operations
from ..ir.buffers import erase_allocation, hoist
from ..ir.dialect import RegionOp
from ..ir.module_pass import module_pass
from ..ir.view import producer
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


@module_pass("hipdnn-write-in-place")
def write_in_place(module: ir.Operation) -> None:
    """Replace a buffer that is copied somewhere by the place it is copied to, and drop the copy.

    Buffers are written once, by one graph, so the place may be written earlier than the copy did, unless something else fills it in
    between (the border of a pad: its fill moves up together with the buffer).

    A reshape between the two moves to the other side: the place is seen in the buffer's shape.

    Before: `%a = memref.alloc()`; `hipdnn.graph ins(%x) outs(%a)`; `%s = memref.subview %whole[...]`; `memref.copy %a, %s`.
    After: `%s = memref.subview %whole[...]`; `hipdnn.graph ins(%x) outs(%s)`.
    """
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, memref.CopyOp):
                _redirect(op)


def _redirect(found: memref.CopyOp) -> None:
    copy = _move_reshapes(found)
    source, destination = copy.source, copy.target
    made = allocation(source)
    if source == destination:
        copy.erase()
        return
    if made is None or not can_retype(source, destination.type, ignored=copy) or not _may_write_early(destination):
        return
    shown = producer(destination)
    if shown is not None:
        hoist(shown, made)
        _hoist_fills(base(destination), made)
    copy.erase()
    source.replace_all_uses_with(destination)
    retype_uses(destination)
    erase_allocation(source)


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
    root = base(destination)
    return root == destination or all(len(region.body.arguments) == 0 for region in _writers(root))


def _hoist_fills(root: ir.Value, before: ir.OpView) -> None:
    for region in _writers(root):
        if not region.is_before_in_block(before):
            hoist(region, before)
