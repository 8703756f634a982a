"""hipdnn-absorb-transposes: a transpose of a buffer becomes a view, on the side that its readers and writers allow."""

from typing import Any

from torch_mlir import ir

from ..ir.blocks import body, functions
from ..ir.buffers import erase_allocation, hoist, transposed_type, transposed_view
from ..ir.dialect import REGIONS
from ..ir.module_pass import module_pass
from ..ir.views import allocation, can_retype, retype_uses


@module_pass("hipdnn-absorb-transposes")
def absorb_transposes(module: Any) -> None:
    """Turn `linalg.transpose` between buffers into `memref.transpose`.

    Forward: readers of the transposed buffer read the source through a view. Backward, where a reader needs C order (a reshape that merges
    dims) or the destination is the caller's: the writer of the source writes through a view of the destination. Else the transpose stays.
    Casts that only hide strides from graph operands are dropped first.

    Before: `linalg.transpose ins(%a) outs(%t)`; `"hipdnn.graph"(%t, ...)`.
    After: `%v = memref.transpose %a (...)`; `"hipdnn.graph"(%v, ...)`.
    """
    for function in functions(module):
        strip_casts(function)
        for operation in body(function):
            if operation.name == "linalg.transpose":
                _forward(operation) or _backward(operation)


def strip_casts(function: Any) -> None:
    """Let regions and copies use what a memref.cast was made from."""
    for operation in body(function):
        if operation.name not in (*REGIONS, "memref.copy"):
            continue
        for index, value in enumerate(operation.operands):
            source = value
            while not isinstance(source.owner, ir.Block) and source.owner.operation.name == "memref.cast":
                source = source.owner.operation.operands[0]
            operation.operands[index] = source
    for operation in reversed(body(function)):
        if operation.name == "memref.cast" and not list(operation.results[0].uses):
            operation.erase()


def _order(operation: Any) -> tuple[int, ...]:
    return tuple(ir.DenseI64ArrayAttr(operation.attributes["permutation"]))


def _forward(operation: Any) -> bool:
    """Readers of the destination see a view of the source."""
    source, destination = operation.operands
    order = _order(operation)
    kind = transposed_type(source.type, order)
    if kind is None or allocation(destination) is None or not can_retype(destination, kind, ignored=operation):
        return False
    with ir.InsertionPoint(operation), operation.location:
        view = transposed_view(source, order)
    operation.erase()
    destination.replace_all_uses_with(view)
    retype_uses(view)
    erase_allocation(destination)
    return True


def _backward(operation: Any) -> bool:
    """The writer of the source writes through a view of the destination."""
    source, destination = operation.operands
    order = _order(operation)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    kind = transposed_type(destination.type, inverse)
    made = allocation(source)
    if kind is None or made is None or not can_retype(source, kind, ignored=operation):
        return False
    with ir.InsertionPoint(made), operation.location:
        if not isinstance(destination.owner, ir.Block):
            hoist(destination.owner.operation, made)
        view = transposed_view(destination, inverse)
    operation.erase()
    source.replace_all_uses_with(view)
    retype_uses(view)
    erase_allocation(source)
    return True
