"""Products with the weights of chosen experts, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipdnn_mlir_runtime.errors import DeviceError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import Array, TensorSpec, run_kernel


def product(x: Array, experts: Array, weights: Array) -> Array:
    """What the kernel computes, of weights in float64."""
    rows, choices = experts.shape
    result = np.zeros((rows, choices, weights.shape[1]))
    for row in range(rows):
        for choice in range(choices):
            result[row, choice] = weights[experts[row, choice]] @ x[row, choice % x.shape[1]].astype(np.float64)
    return result


def check(got: Array, want: Array) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * max(1.0, np.abs(want).max(initial=0)))


@settings(deadline=None, max_examples=80)
@given(data=st.data(), dtype=st.sampled_from(["f32", "f16", "bf16"]), index=st.sampled_from(["i32", "i64"]))
def test_floats_equal_numpy(data: st.DataObject, dtype: str, index: str) -> None:
    rows, choices, count = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    n, depth = data.draw(st.sampled_from([1, 3, 17, 40])), data.draw(st.sampled_from([1, 8, 16, 33]))
    shared = data.draw(st.sampled_from([1, choices]))
    x = data.draw(runs.strided("f32", (rows, shared, depth)))
    experts = data.draw(runs.strided(index, (rows, choices)))
    experts = (experts.astype(np.int64) % count).astype(experts.dtype)
    weights = runs.values(dtype, (count, n, depth), 3)
    out = data.draw(runs.out_spec("f32", (rows, choices, n)))
    (got,) = run_kernel("expert_matmul", [x, experts, weights], [out], {"bits": 0}, data.draw(st.integers(1, 3)))
    check(got, product(x, experts, weights.astype(np.float64)))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("depth", "block"), [(64, 32), (64, 16), (48, 48), (2880, 64), (2048, 2048), (40, 32)])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("rows", [1, 70, 500])
def test_codes_equal_numpy(bits: int, depth: int, block: int, rows: int, *, has_zeros: bool) -> None:
    rng = np.random.default_rng([bits, depth, block, rows])
    count, n, choices, blocks = 6, 100 if rows == 70 else 21, 2, -(-depth // block)
    x = rng.standard_normal((rows, choices, depth)).astype(np.float32)
    experts = rng.integers(-count, count, (rows, choices))
    codes = rng.integers(0, 2**bits, (count, n, depth)).astype(np.uint8)
    packed = codes if bits == 8 else codes[..., ::2] | codes[..., 1::2] << 4
    scales = rng.standard_normal((count, n, blocks)).astype(np.float32) / 2**bits
    zeros = rng.integers(0, 2**bits, (count, n, blocks)).astype(np.uint8)
    zero = zeros if has_zeros else np.full_like(zeros, 1 << (bits - 1))
    spread = np.arange(depth) // block
    weights = (codes.astype(np.float64) - zero[..., spread]) * scales[..., spread]
    operands = [x, experts, packed, scales, *([zeros] if has_zeros else [])]
    out = TensorSpec("f32", (rows, choices, n))
    (got,) = run_kernel("expert_matmul", operands, [out], {"bits": bits, "block_size": block}, 2)
    check(got, product(x, experts, weights))


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("rows", [13, 50, 190])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_many_rows_of_floats_equal_numpy(dtype: str, rows: int, *, is_transposed: bool) -> None:
    rng = np.random.default_rng([rows, is_transposed])
    count, n, depth = 3, 600, 300
    x = rng.standard_normal((rows, 1, depth)).astype(np.float32)
    if is_transposed:
        x = np.ascontiguousarray(x.transpose(2, 1, 0)).transpose(2, 1, 0)
    experts = rng.integers(0, count, (rows, 2))
    weights = runs.values(dtype, (count, n, depth), 3)
    (got,) = run_kernel("expert_matmul", [x, experts, weights], [TensorSpec("f32", (rows, 2, n))], {"bits": 0}, 2)
    check(got, product(x, experts, weights.astype(np.float64)))


def test_an_expert_that_is_not_there_fails_the_launch() -> None:
    x, experts, weights = np.zeros((1, 1, 8), np.float32), np.array([[4]]), np.zeros((4, 2, 8), np.float32)
    with pytest.raises(DeviceError, match=r"tensors\[1\]: index 4 is out of range for a dim of 4"):
        run_kernel("expert_matmul", [x, experts, weights], [TensorSpec("f32", (1, 1, 2))], {"bits": 0})
