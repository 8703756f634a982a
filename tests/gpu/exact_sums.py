"""Quantized graphs for cuDNN, computed by PyTorch and NumPy in f64; bytes are rounded and clamped where they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import DataType
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.abi import Pointwise as P

_TYPES = {DataType.FLOAT: np.float32, DataType.HALF: np.float16, DataType.INT8: np.int8, DataType.INT32: np.int32}
_FUNCTIONS = {P.MUL: np.multiply, P.ADD: np.add, P.RELU_FWD: lambda x: np.maximum(x, 0)}


def compute(executable: dict[str, Any], places: Sequence[np.ndarray]) -> None:
    """Run a graph of a convolution or matmul, MUL, ADD and RELU_FWD on memory, in the order of its operands."""
    described = [
        (kind, {name: value for name, _, value in attributes}) for kind, attributes in executable["descriptors"]
    ]
    memory = {operand["uid"]: place for operand, place in zip(executable["operands"], places, strict=True)}
    values: dict[int, np.ndarray] = {}
    stored = {
        index: _view(found, memory) for index, (kind, found) in enumerate(described) if kind == D.TENSOR_DESCRIPTOR
    }
    for index, view in stored.items():
        if view is not None:
            values[index] = view.astype(np.float64)
    for kind, found in described:
        made = _node(kind, found, values)
        if made is None:
            continue
        target, value = made
        values[target] = value
        view = stored[target]
        if view is not None:
            limits = np.iinfo(np.int8)
            view[...] = np.clip(np.rint(value), limits.min, limits.max) if view.dtype == np.int8 else value


def _view(found: dict[int, Any], memory: dict[int, np.ndarray]) -> np.ndarray | None:
    dtype = np.dtype(_TYPES[DataType(found[A.TENSOR_DATA_TYPE][0])])
    if found.get(A.TENSOR_IS_VIRTUAL, [False])[0]:
        return None
    place = memory.get(found[A.TENSOR_UNIQUE_ID][0])
    if place is None:
        number = np.frombuffer(bytes.fromhex(found[A.TENSOR_VALUE_EXT]["hex"]), dtype)
        return number.reshape((1,) * len(found[A.TENSOR_DIMENSIONS]))
    strides = [step * dtype.itemsize for step in found[A.TENSOR_STRIDES]]
    whole = place.view(np.uint8).reshape(-1)
    count = whole.size // dtype.itemsize * dtype.itemsize
    return np.lib.stride_tricks.as_strided(whole[:count].view(dtype), found[A.TENSOR_DIMENSIONS], strides)


def _node(kind: int, found: dict[int, Any], values: dict[int, np.ndarray]) -> tuple[int, np.ndarray] | None:
    if kind == D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        x, w = (
            values[found[name][0]] for name in (A.OPERATION_CONVOLUTION_FORWARD_X, A.OPERATION_CONVOLUTION_FORWARD_W)
        )
        assert found[A.CONVOLUTION_PRE_PADDINGS] == found[A.CONVOLUTION_POST_PADDINGS]
        y = torch.nn.functional.conv2d(
            *(torch.from_numpy(np.ascontiguousarray(value)) for value in (x, w)),
            stride=found[A.CONVOLUTION_FILTER_STRIDES], padding=found[A.CONVOLUTION_PRE_PADDINGS],
            dilation=found[A.CONVOLUTION_DILATIONS], groups=x.shape[1] // w.shape[1],
        )  # fmt: skip
        return found[A.OPERATION_CONVOLUTION_FORWARD_Y][0], y.numpy()
    if kind == D.OPERATION_MATMUL_DESCRIPTOR:
        a, b = (values[found[name][0]] for name in (A.OPERATION_MATMUL_ADESC, A.OPERATION_MATMUL_BDESC))
        return found[A.OPERATION_MATMUL_CDESC][0], a @ b
    if kind != D.OPERATION_POINTWISE_DESCRIPTOR:
        return None
    names = (A.OPERATION_POINTWISE_IN_0_EXT, A.OPERATION_POINTWISE_IN_1_EXT)
    operands = [values[found[name][0]] for name in names if name in found]
    function = _FUNCTIONS[P(found[A.POINTWISE_MODE][0])]
    return found[A.OPERATION_POINTWISE_OUT_0_EXT][0], function(*operands)
