"""Normalizations with learned scale and bias: batch norm (inference and training), instance norm, layer norm, RMS norm."""

from collections.abc import Sequence
from math import prod
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor, NormPhase
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R
from hipdnn_mlir_runtime.dtypes import DType

from ..emitter import Emitter, Value
from ..graph import TensorKey
from ..registry import compute
from ..spec import OpView, Refusal
from ..strides import Dims


def _of_training(e: Emitter, x: Value, scale: Any, bias: Any, epsilon: float, *, saves: bool) -> list[Value]:
    """[y], and where it `saves` them mean and 1 / deviation of the batch as (1, c, 1, ...)."""
    if scale is None or bias is None:
        raise Refusal("operand", "batch norm without scale and bias")
    if not x.dtype.is_float:
        raise Refusal("dtype", f"batch norm of {x.dtype}")
    shape = (1, x.dims[1], *(1,) * (x.rank - 2))
    is_wide = x.dtype is dtypes.F64
    outputs: dict[TensorKey, tuple[Dims, DType]] = {A.OPERATION_BATCHNORM_Y_EXT: (x.dims, x.dtype)}
    if saves:
        outputs[A.OPERATION_BATCHNORM_MEAN_EXT] = (shape, x.dtype)
        outputs[A.OPERATION_BATCHNORM_INV_VARIANCE_EXT] = (shape, x.dtype)
    return e.node(
        Descriptor.OPERATION_BATCHNORM_DESCRIPTOR_EXT,
        {
            A.OPERATION_BATCHNORM_X_EXT: x,
            A.OPERATION_BATCHNORM_SCALE_EXT: e.view(e.value(scale), shape),
            A.OPERATION_BATCHNORM_BIAS_EXT: e.view(e.value(bias), shape),
            A.OPERATION_BATCHNORM_EPSILON_EXT: e.scalar(epsilon, dtypes.F64 if is_wide else dtypes.F32),
        },
        outputs,
        [(A.BATCHNORM_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.DOUBLE if is_wide else DataType.FLOAT)])],
    )


@compute(
    "aten.native_batch_norm",
    becomes="batch norm (training)",
    source="PyTorch: torch.native_batch_norm",
    precision="wide",
)
def native_batch_norm(e: Emitter, op: OpView) -> list[Value]:
    """(x, scale, bias, mean, variance, training, momentum, eps) in training: the batch's mean and 1 / deviation too."""
    x = e.value(op.args[0])
    if not op.args[5]:
        raise Refusal("attribute", "statistics are saved in training only")
    if x.rank < 2:
        raise Refusal("rank", "batch norm of a tensor of rank 1")
    return _of_training(e, x, op.args[1], op.args[2], op.args[7], saves=True)


@compute(
    "aten.batch_norm",
    becomes="batch norm inference with variance, or batch norm (training)",
    onnx=("BatchNormalization",),
    source="PyTorch: torch.batch_norm",
    precision="wide",
    keeps=(1, 2, 3, 4),
)
def batch_norm(e: Emitter, op: OpView) -> Value:
    """(x, scale, bias, mean, variance, training, momentum, eps, cudnn) per channel (dim 1)."""
    x, epsilon = e.value(op.args[0]), op.args[7]
    if x.rank < 2:
        raise Refusal("rank", "batch norm of a tensor of rank 1")
    if op.args[5]:
        return _of_training(e, x, op.args[1], op.args[2], epsilon, saves=False)[0]
    shape = (1, x.dims[1], *(1,) * (x.rank - 2))
    scale, bias, mean, variance = (e.view(e.value(arg), shape) for arg in op.args[1:5])
    kind = DataType.DOUBLE if x.dtype.name == "f64" else DataType.FLOAT
    return e.node(
        Descriptor.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT,
        {
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT: x,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT: mean,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT: variance,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT: scale,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT: bias,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT: e.scalar(
                epsilon, dtypes.F64 if x.dtype is dtypes.F64 else dtypes.F32
            ),
        },
        {A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT: (x.dims, op.results[0].dtype)},
        [(A.BATCHNORM_INF_VAR_COMP_TYPE_EXT, T.DATA_TYPE, [int(kind)])],
    )[0]


def standardized(e: Emitter, x: Value, axes: Sequence[int], epsilon: float, scale: Value, bias: Value) -> list[Value]:
    """[(x - mean) / sqrt(variance + epsilon) * scale + bias, mean, 1 / deviation] over `axes`, as reductions and pointwise nodes."""
    mean = e.reduction(R.AVG, x, axes)
    centred = e.pointwise(P.SUB, x, mean)
    variance = e.reduction(R.AVG, e.pointwise(P.MUL, centred, centred), axes)
    deviation = e.pointwise(P.RSQRT, e.pointwise(P.ADD, variance, e.scalar(epsilon, x.dtype)), dtype=x.dtype)
    y = e.pointwise(P.MUL, e.pointwise(P.MUL, centred, deviation), scale)
    return [e.pointwise(P.ADD, y, bias), mean, deviation]


