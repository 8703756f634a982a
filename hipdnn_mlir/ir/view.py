"""Torch ops read as the operation table sees them: OpView with Python values for constants."""

import re
from math import prod
from typing import Any

from torch_mlir import ir

from ..errors import NO_ROW, Reject
from ..ops.row import OpRow
from ..ops.spec import OpView, Refusal, TensorArg
from ..ops.table import find
from .types import is_tensor, tensor_type

KNOWN = "operand_"
"""Attributes named so, with its position, hold an operand that is known at compile time (see OpRow.known)."""
_ONNX_ATTRIBUTE = "torch.onnx."
_CONSTANTS = ("torch.constant.", "torch.prim.ListConstruct", "torch.vtensor.literal")


def is_constant(operation: Any) -> bool:
    """True for ops that only spell a compile-time value (lists of tensors count as plumbing too)."""
    return str(operation.name).startswith(_CONSTANTS)


def producer(value: ir.Value) -> ir.OpView | None:
    """The op that a value is a result of, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner


def readers(value: ir.Value) -> list[ir.OpView]:
    """The ops that use a value, one for each use."""
    return [use.owner for use in value.uses]


def defining(value: Any) -> Any | None:
    """The op that defines a value, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def node_names(operation: Any) -> list[str]:
    """The ONNX nodes that an op came from, in order: the names in its location."""
    return list(dict.fromkeys(re.findall(r'"([^"]+)"', str(operation.location))))


def node_name(operation: Any) -> str:
    """The ONNX nodes that an op came from, joined by "+"."""
    return "+".join(node_names(operation))


def literal_scalar(operation: Any) -> float | int | bool | None:
    """The number of a one-element literal, or None."""
    attribute = ir.DenseElementsAttr(operation.attributes["value"])
    kind = ir.RankedTensorType(attribute.type)
    return splat_number(attribute) if prod(kind.shape) == 1 else None


def splat_number(attribute: Any) -> float | int | bool:
    """The number that a splat has everywhere."""
    number = attribute.get_splat_value()
    if isinstance(number, ir.FloatAttr):
        return float(number.value)
    return bool(number.value) if str(number.type) == "i1" else int(ir.IntegerAttr(number).value)


def argument(value: Any) -> Any:
    """One operand as the table sees it; refuses what is neither a tensor nor a known constant."""
    source = defining(value)
    if is_tensor(value.type):
        scalar = literal_scalar(source) if source is not None and source.name == "torch.vtensor.literal" else None
        kind = tensor_type(value.type)
        return TensorArg(value, kind, scalar if not kind.dims else None)
    if source is None:
        raise Refusal("operand", f"operand of type {value.type} is not known at compile time")
    name = source.name
    if name == "torch.constant.none":
        return None
    if name == "torch.prim.ListConstruct":
        return [argument(item) for item in source.operands]
    if not name.startswith("torch.constant."):
        raise Refusal("operand", f"operand computed by {name} is not known at compile time")
    attribute = source.attributes["value"]
    if name == "torch.constant.bool":
        return (
            bool(ir.BoolAttr(attribute).value)
            if isinstance(attribute, ir.BoolAttr)
            else bool(ir.IntegerAttr(attribute).value)
        )
    if name == "torch.constant.int":
        return int(ir.IntegerAttr(attribute).value)
    if name == "torch.constant.float":
        return float(ir.FloatAttr(attribute).value)
    return str(ir.StringAttr(attribute).value)


def op_name(operation: Any) -> str:
    """The op as users know it: a torch op, or the ONNX operator inside `torch.operator`."""
    if operation.name == "torch.operator":
        return str(ir.StringAttr(operation.attributes["name"]).value).removeprefix("hipdnn.").removeprefix("onnx.")
    return str(operation.name)


def row_name(operation: Any) -> str:
    """The name under which the table knows an op: the operator's own inside `torch.operator`."""
    is_operator = operation.name == "torch.operator"
    return str(ir.StringAttr(operation.attributes["name"]).value if is_operator else operation.name)


def view(operation: Any) -> OpView:
    """The table's view of a torch op; raises Refusal where an operand is not readable."""
    attributes = onnx_attributes(operation)
    known = {name: attributes.pop(name) for name in list(attributes) if name.startswith(KNOWN)}
    return OpView(
        row_name(operation),
        [known.get(f"{KNOWN}{i}", argument(value)) for i, value in enumerate(operation.operands)],
        [tensor_type(value.type) for value in operation.results],
        node_name(operation),
        [bool(list(result.uses)) for result in operation.results],
        attributes,
    )


def onnx_attributes(operation: Any) -> dict[str, Any]:
    """The attributes of an ONNX operator in a `torch.operator`, as Python values."""
    if operation.name != "torch.operator":
        return {}
    names = [name for name in map(str, operation.attributes) if name.startswith(_ONNX_ATTRIBUTE)]
    return {name.removeprefix(_ONNX_ATTRIBUTE): _attribute(operation.attributes[name]) for name in names}


def _attribute(attribute: Any) -> Any:
    if isinstance(attribute, ir.ArrayAttr):
        return [_attribute(item) for item in attribute]
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.FloatAttr):
        return float(attribute.value)
    return str(ir.StringAttr(attribute).value) if isinstance(attribute, ir.StringAttr) else attribute


def lookup(operation: Any) -> tuple[OpRow, OpView] | Reject:
    """Row and view of an op, or why there is none."""
    operation = operation.operation  # whose name is the op's, not an attribute
    name = op_name(operation)
    row = find(row_name(operation))
    if row is None:
        return Reject(name, NO_ROW, "no hipDNN operation or data movement expresses it", node_name(operation))
    try:
        return row, view(operation)
    except Refusal as refusal:
        return Reject(name, refusal.rule, refusal.reason, node_name(operation))
