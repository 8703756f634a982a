"""Which quantized graphs cuDNN is asked for, and in which form: as tried on an H200 with cuDNN 9.19."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from gpu.graphs import graph_of
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.quantized import quantized_conv, quantized_matmul
from hipdnn_mlir.ops.graph import Graph
from hipdnn_mlir.ops.spec import OpView, TensorArg, TensorType
from hipdnn_mlir.targets.table import find_target
from hipdnn_mlir_runtime.abi import Descriptor
from hipdnn_mlir_runtime.dtypes import F32, I8, I32, of_numpy
from host_kernels.kernel_runs import TensorSpec, spec_of

VECTOR = np.zeros(16, np.float32)


def image(*dims: int, dtype: Any = np.int8) -> np.ndarray:
    return np.zeros(dims, dtype)


def of_operator(
    emit: Any, x: np.ndarray, w: np.ndarray, out: np.ndarray, zero: int | None = 0, **attributes: Any
) -> Graph:
    """A quantized operator as a graph, with a zero point that is known, or an operand."""

    def body(e: Emitter, *values: Value) -> Value:
        kinds = [TensorType(value.dims, value.dtype) for value in values]
        args = [TensorArg(number, kind) for number, kind in enumerate(kinds)]
        known = TensorArg("zero", TensorType((), I32), zero) if zero is not None else args.pop()
        for arg, value in zip([*args, known] if zero is None else args, values, strict=True):
            e.define(arg.key, value, arg.type)
        result = TensorType(out.shape, of_numpy(out.dtype))
        to = {np.int8: "i8", np.float32: "f32"}[out.dtype.type]
        op = OpView(
            "quantized", [args[0], args[1], known, args[2], args[3]], [result], attributes={"to": to} | attributes
        )
        return emit(e, op)

    spec = spec_of(out)
    vectors = [np.zeros(w.shape[0] if emit is quantized_conv else w.shape[1], np.float32)] * 2
    more = [] if zero is not None else [np.zeros(1, np.int32)]
    return graph_of(body, [x, w, *vectors, *more], [TensorSpec(of_numpy(out.dtype).name, spec.dims, spec.steps)])


def engine_of(graph: Graph) -> str:
    engine = find_target("sm_90").engine_for(graph)
    return "" if engine is None else engine.name


def test_zero_point_of_zero_leaves_no_subtraction() -> None:
    graph = of_operator(quantized_conv, image(2, 16, 6, 6), image(8, 16, 3, 3), image(2, 8, 4, 4))
    engine = find_target("sm_90").engine_for(graph)
    assert engine is not None
    assert engine.name == "CUDNN_ENGINE"
    types = [node.type for node in engine.conform(graph).nodes]
    assert types == [
        Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
        *[Descriptor.OPERATION_POINTWISE_DESCRIPTOR] * 2,
    ]


def padded(*dims: int) -> np.ndarray:
    """An image channels-last with a border around it in memory: cuDNN would write over that."""
    n, c, h, w = dims
    return np.zeros((n, h + 2, w + 2, c), np.int8)[:, 1:-1, 1:-1].transpose(0, 3, 1, 2)


REFUSED: Sequence[tuple[str, dict[str, Any]]] = [
    ("zero point", {"zero": 3}),
    ("computed zero point", {"zero": None}),
    ("unsigned bytes", {"x": image(2, 16, 6, 6, dtype=np.uint8)}),
    ("channels", {"x": image(2, 24, 6, 6), "w": image(8, 24, 3, 3)}),
    ("results", {"w": image(12, 16, 3, 3), "out": image(2, 12, 4, 4)}),
    ("small groups", {"w": image(8, 8, 3, 3), "group": 2}),
    ("volume", {"x": image(1, 16, 6, 6, 6), "w": image(8, 16, 3, 3, 3), "out": image(1, 8, 4, 4, 4)}),
    ("stride", {"x": image(2, 16, 20, 20), "strides": [9, 9], "out": image(2, 8, 2, 2)}),
    ("gaps", {"out": padded(2, 8, 4, 4)}),
]


@pytest.mark.parametrize("changes", [changes for _, changes in REFUSED], ids=[name for name, _ in REFUSED])
def test_what_cudnn_cannot_do_is_not_asked_of_it(changes: dict[str, Any]) -> None:
    usual = {"x": image(2, 16, 6, 6), "w": image(8, 16, 3, 3), "out": image(2, 8, 4, 4)}
    assert engine_of(of_operator(quantized_conv, **usual)) == "CUDNN_ENGINE"
    assert engine_of(of_operator(quantized_conv, **usual | changes)) == ""


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_matmul_of_several_batches_has_them_as_rows(dtype: Any) -> None:
    graph = of_operator(quantized_matmul, image(2, 3, 40, 16), image(16, 8), np.zeros((2, 3, 40, 8), dtype))
    engine = find_target("sm_90").engine_for(graph)
    assert engine is not None
    dims = [tensor.dims for _, tensor in engine.conform(graph).by_uid() if tensor.has_pointer]
    assert (1, 240, 16) in dims
    assert {tensor.dtype for tensor in graph.tensors} >= {I8, I32, F32}
