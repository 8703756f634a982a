"""Generated kernels of block scales, and of operations that only hipDNN has, against float64 NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import graph_of, row, run_graph
from gpu.layers import codes_of
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.targets.table import find_target
from hipdnn_mlir_runtime.errors import Reject
from host_kernels.kernel_runs import TensorSpec, numpy_dtype

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("arch", ["sm_90", "gfx942", "gfx1100"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(
    ("shape", "axis", "block"), [((4, 64), 1, 32), ((6, 5), 0, 3), ((2, 1, 4096), 2, 1024), ((3, 7), 1, 1)]
)
def test_quantized_blocks_are_within_half_a_step(
    shape: tuple[int, ...], axis: int, block: int, dtype: str, arch: str
) -> None:
    x = RNG.standard_normal(shape).astype(numpy_dtype(dtype))
    x[0] = 0
    blocks = tuple(size // block if index == axis else size for index, size in enumerate(shape))
    outs = [TensorSpec("i8", shape), TensorSpec("f32", blocks)]
    y, scale = run_graph(row("BlockScaleQuantize", ..., results=outs, axis=axis, block_size=block), [x], outs, arch)
    want = np.maximum.reduceat(np.abs(x.astype(np.float64)), np.arange(0, shape[axis], block), axis) / 127
    np.testing.assert_allclose(scale, want, rtol=1e-6)
    spread = np.repeat(want, block, axis)
    exact = np.divide(x.astype(np.float64), spread, out=np.zeros(shape), where=spread > 0)
    assert np.abs(y - exact).max() <= 0.5 + 1e-4


@pytest.mark.parametrize("arch", ["sm_80", "gfx90a"])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize(("shape", "axis", "block"), [((4, 64), 1, 32), ((6, 5), 0, 3)])
def test_dequantized_blocks(shape: tuple[int, ...], axis: int, block: int, dtype: str, arch: str) -> None:
    blocks = tuple(size // block if index == axis else size for index, size in enumerate(shape))
    x, scale = RNG.integers(-128, 128, shape).astype(np.int8), RNG.random(blocks).astype(np.float32)
    out = TensorSpec(dtype, shape)
    (y,) = run_graph(
        row("DequantizeLinear", ..., ..., results=[out], axis=axis, block_size=block), [x, scale], [out], arch
    )
    np.testing.assert_allclose(
        y, x * np.repeat(scale.astype(np.float64), block, axis), rtol=1e-7 if dtype == "f32" else 1e-3
    )


@pytest.mark.parametrize("arch", ["sm_80", "gfx90a"])
@pytest.mark.parametrize(("dtype", "of_scales"), [("f16", "f16"), ("bf16", "f32"), ("f32", "f16")])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("n", "k", "block"), [(5, 64, 16), (40, 96, 32), (3, 512, 128), (7, 24, 8), (2, 16, 16)])
def test_dequantized_weights(n: int, k: int, block: int, bits: int, dtype: str, of_scales: str, arch: str) -> None:
    numbers, scales, _ = codes_of(n, bits, n, k, block)
    scales = scales.astype(numpy_dtype(of_scales))
    codes = numbers
    if bits == 4:
        halves = np.stack([numbers & 15, numbers >> 4], -1).reshape(n, k).astype(np.int8)
        codes = np.where(halves > 7, halves - 16, halves)
    out = TensorSpec(dtype, (n, k))
    stated = {"block_size": block, "bits": bits, "to": dtype}
    (y,) = run_graph(row("BlockScaleDequantize", ..., ..., results=[out], **stated), [numbers, scales], [out], arch)
    want = codes * np.repeat(scales.astype(np.float64), block, 1)
    np.testing.assert_allclose(y.astype(np.float64), want, rtol={"f32": 1e-6, "f16": 1e-3, "bf16": 8e-3}[dtype])


def test_numbers_of_4_bits_that_do_not_come_by_eights_are_refused() -> None:
    numbers, scales, _ = codes_of(1, 4, 3, 24, 12)
    out = TensorSpec("f16", (3, 24))
    graph = graph_of(row("BlockScaleDequantize", ..., ..., results=[out], block_size=12), [numbers, scales], [out])
    assert find_target("sm_90").engine_for(graph) is None


def test_batch_norm_by_deviation_and_positions() -> None:
    x, out = RNG.standard_normal((2, 5, 3, 4)).astype(np.float32), TensorSpec("f32", (2, 5, 3, 4))
    channels = [RNG.random(5).astype(np.float32) for _ in range(4)]
    (y,) = run_graph(row("BatchNormalizationInference", *[...] * 5, results=[out]), [x, *channels], [out])
    mean, inverse, scale, bias = (array.astype(np.float64)[:, None, None] for array in channels)
    np.testing.assert_allclose(y, (x - mean) * inverse * scale + bias, rtol=1e-5, atol=1e-6)
    (place,) = run_graph(row("GenIndex", ..., results=[out], axis=2), [x], [out])
    np.testing.assert_array_equal(place, np.broadcast_to(np.arange(3)[:, None], x.shape))


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_every_architecture(arch: str) -> None:
    x, outs = np.zeros((4, 64), np.float16), [TensorSpec("i8", (4, 64)), TensorSpec("f32", (4, 2))]
    graph = graph_of(row("BlockScaleQuantize", ..., results=outs, axis=1, block_size=32), [x], outs)
    made = generate_graph(graph, find_architecture(arch))
    assert not isinstance(made, Reject)
    compiled.check(made)
