"""Constants of the torch dialect: made at the current insertion point, and read."""

from typing import Any

import numpy as np
from torch_mlir import ir

from ..dtypes import DType
from ..ops.evaluate import Array
from .types import tensor_type, torch_tensor
from .view import splat_number


def splat(number: float, dims: tuple[int, ...], dtype: DType) -> Any:
    """A literal with one number everywhere, at the current insertion point."""
    kind = ir.RankedTensorType.get(list(dims), ir.Type.parse(dtype.torch))
    element = (
        ir.FloatAttr.get(kind.element_type, float(number))
        if dtype.is_float
        else ir.IntegerAttr.get(kind.element_type, int(number))
    )
    value = ir.DenseElementsAttr.get_splat(kind, element)
    return ir.Operation.create(
        "torch.vtensor.literal", results=[torch_tensor(dims, dtype)], attributes={"value": value}
    ).result


def constant_int(number: int) -> Any:
    """A `torch.constant.int` at the current insertion point."""
    kind = ir.IntegerType.get_signless(64)
    return ir.Operation.create(
        "torch.constant.int",
        results=[ir.Type.parse("!torch.int")],
        attributes={"value": ir.IntegerAttr.get(kind, number)},
    ).result


def constant_float(number: float) -> Any:
    """A `torch.constant.float` at the current insertion point."""
    return ir.Operation.create(
        "torch.constant.float",
        results=[ir.Type.parse("!torch.float")],
        attributes={"value": ir.FloatAttr.get(ir.F64Type.get(), number)},
    ).result


def constant_str(text: str) -> Any:
    """A `torch.constant.str` at the current insertion point."""
    return ir.Operation.create(
        "torch.constant.str", results=[ir.Type.parse("!torch.str")], attributes={"value": ir.StringAttr.get(text)}
    ).result


def constant_bool(*, value: bool) -> Any:
    """A `torch.constant.bool` at the current insertion point."""
    return ir.Operation.create(
        "torch.constant.bool", results=[ir.Type.parse("!torch.bool")], attributes={"value": ir.BoolAttr.get(value)}
    ).result


def constant_none() -> Any:
    """A `torch.constant.none` at the current insertion point."""
    return ir.Operation.create("torch.constant.none", results=[ir.Type.parse("!torch.none")]).result


def constant_list(numbers: tuple[int, ...]) -> Any:
    """A `!torch.list<int>` at the current insertion point."""
    items = [constant_int(number) for number in numbers]
    return ir.Operation.create(
        "torch.prim.ListConstruct", results=[ir.Type.parse("!torch.list<int>")], operands=items
    ).result


def literal_array(operation: Any) -> Array:
    """The data of a `torch.vtensor.literal`."""
    kind = tensor_type(operation.results[0].type)
    dims = kind.static_dims()
    if 0 in dims:  # of some dtypes there is no array to be had
        return np.empty(dims, kind.dtype.numpy)
    attribute = operation.attributes["value"]
    if ir.DenseElementsAttr(attribute).is_splat:
        return np.full(dims, splat_number(ir.DenseElementsAttr(attribute)), kind.dtype.numpy)
    return np.array(ir.DenseElementsAttr(attribute)).astype(kind.dtype.numpy, copy=False).reshape(dims)
