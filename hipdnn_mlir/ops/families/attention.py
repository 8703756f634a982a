"""Scaled dot product attention."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import AttributeType as T
from hipdnn_mlir_runtime.abi import DataType, Descriptor

from ..emitter import Emitter, Value
from ..graph import TensorKey
from ..registry import compute, kernel, of_hipdnn
from ..spec import Call, OpView, Refusal, TensorArg, TensorType
from ..strides import Dims
from .indexing import given, tensors

_TOP_LEFT = 0
"""HIPDNN_DIAGONAL_ALIGNMENT_TOP_LEFT_EXT."""
_BOTTOM_RIGHT = 1
"""HIPDNN_DIAGONAL_ALIGNMENT_BOTTOM_RIGHT_EXT."""
_MASK = 3
"""Position of the mask, which may reach the least f32."""
_COUNTED_QUERIES, _COUNTED_KEYS, _ADDED, _SINK, _PAGES = 3, 4, 5, 6, 7
"""Positions of operands of attention on caches that stay as they are."""
_AUTOMATIC = 0
"""HIPDNN_ATTENTION_IMPLEMENTATION_AUTO_EXT."""


def _with_heads(e: Emitter, x: Value) -> Value:
    """X as (batch, head, sequence, feature); one of rank 3 has one head."""
    if x.rank not in (3, 4):
        raise Refusal("rank", f"attention of an operand of rank {x.rank}, expected 3 or 4")
    return x if x.rank == 4 else e.view(x, (x.dims[0], 1, *x.dims[1:]))


def _mask(e: Emitter, mask: Value, q: Value, k: Value, was_rank: int) -> Value:
    """The mask as rank 4 beside the scores; a rank 3 attention's mask has no head."""
    if mask.rank > was_rank or mask.dtype not in (dtypes.BOOL, dtypes.F32, q.dtype):
        raise Refusal("mask", f"a mask of {mask.dtype}{list(mask.dims)} on {q.dtype}: expected bool, f32 or {q.dtype}")
    if not e.is_operand(mask):
        raise Refusal("mask", "the mask is a number, or computed in the same graph")
    full = (*q.dims[:3], k.dims[2])
    dims = (1,) * (was_rank - mask.rank) + mask.dims
    dims = dims if was_rank == len(full) else (dims[0], 1, *dims[1:])
    if any(size not in (1, wanted) for size, wanted in zip(dims, full, strict=True)):
        raise Refusal("mask", f"a mask of dims {mask.dims} does not broadcast to {full}")
    return e.view(mask, dims)


def _check(q: Value, k: Value, v: Value, *, grouped: bool, paged: bool = False) -> None:
    if {q.dtype, k.dtype, v.dtype} - {q.dtype} or q.dtype not in (dtypes.F32, dtypes.F16, dtypes.BF16):
        raise Refusal("dtype", f"attention of {q.dtype}, {k.dtype} and {v.dtype}")
    fits = q.dims[3] == k.dims[3] and k.dims[2] == v.dims[2] and k.dims[0] == v.dims[0]
    fits = fits and (paged or q.dims[0] == k.dims[0])
    for heads in (k.dims[1], v.dims[1]):
        fits = fits and (heads == q.dims[1] or (grouped and q.dims[1] % heads == 0))
    if not fits:
        raise Refusal("shape", f"query {q.dims}, key {k.dims} and value {v.dims} do not fit")


