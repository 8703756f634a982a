"""Matmuls of few rows on matrix units, against float64."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gpu import compiled
from gpu.graphs import Body, graph_of, run_graph
from gpu.test_gemv import check, codes_of, gated, linear, norm, normalized, numbers, of_codes, swish, wide
from hipdnn_mlir.codegen import find_architecture, generate_graph
from hipdnn_mlir.codegen.core.arch import ARCHITECTURES
from hipdnn_mlir.ops.emitter import Emitter, Value
from hipdnn_mlir.ops.families.matmul import matmul_node
from hipdnn_mlir.ops.few_rows import few_rows, takes_units
from hipdnn_mlir_runtime.abi import Pointwise
from host_kernels.kernel_runs import TensorSpec
from runtime_programs import Array

BLOCKS = (16, 32, 96, 128)
SHAPES = ((1, 384, 16), (2, 1152, 21), (3, 4224, 16), (17, 384, 40))
"""Rows, inputs and outputs of a product."""


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("shape", "n"), [((5, 32), 16), ((8, 1, 288), 33), ((32, 1056), 16), ((2, 9, 1, 64), 7), ((6, 4352), 40)], ids=str
)
def test_several_rows(shape: tuple[int, ...], n: int, dtype: str) -> None:
    x, weight, residual = numbers(1, dtype, shape, (n, shape[-1]), (*shape[:-1], n))

    def body(e: Emitter, x: Value, weight: Value, residual: Value) -> Value:
        return e.pointwise(Pointwise.ADD, linear(e, x, weight), residual)

    graph = graph_of(body, [x, weight, residual], [TensorSpec(dtype, residual.shape)])
    assert takes_units(graph, few_rows(graph))
    check(body, [x, weight, residual], dtype, "sm_90", wide(x) @ wide(weight.T) + wide(residual))


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_weights_of_few_bits(shape: tuple[int, int, int], block: int) -> None:
    """Types and architectures by turns, so that each meets every block and every shape."""
    rows, k, n = shape
    turn = SHAPES.index(shape) + BLOCKS.index(block)
    (dtype, bits), arch = [("f16", 4), ("bf16", 4), ("f16", 8)][turn % 3], ["sm_80", "sm_90"][turn % 2]
    (x,) = numbers(rows, dtype, (rows, k))
    codes, scales, meant = codes_of(k, bits, n, k, block)
    narrow = scales.astype(np.float16)
    meant = meant if dtype == "bf16" else meant / np.repeat(scales, block, 1) * np.repeat(wide(narrow), block, 1)
    body = partial(of_codes, block=block)
    for kept in (narrow, narrow.astype(np.float32)) if dtype == "f16" else (scales,):
        graph = graph_of(body, [x, codes, kept], [TensorSpec(dtype, (rows, n))])
        assert takes_units(graph, few_rows(graph))
        check(body, [x, codes, kept], dtype, arch, wide(x) @ meant.T)


def test_large_rows_and_codes_that_are_far_from_zero() -> None:
    """What codes are off by is subtracted from sums a hundred times as large."""
    k, n, block = 4096, 16, 32
    rng = np.random.default_rng(5)
    x = (100 + rng.standard_normal((1, k))).astype(np.float16)
    codes = rng.integers(0, 256, (n, k // 2), dtype=np.uint8)
    scales = np.full((n, k // block), 2.0**-6, np.float16)
    halves = np.stack([codes & 15, codes >> 4], -1).reshape(n, k).astype(np.float64)
    meant = np.where(halves > 7, halves - 16, halves) * 2.0**-6
    check(partial(of_codes, block=block), [x, codes, scales], "f16", "sm_90", wide(x) @ meant.T)


def test_numbers_beside_a_far_greater_one_are_rounded_by_that() -> None:
    """A row's numbers are integers of 16 bits with the exponent of the greatest of 32."""
    k, n, step = 256, 32, 32
    (x,) = numbers(7, "f16", (1, k))
    x[0, 5], x[0, 64:96], x[0, 100] = 1000, 0, 6e-5
    codes, scales, meant = codes_of(3, 4, n, k, step)
    narrow = scales.astype(np.float16)
    meant = meant / np.repeat(scales, step, 1) * np.repeat(wide(narrow), step, 1)
    (got,) = run_graph(partial(of_codes, block=step), [x, codes, narrow], [TensorSpec("f16", (1, n))], "sm_90")
    want, greatest = (wide(x) @ meant.T)[0], np.abs(wide(x)).reshape(-1, step).max(1)
    weights = np.abs(meant).reshape(n, -1, step).sum(2)
    assert np.all(np.abs(wide(got)[0] - want) <= weights @ greatest * 2.0**-14 + np.abs(want) * 2.0**-10)


