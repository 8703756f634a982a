"""Convolutions: forward, and backward-data for transposed ones, with bias and absorbed padding."""

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import ConvolutionMode, DataType, Descriptor, Pointwise
from hipdnn_mlir_runtime.dtypes import F32, DType

from ..emitter import Emitter, Value
from ..registry import compute
from ..spec import OpView, Refusal
from ..strides import Dims


def spatial_attributes(low: Dims, high: Dims, strides: Dims, dilations: Dims) -> list[tuple[A, T, list[int]]]:
    """The convolution attributes that both directions share."""
    return [
        (A.CONVOLUTION_PRE_PADDINGS, T.INT64, list(low)),
        (A.CONVOLUTION_POST_PADDINGS, T.INT64, list(high)),
        (A.CONVOLUTION_FILTER_STRIDES, T.INT64, list(strides)),
        (A.CONVOLUTION_DILATIONS, T.INT64, list(dilations)),
        (A.CONVOLUTION_CONV_MODE, T.CONVOLUTION_MODE, [int(ConvolutionMode.CROSS_CORRELATION)]),
        (A.CONVOLUTION_COMP_TYPE, T.DATA_TYPE, [int(DataType.FLOAT)]),
    ]


@compute(
    "aten.convolution",
    becomes="convolution forward; convolution backward-data where transposed",
    onnx=("Conv", "ConvTranspose"),
    source="PyTorch: torch.nn.functional.conv2d, conv_transpose2d",
    precision="narrow",
)
def convolution(e: Emitter, op: OpView) -> Value:
    """(x, w, bias, strides, pads, dilations, transposed, output_padding, groups) with 1 to 3 spatial dims; sums of 16 bits may be f32."""
    x_arg, w_arg, bias_arg, strides, pads, dilations, transposed, output_padding, groups = op.args
    x, w = e.value(x_arg, pads=True), e.value(w_arg)
    spatial = x.rank - 2
    if spatial not in (1, 2, 3):
        raise Refusal("rank", f"{spatial} spatial dims, expected 1 to 3")
    if not x.dtype.is_float or x.dtype.name == "f64":
        raise Refusal("dtype", f"convolution of {x.dtype}")
    low, high = tuple(pads), tuple(pads)
    if x.pads:
        if x.pads[2] != 0 or any(x.pads[0][:2]) or any(x.pads[1][:2]) or transposed:
            raise Refusal("pad", "only a zero border of spatial dims can be fused into a convolution")
        low = tuple(a + b for a, b in zip(low, x.pads[0][2:], strict=True))
        high = tuple(a + b for a, b in zip(high, x.pads[1][2:], strict=True))
    if transposed:
        y = _transposed(e, x, w, low, high, tuple(strides), tuple(dilations), groups, tuple(output_padding))
    else:
        y = _forward(
            e, x, w, low, high, tuple(strides), tuple(dilations), groups, F32 if op.results[0].dtype is F32 else x.dtype
        )
    if bias_arg is None:
        return y
    bias = e.view(e.value(bias_arg), (1, y.dims[1], *(1,) * spatial))
    return e.pointwise(Pointwise.ADD, y, bias, dtype=y.dtype)


def _forward(
    e: Emitter, x: Value, w: Value, low: Dims, high: Dims, strides: Dims, dilations: Dims, groups: int, dtype: DType
) -> Value:
    size = tuple(
        (n + a + b - d * (k - 1) - 1) // s + 1
        for n, k, a, b, s, d in zip(x.dims[2:], w.dims[2:], low, high, strides, dilations, strict=True)
    )
    if min(size) < 1 or x.dims[1] != w.dims[1] * groups:
        raise Refusal("shape", f"x {x.dims} and w {w.dims} in {groups} groups do not fit")
    return e.node(
        Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        {A.OPERATION_CONVOLUTION_FORWARD_X: Value(x.tensor, x.dims, x.dtype), A.OPERATION_CONVOLUTION_FORWARD_W: w},
        {A.OPERATION_CONVOLUTION_FORWARD_Y: ((x.dims[0], w.dims[0], *size), dtype)},
        spatial_attributes(low, high, strides, dilations),
    )[0]


def _transposed(
    e: Emitter, x: Value, w: Value, low: Dims, high: Dims, strides: Dims, dilations: Dims, groups: int, extra: Dims
) -> Value:
    """X plays dy; output padding only makes dx larger: the forward convolution it reverses rounds its size down."""
    size = tuple(
        (n - 1) * s - a - b + d * (k - 1) + 1 + o
        for n, k, a, b, s, d, o in zip(x.dims[2:], w.dims[2:], low, high, strides, dilations, extra, strict=True)
    )
    if min(size) < 1 or x.dims[1] != w.dims[0]:
        raise Refusal("shape", f"x {x.dims} and w {w.dims} do not fit")
    return e.node(
        Descriptor.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
        {A.OPERATION_CONVOLUTION_BWD_DATA_DY: x, A.OPERATION_CONVOLUTION_BWD_DATA_W: w},
        {A.OPERATION_CONVOLUTION_BWD_DATA_DX: ((x.dims[0], w.dims[1] * groups, *size), x.dtype)},
        spatial_attributes(low, high, strides, dilations),
    )[0]
