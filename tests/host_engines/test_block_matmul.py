"""Products with block-scaled weights of 4 and 8 bits, against numpy in float64.

Operands that the engine rounds to 8 bits are chosen so that scales are powers of two and codes exact, ties among them: what is left are the
roundings of float32 sums, and one to the type of the result.
"""

import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hipdnn_mlir_runtime.abi import Pointwise
from host_engines.anchor_graph import assert_close, refusal
from host_engines.block_graph import BlockGraph, packed_int4
from host_engines.cpu_caps import CAP, assert_passes_under_cap, uncapped
from host_engines.host_graph import Operand, strided_like

ENGINE = "HOST_BLOCK_MATMUL_ENGINE"
F16, BF16, F32 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
TOLERANCE = {F32: 1e-5, F16: 2.0**-10, BF16: 2.0**-7}
SPANS = {"int4": (-8, 8), "int8": (-128, 128), "int8_of_4_bits": (-11, 5)}
"""Least number and what is above the greatest."""
rounds_or_not = pytest.mark.parametrize("rounds", [False, True], ids=["floats", "bytes"])


@dataclass(frozen=True)
class Weights:
    """Numbers [k, n] with scales [blocks, n], and both as they are stored: by columns."""

    numbers: np.ndarray
    scales: np.ndarray
    block: int
    is_int4: bool

    @property
    def wide(self) -> np.ndarray:
        """In float64."""
        return self.numbers * spread(self.scales, self.block, len(self.numbers), 0)

    def operands(self, graph: BlockGraph, rank: int = 2) -> tuple[Operand, Operand]:
        """Of a graph, in `rank` dims."""
        k, n = self.numbers.shape
        row = k + k % 2
        stored = np.zeros((n, row), np.int8)
        stored[:, :k] = self.numbers.T
        outer = (1,) * (rank - 2)
        scales = graph.tensor(np.ascontiguousarray(self.scales.T).T.reshape(*outer, *self.scales.shape))
        if self.is_int4:
            return graph.int4(packed_int4(stored), (*outer, k, n), (*(1,) * len(outer), 1, row)), scales
        return graph.tensor(stored[:, :k].T.reshape(*outer, k, n)), scales


