"""Floats of 8 bits: conversion, and products of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import DType

from ..emitter import Emitter, Value
from ..registry import of_hipdnn
from ..spec import OpView, Refusal, TensorType

FLOAT8 = (dtypes.F8E4M3, dtypes.F8E5M2)
_CONVERTED = {kind.name: kind for kind in (*FLOAT8, dtypes.F32)}
_RESULTS = {kind.name: kind for kind in (dtypes.F32, dtypes.F16, dtypes.BF16)}
_OPERANDS = _MATRIX = 2
Operands = Sequence[TensorType | None]


def _named(attributes: Mapping[str, Any], known: Mapping[str, DType]) -> DType:
    name = attributes.get("to", "f32")
    if name not in known:
        raise Refusal("attribute", f"result of {name}, expected one of {', '.join(known)}")
    return known[name]


def _converted(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    if len(operands) != 1 or operands[0] is None:
        raise Refusal("operand", f"{len(operands)} operands, expected one")
    return [TensorType(operands[0].dims, _named(attributes, _CONVERTED))]


@of_hipdnn(
    "ConvertFloat8",
    becomes="pointwise IDENTITY to another type",
    results=_converted,
    source="ONNX, Cast-25, with saturate = 0",
    precision="wide",
)
def convert(e: Emitter, op: OpView) -> Value:
    """(x; to): f32 to floats of 8 bits, halves to even, or back; beyond their greatest number infinity, or NaN where they have none."""
    x, kind = e.value(op.args[0]), op.results[0].dtype
    if {x.dtype, kind}.isdisjoint(FLOAT8) or dtypes.F32 not in (x.dtype, kind):
        raise Refusal("dtype", f"{kind} of {x.dtype}")
    return e.pointwise(P.IDENTITY, x, dtype=kind)


def _check_dims(x: TensorType | Value, w: TensorType | Value) -> None:
    if len(x.dims) < _MATRIX or len(w.dims) != _MATRIX or x.dims[-1] != w.dims[1]:
        raise Refusal("shape", f"{x.dims} and the transpose of {w.dims} do not multiply")


def _product(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    given = [kind for kind in operands if kind is not None]
    if len(given) != _OPERANDS:
        raise Refusal("operand", f"{len(given)} operands, expected two")
    x, w = given
    _check_dims(x, w)
    return [TensorType((*x.dims[:-1], w.dims[0]), _named(attributes, _RESULTS))]


@of_hipdnn(
    "Float8MatMul",
    becomes="matmul, pointwise MUL",
    results=_product,
    source="ONNX, DequantizeLinear-25 and MatMul-13",
    precision="narrow",
)
def float8_matmul(e: Emitter, op: OpView) -> Value:
    """(x, w; scale, to): x times the transpose of w (columns, inner), both of 8 bits, summed in f32, times a number, as `to`."""
    x, w = e.value(op.args[0]), e.value(op.args[1])
    if x.dtype not in FLOAT8 or w.dtype not in FLOAT8:
        raise Refusal("dtype", f"{x.dtype} with weights of {w.dtype}")
    if not e.is_operand(x) or not e.is_operand(w):
        raise Refusal("virtual-view", "floats of 8 bits that are computed in the graph")
    _check_dims(x, w)
    columns, inner = w.dims
    outer = (1,) * (x.rank - 2)
    seen = e.reinterpret(w, w.dtype, (*outer, inner, columns), (*(columns * inner,) * len(outer), 1, inner))
    sums = e.node(
        Descriptor.OPERATION_MATMUL_DESCRIPTOR,
        {A.OPERATION_MATMUL_ADESC: x, A.OPERATION_MATMUL_BDESC: seen},
        {A.OPERATION_MATMUL_CDESC: ((*x.dims[:-1], columns), dtypes.F32)},
        [(A.MATMUL_COMP_TYPE, T.DATA_TYPE, [int(DataType.FLOAT)])],
    )[0]
    return e.pointwise(P.MUL, sums, e.scalar(op.attributes["scale"], dtypes.F32), dtype=op.results[0].dtype)
