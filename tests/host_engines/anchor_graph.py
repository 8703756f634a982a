"""Graphs that start with a convolution, matrix product, pooling or norm, for tests of the oneDNN engine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from hipdnn_mlir_runtime.abi import (
    Attribute,
    AttributeType,
    ConvolutionMode,
    DataType,
    Descriptor,
    Padding,
    Pointwise,
    Resample,
)
from host_engines.host_graph import Backend, HostError, HostGraph, Operand

ONEDNN = "HOST_ONEDNN_ENGINE"
CHANNELS_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}


def channels_last(array: np.ndarray) -> np.ndarray:
    """The same values with the channels (axis 1) innermost in memory."""
    order = CHANNELS_LAST[array.ndim]
    return np.transpose(np.ascontiguousarray(np.transpose(array, order)), np.argsort(order))


def stored(array: np.ndarray, layout: str) -> np.ndarray:
    """The same values in a layout: "channels_last" or "plain"."""
    return channels_last(array) if layout == "channels_last" else np.ascontiguousarray(array)


def onnx_result(operation: str, inputs: list[np.ndarray], **attributes: Any) -> np.ndarray:
    """One node on ONNX Runtime's CPU provider."""
    names = [f"i{i}" for i in range(len(inputs))]
    graph = helper.make_graph(
        [helper.make_node(operation, names, ["y"], **attributes)],
        "one_node",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, inputs, strict=True)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result: np.ndarray = session.run(None, dict(zip(names, inputs, strict=True)))[0]
    return result


def assert_close(actual: np.ndarray, expected: np.ndarray, tolerance: float = 1e-5) -> None:
    """The largest difference is within `tolerance` of the largest magnitude expected, or of one where that is smaller.

    The default suits single-precision sums of at most 1000 products.
    """
    scale = max(1.0, float(np.abs(expected).max()))
    assert float(np.abs(actual.astype(np.float64) - expected).max()) <= tolerance * scale


