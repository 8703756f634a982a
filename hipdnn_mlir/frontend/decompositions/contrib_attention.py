"""ONNX Runtime's attention operators, as its CPU provider computes them."""

import math
from collections.abc import Sequence

import numpy as np

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .attention import BSHD_TO_BHSD, Scores, additive, attend, merge_heads, scale_of_heads, split_heads, visible
from .call import BOOL, FLOAT, INT32, INT64, Call
from .normalization import rms_norm
from .registry import CONTRIB, decomposes
from .rotary import rotated_heads

_BIAS, _SINK, _QUERY_NORM, _KEY_NORM, _QUERY_COUNTS, PAGES = 10, 11, 14, 15, 16, 17
"""Operands of GroupQueryAttention: what is added to scores, one more score for each head, the scales of norms of queries and keys, how many
queries are valid; the last one is of PagedGroupQueryAttention alone."""
_MASKED = -10000.0
"""What a masked score is lowered by, unless mask_filter_value says otherwise."""


@decomposes("Attention", domain=CONTRIB)
def contrib_attention(call: Call) -> Sequence[str | None]:
    """Attention of com.microsoft: projections of one input, then attention.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.Attention.
    """
    if call.attr("do_rotary", 0) or call.attr("past_present_share_buffer", 0):
        raise Refusal("attribute", "Attention with do_rotary or past_present_share_buffer")
    heads, weights, bias = call.count("num_heads"), call.need(1), call.arg(2)
    third = call.size(weights, 1) // 3
    projected = call.op("MatMul", call.need(0), weights)
    if bias:
        projected = call.op("Add", projected, bias)
    sizes = call.attr("qkv_hidden_sizes", []) or [third] * 3
    if len(sizes) != 3:
        raise Refusal("attribute", f"qkv_hidden_sizes {sizes}, expected three")
    parts = call.split(projected, 2, sizes)
    q, k, v = (split_heads(call, part, heads) for part in parts)
    past, state = call.arg(4), call.ints(0)
    if past:
        state = call.length(past, 3)
        earlier = [call.squeeze(call.slice(past, 0, index, index + 1), 0) for index in range(2)]
        k, v = call.concat(2, earlier[0], k), call.concat(2, earlier[1], v)
    y = _attend(call, q, k, v, state, call.arg(3), call.arg(5))[0]
    present = None
    if call.wants(1):
        present = call.concat(0, call.unsqueeze(k, 0), call.unsqueeze(v, 0))
    return [merge_heads(call, y), present]


@decomposes("MultiHeadAttention", "DecoderMaskedMultiHeadAttention", domain=CONTRIB)
def multi_head_attention(call: Call) -> Sequence[str | None]:
    """MultiHeadAttention, and DecoderMaskedMultiHeadAttention without a shared buffer or beams.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.MultiHeadAttention and DecoderMaskedMultiHeadAttention.
    """
    is_decoder = call.node.op_type == "DecoderMaskedMultiHeadAttention"
    mask, bias_after, past_key, past_value, indirection, bias = (
        call.arg(index) for index in ((3, 4, 5, 6, 8, 10) if is_decoder else (4, 5, 6, 7, 9, 3))
    )
    if call.attr("past_present_share_buffer", 0) or indirection:
        raise Refusal("attribute", "past_present_share_buffer, or cache_indirection (beam search)")
    q, k, v = _heads(call, call.count("num_heads"), bias)
    state = call.ints(0)
    if past_key and past_value:
        state = call.length(past_key, 2)
        k, v = call.concat(2, past_key, k), call.concat(2, past_value, v)
    y, steps = _attend(call, q, k, v, state, mask, bias_after)
    return [merge_heads(call, y), k, v, steps[2]]


def _heads(call: Call, heads: int, bias: str | None) -> tuple[str, str, str]:
    """Queries, keys and values as [b, heads, s, d], from any of the packings, with biases added."""
    query, key, value = call.need(0), call.arg(1), call.arg(2)
    if call.rank(query) == 5:
        q, k, v = _unpacked(call, query, 3)
        return q, k, v
    width = call.size(query, 2)
    q = _with_bias(call, query, bias, 0, width)
    if key is None:
        raise Refusal("operand", "keys are missing")
    if value is None:
        k, v = _unpacked(call, key, 2)
        return split_heads(call, q, heads), k, v
    if call.rank(key) == 4:
        return split_heads(call, q, heads), key, value
    v_width = call.size(value, 2)
    k = _with_bias(call, key, bias, width, 2 * width)
    v = _with_bias(call, value, bias, 2 * width, 2 * width + v_width)
    return split_heads(call, q, heads), split_heads(call, k, heads), split_heads(call, v, heads)


