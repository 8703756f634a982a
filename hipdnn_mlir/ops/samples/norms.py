"""Normalizations, pooling, reductions, softmax."""

import math
from collections.abc import Iterator
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.dtypes import DType

from .case import MOVEMENT, ONEDNN, REDUCTION, ROWWISE, Sample, accept, f32, f64, i16, i32, kind, reject


def normalization() -> Iterator[Sample]:
    """Batch, layer, instance and RMS norm."""

    def batch(*, training: bool = False, dtype: DType = dtypes.F32) -> list[Any]:
        return [kind(dtype, 2, 4, 8, 8), *[kind(dtype, 4)] * 4, training, 0.1, 1e-5, False]

    yield accept("aten.batch_norm", ONEDNN, batch(), f32(2, 4, 8, 8))
    yield accept("aten.batch_norm", ROWWISE, batch(training=True), f32(2, 4, 8, 8))
    yield reject("aten.batch_norm", "rank", [f32(4), *batch()[1:]], f32(4))
    saved = (f32(2, 4, 8, 8), f32(4), f32(4))
    yield Sample("torch.aten.native_batch_norm", tuple(batch(training=True)[:-1]), saved, ROWWISE, uses_all=True)
    yield reject("aten.native_batch_norm", "attribute", batch()[:-1], *saved)
    yield reject("aten.batch_norm", "engine", batch(dtype=dtypes.F64), f64(2, 4, 8, 8))
    row = f32(2, 1)
    yield accept("aten.layer_norm", ONEDNN, [f32(2, 8), [8], f32(8), f32(8), 1e-5, False], f32(2, 8))
    yield reject("aten.layer_norm", "operand", [f32(2, 8), [8], f32(8), None, 1e-5, False], f32(2, 8))
    yield accept("aten.native_layer_norm", ONEDNN, [f32(2, 8), [8], f32(8), f32(8), 1e-5], f32(2, 8), row, row)
    yield reject("aten.native_layer_norm", "shape", [f32(2, 8), [4], f32(4), f32(4), 1e-5], f32(2, 8), row, row)
    normalized = (f32(2, 8), [8], f32(8), f32(8), 1e-5)
    yield Sample("torch.aten.native_layer_norm", normalized, (f32(2, 8), row, row), ROWWISE, uses_all=True)
    yield accept("aten.rms_norm", ROWWISE, [f32(2, 8), [8], f32(8), 1e-5], f32(2, 8))
    yield reject("aten.rms_norm", "operand", [f32(2, 8), [8], None, 1e-5], f32(2, 8))
    yield reject("aten.rms_norm", "shape", [f32(2, 8), [4], f32(4), 1e-5], f32(2, 8))
    for rule, use_input in ((None, True), ("attribute", False)):
        args = [f32(2, 4, 8), f32(4), f32(4), None, None, use_input, 0.1, 1e-5, False]
        yield Sample(
            "torch.aten.instance_norm", tuple(args), (f32(2, 4, 8),), ROWWISE if rule is None else MOVEMENT, rule
        )


