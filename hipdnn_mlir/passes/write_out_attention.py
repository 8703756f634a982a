"""hipdnn-write-out-attention: attention that no engine takes is written in the ops that it stands for."""

import math

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import BOOL, I64, DType

from ..ir.claims import is_taken
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument
from ..ir.view_chains import dims_of, permuted, reshaped
from ..ops.strides import Dims, broadcast
from ..targets.table import find_target


@module_pass("hipdnn-write-out-attention")
def write_out_attention(module: ir.Operation, *, target: str = "host") -> None:
    """Write `torch.aten.scaled_dot_product_attention` as matmul, mask, softmax and matmul where no engine takes it as it is.

    A model may have it as one op, whatever the precision that it is compiled for. A query that sees nothing gets NaN, as in PyTorch.
    A mask of another type of floats is added in its own.

    Before: `%y = torch.aten.scaled_dot_product_attention %q, %k, %v, ...`.
    After: `%s = torch.aten.matmul %q, %kt`; `%p = torch.aten.softmax.int %s, ...`; `%y = torch.aten.matmul %p, %v`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def write_out(op: torch.AtenScaledDotProductAttentionOp, rewriter: PatternRewriter) -> bool:
        if argument(op.dropout_p) != 0 or is_taken(op, library):
            return False
        rewriter.replace_op(op, [_written_out(op)])
        return True

    rewrite_ops(module, write_out)


def _written_out(op: torch.AtenScaledDotProductAttentionOp) -> ir.Value:
    dtype = tensor_type(op.query.type).dtype
    q, k, v = op.query, _with_heads(op.key, op.query), _with_heads(op.value, op.query)
    d, scale = dims_of(q)[-1], argument(op.scale)
    rank = len(dims_of(k))
    keys = permuted(k, (*range(rank - 2), rank - 1, rank - 2))
    batch = broadcast(dims_of(q)[:-2], dims_of(k)[:-2]) or ()
    kind = torch_tensor((*batch, dims_of(q)[-2], dims_of(k)[-2]), dtype)
    factor = torch.constant_float(1 / math.sqrt(d) if scale is None else scale)
    scores = torch.aten_mul_Scalar(kind, torch.aten_matmul(kind, q, keys), factor)
    if argument(op.is_causal):
        scores = _masked(scores, _triangle(dims_of(scores)[-2:]), dtype)
    if argument(op.attn_mask) is not None:
        mask = op.attn_mask
        if tensor_type(mask.type).dtype is BOOL:
            scores = _masked(scores, mask, dtype)
        else:
            scores = cast_to(scores, tensor_type(mask.type).dtype)
            scores = torch.aten_add_Tensor(scores.type, scores, mask, torch.constant_int(1))
    weights = torch.aten_softmax_int(scores.type, scores, torch.constant_int(-1), torch.constant_none())
    return torch.aten_matmul(op.result.type, cast_to(weights, dtype), v)


def _with_heads(value: ir.Value, query: ir.Value) -> ir.Value:
    """Keys or values, each head repeated for the queries that share it."""
    dims, wanted = dims_of(value), dims_of(query)
    if len(dims) != 4 or dims[1] == wanted[1] or dims[1] == 1:
        return value
    b, heads, s, width = dims
    repeated = (b, heads, wanted[1] // heads, s, width)
    kind = torch_tensor(repeated, tensor_type(value.type).dtype)
    apart = reshaped(value, (b, heads, 1, s, width))
    spread = torch.aten_expand(kind, apart, constant_list(repeated), torch.constant_bool(False))
    return reshaped(spread, (b, wanted[1], s, width))


def _triangle(dims: Dims) -> ir.Value:
    """True up to the diagonal from the top left."""
    rows, columns = (_positions(size) for size in dims)
    return torch.aten_le_Tensor(torch_tensor(dims, BOOL), columns, reshaped(rows, (dims[0], 1)))


def _positions(size: int) -> ir.Value:
    none = torch.constant_none()
    start, end, step = (torch.constant_int(number) for number in (0, size, 1))
    return torch.aten_arange_start_step(torch_tensor((size,), I64), start, end, step, none, none, none, none)


def _masked(scores: ir.Value, visible: ir.Value, dtype: DType) -> ir.Value:
    """The scores where they are visible."""
    return torch.aten_where_self(scores.type, visible, scores, splat(-math.inf, (), dtype))
