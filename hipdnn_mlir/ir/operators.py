"""Operators of the domain `hipdnn` as ops, made at the current insertion point."""

from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ops.registry import ONNX

Stated = int | float | str | Sequence[int]


def operator(name: str, kind: ir.Type, operands: Sequence[ir.Value], **stated: Stated) -> ir.Value:
    """The only result of an operator, with attributes as an ONNX import writes them."""
    made = torch.OperatorOp([kind], f"{ONNX}{name}", list(operands), 0)
    for key, value in stated.items():
        made.attributes[f"torch.onnx.{key}"] = _attribute(value)
    return made.results[0]


def operator_name(op: ir.OpView | None) -> str:
    """The name of the operator that an op is, or nothing."""
    return str(op.name.value).removeprefix(ONNX) if isinstance(op, torch.OperatorOp) else ""


def is_operator(op: ir.OpView | None, *names: str) -> bool:
    """Whether an op is an operator of one of the names."""
    return operator_name(op) in names


def _attribute(value: Stated) -> ir.Attribute:
    match value:
        case str():
            return ir.StringAttr.get(value)
        case float():
            return ir.FloatAttr.get(ir.F32Type.get(), value)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signed(64), value)
    return ir.ArrayAttr.get([_attribute(item) for item in value])
