"""hipdnn-split-inner: the inner dim of a matmul of few rows and few columns is multiplied in parts at once."""

from math import prod

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions, operations
from ..ir.constants import constant_values, kept
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument
from ..ir.view_chains import dims_of, permuted, reshaped, sliced
from ..ops.few_rows import inner_parts
from ..targets.table import find_target

_TYPES = ("f16", "bf16")


@module_pass("hipdnn-split-inner")
def split_inner(module: ir.Operation, *, target: str = "host") -> None:
    """Multiply parts of the inner dim as a batch of matmuls, and add what they give; both operands are seen as parts, nothing is copied.

    A block of the matmul's kernel has more columns then, for which it reads the rows once; the sum is part of the kernel behind.

    Before: `torch.aten.linear %x, %w`, `%x[32, 1, 8192]` and a constant `%w[2048, 8192]`.
    After: `torch.aten.bmm` of `[8, 32, 1024]` and `[8, 1024, 2048]`; the sum of its eight matrices as `[32, 1, 2048]`.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    if not find_target(target).splits_inner:
        return
    for function in functions(module):
        constants = constant_values(function)
        for op in operations(function):
            if isinstance(op, torch.AtenLinearOp) and op.weight in constants and (parts := _parts(op)) > 1:
                with ir.InsertionPoint(op), op.location:
                    op.result.replace_all_uses_with(_in_parts(op, parts))
                op.erase()


def _parts(op: torch.AtenLinearOp) -> int:
    """In how many parts to multiply; 1 where none are wanted."""
    types = [tensor_type(value.type) for value in (op.input, op.weight, op.result)]
    if argument(op.bias) is not None or not all(kind.is_static and kind.dtype.name in _TYPES for kind in types):
        return 1
    columns, inner = dims_of(op.weight)
    return inner_parts(prod(dims_of(op.result)[:-1]), inner, columns)


def _in_parts(op: torch.AtenLinearOp, parts: int) -> ir.Value:
    columns, inner = dims_of(op.weight)
    rows, dtype = prod(dims_of(op.result)[:-1]), tensor_type(op.result.type).dtype
    left = permuted(reshaped(op.input, (rows, parts, inner // parts)), (1, 0, 2))
    weights = kept(permuted(kept(reshaped(op.weight, (columns, parts, inner // parts))), (1, 2, 0)))
    products = torch.aten_bmm(torch_tensor((parts, rows, columns), dtype), left, weights)
    total, *others = (reshaped(sliced(products, 0, at, at + 1), dims_of(op.result)) for at in range(parts))
    for other in others:
        total = torch.aten_add_Tensor(total.type, total, other, torch.constant_int(1))
    return total
