"""A `hipdnn.graph` operation seen as the op table's Graph, a `hipdnn.launch` as its Kernel."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.errors import Reject

from ..ops.emitter import Operand, Storage
from ..ops.graph import Graph
from ..ops.kernels import Kernel
from ..ops.regions import emit_region, kernel_region
from ..ops.spec import OpView, TensorArg, TensorType
from .blocks import operations
from .dialect import GraphOp, LaunchOp, RegionOp, YieldOp
from .types import tensor_type
from .view import is_constant, lookup, node_name, splat_number


def region_views(region: RegionOp) -> list[tuple[OpView, list[ir.Value]]] | Reject:
    """The torch ops of a graph's body with the SSA keys of their results, constants left out but where they are yielded."""
    yielded = region.yielded
    pairs = []
    for member in operations(region):
        if isinstance(member, torch.ValueTensorLiteralOp) and member.result in yielded:
            pairs.append((fill_view(member), [member.result]))
        if isinstance(member, YieldOp) or is_constant(member):
            continue
        found = lookup(member)
        if isinstance(found, Reject):
            return found
        pairs.append((found[1], list(member.results)))
    return pairs


def fill_view(literal: torch.ValueTensorLiteralOp) -> OpView:
    """A literal with one number everywhere, as the broadcast of that number: MLIR folds broadcasts of numbers to literals."""
    kind = tensor_type(literal.result.type)
    scalar = TensorArg(literal.result, TensorType((), kind.dtype), splat_number(literal.value))
    return OpView(
        torch.AtenBroadcastToOp.OPERATION_NAME, [scalar, list(kind.static_dims())], [kind], node_name(literal)
    )


Made = TypeVar("Made")


def region_graph(
    graph: GraphOp, operands_stored: Sequence[Storage] | None = None, results_stored: Sequence[Storage] | None = None
) -> Graph | Reject:
    """Emit a graph op's body; buffers are packed where nothing is said.

    Args:
        graph: in either form.
        operands_stored: how each `ins` buffer stores its tensor.
        results_stored: how each result's buffer does.
    """
    return _region(emit_region, graph, operands_stored, results_stored)


def region_kernel(
    launch: LaunchOp, operands_stored: Sequence[Storage] | None = None, results_stored: Sequence[Storage] | None = None
) -> Kernel | Reject:
    """The kernel of a `hipdnn.launch`; arguments as for `region_graph`."""
    return _region(kernel_region, launch, operands_stored, results_stored)


def _region(
    make: Callable[..., Made | Reject],
    region: RegionOp,
    operands_stored: Sequence[Storage] | None,
    results_stored: Sequence[Storage] | None,
) -> Made | Reject:
    operands = {}
    for index, argument in enumerate(region.body.arguments):
        kind = tensor_type(argument.type)
        operands[argument] = Operand(
            kind.static_dims(), kind.dtype, operands_stored[index] if operands_stored else None
        )
    pairs = region_views(region)
    if isinstance(pairs, Reject):
        return pairs
    results = [(value, tensor_type(value.type)) for value in region.yielded]
    return make(pairs, operands, results, results_stored)