def _with_bias(call: Call, x: str, bias: str | None, start: int, end: int) -> str:
    return call.op("Add", x, call.slice(bias, 0, start, end)) if bias else x


def _unpacked(call: Call, packed: str, count: int) -> list[str]:
    """[b, s, heads, count, d] -> count times [b, heads, s, d]."""
    parts = (call.squeeze(call.slice(packed, 3, index, index + 1), 3) for index in range(count))
    return [call.transpose(part, *BSHD_TO_BHSD) for part in parts]


def _attend(call: Call, q: str, k: str, v: str, past: str, mask: str | None, bias: str | None) -> tuple[str, list[str]]:
    masked = call.attr("mask_filter_value", _MASKED)
    biases = []
    if mask:
        biases.append(additive(call, _key_mask(call, mask, k), q, masked))
    if call.attr("unidirectional", 0):
        biases.append(additive(call, visible(call, q, k, past, right=0), q))
    if bias:
        biases.append(bias)
    scale = scale_of_heads(call, call.size(q, 3))
    return attend(call, q, k, v, Scores(scale, biases=tuple(biases), may_mask_all=math.isinf(masked)))


def _key_mask(call: Call, mask: str, k: str) -> str:
    """Booleans from one of the forms of a mask: lengths, lengths and starts, or 0 and 1 per key, query and key, or head too."""
    rank = call.rank(mask)
    if rank == 1:
        return _from_lengths(call, mask, k)
    flags = call.cast(mask, BOOL)
    if rank == 4:  # of the whole sequence: the queries are its end
        raise Refusal("operand", "a mask of four dims")
    return call.unsqueeze(flags, *((1, 2) if rank == 2 else (1,)))


def _from_lengths(call: Call, lengths: str, k: str) -> str:
    count, batch = call.size(lengths, 0), call.size(k, 0)
    if count not in (batch, 2 * batch):
        raise Refusal("operand", f"{count} mask lengths for a batch of {batch}")
    positions = call.range(call.length(k, 2))
    numbers = call.cast(lengths, INT64)
    ends = call.reshape(call.slice(numbers, 0, 0, batch), -1, 1, 1, 1)
    found = call.op("Less", positions, ends)
    if count == batch:
        return found
    starts = call.reshape(call.slice(numbers, 0, batch, 2 * batch), -1, 1, 1, 1)
    return call.op("And", found, call.op("GreaterOrEqual", positions, starts))


@decomposes("PagedGroupQueryAttention", domain=HIPDNN_DOMAIN)
@decomposes("GroupQueryAttention", domain=CONTRIB)
def group_query_attention(call: Call) -> Sequence[str | None]:
    """GroupQueryAttention with a cache that grows by what is new, one that is as long as it will ever be, or one of a window alone.

    As in ONNX Runtime, rows of a batch differ in their past in the step of one token only; there a row's new key takes the place behind
    its own past. Where the number of keys in all is data, and no size, the cache is taken to grow.

    As PagedGroupQueryAttention it has one operand more: i32 [b, n], the pages in which each row of the batch has its keys and values. The
    caches are pages [pages, heads, rows, d] then, and hold all keys, of a window too.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.GroupQueryAttention.
    """
    heads, kv_heads = call.count("num_heads"), call.count("kv_num_heads")
    if any(call.arg(index) for index in (*range(_SINK + 1, _QUERY_NORM), _QUERY_COUNTS)) or call.wants(3):
        raise Refusal("operand", "a quantized cache, counts of queries, or the scores as an output")
    if not call.attr("causal", 1):
        raise Refusal("attribute", "attention that is not causal")
    query, key, value = call.need(0), call.arg(1), call.arg(2)
    past_key, past_value = call.arg(3), call.arg(4)
    if key is None or value is None:
        d = call.size(query, 2) // (heads + 2 * kv_heads)
        query, key, value = call.split(query, 2, (heads * d, kv_heads * d, kv_heads * d))
    past = _past(call, query, past_key)
    q, k = _turned(call, _normed(call, query, heads, _QUERY_NORM), _normed(call, key, kv_heads, _KEY_NORM), past)
    v = split_heads(call, value, kv_heads)
    window = call.attr("local_window_size", -1)
    bias, sink = call.arg(_BIAS), call.arg(_SINK)
    if sink is None and call.attr("smooth_softmax", 0) == 1:
        sink = call.const(np.zeros(heads, np.float32), call.kind(q))
    pages = call.arg(PAGES)
    if past_key and past_value and call.attr("sliding_window_cache", 0) and not pages:
        y, k, v = _attend_window(call, q, (k, v), sink)
        return [merge_heads(call, y), k, v]
    if past_key and past_value:
        k, v = (_extended(call, *pair, past) for pair in ((past_key, k), (past_value, v)))
        if pages or _is_buffer(call):
            return [merge_heads(call, _attend_cached(call, q, k, v, bias, sink)), k, v]
    sees = visible(call, q, k, past, left=window - 1 if window > 0 else -1, right=0)
    biases = [additive(call, sees, q), *([bias] if bias else [])]
    scores = Scores(scale_of_heads(call, call.size(q, 3)), call.attr("softcap", 0.0), tuple(biases), sink=sink)
    return [merge_heads(call, attend(call, q, k, v, scores)[0]), k, v]


