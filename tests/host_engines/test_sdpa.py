"""Attention on the host library against numpy in float64: shapes, layouts, masks, bands, lengths, types."""

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_engines.host_graph import HostError, strided_like
from host_engines.sdpa_graph import Attention, SdpaGraph

BF16 = np.dtype(ml_dtypes.bfloat16)
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 1e-3, BF16: 8e-3}
"""Of the largest magnitude expected: rounding of the result, and float32 sums."""
ORDERS = [(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2), (3, 2, 1, 0)]


def drawn(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32, order: Any = None, gap: int = 0
) -> np.ndarray:
    """Normal numbers in a layout."""
    array = strided_like(shape, dtype, order or (0, 1, 2, 3), gap)
    array[...] = rng.standard_normal(shape).astype(dtype)
    return array


def check(call: Attention, *, threads: int = 2, order: Any = (0, 1, 2, 3), statistics: bool = True) -> None:
    """Runs the call and compares result and, where asked for, statistics."""
    shape = (*call.q.shape[:3], call.v.shape[3])
    o = strided_like(shape, call.q.dtype, order)
    stats = np.zeros((*shape[:3], 1), np.float32)
    call.plan(o, stats if statistics else None, threads).execute()
    expected, log_sum = call.expected()
    scale = max(1.0, float(np.abs(expected).max()))
    assert np.abs(o.astype(np.float64) - expected).max() <= TOLERANCE[call.q.dtype] * scale
    if statistics:
        np.testing.assert_allclose(stats, log_sum, rtol=1e-5, atol=1e-5)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Attention, int, tuple[int, ...]]:
    """A call, a number of threads and a layout of the result."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(list(TOLERANCE)))
    b, h_k, group = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    h_v = draw(st.sampled_from([h_k, h_k * group]))
    s_q = draw(st.sampled_from([1, 2, 5, 17, 50, 61]))
    s_kv = draw(st.sampled_from([1, 3, 16, 31, 70, 300]))
    d, d_v = draw(st.sampled_from([1, 8, 20, 64, 80])), draw(st.sampled_from([1, 7, 16, 64, 72]))
    layouts = [draw(st.sampled_from(ORDERS)) for _ in range(4)]
    gap = draw(st.sampled_from([0, 3]))
    shapes = ((b, h_k * group, s_q, d), (b, h_k, s_kv, d), (b, h_v, s_kv, d_v))
    q, k, v = (drawn(rng, shape, dtype, order, gap) for shape, order in zip(shapes, layouts[:3], strict=True))
    call = Attention(q, k, v, scale=draw(st.sampled_from([1.0, 0.125, d**-0.5])), bottom_right=draw(st.booleans()))
    if kind := draw(st.sampled_from([None, np.dtype(np.bool_), np.dtype(np.float32), dtype])):
        full = (b, h_k * group, s_q, s_kv)
        dims = tuple(size if draw(st.booleans()) else 1 for size in full)
        numbers = rng.standard_normal(dims)
        mask = strided_like(dims, kind, draw(st.sampled_from(ORDERS)))
        mask[...] = numbers > -1 if kind == np.bool_ else np.where(numbers > -1, numbers, -np.inf).astype(kind)
        call = replace(call, mask=mask)
    if draw(st.booleans()):
        call = replace(call, right=draw(st.sampled_from([0, 1, 40])))
    if draw(st.booleans()):
        call = replace(call, left=draw(st.sampled_from([1, 2, 40])))
    if draw(st.booleans()):
        call = replace(call, lengths=tuple(rng.integers(0, s + 1, b).astype(np.int32) for s in (s_q, s_kv)))
        call = replace(call, page_rows=draw(st.sampled_from([None, 1, 7, 32, 400])))
    if draw(st.booleans()):
        call = replace(call, cap=draw(st.sampled_from([0.5, 3.0, 50.0])))
    if draw(st.booleans()):
        call = replace(call, sink=rng.standard_normal((1, h_k * group, 1, 1)).astype(np.float32))
    return call, draw(st.integers(1, 3)), layouts[3]


@given(calls(), st.booleans())
def test_attention_matches_float64(drawn_call: tuple[Attention, int, tuple[int, ...]], statistics: bool) -> None:
    call, threads, order = drawn_call
    check(call, threads=threads, order=order, statistics=statistics and call.sink is None)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("mask", [None, np.float32, np.bool_, "own"])
@pytest.mark.parametrize("cap", [None, 2.0])
def test_narrow_types_without_statistics(dtype: Any, group: int, mask: Any, cap: float | None) -> None:
    rng = np.random.default_rng(9)
    q = drawn(rng, (2, 4, 50, 64), dtype, (0, 2, 1, 3))
    k, v = (drawn(rng, (2, 4 // group, 70, 64), dtype, (0, 2, 1, 3)) for _ in range(2))
    call = Attention(q, k, v, scale=0.125, cap=cap)
    if mask is not None:
        kind = np.dtype(dtype if mask == "own" else mask)
        numbers = rng.standard_normal((2, 1, 50, 70))
        numbers[1, 0, 3] = -2  # a query that attends nothing
        call = replace(
            call, mask=numbers > -1 if kind == np.bool_ else np.where(numbers > -1, numbers, -np.inf).astype(kind)
        )
    for causal in (False, True):
        for threads in (1, 3):
            check(replace(call, right=0 if causal else None), threads=threads, statistics=False)


COUNTS = {
    "a step": (1, [1, 1, 1], [300, 1, 77]),
    "a prompt": (20, [20, 20, 20], [20, 20, 20]),
    "a padded prompt": (20, [20, 3, 1], [20, 3, 1]),
    "more of a prompt": (7, [7, 7, 7], [300, 7, 150]),
    "nothing yet": (4, [4, 0, 4], [9, 0, 4]),
}
"""Queries in memory, and how many queries and keys of each row of the batch are valid."""


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize("left", [None, 1, 5, 1000])
@pytest.mark.parametrize("page_rows", [None, 16])
def test_valid_queries_end_where_valid_keys_do_when_a_cache_is_longer(
    counts: str, dtype: Any, group: int, left: int | None, page_rows: int | None
) -> None:
    s_q, queries, keys = COUNTS[counts]
    rng = np.random.default_rng(10)
    q = drawn(rng, (3, 4, s_q, 64), dtype, (0, 2, 1, 3))
    k, v = (drawn(rng, (3, 4 // group, 300, 64), dtype) for _ in range(2))
    lengths = (np.array(queries, np.int32), np.array(keys, np.int32))
    call = Attention(q, k, v, scale=0.125, left=left, right=0, bottom_right=True, lengths=lengths)
    expected, _ = call.expected()
    for row, count in enumerate(keys):
        k[row, :, count:] = v[row, :, count:] = np.nan  # nobody reads what lies behind
    o = strided_like(q.shape, dtype, (0, 2, 1, 3))
    replace(call, page_rows=page_rows).plan(o).execute()
    scale = max(1.0, float(np.abs(expected).max()))
    assert np.abs(o.astype(np.float64) - expected).max() <= TOLERANCE[np.dtype(dtype)] * scale


@pytest.mark.parametrize("s_q", [1, 300])
def test_blocks_of_keys_join_when_the_greatest_score_comes_late(s_q: int) -> None:
    rng = np.random.default_rng(1)
    q, k, v = drawn(rng, (1, 2, s_q, 16)), drawn(rng, (1, 2, 700, 16)), drawn(rng, (1, 2, 700, 16))
    q[...] = np.abs(q)
    k[...] = np.abs(k) * np.linspace(0.1, 10, 700, dtype=np.float32)[:, None]
    check(Attention(q, k, v, scale=0.05))
    check(Attention(q, k[:, :, ::-1].copy(), v, scale=0.05))


def test_more_rows_than_a_task_holds() -> None:
    rng = np.random.default_rng(2)
    q, k, v = drawn(rng, (1, 1, 1200, 8)), drawn(rng, (1, 1, 40, 8)), drawn(rng, (1, 1, 40, 8))
    for threads in (1, 2):
        check(Attention(q, k, v, right=0, bottom_right=True), threads=threads)


@pytest.mark.parametrize("kind", [np.float32, np.bool_])
def test_masked_query_gets_zeros_as_in_pytorch(kind: Any) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (drawn(rng, (1, 1, 4, 8)) for _ in range(3))
    mask = np.ones((1, 1, 4, 4), kind) if kind is np.bool_ else np.zeros((1, 1, 4, 4), kind)
    mask[0, 0, 1] = False if kind is np.bool_ else -np.inf
    call = Attention(q, k, v, mask=mask)
    o = np.full((1, 1, 4, 8), 9, np.float32)
    call.plan(o).execute()
    assert (o[0, 0, 1] == 0).all()
    check(call)


def test_least_float_as_mask_leaves_equal_weights() -> None:
    rng = np.random.default_rng(4)
    q, k, v = (drawn(rng, (1, 1, 4, 8)) for _ in range(3))
    mask = np.full((1, 1, 1, 4), np.finfo(np.float32).min, np.float32)
    o = np.zeros((1, 1, 4, 8), np.float32)
    Attention(q, k, v, mask=mask).plan(o).execute()
    np.testing.assert_allclose(o, np.broadcast_to(v.mean(axis=2, keepdims=True), o.shape), rtol=1e-5, atol=1e-6)


SINKS = {"below": -30.0, "above": 30.0, "none": -np.inf, "least": float(np.finfo(np.float32).min)}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("sink", SINKS)
@pytest.mark.parametrize("s_q", [1, 20])
def test_a_sink_takes_its_share_when_it_is_far_from_the_scores(dtype: Any, sink: str, s_q: int) -> None:
    rng = np.random.default_rng(12)
    q, k, v = (drawn(rng, (1, 2, rows, 64), dtype) for rows in (s_q, 600, 600))
    k[:, :, 500] *= 8  # the greatest score comes late
    scores = np.array([SINKS[sink], 0.5], np.float32).reshape(1, 2, 1, 1)
    check(Attention(q, k, v, scale=0.125, right=0, bottom_right=True, sink=scores), statistics=False)


@pytest.mark.parametrize("s_q", [1, 40])
def test_a_query_without_keys_gets_zeros_when_there_is_a_sink(s_q: int) -> None:
    rng = np.random.default_rng(13)
    q, k, v = (drawn(rng, (2, 2, rows, 16)) for rows in (s_q, 9, 9))
    o = np.full(q.shape, 7.0, np.float32)
    lengths = (np.array([s_q, 0], np.int32), np.array([0, 9], np.int32))
    Attention(q, k, v, lengths=lengths, sink=np.zeros((1, 2, 1, 1), np.float32)).plan(o).execute()
    assert not o.any()


@pytest.mark.parametrize("cap", [0.5, 50.0])
def test_capped_scores_stay_below_the_cap_when_they_are_large(cap: float) -> None:
    rng = np.random.default_rng(14)
    q, k, v = (drawn(rng, (1, 1, rows, 32)) for rows in (5, 40, 40))
    check(Attention(q * 5, k * 5, v, cap=cap))


def test_not_a_number_stays_in_its_rows() -> None:
    rng = np.random.default_rng(5)
    q, k, v = (drawn(rng, (1, 1, 40, 16)) for _ in range(3))
    q[0, 0, 7, 3] = np.nan
    o = np.zeros_like(q)
    Attention(q, k, v).plan(o).execute()
    assert np.isnan(o[0, 0, 7]).all()
    assert not np.isnan(np.delete(o, 7, axis=2)).any()


def test_large_scores_do_not_overflow() -> None:
    rng = np.random.default_rng(6)
    q, k, v = (drawn(rng, (1, 1, 30, 16)) for _ in range(3))
    q *= np.float32(100)
    k *= np.float32(100)
    o = np.zeros_like(q)
    call = Attention(q, k, v)
    call.plan(o).execute()
    np.testing.assert_allclose(o, call.expected()[0], rtol=2e-2, atol=2e-2)


def test_scale_may_be_a_tensor() -> None:
    rng = np.random.default_rng(7)
    q, k, v = (drawn(rng, (1, 2, 5, 8)) for _ in range(3))
    expected = Attention(q, k, v, scale=0.3).expected()[0]
    for baked in (True, False):
        graph = SdpaGraph()
        o = np.zeros_like(q)
        scale = graph.scalar(0.3) if baked else graph.tensor(np.full(1, 0.3, np.float32))
        tensors = {
            name: graph.tensor(array) for name, array in (("QDESC", q), ("KDESC", k), ("VDESC", v), ("ODESC", o))
        }
        graph.sdpa({**tensors, "SCALEDESC": scale}, {"CAUSAL_MASK_EXT": False})
        graph.run("HOST_SDPA_ENGINE")
        np.testing.assert_allclose(o, expected, rtol=1e-5, atol=1e-6)


def test_causal_flags_are_bounds() -> None:
    rng = np.random.default_rng(8)
    q, k, v = drawn(rng, (1, 2, 5, 8)), drawn(rng, (1, 2, 9, 8)), drawn(rng, (1, 2, 9, 8))
    for flag, bottom_right in (("CAUSAL_MASK_EXT", False), ("CAUSAL_MASK_BOTTOM_RIGHT_EXT", True)):
        graph = SdpaGraph()
        o = np.zeros_like(q)
        tensors = {
            name: graph.tensor(array) for name, array in (("QDESC", q), ("KDESC", k), ("VDESC", v), ("ODESC", o))
        }
        graph.sdpa(tensors, {flag: True})
        graph.run("HOST_SDPA_ENGINE")
        expected = Attention(q, k, v, right=0, bottom_right=bottom_right).expected()[0]
        np.testing.assert_allclose(o, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"DROPOUT_PROBABILITY_EXT": 0.5}, "dropout"),
        ({"ALIBI_MASK_EXT": True}, "ALiBi"),
    ],
)
def test_refused_with_a_reason(attributes: dict[str, Any], message: str) -> None:
    graph = SdpaGraph()
    x = np.zeros((1, 1, 2, 8), np.float32)
    graph.sdpa({name: graph.tensor(x.copy()) for name in ("QDESC", "KDESC", "VDESC", "ODESC")}, attributes)
    with pytest.raises(HostError, match=message):
        graph.run("HOST_SDPA_ENGINE")


@pytest.mark.parametrize("cap", [0.0, -1.0, float("nan"), float("inf")])
def test_a_cap_that_bounds_nothing_is_refused(cap: float) -> None:
    x = np.zeros((1, 1, 2, 8), np.float32)
    with pytest.raises(HostError, match="expected a number above 0"):
        Attention(x, x, x, cap=cap).plan(x.copy())


PAGED = {"PADDING_MASK_EXT": True}
"""Attributes of attention over pages."""


def paged(**changed: np.ndarray | None) -> dict[str, np.ndarray]:
    """Operands of attention over pages: two sequences of three pages of four rows; None leaves one out."""
    x, pool = np.zeros((2, 4, 1, 8), np.float32), np.zeros((6, 2, 4, 8), np.float32)
    counts = np.array([1, 1], np.int32).reshape(2, 1, 1, 1)
    table = np.arange(6, dtype=np.int32).reshape(2, 1, 3, 1)
    arrays = {"QDESC": x, "KDESC": pool, "VDESC": pool.copy(), "ODESC": x.copy(), "SEQ_LEN_QDESC": counts}
    arrays |= {"SEQ_LEN_KVDESC": 9 * counts, "PAGE_TABLE_KDESC": table, "PAGE_TABLE_VDESC": table.copy()}
    return {name: array for name, array in (arrays | changed).items() if array is not None}


def run_paged(arrays: dict[str, np.ndarray], attributes: dict[str, Any]) -> None:
    graph = SdpaGraph()
    graph.sdpa({name: graph.tensor(array) for name, array in arrays.items()}, attributes)
    graph.plan("HOST_SDPA_ENGINE", 2).execute()


@pytest.mark.parametrize(
    ("changed", "attributes", "message"),
    [
        ({"PAGE_TABLE_VDESC": None}, PAGED, "must be given together"),
        ({"SEQ_LEN_QDESC": None, "SEQ_LEN_KVDESC": None}, {}, "pages need .*PADDING_MASK_EXT and lengths"),
        ({"PAGE_TABLE_VDESC": np.zeros((2, 1, 4, 1), np.int32)}, PAGED, "PAGE_TABLE_VDESC"),
        ({"PAGE_TABLE_KDESC": np.zeros((3, 1, 3, 1), np.int32)}, PAGED, "PAGE_TABLE_KDESC"),
        ({"PAGE_TABLE_KDESC": np.zeros((2, 3), np.int32)}, PAGED, "must have rank 4"),
        ({"VDESC": np.zeros((6, 2, 5, 8), np.float32)}, PAGED, "pages of keys and of values that differ"),
        ({"KDESC": np.zeros((6, 3, 4, 8), np.float32)}, PAGED, "must be a multiple"),
        ({}, PAGED | {"MAX_SEQ_LEN_KV_EXT": 13}, "MAX_SEQ_LEN_KV_EXT = 13, expected 1 to 12"),
        ({"PAGE_TABLE_KDESC": np.array([0, 1, 2, 3, 4, 6], np.int32).reshape(2, 1, 3, 1)}, PAGED,
         "entry 2 of batch 1 in a page table is 6, there are pages 0 to 5"),
        ({"PAGE_TABLE_VDESC": np.array([0, -1, 2, 3, 4, 5], np.int32).reshape(2, 1, 3, 1)}, PAGED,
         "entry 1 of batch 0 in a page table is -1"),
    ],
    ids=str,
)  # fmt: skip
def test_pages_that_do_not_fit_are_refused(
    changed: dict[str, np.ndarray | None], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(HostError, match=message):
        run_paged(paged(**changed), attributes)


def test_entries_behind_the_last_key_are_not_read() -> None:
    table = np.array([0, 1, 2, 3, 99, -5], np.int32).reshape(2, 1, 3, 1)
    counts = np.array([12, 4], np.int32).reshape(2, 1, 1, 1)
    run_paged(paged(PAGE_TABLE_KDESC=table, PAGE_TABLE_VDESC=table.copy(), SEQ_LEN_KVDESC=counts), PAGED)


def test_statistics_with_a_sink_are_refused() -> None:
    x = np.zeros((1, 1, 2, 8), np.float32)
    call = Attention(x, x, x, sink=np.zeros((1, 1, 1, 1), np.float32))
    with pytest.raises(HostError, match="a sink and statistics"):
        call.plan(x.copy(), np.zeros((1, 1, 2, 1), np.float32))


def test_refuses_types_it_does_not_compute() -> None:
    graph = SdpaGraph()
    x = np.zeros((1, 1, 2, 8), np.float64)
    graph.sdpa({name: graph.tensor(x.copy()) for name in ("QDESC", "KDESC", "VDESC", "ODESC")}, {})
    with pytest.raises(HostError, match=r"QDESC is \[1, 1, 2, 8\] double"):
        graph.run("HOST_SDPA_ENGINE")
