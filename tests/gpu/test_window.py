"""Generated pooling kernels against onnx's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, row, run_graph
from hipdnn_mlir.codegen import find_architecture, generate_graph
from host_kernels.kernel_runs import Array, TensorSpec, numpy_dtype
from host_kernels.onnx_reference import reference

CASES = [
    ((2, 8, 9, 7), (3, 3), (2, 2), (1, 1)),
    ((1, 16, 12, 12), (3, 3), (2, 2), (0, 0)),
    ((2, 3, 8, 8), (2, 2), (2, 2), (0, 0)),
    ((1, 5, 14), (4,), (3,), (2,)),
    ((1, 4, 5, 6, 7), (2, 3, 2), (1, 2, 2), (1, 1, 0)),
    ((1, 8, 20, 20), (9, 9), (1, 1), (4, 4)),
    ((2, 24, 7, 7), (7, 7), (1, 1), (0, 0)),
    ((1, 8, 5, 5), (1, 1), (2, 2), (0, 0)),
]


def stored(x: Array, channels_last: bool) -> Array:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if channels_last else x


def spec(dtype: str, dims: tuple[int, ...], channels_last: bool) -> TensorSpec:
    steps = stored(np.zeros(dims, np.int8), channels_last).strides
    return TensorSpec(dtype, dims, tuple(steps))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "AveragePool with padding"])
def test_pooling_equals_reference(operator: str, case: tuple[Any, ...], channels_last: bool) -> None:
    shape, window, strides, pads = case
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    attributes: dict[str, Any] = {"kernel_shape": window, "strides": strides, "pads": pads * 2}
    if operator != "MaxPool":
        attributes["count_include_pad"] = int(operator != "AveragePool")
    want = reference(operator.split(maxsplit=1)[0], [x], **attributes)[0]
    out = spec("f32", want.shape, channels_last)
    name, rank = ("max" if operator == "MaxPool" else "avg"), len(window)
    last = [[1], False] if operator == "MaxPool" else [False, operator != "AveragePool"]
    body = row(f"aten.{name}_pool{rank}d", ..., list(window), list(strides), list(pads), *last, results=[out])
    (got,) = run_graph(body, [stored(x, channels_last)], [out])
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("name", compiled.ALL)
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_code_is_whole_when_pooling(dtype: str, name: str) -> None:
    x = stored(np.zeros((2, 64, 14, 14), numpy_dtype(dtype)), True)
    out = spec(dtype, (2, 64, 7, 7), True)
    body = row("aten.max_pool2d", ..., [3, 3], [2, 2], [1, 1], [1], False, results=[out])
    kernel = generate_graph(graph_of(body, [x], [out]), find_architecture(name))
    compiled.check(kernel)
    if isinstance(kernel.code, str):
        assert "ld.global.v4.b32" in kernel.code
        assert "ld.global.b16" not in kernel.code


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_pooling_equals_float64_when_narrow(dtype: str) -> None:
    x = np.random.default_rng(1).standard_normal((1, 16, 6, 6)).astype(numpy_dtype(dtype))
    out = spec(dtype, (1, 16, 3, 3), True)
    body = row("aten.avg_pool2d", ..., [2, 2], [2, 2], [0, 0], False, True, results=[out])
    (got,) = run_graph(body, [stored(x, True)], [out])
    want = x.astype(np.float64).reshape(1, 16, 3, 2, 3, 2).mean((3, 5))
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=8e-3, atol=8e-3)
