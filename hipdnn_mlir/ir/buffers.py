"""Buffers: allocated, transposed views, moved and erased."""

from torch_mlir import ir
from torch_mlir.dialects import memref

from hipdnn_mlir_runtime.errors import PassError
from hipdnn_mlir_runtime.walks import operands_first

from ..ops.emitter import Storage
from ..ops.strides import Dims, Strides, channels_last_order
from .layout import CHANNELS_LAST
from .types import memref_strides, strided_memref, tensor_type
from .view import producer


def storage(value: ir.Value) -> Storage:
    """How a buffer keeps its tensor."""
    layout = memref_strides(value.type)
    if layout is None:
        raise PassError(f"a buffer of type {value.type} has no static strides")
    return Storage(*layout)


def new_buffer(dims: Dims, element: ir.Type) -> ir.Value:
    """An allocation in C order, at the current insertion point."""
    return memref.alloc(ir.MemRefType.get(dims, element), [], [])


def allocate(kind: ir.Type, layout: str) -> ir.Value:
    """A new buffer for a torch tensor type; channels-last is a permuted view of a packed allocation."""
    shape = tensor_type(kind)
    dims, element = shape.static_dims(), ir.Type.parse(shape.dtype.builtin)
    if layout != CHANNELS_LAST:
        return new_buffer(dims, element)
    order = channels_last_order(len(dims))
    buffer = new_buffer(tuple(dims[axis] for axis in order), element)
    return transposed_view(buffer, tuple(order.index(axis) for axis in range(len(dims))))


def transposed_type(kind: ir.MemRefType, order: Dims) -> ir.MemRefType | None:
    """The memref type of a permuted view, or None where strides are unknown."""
    layout = memref_strides(kind)
    if layout is None:
        return None
    strides: Strides = tuple(layout[0][axis] for axis in order)
    return strided_memref(tuple(kind.shape[axis] for axis in order), kind.element_type, strides, layout[1])


def transposed_view(value: ir.Value, order: Dims) -> ir.Value:
    """A memref.transpose of `value` at the current insertion point."""
    return memref.transpose(transposed_type(value.type, order), value, ir.AffineMap.get_permutation(order))


def hoist(op: ir.OpView, before: ir.OpView) -> None:
    """Move an allocation, view or fill, and the views it is made from, in front of `before`."""

    def behind(reader: ir.OpView) -> list[ir.OpView]:
        sources = (producer(value) for value in reader.operands)
        return [source for source in sources if source is not None and not source.is_before_in_block(before)]

    if not op.is_before_in_block(before):
        for moved in operands_first(op, behind):
            moved.move_before(before)


def erase_allocation(value: ir.Value) -> None:
    """Erase an unused allocation together with the permuted view that `value` is of it."""
    unused = [value]
    while unused:
        op = unused.pop().owner
        unused += op.operands
        op.erase()