def test_what_is_no_number_makes_the_results_of_its_row_none() -> None:
    (x,) = numbers(7, "f16", (2, 256))
    x[0, 3], x[1, 200] = np.nan, -np.inf
    codes, scales, _ = codes_of(3, 4, 16, 256, 32)
    (got,) = run_graph(partial(of_codes, block=32), [x, codes, scales], [TensorSpec("f16", (2, 16))], "sm_90")
    assert not np.isfinite(wide(got)).any()


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("k", [128, 2176])
def test_a_gated_layer_behind_a_norm(rows: int, k: int) -> None:
    x, g = numbers(2, "f16", (rows, k), (k,))
    (left, left_scales, left_meant), (right, right_scales, right_meant) = (
        codes_of(seed, 4, 24, k, 32) for seed in (3, 4)
    )

    def body(
        e: Emitter, x: Value, g: Value, left: Value, left_scales: Value, right: Value, right_scales: Value
    ) -> Value:
        y = norm(e, x, g)
        return gated(e, of_codes(e, y, left, left_scales, block=32), of_codes(e, y, right, right_scales, block=32))

    arrays = [x, g, left, left_scales, right, right_scales]
    graph = graph_of(body, arrays, [TensorSpec("f16", (rows, 24))])
    assert takes_units(graph, few_rows(graph))
    y = normalized(x, g)
    check(body, arrays, "f16", "sm_90", swish(y @ left_meant.T) * (y @ right_meant.T))


