"""hipdnn-share-operators: operators that compute the same from the same are computed once."""

from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import functions, operations
from ..ir.literals import tensor_list
from ..ir.module_pass import module_pass
from ..ir.view import is_constant, lookup, producer


@module_pass("hipdnn-share-operators")
def share_operators(module: ir.Operation) -> None:
    """Replace an op by an earlier one of the same name, operands, attributes and types; every layer of a decoder has such.

    MLIR's cse does not touch `torch.operator`, of which it knows nothing, nor what comes behind one. Ops without a row stay.

    A concatenation that begins as an earlier one does takes that one's result, so that one buffer serves both: each layer of a DenseNet
    concatenates what all layers before it gave.

    Before: `%a = torch.operator "hipdnn.onnx.Gather"(%t, %i)`; `%b = torch.operator "hipdnn.onnx.Gather"(%t, %i)`.
    After: `%a` in the place of `%b`.

    Before: `%a = torch.aten.cat [%x, %y], 1`; `%b = torch.aten.cat [%x, %y, %z], 1`.
    After: `%b = torch.aten.cat [%a, %z], 1`.
    """
    for function in functions(module):
        seen: dict[Any, ir.OpView] = {}
        for op in operations(function):
            first = seen.setdefault(_key(op), op)
            if first is op or (not is_constant(op) and isinstance(lookup(op), Reject)):
                continue
            for old, new in zip(op.results, first.results, strict=True):
                old.replace_all_uses_with(new)
            op.operation.erase()
        _share_beginnings(function)


def _share_beginnings(function: func.FuncOp) -> None:
    made: dict[tuple[ir.Value, ...], ir.Value] = {}
    for op in operations(function):
        if not isinstance(op, torch.AtenCatOp) or not isinstance(
            listed := producer(op.tensors), torch.PrimListConstructOp
        ):
            continue
        parts = tuple(listed.elements)
        for count in range(len(parts) - 1, 1, -1):
            if (begun := made.get((op.dim, *parts[:count]))) is not None:
                with ir.InsertionPoint(op), op.location:
                    op.operation.operands[0] = tensor_list([begun, *parts[count:]])
                break
        made.setdefault((op.dim, *parts), op.result)


def _key(op: ir.OpView) -> Any:
    """What ops that compute the same have in common."""
    attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes))
    kinds = tuple(value.type for value in op.results)
    name = op.name.value if isinstance(op, torch.OperatorOp) else op.operation.name
    return name, tuple(op.operands), attributes, kinds
