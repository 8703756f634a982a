"""Torch ops read as the operation table sees them: OpView with Python values for constants."""

from collections.abc import Iterator
from math import prod
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.errors import NO_ROW, Reject

from ..ops.row import OpRow
from ..ops.spec import OpView, Refusal, TensorArg
from ..ops.table import find
from .types import is_tensor, tensor_type

KNOWN = "operand_"
"""Attributes named so, with its position, hold an operand that is known at compile time (see OpRow.known)."""
_ONNX_ATTRIBUTE = "torch.onnx."
_CONSTANTS = (
    torch.ConstantBoolOp, torch.ConstantDeviceOp, torch.ConstantFloatOp, torch.ConstantIntOp, torch.ConstantNoneOp,
    torch.ConstantNumberOp, torch.ConstantStrOp, torch.PrimListConstructOp, torch.ValueTensorLiteralOp,
)  # fmt: skip


def is_constant(op: ir.OpView) -> bool:
    """True for ops that only spell a compile-time value (lists of tensors count as plumbing too)."""
    return isinstance(op.opview, _CONSTANTS)


def producer(value: ir.Value) -> ir.OpView | None:
    """The op that a value is a result of, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def readers(value: ir.Value) -> list[ir.OpView]:
    """The ops that use a value, one for each use."""
    return [use.owner for use in value.uses]


def node_names(op: ir.OpView) -> list[str]:
    """The ONNX nodes that an op came from, in order: the names in its location."""
    return list(dict.fromkeys(_names(op.location)))


def _names(location: ir.Location) -> Iterator[str]:
    match location:
        case ir.NameLoc():
            yield location.name_str
            yield from _names(location.child_loc)
        case ir.FileLineColLoc():  # of an op in a text, that has no other name
            yield location.filename
        case ir.FusedLoc():
            for part in location.locations:
                yield from _names(part)
        case ir.CallSiteLoc():
            yield from _names(location.callee)
            yield from _names(location.caller)


def node_name(op: ir.OpView) -> str:
    """The ONNX nodes that an op came from, joined by "+"."""
    return "+".join(node_names(op))


def literal_scalar(op: torch.ValueTensorLiteralOp) -> float | int | bool | None:
    """The number of a one-element literal, or None."""
    value = op.opview.value
    return splat_number(value) if prod(value.type.shape) == 1 else None


def splat_number(attribute: ir.DenseElementsAttr) -> float | int | bool:
    """The number that a splat has everywhere."""
    return attribute.get_splat_value().value  # type: ignore[no-any-return]


def argument(value: ir.Value) -> Any:
    """One operand as the table sees it; refuses what is neither a tensor nor a known constant."""
    source = producer(value)
    if is_tensor(value.type):
        scalar = literal_scalar(source) if isinstance(source, torch.ValueTensorLiteralOp) else None
        kind = tensor_type(value.type)
        return TensorArg(value, kind, scalar if not kind.dims else None)
    match source:
        case None:
            raise Refusal("operand", f"operand of type {value.type} is not known at compile time")
        case torch.ConstantNoneOp():
            return None
        case torch.PrimListConstructOp():
            return [argument(item) for item in source.elements]
        case torch.ConstantBoolOp():
            return bool(source.value.value)
        case torch.ConstantIntOp() | torch.ConstantFloatOp() | torch.ConstantStrOp() | torch.ConstantDeviceOp():
            return source.value.value
    raise Refusal("operand", f"operand computed by {source.operation.name} is not known at compile time")


def op_name(op: ir.OpView) -> str:
    """The op as users know it: a torch op, or the ONNX operator inside `torch.operator`."""
    name = row_name(op)
    return name.removeprefix("hipdnn.").removeprefix("onnx.") if isinstance(op.opview, torch.OperatorOp) else name


def row_name(op: ir.OpView) -> str:
    """The name under which the table knows an op: the operator's own inside `torch.operator`."""
    op = op.opview
    return str(op.name.value if isinstance(op, torch.OperatorOp) else op.operation.name)


def view(op: ir.OpView) -> OpView:
    """The table's view of a torch op; raises Refusal where an operand is not readable."""
    attributes = onnx_attributes(op)
    known = {name: attributes.pop(name) for name in list(attributes) if name.startswith(KNOWN)}
    return OpView(
        row_name(op),
        [known.get(f"{KNOWN}{i}", argument(value)) for i, value in enumerate(op.operands)],
        [tensor_type(value.type) for value in op.results],
        node_name(op),
        [bool(list(result.uses)) for result in op.results],
        attributes,
    )


def onnx_attributes(op: ir.OpView) -> dict[str, Any]:
    """The attributes of an ONNX operator in a `torch.operator`, as Python values."""
    if not isinstance(op.opview, torch.OperatorOp):
        return {}
    names = [name for name in op.attributes if name.startswith(_ONNX_ATTRIBUTE)]
    return {name.removeprefix(_ONNX_ATTRIBUTE): _attribute(op.attributes[name]) for name in names}


def _attribute(attribute: ir.Attribute) -> Any:
    match attribute:
        case ir.ArrayAttr():
            return [_attribute(item) for item in attribute]
        case ir.IntegerAttr() | ir.FloatAttr() | ir.StringAttr():
            return attribute.value
    return attribute


def has_kernel(op: ir.OpView) -> bool:
    """Whether the row of an op takes it for a whole kernel, on targets that have its function."""
    found = lookup(op)
    if isinstance(found, Reject):
        return False
    row, seen = found
    try:
        return row.call is not None and bool(row.call(seen))
    except Refusal:
        return False


def lookup(op: ir.OpView) -> tuple[OpRow, OpView] | Reject:
    """Row and view of an op, or why there is none."""
    row = find(row_name(op))
    if row is None:
        return Reject(op_name(op), NO_ROW, "the op table has no row for it", node_name(op))
    try:
        return row, view(op)
    except Refusal as refusal:
        return Reject(op_name(op), refusal.rule, refusal.reason, node_name(op))
