"""Buffers: allocated, transposed views, moved and erased."""

from typing import Any

from torch_mlir import ir

from ..errors import PassError
from ..ops.emitter import Storage
from ..ops.strides import Dims, Strides, channels_last_order
from ..walks import operands_first
from .layout import CHANNELS_LAST
from .types import memref_strides, strided_memref, tensor_type
from .view import defining


def storage(value: Any) -> Storage:
    """How a buffer keeps its tensor."""
    layout = memref_strides(value.type)
    if layout is None:
        raise PassError(f"a buffer of type {value.type} has no static strides")
    return Storage(*layout)


def new_buffer(dims: Dims, element: Any) -> Any:
    """An allocation in C order, at the current insertion point."""
    return ir.Operation.create(
        "memref.alloc",
        results=[ir.MemRefType.get(list(dims), element)],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])},
    ).result


def allocate(kind: Any, layout: str) -> Any:
    """A new buffer for a torch tensor type; channels-last is a permuted view of a packed allocation."""
    shape = tensor_type(kind)
    dims, element = shape.static_dims(), ir.Type.parse(shape.dtype.builtin)
    if layout != CHANNELS_LAST:
        return new_buffer(dims, element)
    order = channels_last_order(len(dims))
    buffer = new_buffer(tuple(dims[axis] for axis in order), element)
    return transposed_view(buffer, tuple(order.index(axis) for axis in range(len(dims))))


def transposed_type(kind: Any, order: tuple[int, ...]) -> Any | None:
    """The memref type of a permuted view, or None where strides are unknown."""
    layout = memref_strides(kind)
    if layout is None:
        return None
    strides: Strides = tuple(layout[0][axis] for axis in order)
    return strided_memref(tuple(kind.shape[axis] for axis in order), kind.element_type, strides, layout[1])


def transposed_view(value: Any, order: tuple[int, ...]) -> Any:
    """A memref.transpose of `value` at the current insertion point."""
    permutation = ir.AffineMapAttr.get(ir.AffineMap.get_permutation(list(order)))
    return ir.Operation.create(
        "memref.transpose",
        results=[transposed_type(value.type, order)],
        operands=[value],
        attributes={"permutation": permutation},
    ).result


def hoist(operation: Any, before: Any) -> None:
    """Move an allocation, view or fill, and the views it is made from, in front of `before`."""

    def behind(reader: Any) -> list[Any]:
        sources = (defining(value) for value in reader.operands)
        return [source for source in sources if source is not None and not source.is_before_in_block(before)]

    if not operation.is_before_in_block(before):
        for moved in operands_first(operation, behind):
            moved.move_before(before)


def erase_allocation(value: Any) -> None:
    """Erase an unused allocation together with the permuted view that `value` is of it."""
    operands = [value]
    while operands:
        operation = operands.pop().owner.operation
        operands += operation.operands
        operation.erase()
