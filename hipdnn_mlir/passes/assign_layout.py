"""hipdnn-assign-layout: decide which values are stored channels-last. Layout is strides, never a new type."""

from collections.abc import Iterable

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.abi import Attribute
from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import operations, public_functions
from ..ir.constants import constant_name, tensor_operands
from ..ir.copies import copy_region
from ..ir.dialect import GraphOp, LaunchOp, RegionOp
from ..ir.layout import CHANNELS_LAST, CONTIGUOUS, mark_layouts, order_matters
from ..ir.module_pass import module_pass
from ..ir.region import region_graph, region_kernel
from ..ir.types import tensor_type
from ..ir.view import producer, readers
from ..ir.view_chains import is_copied, origin
from ..ops.few_channels import few_channels
from ..ops.graph import Graph
from ..ops.kernels import ELEMENTWISE, PAD, Kernel
from ..ops.spec import Refusal
from ..ops.strides import Dims
from ..targets.table import find_target
from ..targets.target import Target

IMAGE_RANK = 4
"""Of values that what reads them follows, where transposes made them so: of rank 3 they are as often tokens."""


@module_pass("hipdnn-assign-layout")
def assign_layout(module: ir.Operation, *, target: str = "host") -> None:
    """Mark results that are stored channels-last (`hipdnn.layouts`), and convert operands of spatial regions once where they are not.

    Regions with an operation that the target runs channels-last (convolutions, pooling) get channels-last results and operands; other
    regions, concatenations, borders and resizes follow their operands, also one that folds groups of channels, which it reads as a dim of
    their own; a value that only the caller reads stays in C order.

    Before: `%y = hipdnn.graph ins(%x, %w) ...` with a convolution. After: a graph that copies %x, marked `channels_last`, before it, and
    `hipdnn.layouts = ["channels_last"]` on it.

    Args:
        module: the module operation.
        target: whose preferences to follow.
    """
    library = find_target(target)
    for function in public_functions(module):
        _Assignment(library).run(function)


