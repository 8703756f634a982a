"""Pooling: max and average over windows, 1-D to 3-D."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor, Padding, Resample
from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I8, I64, U8, DType

from ..emitter import Emitter, Value
from ..graph import TensorKey
from ..registry import ONNX, compute, of_hipdnn
from ..spec import OpView, Refusal, TensorType
from ..strides import Dims


def _window(values: Sequence[int], spatial: int) -> Dims:
    """One number per spatial dim; a single one stands for all. torch-mlir repeats default strides once too often."""
    return tuple(values) * spatial if len(values) == 1 else tuple(values)[:spatial]


def _paddings(values: Sequence[int], spatial: int) -> tuple[Dims, Dims]:
    """Padding before and after; torch-mlir passes asymmetric padding as begins, then ends."""
    if len(values) == 2 * spatial and spatial > 0:
        return tuple(values[:spatial]), tuple(values[spatial:])
    both = _window(values, spatial)
    return both, both


def _sizes(x: Dims, low: Dims, high: Dims, window: Dims, strides: Dims, *, ceil: bool) -> tuple[Dims, Dims]:
    """Output sizes and the padding at the end that yields them; with `ceil` a window may start in the padding's last stretch only.

    That padding is the same whatever the size where it can be: a few more elements that lie in no window change nothing.
    """
    sizes, ends = [], []
    for n, a, b, k, s in zip(x, low, high, window, strides, strict=True):
        size = (n + a + b - k + (s - 1 if ceil else 0)) // s + 1
        if ceil and (size - 1) * s >= n + a:
            size -= 1
        sizes.append(size)
        ends.append(b + s - 1 if ceil and b + s - 1 < k else max(b, (size - 1) * s + k - n - a))
    return tuple(sizes), tuple(ends)


def _resample(
    e: Emitter,
    x: Value,
    mode: Resample,
    window: Dims,
    strides: Dims,
    low: Dims,
    high: Dims,
    size: Dims,
    *,
    indices: bool = False,
) -> list[Value]:
    """What is pooled and, where they are asked for, the positions of the maxima in the dims behind batch and channels."""
    if min(size) < 1:
        raise Refusal("shape", f"window {window} does not fit {x.dims[2:]}")
    padding = Padding.NEG_INF_PAD if mode == Resample.MAXPOOL else Padding.ZERO_PAD
    dims = (*x.dims[:2], *size)
    results: dict[TensorKey, tuple[Dims, DType]] = {A.OPERATION_RESAMPLE_FWD_YDESC: (dims, x.dtype)}
    if indices:
        results[A.OPERATION_RESAMPLE_FWD_IDXDESC] = (dims, I64)
    return e.node(
        Descriptor.OPERATION_RESAMPLE_FWD_DESCRIPTOR,
        {A.OPERATION_RESAMPLE_FWD_XDESC: Value(x.tensor, x.dims, x.dtype)},
        results,
        [
            (A.RESAMPLE_PRE_PADDINGS, T.INT64, list(low)),
            (A.RESAMPLE_POST_PADDINGS, T.INT64, list(high)),
            (A.RESAMPLE_STRIDES, T.INT64, list(strides)),
            (A.RESAMPLE_WINDOW_DIMS, T.INT64, list(window)),
            (A.RESAMPLE_MODE, T.RESAMPLE_MODE, [int(mode)]),
            (A.RESAMPLE_PADDING_MODE, T.PADDING_MODE, [int(padding)]),
            (A.RESAMPLE_GENERATE_INDEX_EXT, T.BOOLEAN, [indices]),
            (A.RESAMPLE_COMP_TYPE, T.DATA_TYPE, [int(DataType.FLOAT)]),
        ],
    )


def _absorbed(x: Value, low: Dims, high: Dims, border: float) -> tuple[Dims, Dims]:
    """Padding of the op joined with a border that was written as its own op, where the border's value is the pool's own."""
    if x.pads is None:
        return low, high
    own = x.pads[2] == border or (math.isinf(border) and x.pads[2] <= -3.0e38)
    if not own or any(x.pads[0][:2]) or any(x.pads[1][:2]):
        raise Refusal("pad", "only a border of the pooling's own value can be fused")
    before = tuple(a + b for a, b in zip(low, x.pads[0][2:], strict=True))
    return before, tuple(a + b for a, b in zip(high, x.pads[1][2:], strict=True))


def _check(x: Value, spatial: int, more: Collection[DType] = ()) -> None:
    if x.rank != spatial + 2:
        raise Refusal("rank", f"operand of rank {x.rank}, expected {spatial + 2}")
    if x.dtype not in (F16, BF16, F32, *more):
        raise Refusal("dtype", f"pooling of {x.dtype}")


@compute(
    "aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d", "aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices",
    becomes="resample MAXPOOL", onnx=("MaxPool", "GlobalMaxPool"), source="PyTorch: torch.nn.functional.max_pool2d",
)  # fmt: skip
def max_pool(e: Emitter, op: OpView) -> list[Value]:
    """(x, window, strides, pads, dilation, ceil); indices are not produced."""
    spatial = int(op.name.split("max_pool")[1][0])
    x = e.value(op.args[0], pads=True)
    _check(x, spatial, (I8, U8))
    window, strides, dilation = (_window(op.args[i] or op.args[1], spatial) for i in (1, 2, 4))
    if set(dilation) != {1}:
        raise Refusal("attribute", f"dilation {dilation}: hipDNN's resample has none")
    low, high = _absorbed(x, *_paddings(op.args[3], spatial), -math.inf)
    size, high = _sizes(x.dims[2:], low, high, window, strides, ceil=bool(op.args[5]))
    return _resample(e, x, Resample.MAXPOOL, window, strides, low, high, size)


def _pooled(dims: Dims, attributes: Mapping[str, Any]) -> tuple[Dims, Dims, Dims, Dims, Dims]:
    """Window, strides, padding before and after, and sizes of the result, by ONNX's attributes of MaxPool."""
    window, spatial = tuple(attributes["kernel_shape"]), len(dims) - 2
    strides = tuple(attributes.get("strides", (1,) * spatial))
    low, high = _paddings(attributes.get("pads", (0,) * (2 * spatial)), spatial)
    if not len(window) == len(strides) == len(low) == spatial or min(*window, *strides) < 1:
        raise Refusal("attribute", f"windows of {window}, strides {strides} and padding {low} for dims {dims}")
    size, high = _sizes(dims[2:], low, high, window, strides, ceil=bool(attributes.get("ceil_mode", 0)))
    return window, strides, low, high, size


