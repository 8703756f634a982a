"""Constants and lists of the torch dialect: made at the current insertion point, and read."""

from collections.abc import Sequence

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import DType, of_numpy

from ..ops.evaluate import Array
from ..ops.strides import Dims
from .types import tensor_type, torch_tensor
from .view import splat_number


def splat(number: float, dims: Dims, dtype: DType) -> ir.Value:
    """A literal with one number everywhere, at the current insertion point."""
    kind = ir.RankedTensorType.get(list(dims), ir.Type.parse(dtype.torch))
    element = (
        ir.FloatAttr.get(kind.element_type, float(number))
        if dtype.is_float
        else ir.IntegerAttr.get(kind.element_type, int(number))
    )
    value = ir.DenseElementsAttr.get_splat(kind, element)
    return torch.vtensor_literal(value, results=[torch_tensor(dims, dtype)])


def literal(array: Array) -> ir.Value:
    """A literal with the elements of an array, at the current insertion point."""
    dtype = of_numpy(array.dtype)
    kind = ir.RankedTensorType.get(list(array.shape), ir.Type.parse(dtype.torch))
    if array.size == 1:
        return splat(array.reshape(-1)[0].item(), array.shape, dtype)
    elements = ir.DenseElementsAttr.get(np.ascontiguousarray(array), type=kind)
    return torch.vtensor_literal(elements, results=[torch_tensor(array.shape, dtype)])


def constant_list(numbers: Dims) -> ir.Value:
    """A `!torch.list<int>` at the current insertion point."""
    return torch.prim_ListConstruct(ir.Type.parse("!torch.list<int>"), list(map(torch.constant_int, numbers)))


def tensor_list(tensors: Sequence[ir.Value]) -> ir.Value:
    """A `!torch.list<vtensor>` at the current insertion point."""
    return torch.prim_ListConstruct(ir.Type.parse("!torch.list<vtensor>"), tensors)


def literal_array(literal: torch.ValueTensorLiteralOp) -> Array:
    """The data of a `torch.vtensor.literal`."""
    kind = tensor_type(literal.result.type)
    dims = kind.static_dims()
    if 0 in dims:  # of some dtypes there is no array to be had
        return np.empty(dims, kind.dtype.numpy)
    if literal.value.is_splat:
        return np.full(dims, splat_number(literal.value), kind.dtype.numpy)
    return np.array(literal.value).astype(kind.dtype.numpy, copy=False).reshape(dims)
