"""An extension: a fusion pattern, an operator written by others, and one that hipDNN runs as a custom operation."""

from collections.abc import Sequence
from typing import Any

from torch_mlir import ir

from hipdnn_mlir import extension
from hipdnn_mlir.ir.literals import splat
from hipdnn_mlir.ir.types import tensor_type
from hipdnn_mlir.ir.view import defining, literal_scalar


@extension.pattern("acme-reciprocal", roots=["torch.aten.div.Tensor"], after="canonicalize-torch")
def reciprocal(operation: Any) -> Sequence[Any] | None:
    """Write a quotient by a number as a product: a product joins more epilogues.

    Before: `torch.aten.div.Tensor %x, %four`. After: `torch.aten.mul.Tensor %x, %quarter`.
    """
    x, divisor = operation.operands[:2]
    source = defining(divisor)
    number = literal_scalar(source) if source is not None and source.name == "torch.vtensor.literal" else None
    kind = tensor_type(divisor.type)
    if not number or kind.dims or not kind.dtype.is_float:
        return None
    factor = splat(1 / number, (), kind.dtype)
    product = ir.Operation.create("torch.aten.mul.Tensor", results=[operation.results[0].type], operands=[x, factor])
    return [product.result]


@extension.expansion("acme", "SoftCap")
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