class AnchorGraph(HostGraph):
    """A HostGraph with the operations only the oneDNN engine takes."""

    def _operation(self, kind: int, tensors: dict[int, Operand]) -> Backend:
        operation = Backend(kind)
        for name, operand in tensors.items():
            operation.set(name, AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        return operation

    def _convolution(
        self,
        kind: int,
        tensors: dict[int, Operand],
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        mode: int,
    ) -> None:
        operation = self._operation(kind, tensors)
        half = len(pads) // 2
        for name, values in (
            (Attribute.CONVOLUTION_PRE_PADDINGS, pads[:half]),
            (Attribute.CONVOLUTION_POST_PADDINGS, pads[half:]),
            (Attribute.CONVOLUTION_FILTER_STRIDES, strides),
            (Attribute.CONVOLUTION_DILATIONS, dilations),
        ):
            operation.set(name, AttributeType.INT64, list(values))
        operation.set(Attribute.CONVOLUTION_CONV_MODE, AttributeType.CONVOLUTION_MODE, [mode])
        operation.set(Attribute.CONVOLUTION_COMP_TYPE, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())

    def convolution(
        self,
        x: Operand,
        w: Operand,
        y: Operand,
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
        mode: int = ConvolutionMode.CROSS_CORRELATION,
    ) -> Operand:
        """A forward convolution; `pads` holds the pre-paddings, then the post-paddings, as in ONNX."""
        tensors = {
            Attribute.OPERATION_CONVOLUTION_FORWARD_X: x,
            Attribute.OPERATION_CONVOLUTION_FORWARD_W: w,
            Attribute.OPERATION_CONVOLUTION_FORWARD_Y: y,
        }
        kind = Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
        self._convolution(kind, tensors, strides, pads, dilations, mode)
        return y

    def transposed_convolution(
        self,
        dy: Operand,
        w: Operand,
        dx: Operand,
        strides: Sequence[int],
        pads: Sequence[int],
        dilations: Sequence[int],
    ) -> Operand:
        """A convolution's backward pass for data, which reads `dy` and writes `dx`."""
        tensors = {
            Attribute.OPERATION_CONVOLUTION_BWD_DATA_DY: dy,
            Attribute.OPERATION_CONVOLUTION_BWD_DATA_W: w,
            Attribute.OPERATION_CONVOLUTION_BWD_DATA_DX: dx,
        }
        kind = Descriptor.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
        self._convolution(kind, tensors, strides, pads, dilations, ConvolutionMode.CROSS_CORRELATION)
        return dx

    def matmul(self, a: Operand, b: Operand, c: Operand) -> Operand:
        tensors = {
            Attribute.OPERATION_MATMUL_ADESC: a,
            Attribute.OPERATION_MATMUL_BDESC: b,
            Attribute.OPERATION_MATMUL_CDESC: c,
        }
        operation = self._operation(Descriptor.OPERATION_MATMUL_DESCRIPTOR, tensors)
        operation.set(Attribute.MATMUL_COMP_TYPE, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())
        return c

    def resample(
        self,
        mode: Resample,
        x: Operand,
        y: Operand,
        window: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[int],
        padding: Padding | None = None,
    ) -> Operand:
        tensors = {Attribute.OPERATION_RESAMPLE_FWD_XDESC: x, Attribute.OPERATION_RESAMPLE_FWD_YDESC: y}
        operation = self._operation(Descriptor.OPERATION_RESAMPLE_FWD_DESCRIPTOR, tensors)
        half = len(pads) // 2
        for name, values in (
            (Attribute.RESAMPLE_PRE_PADDINGS, pads[:half]),
            (Attribute.RESAMPLE_POST_PADDINGS, pads[half:]),
            (Attribute.RESAMPLE_STRIDES, strides),
            (Attribute.RESAMPLE_WINDOW_DIMS, window),
        ):
            operation.set(name, AttributeType.INT64, list(values))
        operation.set(Attribute.RESAMPLE_MODE, AttributeType.RESAMPLE_MODE, [mode])
        usual = Padding.NEG_INF_PAD if mode is Resample.MAXPOOL else Padding.ZERO_PAD
        operation.set(
            Attribute.RESAMPLE_PADDING_MODE, AttributeType.PADDING_MODE, [usual if padding is None else padding]
        )
        operation.set(Attribute.RESAMPLE_GENERATE_INDEX_EXT, AttributeType.BOOLEAN, [False])
        operation.set(Attribute.RESAMPLE_COMP_TYPE, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())
        return y

    def batchnorm(
        self,
        x: Operand,
        mean: Operand,
        spread: Operand,
        scale: Operand,
        bias: Operand,
        y: Operand,
        epsilon: Operand | None = None,
    ) -> Operand:
        """Batch norm inference; `spread` is the variance where `epsilon` is given, else 1 / its root with epsilon."""
        form = "BATCHNORM_INFERENCE" + ("_VARIANCE" if epsilon else "")
        names = {
            "X": x,
            "MEAN": mean,
            "VARIANCE" if epsilon else "INV_VARIANCE": spread,
            "SCALE": scale,
            "BIAS": bias,
            "Y": y,
        }
        tensors: dict[int, Operand] = {
            Attribute[f"OPERATION_{form}_{name}_EXT"]: operand for name, operand in names.items()
        }
        if epsilon:
            tensors[Attribute.OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT] = epsilon
        operation = self._operation(Descriptor[f"OPERATION_{form}_DESCRIPTOR_EXT"], tensors)
        precision = Attribute.BATCHNORM_INF_VAR_COMP_TYPE_EXT if epsilon else Attribute.BATCHNORM_INF_COMP_TYPE_EXT
        operation.set(precision, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())
        return y

    def then(
        self, mode: Pointwise, value: Operand, *others: Operand, out: Operand | None = None, **parameters: float
    ) -> Operand:
        """A pointwise step on `value`, to a virtual tensor unless `out` is given."""
        target = out or self.virtual(value.shape, value.dtype)
        return self.pointwise(mode, [value, *others], target, **parameters)


def assert_epilogue_follows(
    engine: str, x: np.ndarray, w: np.ndarray, convolved: np.ndarray, settings: Sequence[Sequence[int]], residual: str
) -> None:
    """An engine adds a bias and a residual to a convolution with channels last, and has the ReLU of that.

    Args:
        engine: its name.
        x: the image, n c h w.
        w: the filter.
        convolved: the convolution of both.
        settings: steps, paddings and dilations.
        residual: "channels last", "plain" for channels first, or "one column", which is added to all columns.
    """
    rng = np.random.default_rng(1)
    n, c, height, width = convolved.shape
    bias = rng.standard_normal((1, c, 1, 1), np.float32)
    other = rng.standard_normal((n, c, height, 1 if residual == "one column" else width), np.float32)
    y = channels_last(np.full_like(convolved, np.nan))
    graph = AnchorGraph()
    weights, value = graph.tensor(w), graph.virtual(convolved.shape)
    graph.convolution(graph.tensor(channels_last(x)), weights, value, *settings)
    value = graph.then(Pointwise.ADD, value, graph.tensor(bias))
    value = graph.then(Pointwise.ADD, value, graph.tensor(other if residual == "plain" else channels_last(other)))
    graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(y))
    graph.plan(engine, constants=(weights,)).execute()
    assert_close(y, np.maximum(convolved + bias + other, 0))


def refusal(graph: HostGraph, engine: str = ONEDNN) -> str:
    """What the library says when that engine is asked for a plan of a graph it does not take.

    Raises:
        AssertionError: The engine took the graph.
    """
    try:
        graph.plan(engine)
    except HostError as error:
        return str(error)
    raise AssertionError(f"{engine} took the graph")
