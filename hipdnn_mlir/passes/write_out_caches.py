"""hipdnn-write-out-caches: attention over a cache is written in the ops that it stands for, where a target has nothing for it."""

import math
from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import BOOL, F32, DType

from ..ir.claims import why_not_taken
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, onnx_attributes
from ..ir.view_chains import dims_of, joined, permuted, reshaped, sliced
from ..ops.registry import ONNX
from ..ops.strides import broadcast
from ..targets.table import find_target


@module_pass("hipdnn-write-out-caches")
def write_out_caches(module: ir.Operation, *, target: str = "host") -> None:
    """Write CachedAttention as attention under a mask where no engine takes it.

    The mask is added, since no library takes one of booleans; without a bias it is as narrow as the queries, for every head reads it.
    Queries behind the valid ones get numbers that nobody reads. With a soft cap or a sink attention is written as matmul, softmax and
    matmul, since only the host's library has a soft cap, and none of the others that are known here takes a sink. Pages are gathered
    into a buffer for each sequence.

    Before: `%y = torch.operator "hipdnn.onnx.CachedAttention"(%q, %k, %v, %queries, %keys)`.
    After: `%m = torch.aten.where.self %visible, %zero, %hidden`; `%y = torch.aten.scaled_dot_product_attention %q, %k, %v, %m, ...`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def write_out(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        if op.name.value != f"{ONNX}CachedAttention":
            return False
        reject = why_not_taken(op, library)
        if reject is None or reject.rule != "engine":
            return False
        rewriter.replace_op(op, [_attention(op)])
        return True

    rewrite_ops(module, write_out)


def _attention(op: torch.OperatorOp) -> ir.Value:
    q, k, v, queries, keys, *more = op.operands
    bias, sink, pages = (_given(more, index) for index in range(3))
    if pages is not None:
        k, v = (_gathered(pool, pages) for pool in (k, v))
    stated = onnx_attributes(op)
    scale = stated.get("scale", 0.0) or 1 / math.sqrt(dims_of(q)[3])
    if stated.get("causal", 1):
        shown = _visible(queries, keys, dims_of(q)[2], dims_of(k)[2], stated.get("left", -1))
    else:
        shown = _valid(keys, dims_of(k)[2])
    cap = stated.get("softcap", 0.0)
    is_written_out = cap or sink is not None
    dtype = F32 if bias is not None or is_written_out else tensor_type(q.type).dtype
    added = splat(0.0, (), dtype) if bias is None else cast_to(bias, dtype)
    dims = broadcast(dims_of(shown), dims_of(added)) or ()
    mask = torch.aten_where_self(torch_tensor(dims, dtype), shown, added, splat(-math.inf, (), dtype))
    if is_written_out:
        weights = _weights(_scores(q, k, scale, cap), mask, sink)
        return _matmul_of_heads(cast_to(weights, tensor_type(v.type).dtype), v)
    shares_heads = {dims_of(k)[1], dims_of(v)[1]} != {dims_of(q)[1]}
    return torch.aten_scaled_dot_product_attention(
        op.results[0].type,
        query=q,
        key=k,
        value=v,
        attn_mask=mask,
        dropout_p=torch.constant_float(0.0),
        is_causal=torch.constant_bool(False),
        scale=torch.constant_float(scale),
        enable_gqa=torch.constant_bool(shares_heads),
    )


def _given(values: Sequence[ir.Value], index: int) -> ir.Value | None:
    """One of the operands at the end, which may be left out."""
    is_there = index < len(values) and argument(values[index]) is not None
    return values[index] if is_there else None


def _gathered(pool: ir.Value, pages: ir.Value) -> ir.Value:
    """Rows [b, heads, n * rows, d] of pages [pages, heads, rows, d] that a table [b, n] names."""
    (b, n), (_, heads, rows, d) = dims_of(pages), dims_of(pool)
    kind = torch_tensor((b * n, heads, rows, d), tensor_type(pool.type).dtype)
    taken = torch.aten_index_select(kind, pool, torch.constant_int(0), reshaped(pages, (b * n,)))
    together = permuted(reshaped(taken, (b, n, heads, rows, d)), (0, 2, 1, 3, 4))
    return reshaped(together, (b, heads, n * rows, d))


def _scores(q: ir.Value, k: ir.Value, scale: float, cap: float) -> ir.Value:
    """Scaled scores, of f32, with a soft cap where one is above 0."""
    raw = cast_to(_matmul_of_heads(q, permuted(k, (0, 1, 3, 2))), F32)
    scores = torch.aten_mul_Scalar(raw.type, raw, torch.constant_float(scale / (cap or 1.0)))
    if not cap:
        return scores
    return torch.aten_mul_Scalar(raw.type, torch.aten_tanh(raw.type, scores), torch.constant_float(cap))


def _weights(scores: ir.Value, mask: ir.Value, sink: ir.Value | None) -> ir.Value:
    """What the softmax makes of scores and a mask; the sink is one more score in each row."""
    b, heads, s_q, s_kv = dims_of(scores)
    seen = torch.aten_add_Tensor(scores.type, scores, mask, torch.constant_int(1))
    if sink is not None:
        column, no = (b, heads, s_q, 1), torch.constant_bool(False)
        spread = reshaped(sink, (1, heads, 1, 1))
        seen = joined([seen, torch.aten_expand(torch_tensor(column, F32), spread, constant_list(column), no)], 3)
    weights = torch.aten_softmax_int(seen.type, seen, torch.constant_int(-1), torch.constant_none())
    return weights if sink is None else sliced(weights, 3, 0, s_kv)


def _matmul_of_heads(a: ir.Value, b: ir.Value) -> ir.Value:
    """Matmuls of [batch, heads, m, k] and [batch, fewer heads, k, n]: rows of heads that share a right side lie below each other."""
    batch, heads, m, k = dims_of(a)
    shared, n = dims_of(b)[1], dims_of(b)[3]
    together = (batch, shared, heads // shared * m, k)
    kind = torch_tensor((*together[:3], n), tensor_type(a.type).dtype)
    return reshaped(torch.aten_matmul(kind, reshaped(a, together), b), (batch, heads, m, n))


def _visible(queries: ir.Value, keys: ir.Value, s_q: int, s_kv: int, left: int) -> ir.Value:
    """Which keys a query sees: bool [b, 1, s_q, s_kv], of counts i32 [b]; the last `left` of those up to its own, where that is above 0."""
    (b,), kind = dims_of(queries), tensor_type(queries.type).dtype
    one = torch.constant_int(1)
    before = reshaped(torch.aten_sub_Tensor(queries.type, keys, queries, one), (b, 1, 1, 1))
    own = _added(before, reshaped(_positions(s_q, kind), (1, 1, s_q, 1)), (b, 1, s_q, 1))
    columns, dims = _positions(s_kv, kind), torch_tensor((b, 1, s_q, s_kv), BOOL)
    shown = torch.aten_le_Tensor(dims, columns, own)
    if left <= 0:
        return shown
    hidden = torch.aten_sub_Tensor(own.type, own, splat(left, (), kind), one)
    return torch.aten_logical_and(dims, shown, torch.aten_gt_Tensor(dims, columns, hidden))


def _valid(keys: ir.Value, s_kv: int) -> ir.Value:
    """Which keys there are: bool [b, 1, 1, s_kv], of counts i32 [b]."""
    (b,), kind = dims_of(keys), tensor_type(keys.type).dtype
    columns, counts = _positions(s_kv, kind), reshaped(keys, (b, 1, 1, 1))
    return torch.aten_lt_Tensor(torch_tensor((b, 1, 1, s_kv), BOOL), columns, counts)


def _added(a: ir.Value, b: ir.Value, dims: tuple[int, ...]) -> ir.Value:
    kind = torch_tensor(dims, tensor_type(a.type).dtype)
    return torch.aten_add_Tensor(kind, a, b, torch.constant_int(1))


def _positions(count: int, dtype: DType) -> ir.Value:
    """0, 1, ... as a tensor [count]."""
    none = torch.constant_none()
    start, end, step = (torch.constant_int(number) for number in (0, count, 1))
    return torch.aten_arange_start_step(torch_tensor((count,), dtype), start, end, step, none, none, none, none)