@compute(
    "aten.scaled_dot_product_attention",
    becomes="scaled dot product attention forward",
    onnx=("Attention", "MultiHeadAttention", "GroupQueryAttention"),
    source="PyTorch: torch.nn.functional.scaled_dot_product_attention",
    precision="narrow",
    keeps=(_MASK,),
)
def attention(e: Emitter, op: OpView) -> Value:
    """(query, key, value, mask or None, dropout, is_causal, scale or None, enable_gqa), in any strides.

    Query (b, h, s_q, d), key (b, h_kv, s_kv, d) and value (b, h_kv, s_kv, d_v) of f32, f16 or bf16; without h where all have rank 3.
    The mask broadcasts to (b, h, s_q, s_kv): bool, true where a query attends a key, or f32 or the query's type, added to the scaled
    scores. `is_causal` aligns the diagonal at the top left and may join a mask. A query that attends no key gets 0. With `enable_gqa`
    h is a multiple of h_kv. The scale is 1 / sqrt(d) where it is None.
    """
    mask_arg, dropout, causal, scale = op.args[3:7]
    operands = [e.value(arg) for arg in op.args[:3]]
    rank = operands[0].rank
    if any(x.rank != rank for x in operands):
        raise Refusal("rank", f"query, key and value of rank {', '.join(str(x.rank) for x in operands)}")
    if dropout != 0:
        raise Refusal("attribute", f"dropout of {dropout}")
    q, k, v = (_with_heads(e, x) for x in operands)
    _check(q, k, v, grouped=len(op.args) > 7 and bool(op.args[7]))
    inputs: dict[TensorKey, Value] = {
        A.OPERATION_SDPA_FWD_QDESC: q,
        A.OPERATION_SDPA_FWD_KDESC: k,
        A.OPERATION_SDPA_FWD_VDESC: v,
    }
    if mask_arg is not None:
        inputs[A.OPERATION_SDPA_FWD_ATTN_MASK_EXT] = _mask(e, e.value(mask_arg), q, k, rank)
    given = 1 / math.sqrt(q.dims[3]) if scale is None else float(scale)
    return _node(e, inputs, given, [(A.SDPA_FWD_CAUSAL_MASK_EXT, T.BOOLEAN, [bool(causal)])], _TOP_LEFT)


def _node(
    e: Emitter,
    inputs: Mapping[TensorKey, Value],
    scale: float,
    masks: Sequence[tuple[A, T, Any]],
    alignment: int,
    *,
    pads: bool = False,
) -> Value:
    q, v = inputs[A.OPERATION_SDPA_FWD_QDESC], inputs[A.OPERATION_SDPA_FWD_VDESC]
    return e.node(
        Descriptor.OPERATION_SDPA_FWD_DESCRIPTOR,
        inputs,
        {A.OPERATION_SDPA_FWD_ODESC: ((*q.dims[:3], v.dims[3]), q.dtype)},
        [
            (A.SDPA_FWD_ALIBI_MASK_EXT, T.BOOLEAN, [False]),
            (A.SDPA_FWD_PADDING_MASK_EXT, T.BOOLEAN, [pads]),
            *masks,
            (A.SDPA_FWD_CAUSAL_MASK_BOTTOM_RIGHT_EXT, T.BOOLEAN, [False]),
            (A.SDPA_FWD_ATTN_SCALE_VALUE_EXT, T.FLOAT, [scale]),
            (A.SDPA_FWD_DIAGONAL_ALIGNMENT_EXT, T.DIAGONAL_ALIGNMENT_EXT, [alignment]),
            (A.SDPA_FWD_IMPLEMENTATION_EXT, T.ATTENTION_IMPLEMENTATION_EXT, [_AUTOMATIC]),
            (A.SDPA_FWD_COMP_TYPE_EXT, T.DATA_TYPE, [int(DataType.FLOAT)]),
        ],
    )[0]


