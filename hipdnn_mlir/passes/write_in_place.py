"""hipdnn-write-in-place: producers write where their result would be copied to: a slot of a concatenation, the caller's buffer."""

from typing import Any

from torch_mlir import ir

from ..ir.blocks import body, functions
from ..ir.buffers import erase_allocation, hoist
from ..ir.dialect import REGIONS
from ..ir.module_pass import module_pass
from ..ir.views import RESHAPES, VIEWS, allocation, base, can_retype, reshaped_back, retype_uses, uses_through_views

_WHOLE_VIEWS = frozenset(VIEWS) - {"memref.subview"}


@module_pass("hipdnn-write-in-place")
def write_in_place(module: Any) -> None:
    """Replace a buffer that is copied somewhere by the place it is copied to, and drop the copy.

    Buffers are written once, by one graph, so the place may be written earlier than the copy did, unless something else fills it in
    between (the border of a pad: its fill moves up together with the buffer).

    A reshape between the two moves to the other side: the place is seen in the buffer's shape.

    Before: `%a = memref.alloc()`; `"hipdnn.graph"(%x, %a)`; `%s = memref.subview %whole[...]`; `memref.copy %a, %s`.
    After: `%s = memref.subview %whole[...]`; `"hipdnn.graph"(%x, %s)`.
    """
    for function in functions(module):
        for operation in body(function):
            if operation.name == "memref.copy":
                _redirect(operation)


def _redirect(copy: Any) -> None:
    _move_reshapes(copy)
    source, destination = copy.operands
    made = allocation(source)
    if source == destination:
        copy.erase()
        return
    if made is None or not can_retype(source, destination.type, ignored=copy) or not _may_write_early(destination):
        return
    if not isinstance(destination.owner, ir.Block):
        hoist(destination.owner.operation, made)
        _hoist_fills(base(destination), made)
    copy.erase()
    source.replace_all_uses_with(destination)
    retype_uses(destination)
    erase_allocation(source)


def _move_reshapes(copy: Any) -> None:
    """Copy an allocation into a reshaped view of the destination rather than a reshaped view of the allocation."""
    source, destination = copy.operands
    reshapes = []
    while (
        allocation(source) is None
        and not isinstance(source.owner, ir.Block)
        and source.owner.operation.name in RESHAPES
    ):
        reshapes.append(source.owner.operation)
        source = source.owner.operation.operands[0]
    if not reshapes or allocation(source) is None:
        return
    with ir.InsertionPoint(copy), copy.location:
        for reshape in reshapes:
            shown = reshaped_back(reshape, destination)
            if shown is None:
                return
            destination = shown
    copy.operands[0], copy.operands[1] = source, destination


def _writers(root: Any) -> list[Any]:
    """Regions that write the whole of `root`, as it is or through views of all its elements."""
    uses = ((use.owner.operation, use.operand_number) for use in uses_through_views(root, _WHOLE_VIEWS))
    return [user for user, place in uses if user.name in REGIONS and place >= len(user.regions[0].blocks[0].arguments)]


def _may_write_early(destination: Any) -> bool:
    """Whether nothing but a fill without operands writes the whole buffer under `destination`."""
    root = base(destination)
    return root == destination or all(len(graph.regions[0].blocks[0].arguments) == 0 for graph in _writers(root))


def _hoist_fills(root: Any, before: Any) -> None:
    for graph in _writers(root):
        if not graph.is_before_in_block(before):
            hoist(graph, before)