def _normed(call: Call, x: str, heads: int, operand: int) -> str:
    """Queries or keys [b, s, heads * d] with the RMS norm of each head, where the call has a scale [d] for it."""
    scale = call.arg(operand)
    if scale is None:
        return x
    own = "q_norm_epsilon" if operand == _QUERY_NORM else "k_norm_epsilon"
    epsilon = call.attr(own, call.attr("qk_norm_epsilon", 1e-6))
    split = call.reshape(x, 0, 0, heads, -1)
    return call.reshape(rms_norm(call, split, scale, [-1], epsilon, call.precision(x)), 0, 0, -1)


def _turned(call: Call, query: str, key: str, past: str) -> tuple[str, str]:
    """Queries and keys as [b, heads, s, d], turned by their positions where the call says so."""
    heads, kv_heads = call.count("num_heads"), call.count("kv_num_heads")
    if not call.attr("do_rotary", 0):
        return split_heads(call, query, heads), split_heads(call, key, kv_heads)
    cos, sin = (_at_positions(call, call.need(index), query, past) for index in (7, 8))
    is_interleaved = bool(call.attr("rotary_interleaved", 0))
    q = rotated_heads(call, query, heads, cos, sin, is_interleaved)
    return q, rotated_heads(call, key, kv_heads, cos, sin, is_interleaved)


def _attend_cached(call: Call, q: str, k: str, v: str, bias: str | None, sink: str | None) -> str:
    """Attention [b, heads, s, d] where it is data how many keys are valid, and, of a padded prompt, how many queries."""
    if bias and call.arg(PAGES):
        raise Refusal("operand", "attention with a bias over pages")
    if bias:  # of as many keys as there are in all, which may be fewer than the buffer holds
        total = call.reshape(call.cast(call.need(6), INT64), 1)
        k, v = (call.slice(x, 2, 0, total) for x in (k, v))
    keys = _counts(call)
    queries = call.op("Min", keys, call.cast(call.length(q, 2), INT32))
    return _attend_valid(call, q, k, v, (queries, keys), bias, sink)


def _counts(call: Call) -> str:
    """Number of keys in all, of each row of the batch: i32 [b]."""
    return call.op("Add", call.reshape(call.cast(call.need(5), INT32), -1), call.const(1, INT32))


def _attend_valid(
    call: Call, q: str, k: str, v: str, counts: tuple[str, str], bias: str | None, sink: str | None
) -> str:
    stated = {
        "scale": float(call.attr("scale", 0.0)),
        "left": int(call.attr("local_window_size", -1)),
        "softcap": float(call.attr("softcap", 0.0)) or None,
    }
    wide = call.cast(sink, FLOAT) if sink else None
    operands = (q, k, v, *counts, bias, wide, call.arg(PAGES))
    return call.op("CachedAttention", *operands, domain=HIPDNN_DOMAIN, **stated)