def _cached_types(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    q, k, v = operands[:3]
    if q is None or k is None or v is None or {len(x.dims) for x in (q, k, v)} != {4}:
        raise Refusal("operand", "queries, keys and values of four dims are needed")
    if None not in (k.dims[2], v.dims[2]) and k.dims[2] != v.dims[2]:
        raise Refusal("shape", f"keys of {k} with values of {v}")
    given = (*operands, *(None,) * _PAGES)
    if (bias := given[_ADDED]) and not given[_PAGES]:
        full = (q.dims[0], q.dims[1], q.dims[2], k.dims[2])
        sizes = zip(reversed(bias.dims), reversed(full), strict=False)
        if any(None not in (size, wanted) and size not in (1, wanted) for size, wanted in sizes):
            raise Refusal("shape", f"a bias of {bias} for scores of dims {full}")
    return [TensorType((*q.dims[:3], v.dims[3]), q.dtype)]


@of_hipdnn(
    "CachedAttention",
    becomes="scaled dot product attention forward",
    results=_cached_types,
    source="hipDNN: backend API, SDPA_FWD with SEQ_LEN_Q, SEQ_LEN_KV, SINK_TOKEN and PAGE_TABLE; the host library's own SOFT_CAP",
    precision="narrow",
    keeps=(_COUNTED_QUERIES, _COUNTED_KEYS, _ADDED, _SINK, _PAGES),
)
def cached_attention(e: Emitter, op: OpView) -> Value:
    """(query, key, value, queries, keys, bias, sink, pages; scale, left, softcap, causal): attention over a cache, as much as is valid.

    Query (b, h, s_q, d), key (b, h_kv, rows, d) and value (b, h_kv, rows, d_v) of f32, f16 or bf16; `queries` and `keys` (b) of i32 say
    when it runs how many of each are valid in a row of the batch. The last valid query sees all valid keys, each one before it one key
    less; with `left` > 0 it sees the last `left` of these. With `causal` 0 every query sees all valid keys, and `left` has no effect.
    What is behind the valid queries means nothing.

    With `softcap` c > 0 scaled scores become c * tanh(score / c). Then the bias is added, if there is one, as any mask of attention. A sink
    (h) of f32 is one more score of each head, with a share of the weights and no value.

    With `pages` (b, n) of i32, key and value are pages (pages, h_kv, rows, d) that all sequences share: row i of a sequence is row
    i % rows of the page that its i / rows-th entry names.
    """
    q, k, v, queries, keys = (e.value(arg) for arg in op.args[:_ADDED])
    bias, sink, pages = (*op.args[_ADDED:], None, None, None)[:3]
    if any(x.rank != 4 for x in (q, k, v)):
        raise Refusal("rank", f"query, key and value of rank {q.rank}, {k.rank}, {v.rank}, expected 4")
    _check(q, k, v, grouped=True, paged=pages is not None)
    for counts in (queries, keys):
        if counts.dtype is not dtypes.I32 or counts.dims != q.dims[:1]:
            raise Refusal("dtype", f"counts of {counts.dtype}{list(counts.dims)}, expected i32[{q.dims[0]}]")
    is_causal = op.attributes.get("causal", 1)
    left = op.attributes.get("left", -1) if is_causal else -1
    masks: list[tuple[A, T, Any]] = [(A.SDPA_FWD_CAUSAL_MASK_EXT, T.BOOLEAN, [False])]
    if is_causal:
        masks.append((A.SDPA_FWD_RIGHT_BOUND_EXT, T.INT64, [0]))
    if left > 0:
        masks.append((A.SDPA_FWD_LEFT_BOUND_EXT, T.INT64, [left]))
    if cap := op.attributes.get("softcap", 0.0):
        masks.append((A.SDPA_FWD_SOFT_CAP_MLIR_EXT, T.FLOAT, [float(cap)]))
    inputs: dict[TensorKey, Value] = {
        A.OPERATION_SDPA_FWD_QDESC: q,
        A.OPERATION_SDPA_FWD_KDESC: k,
        A.OPERATION_SDPA_FWD_VDESC: v,
        A.OPERATION_SDPA_FWD_SEQ_LEN_QDESC: e.view(queries, (q.dims[0], 1, 1, 1)),
        A.OPERATION_SDPA_FWD_SEQ_LEN_KVDESC: e.view(keys, (q.dims[0], 1, 1, 1)),
    }
    if pages is not None:
        if bias is not None:
            raise Refusal("mask", "a bias beside pages")
        table = _page_table(e, e.value(pages), q)
        inputs |= dict.fromkeys((A.OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, A.OPERATION_SDPA_FWD_PAGE_TABLE_VDESC), table)
        masks.append((A.SDPA_FWD_MAX_SEQ_LEN_KV_EXT, T.INT32, [table.dims[2] * k.dims[2]]))
    if bias is not None:
        inputs[A.OPERATION_SDPA_FWD_ATTN_MASK_EXT] = _mask(e, e.value(bias), q, k, q.rank)
    if sink is not None:
        inputs[A.OPERATION_SDPA_FWD_SINK_TOKEN_EXT] = _sink(e, e.value(sink), q)
    scale = op.attributes.get("scale", 0.0) or 1 / math.sqrt(q.dims[3])
    return _node(e, inputs, float(scale), masks, _BOTTOM_RIGHT, pads=True)


def _page_table(e: Emitter, pages: Value, q: Value) -> Value:
    if pages.dtype is not dtypes.I32 or pages.rank != 2 or pages.dims[0] != q.dims[0]:
        raise Refusal("dtype", f"pages of {pages.dtype}{list(pages.dims)}, expected i32[{q.dims[0]}, pages]")
    return e.view(pages, (q.dims[0], 1, pages.dims[1], 1))


def _sink(e: Emitter, sink: Value, q: Value) -> Value:
    if sink.dtype is not dtypes.F32 or sink.dims != q.dims[1:2]:
        raise Refusal("dtype", f"a sink of {sink.dtype}{list(sink.dims)}, expected f32[{q.dims[1]}]")
    return e.view(sink, (1, q.dims[1], 1, 1))


def _updated_types(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    cache, new, places, pages = operands[0], operands[1], operands[3], (*operands, None)[4]
    if cache is None or new is None or (places or pages) is None or (len(cache.dims), len(new.dims)) != (4, 4):
        raise Refusal("operand", "a cache and new rows of four dims, and the places of the result or pages are needed")
    for axis in (1, 3) if pages else (0, 1, 3):
        if None not in (cache.dims[axis], new.dims[axis]) and cache.dims[axis] != new.dims[axis]:
            raise Refusal("shape", f"new rows of {new} for a cache of {cache}")
    rows = places.dims[0] if places else cache.dims[2]
    return [TensorType((*cache.dims[:2], rows, cache.dims[3]), cache.dtype)]


@kernel("hipdnn.onnx.CacheUpdate", function="cache_update", onnx=("hipdnn.CacheUpdate",), results=_updated_types)
def cache_update(op: OpView) -> Call:
    """(cache, new, start, places, pages): the cache (b, h, rows, d) with new (b, h, n, d) from row `start` on.

    The start is i32 or i64, one for each of the batch or one for all. The result has as many rows as there are places, at least those of
    the cache; a row that neither has is 0. Where the result lies in the cache's memory, only what is new is written.

    With `pages` (b, n) of i32 instead of places the cache is pages (pages, h, rows, d), as for CachedAttention.
    """
    cache, new, start = tensors(op, 3)
    table = given(op, 4)
    if start.type.dtype not in (dtypes.I32, dtypes.I64):
        raise Refusal("dtype", f"a start of {start.type.dtype}")
    if cache.type.dtype is not new.type.dtype:
        raise Refusal("dtype", f"new rows of {new.type.dtype} for a cache of {cache.type.dtype}")
    before, fresh, after = cache.type.static_dims(), new.type.static_dims(), op.results[0].static_dims()
    fits = len(before) == len(fresh) == len(after) == 4 and before[2] <= after[2] and before[0] == after[0]
    same = (1, 3) if table else (0, 1, 3)
    if not fits or any(before[axis] != after[axis] or fresh[axis] != after[axis] for axis in same):
        raise Refusal("shape", f"new rows of dims {fresh} for a cache of {before}, which becomes {after}")
    if start.type.dims not in ((1,), fresh[:1]):
        raise Refusal("shape", f"starts of dims {start.type.dims} for a batch of {fresh[0]}")
    if table is None:
        return Call("cache_update", [cache, new, start])
    _check_pages(table, fresh[0], before, after)
    return Call("cache_update", [cache, new, start, table])


def _check_pages(table: TensorArg, batch: int, *caches: Dims) -> None:
    """Refuse a table of pages that does not fit."""
    if table.type.dtype is not dtypes.I32 or len(table.type.dims) != 2 or table.type.dims[0] != batch:
        raise Refusal("dtype", f"pages of {table.type}, expected i32[{batch}, pages]")
    if len(set(caches)) > 1 or caches[0][2] < 1:
        raise Refusal("shape", f"pages of dims {caches}")


def _check_bias(bias: TensorArg, scores: Dims, table: TensorArg | None) -> None:
    """Refuse a bias that is not added to scores of these dims, or is beside pages."""
    if table:
        raise Refusal("mask", "a bias beside pages")
    if bias.type.dtype not in (dtypes.F32, dtypes.F16, dtypes.BF16):
        raise Refusal("dtype", f"a bias of {bias.type.dtype}")
    sizes = bias.type.static_dims()
    if len(sizes) != 4 or any(size not in (1, wanted) for size, wanted in zip(sizes, scores, strict=True)):
        raise Refusal("shape", f"a bias of dims {sizes} for scores of dims {scores}")


def _decoded_types(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    q, keys, values = operands[0], operands[3], operands[4]
    if q is None or keys is None or values is None:
        raise Refusal("operand", "a query and caches of keys and values are needed")
    return [q, keys, values]


@kernel(
    "hipdnn.onnx.DecodeAttention", function="decode_attention", onnx=("hipdnn.DecodeAttention",), results=_decoded_types
)
def decode_attention(op: OpView) -> Call:
    """(query, key, value, key cache, value cache, start, keys, cos, sin, pages, bias; scale, left): attention of one new token.

    Query (b, h, 1, d), key and value (b, h_kv, 1, d) of f32, f16 or bf16 are those of the token, caches are (b, h_kv, rows, d). Key and
    value become row `start` of the caches (b, or 1, of i32 or i64); the query sees `keys` rows then, with `left` > 0 the last `left` of
    these. With cos and sin (b or 1, 1, 1, half), query and key are rotated before, the first `half` numbers of a head with the next ones.
    With `pages` (b, n) of i32 the caches are pages (pages, h_kv, rows, d), as for CachedAttention. Or a bias of floats that broadcasts to
    (b, h, 1, rows) is added to the scaled scores.
    """
    count = 7 if len(op.args) < 9 or op.args[7] is None else 9
    q, k, v, keys, values, start, valid, *angles = found = tensors(op, count)
    table, bias = given(op, 9), given(op, 10)
    if q.type.dtype not in (dtypes.F32, dtypes.F16, dtypes.BF16):
        raise Refusal("dtype", f"attention of {q.type.dtype}")
    if any(x.type.dtype is not q.type.dtype for x in (k, v, keys, values, *angles)):
        raise Refusal(
            "dtype",
            f"attention of {q.type.dtype} with {', '.join(str(x.type.dtype) for x in (k, v, keys, values, *angles))}",
        )
    if any(x.type.dtype not in (dtypes.I32, dtypes.I64) for x in (start, valid)):
        raise Refusal("dtype", f"counts of {start.type.dtype} and {valid.type.dtype}")
    dims, cache = q.type.static_dims(), keys.type.static_dims()
    if len(dims) != 4 or len(cache) != 4 or dims[2] != 1 or cache[1] < 1 or dims[1] % cache[1]:
        raise Refusal("shape", f"one query of dims {dims} for a cache of {cache}")
    fresh = (dims[0], cache[1], 1, dims[3])
    if table:
        _check_pages(table, dims[0], cache)
    batch = cache[0] if table else dims[0]
    if (
        cache != (batch, cache[1], cache[2], dims[3])
        or values.type.dims != cache
        or {k.type.dims, v.type.dims} != {fresh}
    ):
        raise Refusal("shape", f"a new key of dims {k.type.dims} for a cache of {cache}")
    if any(x.type.dims not in ((1,), dims[:1]) for x in (start, valid)):
        raise Refusal("shape", f"counts of dims {start.type.dims} and {valid.type.dims} for a batch of {dims[0]}")
    if any(
        x.type.dims[1:3] != (1, 1) or x.type.dims[0] not in (1, dims[0]) or 2 * (x.type.dims[3] or 0) > dims[3]
        for x in angles
    ):
        raise Refusal("shape", f"angles of dims {angles[0].type.dims} for heads of {dims[3]}")
    if bias:
        _check_bias(bias, (*dims[:3], cache[2]), table)
    scale = op.attributes.get("scale", 0.0) or 1 / math.sqrt(dims[3])
    operands = [*found, *filter(None, (table, bias))]
    return Call("decode_attention", operands, {"scale": float(scale), "left": int(op.attributes.get("left", -1))})
