"""Caches in pages that all sequences share, against ONNX Runtime on a buffer for each of the batch."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from drawing import every
from hipdnn_mlir_runtime.errors import ModelError, UnsupportedError
from test_decoder_caches import ATTRIBUTES, CHANGED, RUNS, Run, cache_feeds, cache_model

PAGE_ROWS = 4
BUFFERS = {name: run for name, run in RUNS.items() if run[2] >= max(run[3])}
Feeds = dict[str, np.ndarray]


def in_pages(feeds: Feeds, page_rows: int = PAGE_ROWS, seed: int = 0) -> Feeds:
    """The same feeds with caches in pages of a random order, more than there are rows for."""
    batch, heads, rows, width = feeds["past_k"].shape
    most = rows // page_rows
    table = np.random.default_rng(seed).permutation(batch * most + 2)[: batch * most].reshape(batch, most)
    made = feeds | {"page_table": table.astype(np.int32)}
    for name in ("past_k", "past_v"):
        pool = np.full((batch * most + 2, heads, page_rows, width), 9, np.float32)
        split = feeds[name].reshape(batch, heads, most, page_rows, width)
        pool[table] = split.transpose(0, 2, 1, 3, 4)
        made[name] = pool
    return made


def of_sequences(pool: np.ndarray, table: np.ndarray) -> np.ndarray:
    """The caches of sequences [b, heads, rows, d], whose pages a table names."""
    batch, heads = len(table), pool.shape[1]
    return pool[table].transpose(0, 2, 1, 3, 4).reshape(batch, heads, -1, pool.shape[3])


def assert_equal(
    got: list[np.ndarray], paged: Feeds, model: onnx.ModelProto, feeds: Feeds, run: Run, error: float
) -> None:
    """What is valid is as ONNX Runtime has it, and pages that nobody has are as they were."""
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    table = paged["page_table"]
    caches = [of_sequences(pool, table) for pool in got[1:]]
    for row, length in enumerate(run[3]):
        np.testing.assert_allclose(got[0][row, :length], want[0][row, :length], rtol=error, atol=error)
        for mine, theirs in zip(caches, want[1:], strict=True):
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=error, atol=error)
    free = np.setdiff1d(np.arange(len(got[1])), table)
    for name, pool in zip(("past_k", "past_v"), got[1:], strict=True):
        np.testing.assert_array_equal(pool[free], paged[name][free])


@pytest.mark.parametrize("attributes", every(2, ATTRIBUTES))
def test_one_program_serves_all_batches_and_pools(attributes: str) -> None:
    model = cache_model(ATTRIBUTES[attributes])
    session = hipdnn_mlir.compile(model, page_rows=PAGE_ROWS).session()
    for run in BUFFERS.values():
        feeds = cache_feeds(model, run)
        paged = in_pages(feeds)
        assert_equal(session.run(None, paged), paged, model, feeds, run, 1e-5)


@pytest.mark.parametrize("page_rows", every(3, [1, 2, 8, 16]))
def test_pages_of_any_size(page_rows: int) -> None:
    model, run = cache_model(ATTRIBUTES["rotary"]), RUNS["rows of different lengths"]
    feeds = cache_feeds(model, run)
    paged = in_pages(feeds, page_rows)
    got = hipdnn_mlir.compile(model, page_rows=page_rows).session().run(None, paged)
    assert_equal(got, paged, model, feeds, run, 1e-5)


def test_a_sink_over_pages() -> None:
    attributes, more = CHANGED["sink and window"]
    model, run = cache_model(attributes, more=more), RUNS["rows of different lengths"]
    feeds = cache_feeds(model, run)
    paged = in_pages(feeds)
    got = hipdnn_mlir.compile(model, page_rows=PAGE_ROWS).session().run(None, paged)
    assert_equal(got, paged, model, feeds, run, 1e-5)


def test_a_cache_of_a_window_keeps_all_keys_in_pages() -> None:
    model = cache_model(", local_window_size=3, sliding_window_cache=1")
    plain, run = cache_model(ATTRIBUTES["window"]), RUNS["rows of different lengths"]
    feeds = cache_feeds(plain, run)
    paged = in_pages(feeds)
    got = hipdnn_mlir.compile(model, page_rows=PAGE_ROWS).session().run(None, paged)
    assert_equal(got, paged, plain, feeds, run, 1e-5)


def test_models_without_such_caches_are_refused() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 21]> g (float[2] x) => (float[2] y) { y = Relu(x) }'
    )
    with pytest.raises(ModelError, match="no caches that can be paged: expected a decoder with GroupQueryAttention"):
        hipdnn_mlir.compile(model, page_rows=4)
    with pytest.raises(ModelError, match="page_rows: bad value: expected a whole number from 1, got 0"):
        hipdnn_mlir.compile(cache_model(""), page_rows=0)
    with pytest.raises(UnsupportedError, match="a bias over pages"):
        hipdnn_mlir.compile(cache_model("", more=("bias",)), page_rows=4)
    read = cache_model("")
    read.graph.node.append(onnx.helper.make_node("Shape", ["past_k"], ["read"], name="reader"))
    with pytest.raises(ModelError, match=r"reader: a cache that is not read by attention alone"):
        hipdnn_mlir.compile(read, page_rows=4)
