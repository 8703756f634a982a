"""hipdnn-reuse-operands: kernels write where they read, if nothing reads that any more."""

from collections.abc import Iterator
from typing import Any

from torch_mlir import ir

from ..ir.blocks import body, functions
from ..ir.dialect import OVERWRITES, input_count
from ..ir.module_pass import module_pass
from ..ir.views import uses_through_views


@module_pass("hipdnn-reuse-operands")
def reuse_operands(module: Any) -> None:
    """Give a kernel an operand's buffer for its result where that is the last use of the operand, and the kernel can do with it.

    One buffer less is alive, and a GPU finds in its cache what it writes to.

    Before: `%b = memref.alloc()`; `"hipdnn.launch_kernel"(%a, %b)`; `"hipdnn.execute"(%b, %w, %y)`.
    After: `"hipdnn.launch_kernel"(%a, %a)`; `"hipdnn.execute"(%a, %w, %y)`.
    """
    places = {
        op.operation.attributes["sym_name"].value: list(ir.DenseI64ArrayAttr(op.operation.attributes[OVERWRITES]))
        for op in module.regions[0].blocks[0].operations
        if OVERWRITES in op.operation.attributes
    }
    for function in functions(module):
        for operation in body(function):
            if operation.name == "hipdnn.launch_kernel":
                name = ir.FlatSymbolRefAttr(operation.attributes["kernel"]).value
                _reuse(operation, places.get(name, []))


def _reuse(operation: Any, places: list[int]) -> None:
    ins = input_count(operation)
    out = operation.operands[ins]
    if not _is_allocation(out) or any(user.is_before_in_block(operation) for user in _users(out)):
        return
    for place in places:
        value = operation.operands[place]
        if not _is_allocation(value) or value.type != out.type:
            continue
        users = list(_users(value))
        if users.count(operation) == 1 and all(
            user == operation or user.is_before_in_block(operation) for user in users
        ):
            allocated, kept = out.owner, value.owner
            if not kept.operation.is_before_in_block(allocated.operation):
                kept.operation.move_before(allocated.operation)  # views of the result may stand between them
            out.replace_all_uses_with(value)
            allocated.erase()
            return


def _is_allocation(value: Any) -> bool:
    return not isinstance(value.owner, ir.Block) and value.owner.name == "memref.alloc"


def _users(value: Any) -> Iterator[Any]:
    """The operations that read or write a buffer, as it is or through views, once for each operand that is it."""
    return (use.owner.operation for use in uses_through_views(value))
