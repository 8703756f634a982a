"""hipdnn-assign-layout: decide which values are stored channels-last. Layout is strides, never a new type."""

from typing import Any

from torch_mlir import ir

from ..abi import Attribute
from ..errors import Reject
from ..ir.blocks import body, functions
from ..ir.constants import constant_name
from ..ir.copies import copy_graph
from ..ir.layout import CHANNELS_LAST, CONTIGUOUS, LAYOUTS, order_matters
from ..ir.module_pass import module_pass
from ..ir.region import region_graph, region_kernel
from ..ir.types import is_tensor, tensor_type
from ..ir.view import argument, defining
from ..ops.graph import Graph
from ..ops.kernels import MAP, PAD, Kernel
from ..ops.strides import Dims
from ..targets.target import Target, find_target


@module_pass("hipdnn-assign-layout")
def assign_layout(module: Any, *, target: str = "host") -> None:
    """Mark results that are stored channels-last (`hipdnn.layouts`), and convert operands of spatial regions once where they are not.

    Regions with an operation that the target runs channels-last (convolutions, pooling) get channels-last results and operands; other
    regions, concatenations and borders follow their operands; a value that only the caller reads stays in C order.

    Before: `%y = "hipdnn.graph"(%x, %w) ...` with a convolution. After: a graph that copies %x, marked `channels_last`, in front of it, and
    `hipdnn.layouts = ["channels_last"]` on it.

    Args:
        module: the module operation.
        target: whose preferences to follow.
    """
    library = find_target(target)
    for function in functions(module):
        if "sym_visibility" not in function.attributes:
            _Assignment(library).run(function)


class _Assignment:
    """One walk over a function, knowing the layout of every value seen so far."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._channels_last: set[Any] = set()
        self._converted: dict[Any, Any] = {}

    def run(self, function: Any) -> None:
        for operation in body(function):
            if operation.name == "hipdnn.graph":
                self._graph(operation)
            elif operation.name == "hipdnn.launch":
                self._launch(operation)
            elif operation.name.startswith("torch.aten."):
                self._movement(operation)

    def _graph(self, operation: Any) -> None:
        graph = region_graph(operation)
        if isinstance(graph, Reject):
            return
        spatial = any(node.type in self._target.channels_last for node in graph.nodes)
        if spatial:
            self._convert_operands(operation, graph)
        self._mark(operation, spatial, spatial or any(value in self._channels_last for value in operation.operands))

    def _launch(self, operation: Any) -> None:
        """A map and a border follow their operands; other kernels write C order."""
        kernel = region_kernel(operation)
        if isinstance(kernel, Kernel) and kernel.function in (MAP, PAD):
            self._mark(operation, False, any(value in self._channels_last for value in operation.operands))

    def _mark(self, operation: Any, spatial: bool, wanted: bool) -> None:
        """Mark the results that are stored channels-last, where that is wanted."""
        layouts = []
        for result in operation.results:
            dims = tensor_type(result.type).static_dims()
            last = wanted and order_matters(dims) and (spatial or not _only_returned(result))
            if last:
                self._channels_last.add(result)
            layouts.append(CHANNELS_LAST if last else CONTIGUOUS)
        if CHANNELS_LAST in layouts:
            operation.attributes[LAYOUTS] = ir.ArrayAttr.get([ir.StringAttr.get(layout) for layout in layouts])

    def _convert_operands(self, operation: Any, graph: Graph) -> None:
        """Give a spatial region channels-last data operands: the input of its anchor, and full-size operands of its epilogue."""
        weights = {
            next(t for key, t in node.inputs.items() if isinstance(key, Attribute) and key.name.endswith("_W"))
            for node in graph.nodes
            if _has_weight(node)
        }
        for tensor_index, tensor in enumerate(graph.tensors):
            if tensor.operand is None or tensor_index in weights:
                continue
            value = operation.operands[tensor.operand]
            if (
                constant_name(value) is None
                and value not in self._channels_last
                and order_matters(tensor_type(value.type).static_dims())
            ):
                operation.operands[tensor.operand] = self._convert(operation, value)

    def _convert(self, operation: Any, value: Any) -> Any:
        """A channels-last copy of a value, made once."""
        if value not in self._converted:
            with ir.InsertionPoint(operation), operation.location:
                copy = copy_graph(value, operation.location)
            copy.attributes[LAYOUTS] = ir.ArrayAttr.get([ir.StringAttr.get(CHANNELS_LAST)])
            self._converted[value] = copy.results[0]
            self._channels_last.add(copy.results[0])
        return self._converted[value]

    def _movement(self, operation: Any) -> None:
        result = operation.results[0]
        if not is_tensor(result.type) or not order_matters(_dims(result)):
            return
        if operation.name == "torch.aten.slice.Tensor":
            shows_channels_last = operation.operands[0] in self._channels_last
        else:
            shows_channels_last = operation.name == "torch.aten.permute" and self._moves_channels_last(operation)
        if shows_channels_last:
            self._channels_last.add(result)
        elif operation.name in ("torch.aten.cat", "torch.aten.constant_pad_nd", "torch.aten.pad"):
            first = operation.operands[0]
            sources = first.owner.operation.operands if operation.name == "torch.aten.cat" else [first]
            if any(value in self._channels_last for value in sources) and not _only_returned(result):
                self._channels_last.add(result)
                operation.attributes[LAYOUTS] = ir.ArrayAttr.get([ir.StringAttr.get(CHANNELS_LAST)])

    def _moves_channels_last(self, permute: Any) -> bool:
        """Whether it moves the last dim of a value in C order to where channels are."""
        rank = len(_dims(permute.results[0]))
        return argument(permute.operands[1]) == [0, rank - 1, *range(1, rank - 1)] and self._is_in_c_order(
            permute.operands[0]
        )

    def _is_in_c_order(self, value: Any) -> bool:
        operation = defining(value)
        while operation is not None and operation.name in ("torch.aten.view", "torch.aten.reshape"):
            value = operation.operands[0]
            operation = defining(value)
        if operation is None:
            return True
        return operation.name in ("hipdnn.graph", "hipdnn.launch") and value not in self._channels_last


def _dims(value: Any) -> Dims:
    kind = tensor_type(value.type)
    return kind.static_dims() if kind.is_static else ()


def _has_weight(node: Any) -> bool:
    return any(name.name.endswith("_W") for name in node.inputs)


def _only_returned(value: Any) -> bool:
    return all(use.owner.operation.name == "func.return" for use in value.uses)
