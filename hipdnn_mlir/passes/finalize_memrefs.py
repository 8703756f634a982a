"""hipdnn-finalize-memrefs: what still moves data becomes a region that copies; contiguous copies stay `memref.copy`."""

from torch_mlir import ir
from torch_mlir.dialects import memref

from ..ir.blocks import functions, operations
from ..ir.buffers import transposed_view
from ..ir.copies import copy_buffer
from ..ir.module_pass import module_pass
from ..ir.views import VIEWS, is_contiguous, is_transpose, transpose_parts


@module_pass("hipdnn-finalize-memrefs")
def finalize_memrefs(module: ir.Operation) -> None:
    """Replace `linalg.transpose` and strided `memref.copy` by regions in buffer form, and erase unused views and allocations.

    Before: `memref.copy %a, %b : memref<2x3xf32, strided<[1, 2]>> to memref<2x3xf32>`.
    After: `hipdnn.graph ins(%a) outs(%b) ({ ^bb0(%x): %y = torch.aten.clone %x, %none; hipdnn.yield %y })`.
    """
    for function in functions(module):
        for op in operations(function):
            match op:
                case _ if is_transpose(op):
                    with ir.InsertionPoint(op), op.location:
                        source, destination, order = transpose_parts(op)
                        copy_buffer(transposed_view(source, order), destination, op.location)
                    op.erase()
                case memref.CopyOp() if not (is_contiguous(op.source.type) and is_contiguous(op.target.type)):
                    with ir.InsertionPoint(op):
                        copy_buffer(op.source, op.target, op.location)
                    op.erase()
        for op in reversed(operations(function)):
            if isinstance(op, (*VIEWS, memref.AllocOp)) and not list(op.result.uses):
                op.erase()