def pooling() -> Iterator[Sample]:
    """Windows."""
    for spatial in (1, 2, 3):
        x, y = f32(1, 2, *[8] * spatial), f32(1, 2, *[4] * spatial)
        wrong, also_wrong = f64(1, 2, *[8] * spatial), f64(1, 2, *[4] * spatial)
        twos, zeros, ones = [2] * spatial, [0] * spatial, [1] * spatial
        at = kind(dtypes.I64, 1, 2, *[4] * spatial)
        names = [f"aten.max_pool{spatial}d", *([f"aten.max_pool{spatial}d_with_indices"] if spatial > 1 else [])]
        for name in names:
            results = [at] if "indices" in name else []
            yield accept(name, ONEDNN, [x, twos, twos, zeros, ones, False], y, *results)
            pooled = [kind(dtypes.U8, *operand.dims) for operand in (x, y)]
            if not results and spatial > 1:  # PyTorch, which the samples are compared with, has no others of bytes
                yield accept(name, ONEDNN, [pooled[0], twos, twos, zeros, ones, False], pooled[1])
            yield reject(name, "attribute", [x, twos, twos, ones, twos, False], y, *results)
            yield reject(name, "dtype", [wrong, twos, twos, zeros, ones, False], also_wrong, *results)
        if spatial > 1:
            yield reject(names[1], "result", [x, twos, twos, zeros, ones, False], y, at, uses_all=True)
        divisor = [None] if spatial > 1 else []
        yield accept(f"aten.avg_pool{spatial}d", ONEDNN, [x, twos, twos, zeros, False, True, *divisor], y)
        yield reject(f"aten.avg_pool{spatial}d", "dtype", [wrong, twos, twos, zeros, False, True, *divisor], also_wrong)
    yield reject(
        "aten.avg_pool2d", "attribute", [f32(1, 2, 8, 8), [2, 2], [2, 2], [0, 0], False, True, 3], f32(1, 2, 4, 4)
    )
    x = f32(1, 2, 7, 8)
    window: dict[str, Any] = {"kernel_shape": [3, 2], "strides": [2, 2]}
    beyond: dict[str, Any] = {**window, "pads": [0, 1, 0, 1], "ceil_mode": 1}
    yield accept("AveragePool", ONEDNN, [x], f32(1, 2, 3, 4), **window, count_include_pad=1)
    yield accept("AveragePool", ONEDNN, [f32(1, 2, 8, 8)], f32(1, 2, 4, 5), **beyond)
    yield accept("AveragePool", ONEDNN, [x], f32(1, 2, 4, 4), **window, auto_pad="SAME_LOWER")
    yield reject("AveragePool", "attribute", [f32(1, 2, 8, 8)], f32(1, 2, 4, 5), **beyond, count_include_pad=1)
    yield reject("AveragePool", "attribute", [x], f32(1, 2, 2, 4), **window, dilations=[2, 1])
    yield reject("AveragePool", "dtype", [f64(1, 2, 7, 8)], f64(1, 2, 3, 4), **window)


def reductions() -> Iterator[Sample]:
    """Over dims."""
    x, wrong = f32(2, 3, 4), i16(2, 3, 4)
    for name, extra in (("sum.dim_IntList", [None]), ("mean.dim", [None]), ("amax", []), ("amin", [])):
        yield accept(f"aten.{name}", REDUCTION, [x, [-1], True, *extra], f32(2, 3, 1))
        yield accept(f"aten.{name}", REDUCTION, [x, [0, 2], False, *extra], f32(3))
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 3, 4), [-1], True, *extra], f32(None, 3, 1))
    yield accept("aten.prod.dim_int", REDUCTION, [x, 1, False, None], f32(2, 4))
    yield reject("aten.prod.dim_int", "dynamic-shape", [f32(None, 3, 4), 1, False, None], f32(None, 4))
    yield reject("aten.mean.dim", "dtype", [wrong, [-1], True, None], i16(2, 3, 1))
    for name, extra in (("sum", [None]), ("mean", [None]), ("max", []), ("min", [])):
        yield accept(f"aten.{name}", REDUCTION, [x, *extra], f32())
        yield reject(f"aten.{name}", "dynamic-shape", [f32(None, 3), *extra], f32())
    yield accept("aten.linalg_vector_norm", REDUCTION, [x, 2.0, [1], True, None], f32(2, 1, 4))
    yield accept("aten.linalg_vector_norm", REDUCTION, [x, math.inf, None, False, None], f32())
    yield reject("aten.linalg_vector_norm", "attribute", [x, 3.0, [1], True, None], f32(2, 1, 4))
    yield accept("aten.norm.ScalarOpt_dim", REDUCTION, [x, 1, [1], True], f32(2, 1, 4))
    yield reject("aten.norm.ScalarOpt_dim", "attribute", [x, 0.5, [1], True], f32(2, 1, 4))
    yield accept("aten.frobenius_norm.dim", REDUCTION, [x, [1], False], f32(2, 4))
    yield reject("aten.frobenius_norm.dim", "dtype", [wrong, [1], False], i16(2, 4))


def softmaxes() -> Iterator[Sample]:
    """Softmax and what is like it."""
    x, wrong = f32(2, 3), i32(2, 3)
    for name, extra in (("softmax.int", None), ("_softmax", False), ("log_softmax.int", None), ("_log_softmax", False)):
        yield accept(f"aten.{name}", ROWWISE, [x, -1, extra], x)
        yield reject(f"aten.{name}", "dtype", [wrong, -1, extra], wrong)
    yield accept("aten.logsumexp", ROWWISE, [x, [1], True], f32(2, 1))
    yield reject("aten.logsumexp", "dtype", [wrong, [1], True], i32(2, 1))
