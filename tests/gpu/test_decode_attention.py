"""The generated step of one token of attention: the host's cases, caches that are updated where they are, counts out of range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from drawing import every
from gpu import compiled
from gpu.emulated import describe, memory_for, results_in, run_kernel, run_launch
from gpu.host_cases import cases_of, emulation_of
from hipdnn_mlir.codegen import find_architecture, generate
from hipdnn_mlir.codegen.generate import parts_of
from hipdnn_mlir_runtime.errors import Reject
from host_kernels import test_decode_attention as of_host
from host_kernels.test_decode_attention import (
    BIASED_SIZES,
    BOUND,
    COUNT,
    KEYS,
    PAGED_SIZES,
    PLAIN,
    SIZES,
    START,
    VALUES,
    assert_close,
    attended,
    attended_in_pages,
    biased,
    in_pages,
    operands,
    outs_of,
)
from runtime_programs import Array

emulated = emulation_of(of_host)
globals().update({name: test for name, test in cases_of(of_host).items() if "host" not in name})


def run(arrays: list[Array], attributes: dict[str, Any], arch: str, *, in_place: bool) -> list[Array]:
    """Run it in the emulator, with caches that are updated where they are or in other memory."""
    outs = outs_of(arrays)
    (part,) = parts_of(describe("decode_attention", arrays, outs, attributes), find_architecture(arch))
    memory = memory_for(arrays, outs)
    if in_place:
        memory[-2:] = memory[KEYS : VALUES + 1]
    run_launch(part.launch, [memory[place] for place in part.arguments], find_architecture(arch))
    return results_in(memory[len(arrays) :], outs)


@pytest.mark.parametrize(("dtype", "in_place", "arch"), every(5, BOUND, [True, False], ["sm_90", "gfx942"]))
@SIZES
def test_the_step_on_each_vendor(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, in_place: bool, dtype: str, arch: str
) -> None:  # fmt: skip
    arrays = operands(dtype, batch, heads, rows, width, half)
    attributes = {"scale": 0.2, "left": left}
    assert_close(run(arrays, attributes, arch, in_place=in_place), attended(arrays, **attributes), dtype)


@pytest.mark.parametrize(("rows", "left", "page_rows"), [(1100, -1, 0), (1024, 300, 0), (1120, -1, 32)])
@pytest.mark.parametrize("in_place", [True, False])
def test_a_cluster_of_blocks_shares_the_keys_of_a_long_cache(
    rows: int, left: int, page_rows: int, in_place: bool
) -> None:
    """Of few keys, the first block has all."""
    arrays = operands("f16", 2, (4, 2), rows, 64, 32)
    arrays[START][0], arrays[COUNT][0] = 99, 100
    assert arrays[COUNT][1] > 256
    attributes = {"scale": 0.2, "left": left}
    want = attended(arrays, **attributes)
    if page_rows:
        arrays = in_pages(arrays, page_rows)
        want = attended_in_pages(arrays, **attributes)
    (part,) = parts_of(describe("decode_attention", arrays, outs_of(arrays), attributes), find_architecture("sm_90"))
    assert part.launch.cluster == 4
    assert_close(run(arrays, attributes, "sm_90", in_place=in_place), want, "f16")


@pytest.mark.parametrize(("in_place", "arch"), every(3, [True, False], ["sm_90", "gfx942"]))
@PAGED_SIZES
def test_the_step_over_pages_on_each_vendor(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, page_rows: int, in_place: bool, arch: str
) -> None:  # fmt: skip
    arrays = in_pages(operands("f16", batch, heads, rows, width, half), page_rows)
    attributes = {"scale": 0.2, "left": left}
    assert_close(run(arrays, attributes, arch, in_place=in_place), attended_in_pages(arrays, **attributes), "f16")


@pytest.mark.parametrize("arch", ["sm_90", "gfx942"])
@BIASED_SIZES
def test_the_step_with_a_bias_on_each_vendor(
    batch: int, heads: tuple[int, int], rows: int, width: int, half: int, left: int, dims: tuple[int, ...], arch: str
) -> None:
    arrays = biased(operands("f16", batch, heads, rows, width, half), dims, "f32")
    attributes = {"scale": 0.2, "left": left}
    assert_close(run(arrays, attributes, arch, in_place=True), attended(arrays, **attributes), "f16")


def test_keys_in_pages_may_be_read_before_the_kernel_in_front_has_ended() -> None:
    arrays, arch = in_pages(operands("f16", 3, (4, 2), 200, 64, 32), 16), find_architecture("sm_90")
    outs, table = outs_of(arrays), len(arrays) - 1
    description = describe("decode_attention", arrays, outs, PLAIN)
    (part,) = parts_of(description, arch, None, [KEYS, VALUES, table])
    memory = memory_for(arrays, outs)
    memory[-2:] = memory[KEYS : VALUES + 1]
    run_launch(part.launch, [memory[place] for place in part.arguments], arch)
    assert_close(results_in(memory[len(arrays) :], outs), attended_in_pages(arrays, **PLAIN), "f16")
    for settled, is_early in (([KEYS, VALUES, table], True), ([KEYS, VALUES], False)):  # a table that a kernel writes
        made = generate(description, arch, None, settled)
        assert not isinstance(made, Reject)
        body = made.code
        assert (body.index("ld.global") < body.index("griddepcontrol.wait")) == is_early


def test_a_page_that_there_is_not_becomes_the_nearest_one() -> None:
    arrays = in_pages(operands("f32", 2, (4, 2), 16, 32, 0), 16)
    arrays[-1][:, 0] = [-4, 99]
    got = run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)
    arrays[-1][:, 0] = [0, len(arrays[KEYS]) - 1]
    assert_close(got, attended_in_pages(arrays, **PLAIN), "f32")


@pytest.mark.parametrize(
    ("sizes", "is_biased", "arch"),
    every(5, [((32, 8), 16, -1), ((36, 6), 0, 5), ((32, 32), 16, -1)], [False, True], ["sm_90", "gfx942"]),
)
def test_a_block_computes_several_heads_where_there_are_many(
    sizes: tuple[tuple[int, int], int, int], is_biased: bool, arch: str
) -> None:
    heads, half, left = sizes
    arrays, attributes = operands("f32", 20, heads, 12, 32, half), {"scale": 0.2, "left": left}
    if is_biased:
        arrays = biased(arrays, (20, heads[0], 1, 12), "f32")
    assert_close(run(arrays, attributes, arch, in_place=True), attended(arrays, **attributes), "f32")


def test_a_block_has_no_more_heads_than_groups_of_lanes_that_write_them() -> None:
    arrays, attributes = operands("f32", 13, (64, 8), 5, 256, 0), {"scale": 0.2, "left": -1}
    assert_close(run(arrays, attributes, "gfx90a", in_place=True), attended(arrays, **attributes), "f32")


def with_full_caches(heads: tuple[int, int], rows: int, start: int, count: int) -> list[Array]:
    """Operands of heads of 64 whose caches have numbers behind those that are valid, too."""
    arrays = operands("f32", 1, heads, rows, 64, 32)
    for seed, cache in enumerate(arrays[KEYS : VALUES + 1]):
        cache[:] = np.random.default_rng(seed).standard_normal(cache.shape)
    arrays[START], arrays[COUNT] = np.array([start]), np.array([count])
    return arrays


@pytest.mark.parametrize(("start", "count"), [(-1, 5), (-(2**40), 5), (40, 41), (2**40, 2**40)])
def test_counts_out_of_range_become_the_nearest_ones(start: int, count: int) -> None:
    arrays = with_full_caches((4, 2), 40, start, count)
    got = run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)
    arrays[START], arrays[COUNT] = np.clip([start], 0, 39), np.clip([count], 0, 40)
    assert_close(got, attended(arrays, **PLAIN), "f32")


@pytest.mark.parametrize(("start", "count"), [(64, 65), (3, 65), (63, 64), (128, 129), (128, 150), (149, 129)])
def test_the_cache_is_read_to_the_last_key_that_is_not_new(start: int, count: int) -> None:
    """A block takes 64 keys at a time here."""
    arrays = with_full_caches((2, 1), 160, start, count)
    got = run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)
    assert_close(got, attended(arrays, **PLAIN), "f32")


@pytest.mark.parametrize("count", [0, -7])
def test_no_keys_give_zeros(count: int) -> None:
    arrays = operands("f32", 1, (4, 2), 40, 64, 32)
    arrays[COUNT] = np.array([count])
    got = run_kernel("decode_attention", arrays, outs_of(arrays), PLAIN)
    np.testing.assert_array_equal(got[0], 0)


@pytest.mark.parametrize(("width", "half"), [(6, 2), (64, 6)])
def test_heads_that_threads_would_not_share_evenly_are_rejected(width: int, half: int) -> None:
    arrays = operands("f32", 1, (4, 2), 40, width, half)
    made = generate(describe("decode_attention", arrays, outs_of(arrays), PLAIN), find_architecture("sm_90"))
    assert isinstance(made, Reject)
    assert made.reason == f"heads of {width} of which {2 * half} are rotated, expected multiples of 4"


@pytest.mark.parametrize("arch", compiled.ALL)
def test_code_is_made_for_every_architecture(arch: str) -> None:
    arrays = operands("f16", 1, (4, 2), 40, 64, 32)
    compiled.check(generate(describe("decode_attention", arrays, outs_of(arrays), PLAIN), find_architecture(arch)))
    for more in (in_pages(arrays, 8), biased(arrays, (1, 1, 1, 40), "f16")):
        compiled.check(generate(describe("decode_attention", more, outs_of(more), PLAIN), find_architecture(arch)))
