"""hipDNN descriptors for people: names in the place of the ABI's numbers, one line each."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

from hipdnn_mlir_runtime import abi
from hipdnn_mlir_runtime.abi import Attribute, AttributeType, DataType, Descriptor
from hipdnn_mlir_runtime.dtypes import ALL
from hipdnn_mlir_runtime.session.profiling.work import arithmetic_of

DTYPE_NAMES = {int(dtype.hipdnn): dtype.name for dtype in ALL if dtype.hipdnn is not None}
_ENUMS: dict[int, type[IntEnum]] = {
    AttributeType.DATA_TYPE: abi.DataType,
    AttributeType.POINTWISE_MODE: abi.Pointwise,
    AttributeType.REDUCTION_OPERATOR_TYPE: abi.Reduce,
    AttributeType.RESAMPLE_MODE: abi.Resample,
    AttributeType.PADDING_MODE: abi.Padding,
    AttributeType.CONVOLUTION_MODE: abi.ConvolutionMode,
    AttributeType.NORM_FWD_PHASE: abi.NormPhase,
}


def lines_of(descriptors: list[Any]) -> list[str]:
    """One line per descriptor: `%2 = POINTWISE MODE=RELU_FWD IN_0=%0 OUT_0=%1`."""
    return [f"%{index} = {_line(*descriptor)}" for index, descriptor in enumerate(descriptors)]


def fields_of(descriptor: list[Any]) -> dict[int, Any]:
    """The values of a descriptor by attribute."""
    return {name: value for name, _, value in descriptor[1]}


def tensor_of(descriptor: list[Any]) -> dict[str, Any]:
    """A tensor descriptor's uid, dtype, dims and strides."""
    fields = fields_of(descriptor)
    number = fields[Attribute.TENSOR_DATA_TYPE][0]
    return {
        "uid": fields[Attribute.TENSOR_UNIQUE_ID][0],
        "dtype": DTYPE_NAMES.get(number) or _name(DataType, number).lower(),
        "dims": fields[Attribute.TENSOR_DIMENSIONS],
        "strides": fields[Attribute.TENSOR_STRIDES],
    }


def _line(kind: int, attributes: list[Any]) -> str:
    words = [_name(Descriptor, kind).removesuffix("_EXT").removesuffix("_DESCRIPTOR").removeprefix("OPERATION_")]
    prefix = words[0] + "_"
    for number, value_type, value in attributes:
        name = _name(Attribute, number).removesuffix("_EXT").removeprefix("OPERATION_").removeprefix(prefix)
        words.append(f"{name}={_value(value_type, value)}")
    return " ".join(words)


def _value(value_type: int, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str | dict):
        return json.dumps(value)
    if value_type == AttributeType.BACKEND_DESCRIPTOR:
        texts = [f"%{index}" for index in value]
    elif value_type in _ENUMS:
        texts = [_name(_ENUMS[value_type], number) for number in value]
    else:
        texts = [str(item).lower() if isinstance(item, bool) else str(item) for item in value]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _name(enum: type[IntEnum], number: int) -> str:
    """A number's name, or the number where this version has no name for it."""
    try:
        return enum(number).name
    except ValueError:
        return str(number)


def flops_of(descriptors: list[Any]) -> int | None:
    """Floating-point operations of a graph's convolutions, matmuls and attention: 2 per multiply-add; None where it has none of them."""
    return (
        arithmetic_of([(kind, fields_of([kind, attributes])) for kind, attributes in descriptors]).product_flops or None
    )