def _max_pool_types(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    x = operands[0] if operands else None
    if x is None or "kernel_shape" not in attributes:
        raise Refusal("operand", "an operand and kernel_shape are needed")
    dims = x.static_dims()
    result = (*dims[:2], *_pooled(dims, attributes)[-1])
    return [TensorType(result, x.dtype), TensorType(result, I64)]


@of_hipdnn(
    "MaxPoolWithIndices", becomes="resample MAXPOOL with indices", results=_max_pool_types, source="hipDNN: backend API, RESAMPLE_FWD"
)  # fmt: skip
def max_pool_with_indices(e: Emitter, op: OpView) -> list[Value]:
    """(x; kernel_shape, strides, pads, ceil_mode) -> the maxima, and where each lies in the dims behind batch and channels."""
    x = e.value(op.args[0])
    _check(x, x.rank - 2)
    window, strides, low, high, size = _pooled(x.dims, op.attributes)
    return _resample(e, x, Resample.MAXPOOL, window, strides, low, high, size, indices=True)


@compute(
    "aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d",
    becomes="resample AVGPOOL", onnx=("GlobalAveragePool",), source="PyTorch: torch.nn.functional.avg_pool2d",
)  # fmt: skip
def avg_pool(e: Emitter, op: OpView) -> Value:
    """(x, window, strides, pads, ceil, count_include_pad[, divisor])."""
    spatial = int(op.name.split("avg_pool")[1][0])
    x = e.value(op.args[0], pads=True)
    _check(x, spatial)
    window, strides = (_window(op.args[i] or op.args[1], spatial) for i in (1, 2))
    if len(op.args) > 6 and op.args[6] is not None:
        raise Refusal("attribute", "divisor_override is set")
    pads = _paddings(op.args[3], spatial)
    return _average(e, x, window, strides, *pads, ceil=bool(op.args[4]), include=bool(op.args[5]))


@compute(f"{ONNX}AveragePool", becomes="resample AVGPOOL", onnx=("AveragePool",), source="ONNX, AveragePool-22")
def average_pool(e: Emitter, op: OpView) -> Value:
    """(x; kernel_shape, strides, pads, auto_pad, ceil_mode, count_include_pad)."""
    x, given = e.value(op.args[0], pads=True), op.attributes
    window, spatial = tuple(given["kernel_shape"]), x.rank - 2
    _check(x, len(window))
    if set(given.get("dilations", (1,))) != {1}:
        raise Refusal("attribute", f"dilations {given['dilations']}: hipDNN's resample has none")
    strides, auto = tuple(given.get("strides", (1,) * spatial)), given.get("auto_pad", "NOTSET")
    low, high = _paddings(given.get("pads", (0,) * (2 * spatial)) if auto == "NOTSET" else (0,), spatial)
    if auto.startswith("SAME"):
        low, high = _same(x, window, strides, is_lower=auto == "SAME_LOWER")
    ceil = bool(given.get("ceil_mode", 0)) and not auto.startswith("SAME")
    include = bool(given.get("count_include_pad", 0))
    return _average(e, x, window, strides, low, high, ceil=ceil, include=include)


def _same(x: Value, window: Dims, strides: Dims, *, is_lower: bool) -> tuple[Dims, Dims]:
    """Padding with which each stride has a window; of an odd number, `is_lower` puts one more in front."""
    if x.pads is not None:
        raise Refusal("pad", "a border in front of windows that find their own padding")
    whole = [max((-(-n // s) - 1) * s + k - n, 0) for n, k, s in zip(x.dims[2:], window, strides, strict=True)]
    small, large = tuple(pad // 2 for pad in whole), tuple(pad - pad // 2 for pad in whole)
    return (large, small) if is_lower else (small, large)


def _average(
    e: Emitter, x: Value, window: Dims, strides: Dims, low: Dims, high: Dims, *, ceil: bool, include: bool
) -> Value:
    """Means over windows; what lies beyond x and its padding never counts."""
    is_counted = include or not any(low + high)
    low, high = _absorbed(x, low, high, 0.0)
    size, end = _sizes(x.dims[2:], low, high, window, strides, ceil=ceil)
    if x.pads and (ceil or not is_counted):
        raise Refusal("pad", "a zero border can be fused only if it counts in the average")
    if include and ceil and any(low + high):
        last = zip(x.dims[2:], low, high, size, window, strides, strict=True)
        if any((places - 1) * s + k > n + a + b for n, a, b, places, k, s in last):
            raise Refusal("attribute", "windows that reach beyond the padding, which counts in the average")
    is_whole = x.pads is not None or (include and (not ceil or any(low + high)))
    mode = Resample.AVGPOOL_INCLUDE_PADDING if is_whole else Resample.AVGPOOL_EXCLUDE_PADDING
    return _resample(e, x, mode, window, strides, low, end, size)[0]
