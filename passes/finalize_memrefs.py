"""hipdnn-finalize-memrefs: what still moves data becomes a region that copies; contiguous copies stay `memref.copy`."""

from typing import Any

from torch_mlir import ir

from hipdnn_mlir.dialect import create_graph
from hipdnn_mlir.dtypes import ALL
from hipdnn_mlir.ir_types import torch_tensor

from .absorb_transposes import transposed_view
from .assign_layout import fill_copy_body, moving_region
from .registration import body, functions, module_pass
from .views import VIEWS, is_contiguous

_STORED = {d.builtin: d for d in reversed(ALL)} | {d.builtin: d for d in reversed(ALL) if d.hipdnn is not None}
"""The dtype to copy elements as: signedness does not matter to a copy, so one that hipDNN has, if any."""


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


def copy_buffer(source: Any, destination: Any, origin: Any) -> Any:
    """A region in buffer form that copies one buffer to another for the op `origin`, at the current insertion point."""
    kind = _STORED[str(source.type.element_type)]
    graph = create_graph([source], [destination], [], origin.location, name=moving_region(kind))
    block = graph.regions[0].blocks.append(torch_tensor(tuple(source.type.shape), kind), arg_locs=[origin.location])
    with ir.InsertionPoint(block), origin.location:
        fill_copy_body(block)
    return graph
