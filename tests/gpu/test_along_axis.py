"""Generated reductions, scans, selections and resizing: the host's cases of the same functions, and long lines."""

from __future__ import annotations

import numpy as np
import pytest

from gpu import compiled
from gpu.emulated import describe, run_kernel
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from host_kernels import test_along_axis, test_interpolation
from host_kernels.kernel_runs import TensorSpec, numpy_dtype

along_axis, interpolation = emulation_of(test_along_axis), emulation_of(test_interpolation)
globals().update(cases_of(test_along_axis, "test_top_k_equals_numpy_when_large"))  # too many rounds to emulate
globals().update(cases_of(test_interpolation))

SCAN = {"operator": "add", "exclusive": False, "reverse": False}


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 1000), 1), ((2, 9000), 1), ((700, 33), 0), ((5, 20000), 1)])
def test_best_elements_equal_numpy_when_lines_are_long(shape: tuple[int, ...], axis: int, arch: str) -> None:
    x = np.random.default_rng(1).integers(0, 500, shape).astype(np.float16)
    dims = tuple(1 if dim == axis else size for dim, size in enumerate(shape))
    out = TensorSpec("i64", dims)
    (got,) = run_kernel("arg_reduce", [x], [out], {"axis": axis, "mode": "max", "select_last": False}, arch)
    np.testing.assert_array_equal(got, np.argmax(x, axis, keepdims=True))
    dims = tuple(4 if dim == axis else size for dim, size in enumerate(shape))
    outs = [TensorSpec("f16", dims), TensorSpec("i64", dims)]
    values, positions = run_kernel("top_k", [x], outs, {"axis": axis, "largest": True, "sorted": True}, arch)
    order = np.take(np.argsort(-x.astype(np.float32), axis, kind="stable"), range(4), axis)
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize("dtype", ["f32", "i64", "f16"])
@pytest.mark.parametrize("options", [{}, {"exclusive": True}, {"reverse": True}])
def test_running_sums_equal_numpy_when_lines_are_long(options: dict[str, bool], dtype: str) -> None:
    x = np.random.default_rng(1).integers(-3, 4, (3, 1111)).astype(numpy_dtype(dtype))
    (got,) = run_kernel("scan", [x], [TensorSpec(dtype, x.shape)], {"axis": 1, **SCAN, **options})
    seen = x[:, ::-1] if "reverse" in options else x
    want = np.cumsum(seen.astype(np.int64), 1) - (seen if "exclusive" in options else 0)
    np.testing.assert_array_equal(got, want[:, ::-1] if "reverse" in options else want)


RESIZE = {"mode": "linear", "coordinates": "half_pixel", "nearest": "floor", "cubic": -0.75, "exclude_outside": False,
          "antialias": False, "extrapolation": 0.0, "scales": [0, 0, 0, 0]}  # fmt: skip


@pytest.mark.parametrize("name", compiled.ALL)
def test_code_is_whole(name: str) -> None:
    arch = find_architecture(name)
    for dtype in ("f32", "bf16", "i8", "bool"):
        x = np.zeros((40, 500), numpy_dtype(dtype))
        outs = [TensorSpec(dtype, (40, 3)), TensorSpec("i64", (40, 3))]
        compiled.check(generate(describe("top_k", [x], outs, {"axis": 1, "largest": True, "sorted": True}), arch))
        if dtype != "bool":
            compiled.check(generate(describe("scan", [x], [TensorSpec(dtype, x.shape)], {"axis": 1, **SCAN}), arch))
    for mode in ("nearest", "linear", "cubic"):
        x = np.zeros((1, 4, 20, 20), np.float16)
        out = TensorSpec("f16", (1, 4, 40, 40))
        compiled.check(generate(describe("resize", [x], [out], {**RESIZE, "mode": mode}), arch))
        sampling = {"mode": mode, "padding": "reflection", "align_corners": False}
        grid = np.zeros((1, 40, 40, 2), np.float32)
        compiled.check(generate(describe("grid_sample", [x, grid], [out], sampling), arch))
