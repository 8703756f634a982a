"""Regions that copy a tensor or a buffer."""

from typing import Any

from torch_mlir import ir

from ..dtypes import ALL, DType
from .buffers import new_buffer
from .dialect import create_graph, create_yield, input_count
from .types import tensor_type, torch_tensor
from .views import is_contiguous

_STORED = {d.builtin: d for d in reversed(ALL)} | {d.builtin: d for d in reversed(ALL) if d.hipdnn is not None}
"""The dtype to copy elements as: signedness does not matter to a copy, so one that hipDNN has, if any."""


def copy_graph(value: Any, location: Any) -> Any:
    """A region that copies one tensor, in tensor form, at the current insertion point."""
    graph = create_graph([value], [], [value.type], location, name=moving_region(tensor_type(value.type).dtype))
    block = graph.regions[0].blocks.append(value.type, arg_locs=[location])
    with ir.InsertionPoint(block), location:
        fill_copy_body(block)
    return graph


def moving_region(dtype: DType) -> str:
    """The kind of region that copies and fills tensors of a dtype: a graph where hipDNN has the dtype."""
    return "hipdnn.launch" if dtype.hipdnn is None else "hipdnn.graph"


def fill_copy_body(block: Any) -> None:
    """The body of a copy: `torch.aten.clone` of the only argument."""
    argument = block.arguments[0]
    none = ir.Operation.create("torch.constant.none", results=[ir.Type.parse("!torch.none")]).result
    copy = ir.Operation.create("torch.aten.clone", results=[argument.type], operands=[argument, none])
    create_yield([copy.result], copy.location)


def copy_buffer(source: Any, destination: Any, origin: Any) -> Any:
    """A region in buffer form that copies one buffer to another for the op `origin`, at the current insertion point."""
    kind = _STORED[str(source.type.element_type)]
    graph = create_graph([source], [destination], [], origin.location, name=moving_region(kind))
    block = graph.regions[0].blocks.append(torch_tensor(tuple(source.type.shape), kind), arg_locs=[origin.location])
    with ir.InsertionPoint(block), origin.location:
        fill_copy_body(block)
    return graph


def packed_operands(operation: Any) -> list[Any]:
    """Let a region read copies in C order of the operands that are not; returns the regions that copy."""
    copies = []
    for index in range(input_count(operation)):
        value = operation.operands[index]
        if is_contiguous(value.type):
            continue
        with ir.InsertionPoint(operation), operation.location:
            packed = new_buffer(tuple(value.type.shape), value.type.element_type)
            copies.append(copy_buffer(value, packed, operation))
        operation.operands[index] = packed
    return copies


def packed_results(operation: Any) -> list[Any]:
    """Let a region write results in C order where theirs are not, and copy from there; returns the regions that copy."""
    copies: list[Any] = []
    for index in range(input_count(operation), len(operation.operands)):
        value = operation.operands[index]
        if is_contiguous(value.type):
            continue
        with ir.InsertionPoint(operation), operation.location:
            packed = new_buffer(tuple(value.type.shape), value.type.element_type)
            copies.append(copy_buffer(packed, value, operation))
        operation.operands[index] = packed
    for copy in copies:
        copy.move_after(operation)
    return copies
