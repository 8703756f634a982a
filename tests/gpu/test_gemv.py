"""Generated matmuls of few rows, with what surrounds them, against float64."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import Body, graph_of, run_graph
from gpu.layers import codes_of, gated, layer, linear, norm, normalized, numbers, of_codes, swish, wide
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir.ops.few_rows import few_rows
from hipdnn_mlir_runtime.abi import Pointwise
from host_kernels.kernel_runs import TensorSpec
from runtime_programs import Array

BOUND = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}
BOTH = pytest.mark.parametrize("arch", ["sm_90", "gfx942"])


def check(body: Body, arrays: list[Array], dtype: str, arch: str, *want: Array) -> None:
    """The graph is one of these, and its results are those of float64."""
    outs = [TensorSpec(dtype, result.shape) for result in want]
    graph = graph_of(body, arrays, outs)
    inner = few_rows(graph).inner
    for got, result in zip(run_graph(body, arrays, outs, arch), want, strict=True):
        atol = BOUND[dtype] * max(np.sqrt(inner), np.abs(result).max())
        np.testing.assert_allclose(wide(got), result, rtol=BOUND[dtype], atol=atol)


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize(("k", "n"), [(1024, 40), (300, 33), (7, 5), (2, 3), (64, 1), (4096, 8)])
def test_a_layer_of_one_row(k: int, n: int, dtype: str, arch: str) -> None:
    x, rows, bias = numbers(k + n, dtype, (1, k), (n, k), (n,))
    check(layer, [x, rows.T, bias], dtype, arch, np.maximum(wide(x) @ wide(rows.T) + wide(bias), 0))


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("shape", [(2, 96), (4, 96), (3, 1, 100), (2, 1, 2, 264)], ids=str)
def test_several_rows_in_any_dims(shape: tuple[int, ...], dtype: str, arch: str) -> None:
    x, weight = numbers(1, dtype, shape, (37, shape[-1]))
    check(linear, [x, weight], dtype, arch, wide(x) @ wide(weight.T))


def test_batches_of_one_row_with_a_step() -> None:
    x, rows = numbers(1, "f32", (1, 1, 1, 40), (9, 20))
    check(matmul_node, [x[..., ::2], rows.T[None, None]], "f32", "sm_90", wide(x[..., ::2]) @ wide(rows.T))


def test_rows_that_lie_apart_in_memory() -> None:
    x, weight = numbers(1, "f16", (64, 3), (9, 64))
    check(linear, [x.T, weight], "f16", "sm_90", wide(x.T) @ wide(weight.T))


@pytest.mark.parametrize(
    ("k", "dtype", "arch"), [(2048, "f32", "sm_90"), (9000, "f16", "sm_90"), (9000, "f32", "gfx942")]
)
def test_waves_of_a_block_share_columns_of_many_numbers(k: int, dtype: str, arch: str) -> None:
    x, weight = numbers(k, dtype, (2, k), (3, k))
    assert shared_bytes(linear, [x, weight], TensorSpec(dtype, (2, 3)), arch)
    check(linear, [x, weight], dtype, arch, wide(x) @ wide(weight.T))


@pytest.mark.parametrize("n", [4301, 8448, 8449])
def test_a_wave_has_several_columns_where_there_are_many(n: int) -> None:
    x, left, right = numbers(n, "f32", (1, 24), (n, 24), (n, 24))
    check(linear, [x, left], "f32", "sm_90", wide(x) @ wide(left.T))

    def body(e: Emitter, x: Value, left: Value, right: Value) -> Value:
        return gated(e, linear(e, x, left), linear(e, x, right))

    want = swish(wide(x) @ wide(left.T)) * (wide(x) @ wide(right.T))
    check(body, [x, left, right], "f32", "sm_90", want)


@BOTH
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("shape", "columns", "block", "dtype"),
    [((1, 64), 7, 16, "f16"), ((1, 512), 40, 32, "f32"), ((3, 256), 5, 128, "bf16"), ((16, 96), 9, 32, "f16"),
     ((2, 1, 8192), 3, 32, "f16")],
    ids=str,
)  # fmt: skip
def test_weights_of_4_and_8_bits(
    shape: tuple[int, ...], columns: int, block: int, dtype: str, bits: int, arch: str
) -> None:
    (x,) = numbers(block, dtype, shape)
    codes, scales, meant = codes_of(bits, bits, columns, shape[-1], block)
    check(partial(of_codes, block=block), [x, codes, scales], dtype, arch, wide(x) @ meant.T)


@pytest.mark.parametrize("bits", [4, 8])
def test_the_last_block_may_be_shorter_or_filled_up(bits: int) -> None:
    (x,) = numbers(1, "f32", (2, 80))
    codes, scales, meant = codes_of(bits, bits, 5, 80, 32)
    filled = np.pad(codes, [(0, 0), (0, 16 * bits // 8)], constant_values=77)
    for stored in (codes, filled):
        check(partial(of_codes, block=32), [x, stored, scales], "f32", "sm_90", wide(x) @ meant.T)


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("shape", [(1, 200), (1, 3, 64), (4, 1, 1024)], ids=str)
def test_a_norm_of_the_rows_in_front(shape: tuple[int, ...], dtype: str, arch: str) -> None:
    x, scale, weight = numbers(3, dtype, shape, shape[-1:], (21, shape[-1]))
    x = x * np.arange(1, 1 + shape[0]).reshape(-1, *[1] * (len(shape) - 1)).astype(x.dtype)  # rows of different sizes

    def body(e: Emitter, x: Value, scale: Value, weight: Value) -> Value:
        return linear(e, norm(e, x, scale), weight)

    check(body, [x, scale, weight], dtype, arch, normalized(x, scale) @ wide(weight.T))


@BOTH
@pytest.mark.parametrize("bits", [16, 8, 4])
@pytest.mark.parametrize("rows", [1, 3])
def test_a_gated_layer_is_one_kernel(rows: int, bits: int, arch: str) -> None:
    inner, columns, block = 256, 19, 32
    x, scale = numbers(5, "f16", (rows, inner), (inner,))
    if bits == 16:
        matrices = [[weight] for weight in numbers(6, "f16", *[(columns, inner)] * 2)]
        meant = [wide(weight) for (weight,) in matrices]
    else:
        made = [codes_of(seed, bits, columns, inner, block) for seed in (6, 7)]
        matrices, meant = [[codes, scales] for codes, scales, _ in made], [m for _, _, m in made]

    def body(e: Emitter, x: Value, scale: Value, *weights: Value) -> Value:
        x, half = norm(e, x, scale), len(weights) // 2
        products = (
            linear(e, x, *w) if bits == 16 else of_codes(e, x, *w, block=block)
            for w in (weights[:half], weights[half:])
        )
        return gated(e, *products)

    rows_of_x = normalized(x, scale)
    want = swish(rows_of_x @ meant[0].T) * (rows_of_x @ meant[1].T)
    check(body, [x, scale, *matrices[0], *matrices[1]], "f16", arch, want)


@BOTH
def test_a_sum_with_what_the_layer_reads(arch: str) -> None:
    x, weight, residual = numbers(8, "f16", (2, 1, 320), (33, 320), (2, 1, 33))

    def body(e: Emitter, x: Value, weight: Value, residual: Value) -> Value:
        return e.pointwise(Pointwise.ADD, residual, linear(e, x, weight))

    check(body, [x, weight, residual], "f16", arch, wide(x) @ wide(weight.T) + wide(residual))


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_a_sum_with_the_rows_that_a_norm_reads(dtype: str, arch: str) -> None:
    x, scale, weight = numbers(8, dtype, (2, 48), (48,), (48, 48))

    def body(e: Emitter, x: Value, scale: Value, weight: Value) -> Value:
        return e.pointwise(Pointwise.ADD, x, linear(e, norm(e, x, scale), weight))

    check(body, [x, scale, weight], dtype, arch, normalized(x, scale) @ wide(weight.T) + wide(x))


def test_results_of_several_matmuls_and_of_what_follows() -> None:
    x, left, right = numbers(9, "f32", (2, 72), (11, 72), (11, 72))

    def body(e: Emitter, x: Value, left: Value, right: Value) -> list[Value]:
        products = [linear(e, x, left), linear(e, x, right)]
        return [*products, gated(e, *products)]

    a, b = wide(x) @ wide(left.T), wide(x) @ wide(right.T)
    check(body, [x, left, right], "f32", "sm_90", a, b, swish(a) * b)


def shared_bytes(body: Body, arrays: list[Array], out: TensorSpec, arch: str) -> int:
    made = generate_graph(graph_of(body, arrays, [out]), find_architecture(arch))
    return made.shared_bytes


LOAD, WAIT = re.compile(r"^\s*ld\.global", re.MULTILINE), "griddepcontrol.wait"


def loads_before_waiting(arch: str, constants: Sequence[int]) -> int:
    """Of a layer whose weights are operand 1."""
    x, weight, bias = numbers(1, "f32", (1, 64), (32, 64), (32,))
    made = generate_graph(
        graph_of(layer, [x, weight.T, bias], [TensorSpec("f32", (1, 32))]), find_architecture(arch), constants
    )
    compiled.check(made)
    assert made.code.count(WAIT) == (arch == "sm_90")
    return len(LOAD.findall(made.code.partition(WAIT)[0])) if arch == "sm_90" else 0


def test_constant_weights_are_read_before_the_kernel_in_front_has_ended() -> None:
    assert loads_before_waiting("sm_90", [1]) > 0
    assert loads_before_waiting("sm_90", [1, 2]) == loads_before_waiting("sm_90", [1])


@pytest.mark.parametrize("constants", [[], [0], [0, 2]])
def test_nothing_is_read_early_when_weights_are_no_constants(constants: list[int]) -> None:
    assert loads_before_waiting("sm_90", constants) == 0


def test_no_gpu_waits_that_cannot() -> None:
    assert loads_before_waiting("sm_80", [1]) == 0


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_every_architecture(arch: str) -> None:
    x, rows, bias = np.zeros((1, 64), np.float16), np.zeros((32, 64), np.float16), np.zeros(32, np.float16)
    made = generate_graph(graph_of(layer, [x, rows.T, bias], [TensorSpec("f16", (1, 32))]), find_architecture(arch))
    compiled.check(made)