@compute(
    "aten.instance_norm",
    becomes="reduction AVG, SUB, MUL, reduction AVG, ADD, RSQRT, MUL, MUL, ADD",
    onnx=("InstanceNormalization",),
    precision="wide",
)
def instance_norm(e: Emitter, op: OpView) -> Value:
    """(x, scale, bias, mean, variance, use input, momentum, eps, cudnn) over the spatial dims of each sample and channel."""
    x, epsilon = e.value(op.args[0]), op.args[7]
    if not op.args[5] or op.args[1] is None or op.args[2] is None:
        raise Refusal("attribute", "running statistics, or no scale and bias")
    if x.rank < 3 or not x.dtype.is_float:
        raise Refusal("dtype" if x.rank > 2 else "rank", f"instance norm of {x.dtype}{list(x.dims)}")
    dims = (1, x.dims[1], *(1,) * (x.rank - 2))
    scale, bias = e.view(e.value(op.args[1]), dims), e.view(e.value(op.args[2]), dims)
    return standardized(e, x, range(2, x.rank), epsilon, scale, bias)[0]


@compute(
    "aten.layer_norm",
    "aten.native_layer_norm",
    becomes="layer norm (inference)",
    onnx=("LayerNormalization",),
    precision="wide",
    keeps=(2, 3),
)
def layer_norm(e: Emitter, op: OpView) -> list[Value]:
    """(x, normalized dims, scale, bias, eps) over trailing dims; written out where mean or 1 / deviation are read too."""
    x, shape, epsilon = e.value(op.args[0]), tuple(op.args[1]), op.args[4]
    if op.args[2] is None or op.args[3] is None:
        raise Refusal("operand", "layer norm without scale and bias")
    if not x.dtype.is_float:
        raise Refusal("dtype", f"layer norm of {x.dtype}")
    if not shape or x.dims[-len(shape) :] != shape or prod(shape) == 0:
        raise Refusal("shape", f"normalized dims {shape} of {x.dims}")
    dims = (1,) * (x.rank - len(shape)) + shape
    if not op.uses_only_first():
        scale, bias = e.view(e.value(op.args[2]), dims), e.view(e.value(op.args[3]), dims)
        return standardized(e, x, range(x.rank - len(shape), x.rank), epsilon, scale, bias)
    y = e.node(
        Descriptor.OPERATION_LAYERNORM_DESCRIPTOR_EXT,
        {
            A.OPERATION_LAYERNORM_X_EXT: x,
            A.OPERATION_LAYERNORM_SCALE_EXT: e.view(e.value(op.args[2]), dims),
            A.OPERATION_LAYERNORM_BIAS_EXT: e.view(e.value(op.args[3]), dims),
            A.OPERATION_LAYERNORM_EPSILON_EXT: e.scalar(epsilon, dtypes.F64 if x.dtype is dtypes.F64 else dtypes.F32),
        },
        {A.OPERATION_LAYERNORM_Y_EXT: (x.dims, op.results[0].dtype)},
        [
            (A.OPERATION_LAYERNORM_FWD_PHASE_EXT, T.NORM_FWD_PHASE, [int(NormPhase.INFERENCE)]),
            (A.OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, T.INT64, [len(shape)]),
            (A.LAYERNORM_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.FLOAT)]),
        ],
    )[0]
    return [y]


@compute(
    "aten.rms_norm",
    becomes="RMS norm (inference)",
    source="PyTorch: torch.nn.functional.rms_norm",
    precision="wide",
)
def rms_norm(e: Emitter, op: OpView) -> Value:
    """(x, normalized dims, scale, eps) over trailing dims: x / sqrt(mean(x^2) + eps) * scale, computed in f32."""
    x, shape, epsilon = e.value(op.args[0]), tuple(op.args[1]), op.args[3]
    if op.args[2] is None or epsilon is None:
        raise Refusal("operand", "RMS norm without scale or epsilon")
    if not shape or x.dims[-len(shape) :] != shape or prod(shape) < 2:
        raise Refusal("shape", f"normalized dims {shape} of {x.dims}")
    scale = e.value(op.args[2])
    if not x.dtype.is_float or scale.dtype is not x.dtype:
        raise Refusal("dtype", f"x of {x.dtype}, scale of {scale.dtype}")
    return e.node(
        Descriptor.OPERATION_RMSNORM_DESCRIPTOR_EXT,
        {
            A.OPERATION_RMSNORM_X_EXT: x,
            A.OPERATION_RMSNORM_SCALE_EXT: e.view(scale, (1,) * (x.rank - len(shape)) + shape),
            A.OPERATION_RMSNORM_EPSILON_EXT: e.scalar(epsilon, dtypes.F64 if x.dtype is dtypes.F64 else dtypes.F32),
        },
        {A.OPERATION_RMSNORM_Y_EXT: (x.dims, x.dtype)},
        [
            (A.OPERATION_RMSNORM_FWD_PHASE_EXT, T.NORM_FWD_PHASE, [int(NormPhase.INFERENCE)]),
            (A.RMSNORM_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.DOUBLE if x.dtype is dtypes.F64 else DataType.FLOAT)]),
        ],
    )[0]
