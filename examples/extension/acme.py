"""An extension: a fusion pattern, an operator that is decomposed, and one that hipDNN runs as a custom operation."""

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir import extension
from hipdnn_mlir.ir.literals import splat
from hipdnn_mlir.ir.view import argument


@extension.pattern("acme-reciprocal", after="canonicalize-torch")
def reciprocal(op: torch.AtenDivTensorOp) -> Sequence[ir.Value] | None:
    """Write a quotient by a number as a product: a product joins more epilogues.

    Before: `torch.aten.div.Tensor %x, %four`. After: `torch.aten.mul.Tensor %x, %quarter`.
    """
    divisor = argument(op.other)
    if not divisor.scalar or not divisor.type.dtype.is_float:
        return None
    factor = splat(1 / divisor.scalar, (), divisor.type.dtype)
    return [torch.aten_mul_Tensor(op.result.type, op.self_, factor)]


@extension.decomposition("acme", "SoftCap")
def soft_cap(call: extension.Call) -> Sequence[str | None]:
    """Limit x * tanh(x / limit): scores that must not grow without bound."""
    x = call.need(0)
    limit = call.const(call.attr("limit", 30.0), call.kind(x))
    return [call.op("Mul", call.op("Tanh", call.op("Div", x, limit)), limit)]


@extension.custom_op("acme", "SortRows", id="acme.sort_rows")
def sort_rows(operands: Sequence[extension.TensorType], attributes: dict[str, Any]) -> list[extension.TensorType]:
    """The rows of a matrix, each sorted; attribute `descending`."""
    del attributes
    return [operands[0]]
