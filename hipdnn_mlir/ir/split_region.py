"""Regions that a library refused, although the tables say that it takes them: their epilogues become regions of their own."""

from collections.abc import Callable

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import Reject

from ..ops.strides import channels_last_order, memory_order
from .blocks import operations
from .buffers import allocate, erase_allocation
from .dialect import GraphOp, create_region
from .layout import CHANNELS_LAST, CONTIGUOUS
from .outlining import fill_body
from .terms import fused_location
from .types import is_tensor, memref_strides, tensor_type
from .view import is_constant, lookup

REFUSED = "hipdnn.refused"
"""Attribute of a call, and of a region before it: names of executables that the library refused where this one runs now."""


def split(graph: GraphOp, is_taken: Callable[[GraphOp, GraphOp], bool]) -> tuple[GraphOp, GraphOp] | None:
    """Replace a region in buffer form by two, the second of which computes the end of its chain of ops.

    The epilogue is cut where it meets an operand of the result's size (a residual), else right behind the first op.

    Before: `hipdnn.graph ins(%x, %w, %r) outs(%y) ({ ...convolution...; ...add...; ...relu... })`.
    After: `%m = memref.alloc`; `hipdnn.graph ins(%x, %w) outs(%m) ({ ...convolution... })`;
    `hipdnn.graph ins(%m, %r) outs(%y) ({ ...add...; ...relu... })`.

    Args:
        graph: the region, with the attribute REFUSED, which its halves get.
        is_taken: whether both halves can be run.

    Returns:
        The two regions, or None where no cut will do; the region is then as it was.
    """
    members = [member for member in operations(graph)[:-1] if not is_constant(member)]
    for cut in _cuts(members):
        halves = _halves(graph, members[:cut], members[cut:])
        if halves is None:
            continue
        *made, between = halves
        if is_taken(*made):
            for half in made:
                half.attributes[REFUSED] = graph.attributes[REFUSED]
            graph.erase()
            return made[0], made[1]
        for half in reversed(made):
            half.erase()
        erase_allocation(between)
    return None


def _cuts(members: list[ir.OpView]) -> list[int]:
    """How many ops to leave in front, the best first."""
    shortest = 2 if _is_border(members[0]) else 1
    residual = [number for number, member in enumerate(members) if number >= shortest and _meets_another(member)]
    return [cut for cut in dict.fromkeys([*residual[:1], shortest]) if cut < len(members)]


def _is_border(member: ir.OpView) -> bool:
    """Whether an op is a data movement that the next one absorbs."""
    found = lookup(member)
    return not isinstance(found, Reject) and found[0].move is not None


def _meets_another(member: ir.OpView) -> bool:
    """Whether an op reads more than one tensor of its result's size."""
    dims = tensor_type(member.results[0].type).dims
    return sum(is_tensor(value.type) and tensor_type(value.type).dims == dims for value in member.operands) > 1


def _halves(graph: GraphOp, head: list[ir.OpView], tail: list[ir.OpView]) -> tuple[GraphOp, GraphOp, ir.Value] | None:
    """The two regions in front of the whole one, and the buffer between them."""
    made = {result for member in head for result in member.results}
    crossing = {value for member in tail for value in member.operands if value in made}
    if len(crossing) != 1 or not made.isdisjoint(graph.yielded):
        return None
    (value,) = crossing
    buffers = dict(zip(graph.body.arguments, graph.ins, strict=True))
    outs = graph.outs
    with ir.InsertionPoint(graph), graph.location:
        between = allocate(value.type, _layout(outs[0]))
        first = _region(head, buffers, [between], [value])
        second = _region(tail, {**buffers, value: between}, outs, graph.yielded)
    return first, second, between


def _layout(buffer: ir.Value) -> str:
    """That of the result, so that both halves are as fast."""
    layout = memref_strides(buffer.type)
    dims = tuple(buffer.type.shape)
    if layout is None or len(dims) < 3:
        return CONTIGUOUS
    return CHANNELS_LAST if memory_order(dims, layout[0]) == channels_last_order(len(dims)) else CONTIGUOUS


def _region(
    members: list[ir.OpView],
    buffers: dict[ir.Value, ir.Value],
    outs: list[ir.Value],
    yielded: list[ir.Value],
) -> GraphOp:
    """A region of some ops on those of the buffers that they read."""
    read = list(dict.fromkeys(value for member in members for value in member.operands if value in buffers))
    graph = create_region(GraphOp, [buffers[value] for value in read], outs, [], fused_location(members))
    fill_body(graph, members, read, yielded)
    return graph
