"""Operations of hipDNN for which neither ONNX nor PyTorch has an operator: a model names them in the domain `hipdnn`.

Block scale dequantize is ONNX's DequantizeLinear with blocks.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R
from hipdnn_mlir_runtime.dtypes import DType

from ..emitter import Emitter, Value, compute_type
from ..registry import compute, of_hipdnn
from ..spec import OpView, Refusal, TensorType
from ..strides import Dims
from .indexing import axis_of
from .matmul import matmul_node
from .reduction import axes_of

_SOURCE = "hipDNN: backend API, "
_WIDE = frozenset({dtypes.F32, dtypes.F16, dtypes.BF16})
Operands = Sequence[TensorType | None]


def _need(operands: Operands, count: int) -> list[TensorType]:
    if len(operands) != count or None in operands:
        raise Refusal("operand", f"{len(operands)} operands, expected {count}, none omitted")
    return [kind for kind in operands if kind is not None]


def _block_size(attributes: Mapping[str, Any]) -> int:
    size = attributes.get("block_size", 0)
    if not isinstance(size, int) or size < 1:
        raise Refusal("attribute", f"block_size is {size}, expected at least 1")
    return size


def _blocks(dims: Dims, axis: int, size: int) -> Dims:
    """Dims of the scales: one for `size` elements along the axis, for the rest at the end too."""
    return tuple(-(-count // size) if index == axis else count for index, count in enumerate(dims))


def _quantized_types(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    (x,) = _need(operands, 1)
    dims = x.static_dims()
    axis = axis_of(attributes.get("axis", -1), len(dims))
    return [TensorType(dims, dtypes.I8), TensorType(_blocks(dims, axis, _block_size(attributes)), dtypes.F32)]


@of_hipdnn(
    "BlockScaleQuantize",
    becomes="block scale quantize",
    results=_quantized_types,
    source=f"{_SOURCE}BLOCK_SCALE_QUANTIZE",
)
def block_scale_quantize(e: Emitter, op: OpView) -> list[Value]:
    """(x; block_size, axis = -1) -> (y in i8, scale in f32): per block scale = max |x| / 127; y = x / scale, rounded to even."""
    x = e.value(op.args[0])
    if x.dtype not in _WIDE:
        raise Refusal("dtype", f"block scale quantize of {x.dtype}")
    axis, size = axis_of(op.attributes.get("axis", -1), x.rank), _block_size(op.attributes)
    return _quantized(e, x, axis, size)


def _quantized(e: Emitter, x: Value, axis: int, size: int) -> list[Value]:
    """Numbers and scales."""
    return e.node(
        Descriptor.OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
        {A.OPERATION_BLOCK_SCALE_QUANTIZE_XDESC: x},
        {
            A.OPERATION_BLOCK_SCALE_QUANTIZE_YDESC: (x.dims, dtypes.I8),
            A.OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC: (_blocks(x.dims, axis, size), dtypes.F32),
        },
        [
            (A.OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE, T.INT32, [size]),
            (A.OPERATION_BLOCK_SCALE_QUANTIZE_AXIS_EXT, T.INT64, [axis]),
            (A.OPERATION_BLOCK_SCALE_QUANTIZE_TRANSPOSE_EXT, T.BOOLEAN, [False]),
            (A.OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC, T.DATA_TYPE, [int(DataType.FLOAT)]),
        ],
    )


@compute(
    "hipdnn.onnx.DequantizeLinear",
    becomes="block scale dequantize",
    onnx=("DequantizeLinear",),
    source=f"{_SOURCE}BLOCK_SCALE_DEQUANTIZE; ONNX, DequantizeLinear-21",
)
def block_scale_dequantize(e: Emitter, op: OpView) -> Value:
    """(x in i8, scale; block_size, axis = 1) of blocks, without zero point: x * scale. Others are written out before import."""
    x, scale, result = e.value(op.args[0]), e.value(op.args[1]), op.results[0].dtype
    axis, size = axis_of(op.attributes.get("axis", 1), x.rank), _block_size(op.attributes)
    if x.dtype is not dtypes.I8 or scale.dtype is not dtypes.F32 or result not in _WIDE:
        raise Refusal("dtype", f"{x.dtype} with scales of {scale.dtype} to {result}")
    if len(op.args) > 2 and op.args[2] is not None:
        raise Refusal("operand", "block scale dequantize with a zero point")
    if scale.dims != _blocks(x.dims, axis, size):
        raise Refusal("shape", f"scales of {list(scale.dims)} for blocks of {size} of {list(x.dims)} along dim {axis}")
    return _dequantized(e, x, scale, [size if index == axis else 1 for index in range(x.rank)], result)


def _dequantized(e: Emitter, x: Value, scale: Value, sizes: Sequence[int], result: DType) -> Value:
    return e.node(
        Descriptor.OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
        {A.OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC: x, A.OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC: scale},
        {A.OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC: (x.dims, result)},
        [
            (A.OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, T.INT32, list(sizes)),
            (A.OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, T.BOOLEAN, [False]),
            (A.OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, T.DATA_TYPE, [int(DataType.FLOAT)]),
        ],
    )[0]


def _code_types(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    numbers, _scales = _need(operands, 2)
    n, row = numbers.static_dims()
    name = attributes.get("to", "f32")
    if name not in dtypes.BY_NAME:
        raise Refusal("attribute", f"to is {name!r}, expected one of {', '.join(sorted(kind.name for kind in _WIDE))}")
    return [TensorType((n, row * 8 // attributes.get("bits", 4)), dtypes.BY_NAME[name])]


@of_hipdnn(
    "BlockScaleDequantize",
    becomes="block scale dequantize",
    results=_code_types,
    source=f"{_SOURCE}BLOCK_SCALE_DEQUANTIZE",
    keeps=(1,),
)
def block_scale_dequantize_codes(e: Emitter, op: OpView) -> Value:
    """(numbers, scales; block_size, bits = 4, to = f32) -> (n, k): numbers * scales, of whole blocks; operands as of BlockScaleMatMul."""
    numbers, scales = (e.value(arg) for arg in op.args)
    kind, row, size = _kind_of_codes(op, numbers)
    n, result = numbers.dims[0], op.results[0].dtype
    if scales.dtype not in _WIDE or result not in _WIDE:
        raise Refusal("dtype", f"scales of {scales.dtype}, to {result}")
    if row % size or scales.dims != (n, row // size):
        raise Refusal("shape", f"{list(numbers.dims)} with scales {list(scales.dims)} for blocks of {size} of {row}")
    return _dequantized(e, e.reinterpret(numbers, kind, (n, row), (row, 1)), scales, [1, size], result)


def _kind_of_codes(op: OpView, numbers: Value) -> tuple[DType, int, int]:
    """The type of numbers that are stored in rows of bytes, how many a row has, and how many a block."""
    bits, size = op.attributes.get("bits", 4), _block_size(op.attributes)
    if bits not in (4, 8) or numbers.dtype is not (dtypes.U8 if bits == 4 else dtypes.I8) or numbers.rank != 2:
        raise Refusal("dtype", f"numbers of {bits} bits in {numbers.dtype}{list(numbers.dims)}")
    return dtypes.I4 if bits == 4 else dtypes.I8, numbers.dims[1] * 8 // bits, size


def _block_matmul_types(operands: Operands, _: Mapping[str, Any]) -> list[TensorType]:
    a, numbers, _scales = _need(operands, 3)
    return [TensorType((*a.dims[:-1], numbers.dims[0]), a.dtype)]


@of_hipdnn(
    "BlockScaleMatMul",
    becomes="block scale dequantize, matmul",
    results=_block_matmul_types,
    source=f"{_SOURCE}BLOCK_SCALE_DEQUANTIZE, MATMUL",
    precision="narrow",
    keeps=(2,),
)
def block_scale_matmul(e: Emitter, op: OpView) -> Value:
    """(a, numbers, scales; block_size, bits, rounds): a times the transpose of numbers * scales, each scale for a block along the rows.

    A is (..., m, k); numbers are (n, k) in i8 for 8 bits, and (n, bytes) in u8 for 4: two to a byte, two's complement, the first in the
    lower half; the last block of a row may be filled up. Scales are (n, blocks). With `rounds`, a may be quantized to 8 bits by the same
    blocks.
    """
    a, numbers, scales = (e.value(arg) for arg in op.args)
    kind, row, size = _kind_of_codes(op, numbers)
    if a.dtype not in _WIDE or scales.dtype not in _WIDE or a.rank < 2:
        raise Refusal("dtype", f"{a.dtype}{list(a.dims)} with scales of {scales.dtype}")
    k, n = a.dims[-1], numbers.dims[0]
    blocks = -(-k // size)
    if scales.dims != (n, blocks) or not k <= row <= blocks * size:
        raise Refusal("shape", f"{list(numbers.dims)} with scales {list(scales.dims)} for blocks of {size} of {k}")
    outer = (1,) * (a.rank - 2)
    codes = e.reinterpret(numbers, kind, (*outer, k, n), (*(k * n,) * len(outer), 1, row))
    factors = e.reinterpret(scales, scales.dtype, (*outer, blocks, n), (*(blocks * n,) * len(outer), 1, blocks))
    weights = _dequantized(e, codes, factors, [*outer, size, 1], a.dtype)
    if op.attributes.get("rounds", 0):
        rounded, spread = _quantized(e, a, a.rank - 1, size)
        a = _dequantized(e, rounded, spread, [*outer, 1, size], a.dtype)
    return matmul_node(e, a, weights)


def _as_first(count: int) -> Any:
    """The result has dims and dtype of the first of `count` operands."""

    def results(operands: Operands, _: Mapping[str, Any]) -> list[TensorType]:
        return [_need(operands, count)[0]]

    return results


@of_hipdnn(
    "BatchNormalizationInference",
    becomes="batch norm inference",
    results=_as_first(5),
    source=f"{_SOURCE}BATCHNORM_INFERENCE",
    precision="wide",
    keeps=(1, 2, 3, 4),
)
def batch_norm_inference(e: Emitter, op: OpView) -> list[Value]:
    """(x, mean, inverse deviation, scale, bias) per channel (dim 1): (x - mean) * inverse deviation * scale + bias."""
    x = e.value(op.args[0])
    if x.rank < 2:
        raise Refusal("rank", "batch norm of a tensor of rank 1")
    shape = (1, x.dims[1], *(1,) * (x.rank - 2))
    mean, inverse, scale, bias = (e.view(e.value(arg), shape) for arg in op.args[1:5])
    return e.node(
        Descriptor.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT,
        {
            A.OPERATION_BATCHNORM_INFERENCE_X_EXT: x,
            A.OPERATION_BATCHNORM_INFERENCE_MEAN_EXT: mean,
            A.OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT: inverse,
            A.OPERATION_BATCHNORM_INFERENCE_SCALE_EXT: scale,
            A.OPERATION_BATCHNORM_INFERENCE_BIAS_EXT: bias,
        },
        {A.OPERATION_BATCHNORM_INFERENCE_Y_EXT: (x.dims, op.results[0].dtype)},
        [(A.BATCHNORM_INF_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.FLOAT)])],
    )


@of_hipdnn("AddSquare", becomes="ADD_SQUARE", results=_as_first(2), source=f"{_SOURCE}POINTWISE_ADD_SQUARE")
def add_square(e: Emitter, op: OpView) -> Value:
    """(a, b) of equal dims: a + b * b."""
    a, b = e.value(op.args[0]), e.value(op.args[1])
    if a.dims != b.dims or a.dtype is not b.dtype or not a.dtype.is_float:
        raise Refusal("dtype" if a.dims == b.dims else "shape", f"{a.dtype}{list(a.dims)} and {b.dtype}{list(b.dims)}")
    return e.pointwise(P.ADD_SQUARE, a, b)


@of_hipdnn("GenIndex", becomes="GEN_INDEX", results=_as_first(1), source=f"{_SOURCE}POINTWISE_GEN_INDEX")
def gen_index(e: Emitter, op: OpView) -> Value:
    """(x; axis = 0): the position of each element along the axis, as the dtype of x."""
    x = e.value(op.args[0])
    axis = axis_of(op.attributes.get("axis", 0), x.rank)
    if x.dtype is dtypes.BOOL:
        raise Refusal("dtype", f"positions as {x.dtype}")
    return e.node(
        Descriptor.OPERATION_POINTWISE_DESCRIPTOR,
        {A.OPERATION_POINTWISE_IN_0_EXT: x},
        {A.OPERATION_POINTWISE_OUT_0_EXT: (x.dims, x.dtype)},
        [
            (A.POINTWISE_MODE, T.POINTWISE_MODE, [int(P.GEN_INDEX)]),
            (A.POINTWISE_AXIS, T.INT64, [axis]),
            (A.POINTWISE_MATH_PREC, T.DATA_TYPE, [compute_type([x.dtype], x.dtype).hipdnn_value]),
        ],
    )[0]


def _reduced_types(operands: Operands, attributes: Mapping[str, Any]) -> list[TensorType]:
    (x,) = _need(operands, 1)
    dims = x.static_dims()
    axes = axes_of(attributes.get("axes"), len(dims))
    kept = attributes.get("keepdims", 1)
    sizes = [1 if index in axes else size for index, size in enumerate(dims) if kept or index not in axes]
    return [TensorType(tuple(sizes), x.dtype)]


@of_hipdnn(
    "ReduceProdNoZeros",
    becomes="reduction MUL_NO_ZEROS",
    results=_reduced_types,
    source=f"{_SOURCE}REDUCE_TENSOR_MUL_NO_ZEROS",
    precision="wide",
)
def reduce_prod_no_zeros(e: Emitter, op: OpView) -> Value:
    """(x; axes = all, keepdims = 1): the product of the elements that are not 0."""
    x = e.value(op.args[0])
    if x.dtype is dtypes.BOOL:
        raise Refusal("dtype", f"a multiplication of {x.dtype}")
    return e.reduction(R.MUL_NO_ZEROS, x, axes_of(op.attributes.get("axes"), x.rank))
