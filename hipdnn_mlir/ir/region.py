"""A `hipdnn.graph` operation seen as the op table's Graph, a `hipdnn.launch` as its Kernel."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch_mlir import ir

from ..errors import Reject
from ..ops.emitter import Operand, Storage
from ..ops.graph import Graph
from ..ops.kernels import Kernel
from ..ops.regions import emit_region, kernel_region
from ..ops.spec import OpView, TensorArg, TensorType
from .types import tensor_type
from .view import is_constant, lookup, node_name, splat_number


def region_views(operation: Any) -> list[tuple[OpView, list[Any]]] | Reject:
    """The torch ops of a graph's body with the SSA keys of their results, constants left out but where they are yielded."""
    block = operation.regions[0].blocks[0]
    yielded = list(block.operations[len(block.operations) - 1].operation.operands)
    pairs = []
    for item in block.operations:
        member = item.operation
        if member.name == "torch.vtensor.literal" and member.results[0] in yielded:
            pairs.append((fill_view(member), list(member.results)))
        if member.name == "hipdnn.yield" or is_constant(member):
            continue
        found = lookup(member)
        if isinstance(found, Reject):
            return found
        pairs.append((found[1], list(member.results)))
    return pairs


def fill_view(literal: Any) -> OpView:
    """A literal with one number everywhere, as the broadcast of that number: MLIR folds broadcasts of numbers to literals."""
    kind = tensor_type(literal.results[0].type)
    number = splat_number(ir.DenseElementsAttr(literal.attributes["value"]))
    scalar = TensorArg(literal.results[0], TensorType((), kind.dtype), number)
    return OpView("torch.aten.broadcast_to", [scalar, list(kind.static_dims())], [kind], node_name(literal))


Made = TypeVar("Made")


def region_graph(
    operation: Any, operands_stored: Sequence[Storage] | None = None, results_stored: Sequence[Storage] | None = None
) -> Graph | Reject:
    """Emit a graph op's body; buffers are packed where nothing is said.

    Args:
        operation: a `hipdnn.graph` in either form.
        operands_stored: how each `ins` buffer stores its tensor.
        results_stored: how each result's buffer does.
    """
    return _region(emit_region, operation, operands_stored, results_stored)


def region_kernel(
    operation: Any, operands_stored: Sequence[Storage] | None = None, results_stored: Sequence[Storage] | None = None
) -> Kernel | Reject:
    """The kernel of a `hipdnn.launch`; arguments as for `region_graph`."""
    return _region(kernel_region, operation, operands_stored, results_stored)


def _region(
    make: Callable[..., Made | Reject],
    operation: Any,
    operands_stored: Sequence[Storage] | None,
    results_stored: Sequence[Storage] | None,
) -> Made | Reject:
    block = operation.regions[0].blocks[0]
    operands = {}
    for index, argument in enumerate(block.arguments):
        kind = tensor_type(argument.type)
        operands[argument] = Operand(
            kind.static_dims(), kind.dtype, operands_stored[index] if operands_stored else None
        )
    pairs = region_views(operation)
    if isinstance(pairs, Reject):
        return pairs
    yielded = list(block.operations[len(block.operations) - 1].operation.operands)
    results = [(value, tensor_type(value.type)) for value in yielded]
    return make(pairs, operands, results, results_stored)
