"""hipdnn-reuse-operands: kernels write where they read, if nothing reads that any more."""

from collections.abc import Iterator

from torch_mlir import ir
from torch_mlir.dialects import memref

from ..ir.blocks import functions, operations
from ..ir.dialect import KernelOp, LaunchKernelOp
from ..ir.module_pass import module_pass
from ..ir.view import producer
from ..ir.views import uses_through_views


@module_pass("hipdnn-reuse-operands")
def reuse_operands(module: ir.Operation) -> None:
    """Give a kernel an operand's buffer for its result where that is the last use of the operand, and the kernel can do with it.

    One buffer less is alive, and a GPU finds in its cache what it writes to.

    Before: `%b = memref.alloc()`; `hipdnn.launch_kernel ins(%a) outs(%b)`; `hipdnn.execute ins(%b, %w) outs(%y)`.
    After: `hipdnn.launch_kernel ins(%a) outs(%a)`; `hipdnn.execute ins(%a, %w) outs(%y)`.
    """
    places = {op.sym_name.value: op.overwrites for op in operations(module) if isinstance(op, KernelOp)}
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, LaunchKernelOp):
                _reuse(op, places.get(op.kernel.value, []))


def _reuse(call: LaunchKernelOp, places: list[int]) -> None:
    ins, out = call.ins, call.outs[0]
    allocated = producer(out)
    if not isinstance(allocated, memref.AllocOp) or any(user.is_before_in_block(call) for user in _users(out)):
        return
    for value in (ins[place] for place in places):
        kept = producer(value)
        if not isinstance(kept, memref.AllocOp) or value.type != out.type:
            continue
        users = list(_users(value))
        if users.count(call) == 1 and all(user == call or user.is_before_in_block(call) for user in users):
            if not kept.is_before_in_block(allocated):
                kept.move_before(allocated)  # views of the result may stand between them
            out.replace_all_uses_with(value)
            allocated.erase()
            return


def _users(value: ir.Value) -> Iterator[ir.OpView]:
    """The operations that read or write a buffer, as it is or through views, once for each operand that is it."""
    return (use.owner for use in uses_through_views(value))
