"""A `hipdnn.graph` operation seen as the op table's Graph."""

from collections.abc import Sequence
from typing import Any

from .errors import Reject
from .ir_types import tensor_type
from .ir_view import is_constant, lookup
from .ops.emitter import Operand, Storage, emit_region
from .ops.graph import Graph
from .ops.spec import OpView


def region_views(operation: Any) -> list[tuple[OpView, list[Any]]] | Reject:
    """The torch ops of a graph's body with the SSA keys of their results, constants left out."""
    pairs = []
    for item in operation.regions[0].blocks[0].operations:
        member = item.operation
        if member.name == "hipdnn.yield" or is_constant(member):
            continue
        found = lookup(member)
        if isinstance(found, Reject):
            return found
        pairs.append((found[1], list(member.results)))
    return pairs


def region_graph(
    operation: Any, operands_stored: Sequence[Storage] | None = None, results_stored: Sequence[Storage] | None = None
) -> Graph | Reject:
    """Emit a graph op's body; buffers are packed where nothing is said.

    Args:
        operation: a `hipdnn.graph` in either form.
        operands_stored: how each `ins` buffer stores its tensor.
        results_stored: how each result's buffer does.
    """
    block = operation.regions[0].blocks[0]
    operands = {}
    for index, argument in enumerate(block.arguments):
        kind = tensor_type(argument.type)
        operands[argument] = Operand(kind.static_dims(), kind.dtype, operands_stored[index] if operands_stored else None)
    pairs = region_views(operation)
    if isinstance(pairs, Reject):
        return pairs
    yielded = list(block.operations[len(block.operations) - 1].operation.operands)
    results = [(value, tensor_type(value.type)) for value in yielded]
    return emit_region(pairs, operands, results, results_stored)
