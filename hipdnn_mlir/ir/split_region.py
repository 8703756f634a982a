"""Regions that a library refused, although the tables say that it takes them: their epilogues become regions of their own."""

from collections.abc import Callable
from typing import Any

from torch_mlir import ir

from ..errors import Reject
from ..ops.strides import channels_last_order, memory_order
from .blocks import clone_into
from .buffers import allocate
from .dialect import create_graph, create_yield, input_count
from .layout import CHANNELS_LAST, CONTIGUOUS
from .types import is_tensor, memref_strides, tensor_type
from .view import is_constant, lookup

REFUSED = "hipdnn.refused"
"""Attribute of a call, and of a region before it: names of executables that the library refused where this one runs now."""


def split(operation: Any, is_taken: Callable[[Any, Any], bool]) -> tuple[Any, Any] | None:
    """Replace a region in buffer form by two, the second of which computes the end of its chain of ops.

    The epilogue is cut where it meets an operand of the result's size (a residual), else right behind the first op.

    Before: `"hipdnn.graph"(%x, %w, %r, %y) ({ ...convolution...; ...add...; ...relu... })`.
    After: `%m = memref.alloc`; `"hipdnn.graph"(%x, %w, %m) ({ ...convolution... })`;
    `"hipdnn.graph"(%m, %r, %y) ({ ...add...; ...relu... })`.

    Args:
        operation: the region, with the attribute REFUSED, which its halves get.
        is_taken: whether both halves can be run.

    Returns:
        The two regions, or None where no cut will do; the region is then as it was.
    """
    members = _members(operation)
    for cut in _cuts(members):
        halves = _halves(operation, members[:cut], members[cut:])
        if halves is None:
            continue
        *made, buffers = halves
        if is_taken(*made):
            for region in made:
                region.attributes[REFUSED] = operation.attributes[REFUSED]
            operation.erase()
            return made[0], made[1]
        for region in reversed(made):
            region.erase()
        for buffer in reversed(buffers):
            buffer.erase()
    return None


def _members(operation: Any) -> list[Any]:
    body = [item.operation for item in operation.regions[0].blocks[0].operations]
    return [member for member in body if member.name != "hipdnn.yield" and not is_constant(member)]


def _cuts(members: list[Any]) -> list[int]:
    """How many ops to leave in front, the best first."""
    shortest = 2 if _is_border(members[0]) else 1
    residual = [number for number, member in enumerate(members) if number >= shortest and _meets_another(member)]
    return [cut for cut in dict.fromkeys([*residual[:1], shortest]) if cut < len(members)]


def _is_border(member: Any) -> bool:
    """Whether an op is a data movement that the next one absorbs."""
    found = lookup(member)
    return not isinstance(found, Reject) and found[0].move is not None


def _meets_another(member: Any) -> bool:
    """Whether an op reads more than one tensor of its result's size."""
    dims = tensor_type(member.results[0].type).dims
    return sum(is_tensor(value.type) and tensor_type(value.type).dims == dims for value in member.operands) > 1


def _halves(operation: Any, head: list[Any], tail: list[Any]) -> tuple[Any, Any, list[Any]] | None:
    """The two regions in front of the whole one, and what the buffer between them is made by."""
    made = {result for member in head for result in member.results}
    body = operation.regions[0].blocks[0]
    yielded = list(body.operations[len(body.operations) - 1].operation.operands)
    crossing = {value for member in tail for value in member.operands if value in made}
    if len(crossing) != 1 or any(value in made for value in yielded):
        return None
    (value,) = crossing
    ins = input_count(operation)
    buffers = dict(zip(body.arguments, list(operation.operands)[:ins], strict=True))
    outs = list(operation.operands)[ins:]
    with ir.InsertionPoint(operation), operation.location:
        between = allocate(value.type, _layout(outs[0]))
        first = _region(head, buffers, [between], [value])
        second = _region(tail, {**buffers, value: between}, outs, yielded)
    alloc = between.owner.operation if hasattr(between.owner, "operation") else between.owner
    source = [] if alloc.name == "memref.alloc" else [alloc.operands[0].owner]
    return first, second, [*source, alloc]


def _layout(buffer: Any) -> str:
    """That of the result, so that both halves are as fast."""
    layout = memref_strides(buffer.type)
    dims = tuple(buffer.type.shape)
    if layout is None or len(dims) < 3:
        return CONTIGUOUS
    return CHANNELS_LAST if memory_order(dims, layout[0]) == channels_last_order(len(dims)) else CONTIGUOUS


def _region(members: list[Any], buffers: dict[Any, Any], outs: list[Any], yielded: list[Any]) -> Any:
    """A region of some ops on those of the buffers that they read."""
    read = dict.fromkeys(value for member in members for value in member.operands if value in buffers)
    location = ir.Location.fused([member.location for member in members]) if len(members) > 1 else members[0].location
    graph = create_graph([buffers[value] for value in read], outs, [], location)
    block = graph.regions[0].blocks.append(*[value.type for value in read], arg_locs=[location] * len(read))
    mapping = dict(zip(read, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for member in members:
            clone_into(member, mapping)
        create_yield([mapping[value] for value in yielded], location)
    return graph
