"""Matmuls of few rows and what surrounds them, as graphs of the op table's rows, and the numbers that they are run with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.spec import OpView, TensorArg, TensorType
from hipdnn_mlir.ops.table import find
from hipdnn_mlir_runtime.abi import Pointwise
from hipdnn_mlir_runtime.dtypes import DType
from host_kernels.kernel_runs import numpy_dtype
from runtime_programs import Array

EPSILON = 0.3
"""So large that a kernel which leaves it out is wrong."""


def op(
    e: Emitter, name: str, *args: Any, dims: Sequence[int] = (), dtype: DType | None = None, **attributes: Any
) -> Value:
    """A row of the op table of values, numbers and None; the result has the first value's dims and type but for those given."""
    values = [arg for arg in args if isinstance(arg, Value)]
    for value in values:
        e.define(value, value, TensorType(value.dims, value.dtype))
    found = find(f"{ONNX}{name}" if name[0].isupper() else f"torch.{name}")
    assert found is not None
    assert found.emit is not None
    given = [TensorArg(arg, TensorType(arg.dims, arg.dtype)) if isinstance(arg, Value) else arg for arg in args]
    kind = TensorType(tuple(dims) or values[0].dims, dtype or values[0].dtype)
    made = found.emit(e, OpView(f"torch.{name}", given, [kind], attributes=attributes))
    assert isinstance(made, Value)
    return made


def linear(e: Emitter, x: Value, weight: Value) -> Value:
    return op(e, "aten.linear", x, weight, None)


def of_codes(e: Emitter, x: Value, codes: Value, scales: Value, *, block: int, rounds: int = 0) -> Value:
    """A matmul of weights of 4 bits in bytes, or of 8 bits."""
    bits = 4 if codes.dtype.name == "u8" else 8
    dims = (*x.dims[:-1], codes.dims[0])
    return op(e, "BlockScaleMatMul", x, codes, scales, dims=dims, block_size=block, bits=bits, rounds=rounds)


def norm(e: Emitter, x: Value, scale: Value) -> Value:
    return op(e, "aten.rms_norm", x, list(scale.dims), scale, EPSILON)


def gated(e: Emitter, left: Value, right: Value) -> Value:
    return e.pointwise(Pointwise.MUL, e.pointwise(Pointwise.SWISH_FWD, left), right)


def layer(e: Emitter, x: Value, weight: Value, bias: Value) -> Value:
    return e.pointwise(Pointwise.RELU_FWD, e.pointwise(Pointwise.ADD, matmul_node(e, x, weight), bias))


def numbers(seed: int, dtype: str, *shapes: tuple[int, ...]) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(numpy_dtype(dtype)) for shape in shapes]


def codes_of(seed: int, bits: int, columns: int, inner: int, block: int) -> tuple[Array, Array, Array]:
    """Weights of 4 or 8 bits as they are stored, their scales, and what both mean."""
    rng = np.random.default_rng(seed)
    most = 1 << (bits - 1)
    whole = rng.integers(-most, most, (columns, inner))
    whole[0, :2] = -most, most - 1
    scales = (rng.uniform(0.5, 1.5, (columns, -(-inner // block))) / most).astype(np.float32)
    meant = whole * np.repeat(scales.astype(np.float64), block, 1)[:, :inner]
    if bits == 8:
        return whole.astype(np.int8), scales, meant
    low, high = (whole[:, start::2].astype(np.uint8) & 15 for start in (0, 1))
    return low | (high << 4), scales, meant


def wide(array: Array) -> Array:
    return array.astype(np.float64)


def normalized(x: Array, scale: Array) -> Array:
    return wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + EPSILON) * wide(scale)


def swish(x: Array) -> Array:
    return x / (1 + np.exp(-x))