def weights(kind: str, k: int, n: int, block: int) -> Weights:
    """Random ones; of int8 that fit into 4 bits, every block has its own zero."""
    rng = np.random.default_rng([k, n, block])
    numbers = rng.integers(*SPANS[kind], (k, n))
    if kind == "int8_of_4_bits":
        shift = rng.integers(-3, 11, (-(-k // block), n))
        numbers += np.repeat(shift, block, 0)[:k]
    scales = rng.uniform(0.5, 2, (-(-k // block), n)).astype(np.float32) / 16
    return Weights(numbers, scales, block, kind == "int4")


def spread(scales: np.ndarray, block: int, k: int, axis: int) -> np.ndarray:
    """The scale of every element."""
    return np.repeat(scales.astype(np.float64), block, axis).take(range(k), axis)


def left(shape: tuple[int, ...], block: int, dtype: np.dtype[Any] = F32) -> np.ndarray:
    """Halves of integers of 7 bits times a power of two for each block, whose greatest is 127 times that power."""
    rng = np.random.default_rng([*shape, block])
    k = shape[-1]
    halves = rng.integers(-254, 255, shape) / 2
    if dtype != F32:
        halves = rng.integers(-127, 128, shape).astype(np.float64)
    halves[..., ::block] = 127
    power = np.exp2(rng.integers(-4, 2, (*shape[:-1], -(-k // block))))
    return (halves * spread(power, block, k, -1)).astype(dtype)


def rounded(a: np.ndarray, block: int) -> np.ndarray:
    """In float64 what quantization to 8 bits leaves of a."""
    k = a.shape[-1]
    wide = np.pad(a.astype(np.float64), [(0, 0)] * (a.ndim - 1) + [(0, -k % block)])
    scale = np.abs(wide.reshape(*a.shape[:-1], -1, block)).max(-1) / 127
    each = spread(scale, block, k, -1)
    return np.rint(a.astype(np.float64) / each) * each


def product_of(graph: BlockGraph, a: Operand, w: Weights, c: Operand, rounds: bool) -> tuple[Operand, Operand]:
    """A times w to c, a by way of 8 bits where `rounds`; the stored numbers and scales."""
    k, rank = a.shape[-1], len(a.shape)
    numbers, scales = w.operands(graph, rank)
    sizes = [*(1,) * (rank - 2), w.block, 1]
    wide = graph.dequantize(numbers, scales, graph.virtual(numbers.shape, a.dtype), sizes, NEG_SCALE=False)
    if rounds:
        codes = graph.virtual(a.shape, np.int8)
        factors = graph.virtual((*a.shape[:-1], -(-k // w.block)))
        graph.quantize(a, codes, factors, w.block, rank - 1, TRANSPOSE_EXT=False)
        sizes = [*(1,) * (rank - 1), w.block]
        a = graph.dequantize(codes, factors, graph.virtual(a.shape, a.dtype), sizes, NEG_SCALE=False)
    graph.matmul(a, wide, c)
    return numbers, scales


def compare(a: np.ndarray, w: Weights, rounds: bool, y: np.ndarray | None = None, is_constant: bool = True) -> str:
    """Assert the product of a and w; how it was computed."""
    graph = BlockGraph()
    y = np.full((*a.shape[:-1], w.numbers.shape[1]), np.nan, a.dtype) if y is None else y
    constants = product_of(graph, graph.tensor(a), w, graph.tensor(y), rounds)
    plan = graph.plan(ENGINE, constants=constants if is_constant else ())
    for _ in range(2):
        plan.execute()
        operand = rounded(a, w.block) if rounds else a.astype(np.float64)
        assert_close(y, operand @ w.wide, TOLERANCE[y.dtype])
    return plan.describe()


@cache
def bytes_isa() -> str:
    """The instructions by which the engine multiplies bytes; empty where it has none."""
    flags = Path("/proc/cpuinfo").read_text()
    if CAP not in os.environ and "avx512_vnni" in flags:
        return "avx512_vnni"
    return "avx2" if "avx2" in flags and os.environ.get(CAP) != "SSE41" else ""


@pytest.mark.parametrize("kind", SPANS)
@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])
@pytest.mark.parametrize("m", [1, 2, 13, 30])
@rounds_or_not
def test_product_is_the_sum_of_numbers_times_scales(kind: str, is_constant: bool, m: int, rounds: bool) -> None:
    described = compare(left((m, 96), 32), weights(kind, 96, 37, 32), rounds, is_constant=is_constant)
    narrow = kind == "int4" or (kind == "int8_of_4_bits" and is_constant)
    assert f"of {4 if narrow else 8} bits" in described
    assert ("of bytes" in described) == (rounds and bool(bytes_isa()))
    if rounds:
        assert bytes_isa() in described


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("is_constant", [True, False], ids=["constant", "operand"])
def test_scales_of_16_bits(dtype: Any, is_constant: bool) -> None:
    w = weights("int4", 96, 37, 32)
    compare(left((2, 96), 32), replace(w, scales=w.scales.astype(dtype)), rounds=False, is_constant=is_constant)


@pytest.mark.parametrize("kind", SPANS)
@pytest.mark.parametrize("block", [8, 16, 32, 128])
@pytest.mark.parametrize("k", [16, 41, 200, 512])
@rounds_or_not
def test_last_block_is_filled_up_when_it_is_not_whole(kind: str, block: int, k: int, rounds: bool) -> None:
    compare(left((3, k), block), weights(kind, k, 20, block), rounds)


@pytest.mark.parametrize("span", [(-15, 1), (0, 16), (-3, 13), (-16, 0), (1, 17)])
def test_numbers_are_kept_when_they_only_just_fit_4_bits_or_do_not(span: tuple[int, int]) -> None:
    numbers = np.tile(np.arange(*span), (18, 2)).T
    w = Weights(numbers, np.ones((1, 18), np.float32), 32, is_int4=False)
    fits = span[0] >= -15 and span[1] <= 16
    assert f"of {4 if fits else 8} bits" in compare(left((5, 32), 32), w, rounds=True)


@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@rounds_or_not
def test_operand_and_result_may_have_16_bits(dtype: Any, rounds: bool) -> None:
    compare(left((13, 96), 32, dtype), weights("int4", 96, 33, 32), rounds)


@rounds_or_not
def test_operand_and_result_may_have_any_strides_and_batches(rounds: bool) -> None:
    a = strided_like((3, 5, 72), np.float32, (1, 2, 0), gap=2)
    a[...] = left((3, 5, 72), 16)
    compare(a, weights("int4", 72, 33, 16), rounds, strided_like((3, 5, 33), np.float32, (2, 0, 1), gap=1))


def test_plans_share_constants_of_the_same_memory() -> None:
    w, a = weights("int4", 64, 16, 32), left((2, 64), 32)
    results = np.full((2, 2, 16), np.nan, np.float32)
    graph = BlockGraph()
    first = product_of(graph, graph.tensor(a), w, graph.tensor(results[0]), rounds=False)
    plan = graph.plan(ENGINE, constants=first)
    plan.execute()
    plan.execute(plan.bind({o.uid: o.array for o in graph.operands if o.array is not None}))
    assert_close(results[0], a.astype(np.float64) @ w.wide)


@pytest.mark.parametrize("dtype", [F32, F16], ids=str)
@rounds_or_not
def test_epilogue_follows_in_float32(dtype: Any, rounds: bool) -> None:
    a, w = left((14, 64), 32, dtype) / dtype.type(64), weights("int4", 64, 37, 32)
    rng = np.random.default_rng(5)
    residual, factor = (rng.standard_normal((14, 37)).astype(dtype) for _ in range(2))
    bias, y = rng.standard_normal((1, 37)).astype(dtype), np.zeros((14, 37), dtype)
    graph = BlockGraph()
    c = graph.virtual(y.shape, dtype)
    constants = product_of(graph, graph.tensor(a), w, c, rounds)
    value = graph.then(Pointwise.ADD, c, graph.tensor(bias))
    value = graph.then(Pointwise.ADD, value, graph.tensor(residual))
    value = graph.then(Pointwise.SWISH_FWD, value, swish_beta=1.0)
    graph.then(Pointwise.MUL, value, graph.tensor(factor), out=graph.tensor(y))
    plan = graph.plan(ENGINE, constants=constants)
    plan.execute()
    assert plan.describe().endswith("+ epilogue")
    wide = (rounded(a, 32) if rounds else a.astype(np.float64)) @ w.wide + bias.astype(np.float64) + residual
    assert_close(y, wide / (1 + np.exp(-wide)) * factor, TOLERANCE[dtype])


def test_result_may_take_the_place_of_the_residual() -> None:
    a, w = left((3, 32), 32), weights("int8", 32, 20, 32)
    y = np.ones((3, 20), np.float32)
    graph = BlockGraph()
    c = graph.virtual(y.shape)
    product_of(graph, graph.tensor(a), w, c, rounds=True)
    graph.then(Pointwise.ADD, c, graph.tensor(y), out=graph.tensor(y))
    graph.run(ENGINE)
    assert_close(y, rounded(a, 32) @ w.wide + 1)


@pytest.mark.parametrize("kind", ["int4", "int8"])
@pytest.mark.parametrize("sign", [-1, 1])
def test_sums_are_exact_when_all_numbers_are_the_least_or_greatest(kind: str, sign: int) -> None:
    least, above = SPANS[kind]
    numbers = np.repeat([[least, above - 1]], 9, 1).repeat(128, 0)
    w = Weights(numbers, np.ones((1, 18), np.float32), 128, kind == "int4")
    compare(np.full((3, 128), 127.0 * sign, np.float32), w, rounds=True)


def test_rows_of_the_least_and_greatest_floats_leave_others_alone() -> None:
    a, w = left((4, 64), 32), weights("int4", 64, 16, 32)
    expected = rounded(a, 32) @ w.wide
    a[1], a[2, 3], a[3] = 1e-41, np.inf, 0
    y = np.full((4, 16), 7, np.float32)
    graph = BlockGraph()
    product_of(graph, graph.tensor(a), w, graph.tensor(y), rounds=True)
    graph.run(ENGINE)
    assert_close(y[0], expected[0])
    assert not np.isfinite(y[2]).any()
    np.testing.assert_allclose(y[[1, 3]], 0, atol=1e-35)


def refused(
    w: Weights, a: np.ndarray | None = None, *, a_block: int | None = None, stores: bool = False, scales: Any = None
) -> str:
    """Why the engine does not take a product."""
    k, n = w.numbers.shape
    graph = BlockGraph()
    operand = graph.tensor(np.zeros((2, k), np.float32) if a is None else a)
    numbers, factors = w.operands(graph)
    factors = factors if scales is None else graph.tensor(scales)
    wide = graph.tensor(np.zeros((k, n), np.float32)) if stores else graph.virtual((k, n))
    graph.dequantize(numbers, factors, wide, [w.block, 1], NEG_SCALE=False)
    if a_block is not None:
        codes, inner = graph.virtual((2, k), np.int8), graph.virtual((2, -(-k // a_block)))
        graph.quantize(operand, codes, inner, a_block, 1, TRANSPOSE_EXT=False)
        operand = graph.dequantize(codes, inner, graph.virtual((2, k)), [1, a_block], NEG_SCALE=False)
    graph.matmul(operand, wide, graph.tensor(np.zeros((2, n), np.float32)))
    return refusal(graph, ENGINE)


def test_misfits_are_refused_with_a_reason() -> None:
    w = weights("int4", 64, 8, 32)
    assert "expected a multiple of 8" in refused(weights("int4", 48, 8, 12))
    assert "scales are" in refused(w, scales=np.zeros((2, 8), np.float64))
    assert "for blocks of 32 of" in refused(w, scales=np.zeros((4, 8), np.float32))
    assert "stores the dequantized weights" in refused(w, stores=True)
    assert "times blocks of 32" in refused(w, a_block=16)
    assert "the left operand is" in refused(w, np.zeros((2, 64), np.float64))
    assert "multiple of 8" in refused(Weights(w.numbers, w.scales[:1], 8192, is_int4=True))


@pytest.mark.parametrize("mode", [Pointwise.SQRT, Pointwise.EXP])
def test_epilogue_is_refused_when_it_has_other_modes(mode: Pointwise) -> None:
    graph, w = BlockGraph(), weights("int4", 64, 8, 32)
    c = graph.virtual((2, 8))
    product_of(graph, graph.tensor(left((2, 64), 32)), w, c, rounds=False)
    graph.then(mode, c, out=graph.tensor(np.zeros((2, 8), np.float32)))
    assert "epilogue" in refusal(graph, ENGINE)


@uncapped
@pytest.mark.parametrize("cap", ["AVX512_CORE", "AVX2", "SSE41"])
def test_results_are_right_when_the_cpu_has_fewer_instructions(cap: str) -> None:
    assert_passes_under_cap(__file__, cap)