@pytest.fixture
def small_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs of 12 multiprocessors, which a tenth of the columns fills."""
    for name in ("sm_80", "sm_90"):
        monkeypatch.setitem(ARCHITECTURES, name, replace(ARCHITECTURES[name], units=12))


@pytest.mark.usefixtures("small_gpus")
@pytest.mark.parametrize(("rows", "n"), [(1, 213), (2, 208)])
def test_blocks_of_codes_have_few_waves_where_a_multiprocessor_has_several(rows: int, n: int) -> None:
    k = 288
    (x,) = numbers(rows, "f16", (rows, k))
    codes, scales, meant = codes_of(k, 4, n, k, 32)
    narrow = scales.astype(np.float16)
    meant = meant / np.repeat(scales, 32, 1) * np.repeat(wide(narrow), 32, 1)
    body, arrays = partial(of_codes, block=32), [x, codes, narrow]
    made = generate_graph(graph_of(body, arrays, [TensorSpec("f16", (rows, n))]), find_architecture("sm_90"))
    compiled.check(made)
    assert made.block == (128, 1, 1)
    check(body, arrays, "f16", "sm_90", wide(x) @ meant.T)


@pytest.mark.usefixtures("small_gpus")
@pytest.mark.parametrize(
    ("shape", "k", "n", "dtype"),
    [((9,), 768, 1140, "f16"), ((32,), 768, 2304, "bf16"), ((3, 7), 768, 1180, "f16")],
    ids=str,
)
def test_waves_that_own_columns(shape: tuple[int, ...], k: int, n: int, dtype: str) -> None:
    x, weight, bias = numbers(1, dtype, (*shape, k), (n, k), (1,) * len(shape) + (n,))

    def body(e: Emitter, x: Value, weight: Value, bias: Value) -> Value:
        return e.pointwise(Pointwise.ADD, linear(e, x, weight), bias)

    assert_rows_are_copied(body, [x, weight, bias], TensorSpec(dtype, (*shape, n)))
    check(body, [x, weight, bias], dtype, "sm_90", wide(x) @ wide(weight.T) + wide(bias))


@pytest.mark.usefixtures("small_gpus")
def test_waves_that_own_columns_of_a_gated_layer() -> None:
    x, left, right = numbers(1, "f16", (27, 1024), (580, 1024), (580, 1024))

    def body(e: Emitter, x: Value, left: Value, right: Value) -> Value:
        return gated(e, linear(e, x, left), linear(e, x, right))

    assert_rows_are_copied(body, [x, left, right], TensorSpec("f16", (27, 580)))
    check(body, [x, left, right], "f16", "sm_90", swish(wide(x) @ wide(left.T)) * (wide(x) @ wide(right.T)))


@pytest.mark.parametrize(("rows", "k", "n", "dtype"), [(9, 768, 192, "f16"), (32, 1024, 128, "bf16")], ids=str)
def test_waves_that_own_columns_of_parts_of_the_inner_dim(rows: int, k: int, n: int, dtype: str) -> None:
    """Both operands are seen as parts."""
    x, weight = numbers(1, dtype, (rows, 3 * k), (n, 3 * k))
    parts = x.reshape(rows, 3, k).transpose(1, 0, 2), weight.reshape(n, 3, k).transpose(1, 2, 0)
    assert_rows_are_copied(matmul_node, list(parts), TensorSpec(dtype, (3, rows, n)))
    check(matmul_node, list(parts), dtype, "sm_90", wide(parts[0]) @ wide(parts[1]))


def assert_rows_are_copied(body: Body, arrays: list[Array], out: TensorSpec) -> None:
    graph = graph_of(body, arrays, [out])
    assert takes_units(graph, few_rows(graph))
    for arch in ("sm_80", "sm_90"):
        made = generate_graph(graph, find_architecture(arch))
        compiled.check(made)
        assert "cp.async.cg.shared.global" in str(made.code)
        assert ".minnctapersm 2" in str(made.code)


def test_all_blocks_of_codes_have_room_at_once() -> None:
    (x,) = numbers(1, "f16", (1, 1024))
    codes, scales, _ = codes_of(1, 4, 16 * 132 * 3, 1024, 32)
    graph = graph_of(partial(of_codes, block=32), [x, codes, scales], [TensorSpec("f16", (1, 16 * 132 * 3))])
    made = generate_graph(graph, find_architecture("sm_90"))
    assert ".minnctapersm 3" in str(made.code)
    assert "%ctaid.y" in str(made.code), "a step's weights are asked for before those in front have come"


@pytest.mark.parametrize(
    ("shape", "n", "dtype"), [((33, 64), 16, "f16"), ((4, 64), 16, "f16"), ((8, 40), 16, "f16"), ((8, 64), 16, "f32")]
)
def test_what_matrix_units_do_not_take(shape: tuple[int, int], n: int, dtype: str) -> None:
    x, weight = numbers(1, dtype, shape, (n, shape[-1]))
    graph = graph_of(linear, [x, weight], [TensorSpec(dtype, (shape[0], n))])
    assert not takes_units(graph, few_rows(graph))


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_nvidia_and_others_multiply_otherwise(arch: str) -> None:
    (x,) = numbers(1, "f16", (1, 256))
    codes, scales, _ = codes_of(1, 4, 32, 256, 32)
    graph = graph_of(partial(of_codes, block=32), [x, codes, scales], [TensorSpec("f16", (1, 32))])
    made = generate_graph(graph, find_architecture(arch))
    compiled.check(made)
    assert ("mma.sync" in str(made.code)) is arch.startswith("sm_")