def _attend_window(call: Call, q: str, new: tuple[str, str], sink: str | None) -> tuple[str, str, str]:
    """Attention, and caches that keep the last keys and values alone: as many as the window at least.

    What is new joins what is kept in memory that holds both, where attention reads it. The last rows of that are the new cache. How many
    are kept depends on the number of all alone. Where the cache is longer than the window, several leave at once.
    """
    window = call.attr("local_window_size", -1)
    if window < 1 or call.arg(_BIAS):
        raise Refusal("operand", "sliding_window_cache without a window, or with a bias")
    past = call.need(3)
    rows, capacity = call.cast(call.length(q, 2), INT32), call.cast(call.length(past, 2), INT32)
    keys = _counts(call)
    queries = call.op("Min", keys, rows)
    # What is added is 0. Of sizes alone, the larger at the sample sizes would be taken for all: the program would not hold for caches on
    # the window's other side.
    room = call.op("Sub", capacity, call.const(window - 1, INT32))
    group = call.op("Max", call.op("Add", room, call.op("Min", keys, call.const(0, INT32))), call.const(1, INT32))
    before, after = (_kept(call, count, capacity, group) for count in (call.op("Sub", keys, queries), keys))
    together = call.op("Add", before, queries)
    k, v = (_joined(call, call.need(index), rows_of, before) for index, rows_of in zip((3, 4), new, strict=True))
    y = _attend_valid(call, q, k, v, (queries, together), None, sink)
    first = call.unsqueeze(call.cast(call.op("Sub", together, after), INT64), 1)
    stays = call.op("Add", first, call.range(call.length(past, 2)))
    last = call.op("Sub", call.length(k, 2), call.ints(1))
    places = call.unsqueeze(call.op("Min", stays, last), 2)  # rows behind those that are kept mean nothing
    return y, _rows_at(call, k, places), _rows_at(call, v, places)


def _joined(call: Call, past: str, new: str, start: str) -> str:
    """What is kept, with what is new from a place of each row of the batch on, in memory that holds both."""
    places = call.range(call.op("Add", call.length(past, 2), call.length(new, 2)))
    return call.op("CacheUpdate", past, new, start, places, domain=HIPDNN_DOMAIN)


def _kept(call: Call, count: str, capacity: str, group: str) -> str:
    """How many of `count` keys a cache of a window keeps: it drops them by the group, when one more would not fit."""
    over = call.op("Add", call.op("Sub", count, capacity), call.op("Sub", group, call.const(1, INT32)))
    groups = call.op("Div", call.op("Max", over, call.const(0, INT32)), group)
    return call.op("Sub", count, call.op("Mul", groups, group))


def _rows_at(call: Call, x: str, places: str) -> str:
    """Rows of a cache [b, heads, rows, d] at places [b, n, 1] of each of the batch."""
    rows = call.op("GatherND", call.transpose(x, *BSHD_TO_BHSD), places, batch_dims=1)
    return call.transpose(rows, *BSHD_TO_BHSD)


def _past(call: Call, query: str, past_key: str | None) -> str:
    """Number of valid keys before the queries: a list of one, or [b, 1, 1, 1] where rows of the batch may differ."""
    if past_key is None:
        return call.ints(0)
    is_data = call.attr("sliding_window_cache", 0) or call.arg(PAGES) or _is_buffer(call)
    if call.size_if_known(past_key, 0) == 1 and not is_data:
        return call.length(past_key, 2)
    before = call.reshape(call.cast(call.need(5), INT64), -1)  # the last key's place
    if call.size_if_known(query, 1) != 1:
        before = call.op("Sub", call.op("Add", before, call.ints(1)), call.length(query, 1))
    return call.reshape(call.op("Max", before, call.ints(0)), -1, 1, 1, 1)  # a padded prompt is shorter than its row


def _is_buffer(call: Call) -> bool:
    """Whether it is known how many keys there are in all, so that a cache may be longer than what is valid in it."""
    return call.is_of_sizes(call.need(6))


def _extended(call: Call, past: str, new: str, count: str) -> str:
    """The cache [b, heads, s, d] with what is new behind `count` of the past.

    The result is as long as the cache, or as what is valid then if that is more. Only in the step of one token do rows of a batch differ in
    their past.
    """
    if pages := call.arg(PAGES):
        return call.op("CacheUpdate", past, new, call.reshape(count, -1), None, pages, domain=HIPDNN_DOMAIN)
    if _is_buffer(call):
        total = call.reshape(call.cast(call.need(6), INT64), 1)
        places = call.range(call.op("Max", call.length(past, 2), total))
        return call.op("CacheUpdate", past, new, call.reshape(count, -1), places, domain=HIPDNN_DOMAIN)
    joined = call.concat(2, past, new)
    if call.size_if_known(past, 0) == 1:
        return joined
    places = call.unsqueeze(call.range(call.length(joined, 2)), 1)
    return call.op("Where", call.op("Equal", places, count), call.slice(new, 2, 0, 1), joined)


def _at_positions(call: Call, cache: str, query: str, past: str) -> str:
    """Rows of a cache [positions, d / 2] for the queries, as [b, s, d / 2]."""
    positions = call.arg(9)
    if positions is None:
        positions = call.reshape(past, -1, 1)
        if call.size_if_known(query, 1) != 1:
            positions = call.op("Add", call.unsqueeze(call.range(call.length(query, 1)), 0), positions)
    return call.op("Gather", cache, positions)
