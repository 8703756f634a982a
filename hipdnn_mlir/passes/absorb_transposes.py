"""hipdnn-absorb-transposes: a transpose of a buffer becomes a view, on the side that its readers and writers allow."""

from torch_mlir import ir
from torch_mlir.dialects import func, memref

from ..ir.blocks import functions, operations
from ..ir.buffers import erase_allocation, hoist, transposed_type, transposed_view
from ..ir.dialect import RegionOp
from ..ir.module_pass import module_pass
from ..ir.view import producer
from ..ir.views import allocation, can_retype, is_transpose, retype_uses, transpose_parts


@module_pass("hipdnn-absorb-transposes")
def absorb_transposes(module: ir.Operation) -> None:
    """Turn `linalg.transpose` between buffers into `memref.transpose`.

    Forward: readers of the transposed buffer read the source through a view. Backward, where a reader needs C order (a reshape that merges
    dims) or the destination is the caller's: the writer of the source writes through a view of the destination. Else the transpose stays.
    Casts that only hide strides from graph operands are dropped first.

    Before: `linalg.transpose ins(%a) outs(%t)`; `hipdnn.graph ins(%t, ...)`.
    After: `%v = memref.transpose %a (...)`; `hipdnn.graph ins(%v, ...)`.
    """
    for function in functions(module):
        strip_casts(function)
        for op in operations(function):
            if is_transpose(op):
                _forward(op) or _backward(op)


def strip_casts(function: func.FuncOp) -> None:
    """Let regions and copies use what a memref.cast was made from."""
    for op in operations(function):
        if isinstance(op, RegionOp | memref.CopyOp):
            for place, value in enumerate(op.operands):
                op.operands[place] = _uncast(value)
    for op in reversed(operations(function)):
        if isinstance(op, memref.CastOp) and not list(op.dest.uses):
            op.erase()


def _uncast(value: ir.Value) -> ir.Value:
    while isinstance(cast := producer(value), memref.CastOp):
        value = cast.source
    return value


def _forward(transpose: ir.OpView) -> bool:
    """Readers of the destination see a view of the source."""
    source, destination, order = transpose_parts(transpose)
    kind = transposed_type(source.type, order)
    if kind is None or allocation(destination) is None or not can_retype(destination, kind, ignored=transpose):
        return False
    with ir.InsertionPoint(transpose), transpose.location:
        view = transposed_view(source, order)
    transpose.erase()
    destination.replace_all_uses_with(view)
    retype_uses(view)
    erase_allocation(destination)
    return True


def _backward(transpose: ir.OpView) -> bool:
    """The writer of the source writes through a view of the destination."""
    source, destination, order = transpose_parts(transpose)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    kind = transposed_type(destination.type, inverse)
    made = allocation(source)
    if kind is None or made is None or not can_retype(source, kind, ignored=transpose):
        return False
    with ir.InsertionPoint(made), transpose.location:
        shown = producer(destination)
        if shown is not None:
            hoist(shown, made)
        view = transposed_view(destination, inverse)
    transpose.erase()
    source.replace_all_uses_with(view)
    retype_uses(view)
    erase_allocation(source)
    return True
