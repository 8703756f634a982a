"""Attention operators of ONNX Runtime: written out they give what its CPU provider gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from decompositions.node_models import assert_decomposes, decomposed, node_model, run
from hipdnn_mlir.frontend.decompositions.decompose import decompose
from hipdnn_mlir_runtime.errors import UnsupportedError

BATCH, QUERIES, KEYS, PAST, HEADS, WIDTH = 2, 5, 7, 3, 4, 8
HIDDEN = HEADS * WIDTH
DTYPES = (np.float32, np.float16)
KEY_MASK = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32)


def numbers(*dims: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *dims]).standard_normal(dims).astype(dtype)


def flags(*dims: int) -> np.ndarray:
    return np.random.default_rng(dims).integers(0, 2, dims).astype(np.int32)


def test_heads_that_do_not_share_the_channels_are_refused() -> None:
    text = """<ir_version: 9, opset_import: ["" : 21, "com.microsoft" : 1]> g (float[b,s,15] x) => (float[b,s,15] y) {
        y = com.microsoft.MultiHeadAttention<num_heads=2>(x, x, x) }"""
    with pytest.raises(
        UnsupportedError, match=r"1 node cannot .* 15 channels of 'x' cannot be split into 2 heads \[shape\]"
    ):
        hipdnn_mlir.compile(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("mask", "attributes"),
    [
        (None, {}),
        (None, {"unidirectional": 1}),
        (None, {"scale": 0.3}),
        (np.array([3, 5], np.int32), {}),
        (np.array([3, 5, 1, 2], np.int32), {}),
        (KEY_MASK, {}),
        (KEY_MASK, {"unidirectional": 1}),
        (KEY_MASK, {"mask_filter_value": -5.0}),
        (np.array([[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], np.int32), {}),
        (flags(BATCH, QUERIES, QUERIES), {}),
    ],
    ids=[
        "plain",
        "causal",
        "scale",
        "lengths",
        "spans",
        "keys",
        "keys-causal",
        "filter",
        "all-masked",
        "queries-and-keys",
    ],
)
def test_attention_gives_the_same_when_masked(mask: np.ndarray | None, attributes: dict[str, Any]) -> None:
    inputs = {"x": numbers(BATCH, QUERIES, HIDDEN), "w": numbers(HIDDEN, 3 * HIDDEN) / 6, "b": numbers(3 * HIDDEN)}
    inputs |= {} if mask is None else {"mask": mask}
    assert_decomposes("Attention", inputs, num_heads=HEADS, constants=["w", "b"], **attributes)


@pytest.mark.parametrize("is_masked", [False, True])
def test_attention_gives_the_same_when_there_is_a_past(is_masked: bool) -> None:
    inputs = {"x": numbers(BATCH, QUERIES, HIDDEN), "w": numbers(HIDDEN, 3 * HIDDEN) / 6, "b": numbers(3 * HIDDEN)}
    inputs |= {"mask": flags(BATCH, QUERIES + PAST), "past": numbers(2, BATCH, HEADS, PAST, WIDTH)}
    operands = ["x", "w", "b", "mask" if is_masked else "", "past"]
    if not is_masked:
        del inputs["mask"]
    assert_decomposes("Attention", inputs, ("y", "present"), operands=operands, num_heads=HEADS, unidirectional=1)


@pytest.mark.parametrize("dims", [(BATCH, HEADS, QUERIES, QUERIES), (1, 1, QUERIES, QUERIES)])
def test_attention_gives_the_same_when_scores_are_biased(dims: tuple[int, ...]) -> None:
    inputs = {"x": numbers(BATCH, QUERIES, HIDDEN), "w": numbers(HIDDEN, 4 * HIDDEN) / 6, "b": numbers(4 * HIDDEN)}
    inputs["bias"] = numbers(*dims)
    sizes = [HIDDEN, HIDDEN, 2 * HIDDEN]
    assert_decomposes(
        "Attention", inputs, operands=["x", "w", "b", "", "", "bias"], num_heads=HEADS, qkv_hidden_sizes=sizes
    )


@pytest.mark.parametrize("mask", [None, flags(BATCH, KEYS), np.array([3, 6], np.int32), flags(BATCH, QUERIES, KEYS)])
def test_multi_head_attention_gives_the_same_when_keys_are_others(mask: np.ndarray | None) -> None:
    inputs = {"q": numbers(BATCH, QUERIES, HIDDEN), "k": numbers(BATCH, KEYS, HIDDEN)}
    inputs |= {"v": numbers(BATCH, KEYS, HIDDEN, seed=1), "b": numbers(3 * HIDDEN)}
    assert_decomposes("MultiHeadAttention", inputs | ({} if mask is None else {"mask": mask}), num_heads=HEADS)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_multi_head_attention_gives_the_same_when_there_is_a_past(is_causal: int) -> None:
    inputs = {name: numbers(BATCH, QUERIES, HIDDEN, seed=seed) for seed, name in enumerate("qkv")}
    inputs |= {name: numbers(BATCH, HEADS, PAST, WIDTH, seed=seed) for seed, name in enumerate(("past_k", "past_v"))}
    operands = ["q", "k", "v", "", "", "", "past_k", "past_v"]
    outputs = ("y", "present_k", "present_v")
    assert_decomposes(
        "MultiHeadAttention", inputs, outputs, operands=operands, num_heads=HEADS, unidirectional=is_causal
    )


@pytest.mark.parametrize("op", ["MultiHeadAttention", "DecoderMaskedMultiHeadAttention"])
def test_multi_head_attention_gives_the_same_when_keys_are_split_already(op: str) -> None:
    inputs = {"q": numbers(BATCH, 1, HIDDEN), "k": numbers(BATCH, HEADS, KEYS, WIDTH)}
    assert_decomposes(op, inputs | {"v": numbers(BATCH, HEADS, KEYS, WIDTH, seed=1)}, num_heads=HEADS)


def test_multi_head_attention_unpacks_when_queries_hold_all() -> None:
    packed = numbers(BATCH, QUERIES, HEADS, 3, WIDTH)
    q, k, v = (np.ascontiguousarray(packed[:, :, :, part]).reshape(BATCH, QUERIES, HIDDEN) for part in range(3))
    (got,) = run(decomposed(node_model("MultiHeadAttention", {"q": packed}, num_heads=HEADS)), {"q": packed})
    apart = {"q": q, "k": k, "v": v}
    (want,) = run(node_model("MultiHeadAttention", apart, num_heads=HEADS), apart)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def group_query(
    queries: int, past: int | None, batch: int, *, is_packed: bool = False, is_rotated: bool = False, last: Any = None
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Inputs of GroupQueryAttention with 4 heads of 16 on 2 of keys, and the node's operands."""
    heads, kv_heads, width = 4, 2, 16
    total = queries + (past or 0)
    inputs = {"q": numbers(batch, queries, (heads + 2 * kv_heads * is_packed) * width)}
    if not is_packed:
        inputs |= {name: numbers(batch, queries, kv_heads * width, seed=1 + (name == "v")) for name in "kv"}
    if past is not None:
        inputs |= {name: numbers(batch, kv_heads, past, width, seed=len(name)) for name in ("past_k", "past_val")}
    inputs |= {
        "last": np.array([total - 1] * batch if last is None else last, np.int32),
        "total": np.array(total, np.int32),
    }
    if is_rotated:
        angles = np.outer(np.arange(32), 1 / 10 ** np.arange(width // 2)).astype(np.float32)
        inputs |= {"cos": np.cos(angles), "sin": np.sin(angles)}
    names = ("q", "k", "v", "past_k", "past_val", "last", "total", "cos", "sin")
    return inputs, [name if name in inputs else "" for name in names]


GROUPS = {"num_heads": 4, "kv_num_heads": 2}
CACHE = ("y", "present_k", "present_v")


@pytest.mark.parametrize(
    ("queries", "past", "batch"),
    [(5, None, 2), (5, 0, 2), (5, 3, 1), (1, 3, 2)],
    ids=["prompt", "empty", "more", "step"],
)
@pytest.mark.parametrize(
    "attributes",
    [{}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}, {"local_window_size": 3}, {"softcap": 2.0}, {"scale": 0.2}],
    ids=str,
)  # fmt: skip
def test_group_query_attention_gives_the_same_when_stepping(
    queries: int, past: int | None, batch: int, attributes: dict[str, Any]
) -> None:
    inputs, operands = group_query(queries, past, batch, is_rotated="do_rotary" in attributes)
    assert_decomposes("GroupQueryAttention", inputs, CACHE, operands=operands, **GROUPS, **attributes)


def test_group_query_attention_gives_the_same_when_packed() -> None:
    inputs, operands = group_query(QUERIES, PAST, 1, is_packed=True, is_rotated=True)
    assert_decomposes("GroupQueryAttention", inputs, CACHE, operands=operands, do_rotary=1, **GROUPS)


@pytest.mark.parametrize("attributes", [{}, {"do_rotary": 1, "local_window_size": 2}], ids=str)
def test_group_query_attention_gives_the_same_when_rows_have_pasts_of_their_own(attributes: dict[str, Any]) -> None:
    last = [2, 6, 0]
    inputs, operands = group_query(1, 6, 3, last=last, is_rotated=bool(attributes))
    model = node_model("GroupQueryAttention", inputs, CACHE, operands=operands, **GROUPS, **attributes)
    got, want = run(decomposed(model), inputs), run(model, inputs)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(got[1:], want[1:], strict=True):
        for row, end in enumerate(last):  # what lies behind a row's keys means nothing
            np.testing.assert_allclose(mine[row, :, : end + 1], theirs[row, :, : end + 1], rtol=1e-6)


@pytest.mark.parametrize(("position", "dims"), [(10, (1, 4, 5, 8)), (11, (4,))], ids=["bias", "sink"])
def test_group_query_attention_gives_the_same_when_scores_are_changed(position: int, dims: tuple[int, ...]) -> None:
    inputs, operands = group_query(QUERIES, PAST, 1)
    operands += [""] * (position - len(operands)) + ["more"]
    inputs["more"] = numbers(*dims)
    assert_decomposes("GroupQueryAttention", inputs, CACHE, operands=operands, **GROUPS)


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(
    ("attributes", "epsilons"),
    [({}, (1e-6, 1e-6)), ({"qk_norm_epsilon": 0.1}, (0.1, 0.1)), ({"qk_norm_epsilon": 9.0, "k_norm_epsilon": 0.2}, (9.0, 0.2))],
    ids=str,
)  # fmt: skip
def test_queries_and_keys_are_normed_by_head_before_they_turn(
    attributes: dict[str, float], epsilons: tuple[float, float], is_packed: bool
) -> None:
    """ONNX Runtime's CPU provider does not take norms in the node; in front of it, as a node of their own, it does."""
    inputs, operands = group_query(QUERIES, PAST, 1, is_rotated=True)
    scales = {"q": numbers(16, seed=5), "k": numbers(16, seed=6)}
    normed = dict(inputs)
    for (name, scale), epsilon in zip(scales.items(), epsilons, strict=True):
        apart = {"x": inputs[name].reshape(1, QUERIES, -1, 16), "scale": scale}
        (y,) = run(node_model("SimplifiedLayerNormalization", apart, domain="", axis=-1, epsilon=epsilon), apart)
        normed[name] = y.reshape(inputs[name].shape)
    want = run(node_model("GroupQueryAttention", normed, CACHE, operands=operands, do_rotary=1, **GROUPS), normed)
    if is_packed:
        inputs["q"] = np.concatenate([inputs.pop(name) for name in "qkv"], axis=-1)
        operands[1:3] = ["", ""]
    inputs |= {f"{name}_scale": scale for name, scale in scales.items()}
    operands += [""] * (14 - len(operands)) + ["q_scale", "k_scale"]
    written = decomposed(
        node_model("GroupQueryAttention", inputs, CACHE, operands=operands, do_rotary=1, **GROUPS, **attributes)
    )
    for mine, theirs in zip(run(written, inputs), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


def test_half_precision_attention_gives_the_same() -> None:
    inputs, operands = group_query(1, PAST, 2)
    narrow = {name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in inputs.items()}
    assert_decomposes("GroupQueryAttention", narrow, CACHE, operands=operands, **GROUPS)


@pytest.mark.parametrize("is_interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.arange(10).reshape(2, 5), np.array([3])], ids=["positions", "offset"])
@pytest.mark.parametrize("dims", [(2, 5, 32), (2, 4, 5, 8)])
def test_rotary_embedding_gives_the_same(dims: tuple[int, ...], positions: np.ndarray, is_interleaved: int) -> None:
    inputs = {"x": numbers(*dims), "positions": positions, "cos": numbers(16, 4), "sin": numbers(16, 4, seed=1)}
    assert_decomposes("RotaryEmbedding", inputs, interleaved=is_interleaved)


def test_rotary_embedding_gives_the_same_when_part_of_a_head_turns() -> None:
    inputs = {"x": numbers(2, 5, 64), "positions": np.arange(10).reshape(2, 5)}
    inputs |= {"cos": numbers(16, 4), "sin": numbers(16, 4, seed=1)}
    assert_decomposes("RotaryEmbedding", inputs, num_heads=4, rotary_embedding_dim=8)


def test_what_is_refused_is_refused_for_the_target_that_was_asked_for() -> None:
    inputs = {"x": numbers(BATCH, QUERIES, HIDDEN), "w": numbers(HIDDEN, 3 * HIDDEN), "b": numbers(3 * HIDDEN)}
    with pytest.raises(UnsupportedError, match="cannot run on target 'sm_90'"):
        hipdnn_mlir.compile(node_model("Attention", inputs, num_heads=HEADS, do_rotary=1), target="sm_90")


def test_what_is_not_covered_stays_with_a_reason() -> None:
    inputs = {"x": numbers(BATCH, QUERIES, HIDDEN), "w": numbers(HIDDEN, 3 * HIDDEN), "b": numbers(3 * HIDDEN)}
    model = node_model("Attention", inputs, num_heads=HEADS, do_rotary=1)
    written, rejects, *_ = decompose(model)
    assert [(reject.op, reject.rule, reject.node) for reject in rejects] == [
        ("Attention", "attribute", "the_Attention")
    ]
    assert [node.op_type for node in written.graph.node] == ["Attention"]


def test_sizes_of_batch_and_sequence_are_not_written_into_the_nodes() -> None:
    inputs, operands = group_query(QUERIES, PAST, 1)
    texts = set()
    for size in (3, 6):
        grown = {name: np.repeat(a, size, 1) if name in ("q", "k", "v") else a for name, a in inputs.items()}
        model = node_model("GroupQueryAttention", grown, CACHE, operands=operands, **GROUPS)
        written = decompose(model)[0]
        texts.add(onnx.printer.to_text(written.graph).partition("{")[2])
    assert len(texts) == 1
