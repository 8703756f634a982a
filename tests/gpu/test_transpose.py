"""Generated elementwise kernels that change a layout: values, edges of tiles, operands beside those that lie across."""

from __future__ import annotations

import numpy as np
import pytest

from gpu import compiled
from gpu.emulated import describe, run_kernel
from hipdnn_mlir.codegen import find_architecture, generate
from hipdnn_mlir.codegen.generate import parts_of
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import DTYPES, TensorSpec

COPY = [["load", 0], ["store", 1, 0]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 16), (64, 128), (33, 70), (3, 65, 31), (2, 130, 17)])
def test_transposing_copy_equals_numpy(shape: tuple[int, ...], dtype: str) -> None:
    x = runs.values(dtype, shape, 1)
    seen = np.swapaxes(x, -1, -2)
    (got,) = run_kernel("elementwise", [seen], [TensorSpec(dtype, seen.shape)], {"code": COPY})
    np.testing.assert_array_equal(got, seen)


@pytest.mark.parametrize("shape", [(2, 64, 14, 14), (1, 20, 7, 9), (2, 3, 30, 30), (1, 256, 1, 1)])
@pytest.mark.parametrize("to_last", [True, False])
def test_layout_changes_between_channels_first_and_last(to_last: bool, shape: tuple[int, ...]) -> None:
    x = runs.values("f16", shape, 1)
    _, c, h, w = shape
    last = (c * h * w, 1, w * c, c)
    out = TensorSpec("f16", shape, last) if to_last else TensorSpec("f16", shape)
    x = x if to_last else np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    (got,) = run_kernel("elementwise", [x], [out], {"code": COPY})
    np.testing.assert_array_equal(got, x)


def test_operands_of_either_layout_meet() -> None:
    a, b = runs.values("f32", (48, 40), 1), runs.values("f32", (40, 48), 2).T
    c, bias = runs.values("f16", (40, 48), 3).T, np.broadcast_to(runs.values("f32", (40,), 4), (48, 40))
    code = [
        ["load", 0],
        ["load", 1],
        ["load", 2],
        ["cast", "f32", 2],
        ["load", 3],
        ["add", 0, 1],
        ["mul", 5, 3],
        ["add", 6, 4],
    ]
    code += [["index", 1], ["cast", "f32", 8], ["add", 7, 9], ["store", 4, 10]]
    (got,) = run_kernel("elementwise", [a, b, c, bias], [TensorSpec("f32", (48, 40))], {"code": code})
    np.testing.assert_array_equal(got, (a + b) * c.astype(np.float32) + bias + np.arange(40, dtype=np.float32))


def test_shared_memory_is_used_where_it_pays_only() -> None:
    arch = find_architecture("sm_90")
    for shape, uses in (((64, 64), True), ((64, 3), False), ((3, 64), False)):
        x = np.zeros(shape, np.float32).T
        (part,) = parts_of(describe("elementwise", [x], [TensorSpec("f32", x.shape)], {"code": COPY}), arch)
        assert (part.launch.shared_bytes > 0) is uses


@pytest.mark.parametrize("name", compiled.ALL)
def test_code_is_whole(name: str) -> None:
    x = np.zeros((64, 128), np.float16).T
    compiled.check(
        generate(describe("elementwise", [x], [TensorSpec("f16", x.shape)], {"code": COPY}), find_architecture(name))
    )