class _Assignment:
    """One walk over a function, knowing the layout of every value seen so far."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._channels_last: set[ir.Value] = set()
        self._converted: dict[ir.Value, ir.Value] = {}
        self._in_groups: set[ir.Value] = set()
        """Values stored channels-last that are seen with their channels in groups, a dim more."""

    def run(self, function: func.FuncOp) -> None:
        for op in operations(function):
            match op:
                case GraphOp():
                    self._graph(op)
                case LaunchOp():
                    self._launch(op)
                case torch.AtenSliceTensorOp() if op.self_ in self._channels_last and order_matters(_dims(op.result)):
                    self._channels_last.add(op.result)
                case torch.AtenViewOp() | torch.AtenReshapeOp() if self._groups_channels(op):
                    self._in_groups.add(op.result)
                case (
                    torch.AtenPermuteOp() | torch.AtenTransposeIntOp() | torch.AtenViewOp() | torch.AtenReshapeOp()
                ) if len(_dims(op.result)) >= IMAGE_RANK and self._lies_channels_last(op.result):
                    self._channels_last.add(op.result)
                case torch.AtenCatOp() | torch.AtenConstantPadNdOp() | torch.AtenPadOp():
                    self._copy(op)

    def _graph(self, region: GraphOp) -> None:
        graph = region_graph(region)
        if isinstance(graph, Reject):
            return
        spatial = any(node.type in self._target.channels_last for node in graph.nodes)
        if spatial and not self._reads_as_it_lies(graph):
            self._convert_operands(region, graph)
        self._mark(region, spatial, spatial or self._any_channels_last(region.ins) or self._folds_groups(region))

    def _reads_as_it_lies(self, graph: Graph) -> bool:
        """Whether a generated kernel reads an image of few channels."""
        try:
            few_channels(graph)
        except Refusal:
            return False
        engine = self._target.engine_for(graph)
        return engine is not None and engine.is_generated

    def _launch(self, region: LaunchOp) -> None:
        """A map, a border and a resize follow their operands; other kernels write C order."""
        kernel = region_kernel(region)
        if isinstance(kernel, Kernel) and kernel.function in (ELEMENTWISE, PAD, "resize"):
            self._mark(region, False, self._any_channels_last(region.ins))

    def _groups_channels(self, op: torch.AtenViewOp | torch.AtenReshapeOp) -> bool:
        """Whether a reshape shows the channels of a value stored channels-last in groups."""
        dims, seen = _dims(op.self_), _dims(op.result)
        return (
            op.self_ in self._channels_last
            and len(seen) == len(dims) + 1
            and (seen[0], *seen[3:]) == (dims[0], *dims[2:])
        )

    def _folds_groups(self, region: GraphOp) -> bool:
        """Whether a region makes one dim of channels of those in groups."""
        ranks = {len(_dims(value)) for value in region.ins if value in self._in_groups}
        return bool(ranks) and all(len(_dims(result)) + 1 in ranks for result in region.results)

    def _any_channels_last(self, values: Iterable[ir.Value]) -> bool:
        return not self._channels_last.isdisjoint(values)

    def _mark(self, region: RegionOp, spatial: bool, wanted: bool) -> None:
        """Mark the results that are stored channels-last, where that is wanted."""
        layouts = []
        for result in region.results:
            dims = tensor_type(result.type).static_dims()
            last = wanted and order_matters(dims) and (spatial or not _only_returned(result))
            if last:
                self._channels_last.add(result)
            layouts.append(CHANNELS_LAST if last else CONTIGUOUS)
        if CHANNELS_LAST in layouts:
            mark_layouts(region, layouts)

    def _convert_operands(self, region: GraphOp, graph: Graph) -> None:
        """Give a spatial region channels-last data operands: the input of its anchor, and full-size operands of its epilogue."""
        weights = {
            tensor
            for node in graph.nodes
            for key, tensor in node.inputs.items()
            if isinstance(key, Attribute) and key.name.endswith("_W")
        }
        ins = region.ins
        for tensor_index, tensor in enumerate(graph.tensors):
            if tensor.operand is None or tensor_index in weights:
                continue
            value = ins[tensor.operand]
            is_fixed = constant_name(value) is not None and not self._target.filters_channels_last
            if not is_fixed and order_matters(_dims(value)) and not self._lies_channels_last(value):
                region.operands[tensor.operand] = self._convert(region, value)

    def _convert(self, region: GraphOp, value: ir.Value) -> ir.Value:
        """A channels-last copy of a value, made once."""
        if value not in self._converted:
            with ir.InsertionPoint(region):
                copy = copy_region(value.type, value, None, region.location)
            mark_layouts(copy, [CHANNELS_LAST])
            self._converted[value] = copy.result
            self._channels_last.add(copy.result)
        return self._converted[value]

    def _copy(self, op: torch.AtenCatOp | torch.AtenConstantPadNdOp | torch.AtenPadOp) -> None:
        """A concatenation or a border, written anew, follows its operands."""
        follows = order_matters(_dims(op.result)) and self._any_channels_last(tensor_operands(op))
        if follows and not _only_returned(op.result):
            self._channels_last.add(op.result)
            mark_layouts(op, [CHANNELS_LAST])

    def _lies_channels_last(self, value: ir.Value) -> bool:
        """Whether it is stored so, or transposes and reshapes took the last dim of a value in C order to where channels are."""
        if value in self._channels_last:
            return True
        source, order = origin(value)
        dims = _dims(value)
        if source in self._channels_last:
            return order == tuple(range(len(dims))) and _dims(source) == dims
        last = [axis for axis in (0, *range(2, len(dims)), 1) if dims[axis] > 1]
        return (
            order_matters(dims) and [axis for axis in order if dims[axis] > 1] == last and self._is_in_c_order(source)
        )

    def _is_in_c_order(self, value: ir.Value) -> bool:
        op = producer(value)
        while isinstance(op, torch.AtenViewOp | torch.AtenReshapeOp):
            if is_copied(op):
                return True
            value = op.self_
            op = producer(value)
        return op is None or (isinstance(op, RegionOp) and value not in self._channels_last)


def _dims(value: ir.Value) -> Dims:
    kind = tensor_type(value.type)
    return kind.static_dims() if kind.is_static else ()


def _only_returned(value: ir.Value) -> bool:
    return all(isinstance(reader, func.ReturnOp) for reader in readers(value))
