"""hipdnn-finalize-memrefs: what still moves data becomes a region that copies; contiguous copies stay `memref.copy`."""

from typing import Any

from torch_mlir import ir

from ..ir.blocks import body, functions
from ..ir.buffers import transposed_view
from ..ir.copies import copy_buffer
from ..ir.module_pass import module_pass
from ..ir.views import VIEWS, is_contiguous


@module_pass("hipdnn-finalize-memrefs")
def finalize_memrefs(module: Any) -> None:
    """Replace `linalg.transpose` and strided `memref.copy` by regions in buffer form, and erase unused views and allocations.

    Before: `memref.copy %a, %b : memref<2x3xf32, strided<[1, 2]>> to memref<2x3xf32>`.
    After: `"hipdnn.graph"(%a, %b) ({ ^bb0(%x): %y = torch.aten.clone %x, %none; "hipdnn.yield"(%y) })`.
    """
    for function in functions(module):
        for operation in body(function):
            with operation.location:
                if operation.name == "linalg.transpose":
                    _copy_transposed(operation)
                elif operation.name == "memref.copy":
                    _copy_strided(operation)
        for operation in reversed(body(function)):
            if operation.name in (*VIEWS, "memref.alloc") and not list(operation.results[0].uses):
                operation.erase()


def _copy_transposed(operation: Any) -> None:
    source, destination = operation.operands
    order = tuple(ir.DenseI64ArrayAttr(operation.attributes["permutation"]))
    with ir.InsertionPoint(operation):
        copy_buffer(transposed_view(source, order), destination, operation)
    operation.erase()


def _copy_strided(operation: Any) -> None:
    source, destination = operation.operands
    if is_contiguous(source.type) and is_contiguous(destination.type):
        return
    with ir.InsertionPoint(operation):
        copy_buffer(source, destination, operation)
    operation.erase()
