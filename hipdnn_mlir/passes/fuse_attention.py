"""hipdnn-fuse-attention: attention that exporters write out becomes one op."""

from dataclasses import dataclass
from math import prod, sqrt

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import I32, DType

from ..ir.attention_masks import MATMULS, Masks, combined, hidden_or_exact, joins
from ..ir.blocks import erase_dead, functions
from ..ir.claims import is_taken, why_not_taken
from ..ir.literals import constant_list, splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to, fused_location, is_float_tensor, is_private, number
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import argument, literal_scalar, producer
from ..ir.view_chains import BROADCASTS, dims_of, movement_of, padded, permuted, reshaped, simplified, sliced
from ..ops.registry import ONNX
from ..ops.spec import Reshape
from ..ops.strides import Dims, broadcast
from ..targets.table import find_target
from ..targets.target import Target

_SOFTMAX = (torch.AtenSoftmaxIntOp, torch.Aten_SoftmaxOp)
_MUL = (torch.AtenMulTensorOp, torch.AtenMulScalarOp)
_DIV = (torch.AtenDivTensorOp, torch.AtenDivScalarOp)
_BATCH_RANKS = (1, 2)


@dataclass
class Attention:
    """What was recognized.

    Attributes:
        q, keys, v: operands of the matmuls; `keys` are transposed, (..., d, s_kv).
        batch: dims in front of the scores' last two, where the masks apply.
        scale: factor of the scores.
        factors: others of them, one number for all queries and keys of a head: they go into q.
        masks: what is added to them or hides some of them.
        parts: everything that becomes the one op.
    """

    q: ir.Value
    keys: ir.Value
    v: ir.Value
    batch: Dims
    scale: float
    factors: list[ir.Value]
    masks: Masks
    parts: list[ir.OpView]


@module_pass("hipdnn-fuse-attention")
def fuse_attention(module: ir.Operation, *, target: str = "host") -> None:
    """Recognize `softmax(q k^T * scale + mask) v` and write it as `torch.aten.scaled_dot_product_attention` where an engine takes it.

    The scale may be on q, k or the scores, one number or one for each head; the mask added, or chosen by a where; around softmax there may
    be casts and the guard (isnan, where) against rows that see nothing; keys and values may be repeated for groups of heads, and heads be a
    part of the batch, whose images may be a dim of their own where a mask is added (shifted windows).
    So may those of attention that is one op already. A constant causal mask becomes `is_causal`. A query that sees nothing gets 0:
    what the guard gives, and NaN without it. A where that shows the first keys up to a number of them becomes `CachedAttention`, which
    does not read the others. Heads whose features no engine takes are filled up with zeros to the target's multiple.

    Before: `%s = torch.aten.matmul %q, %kt`; `%p = torch.aten.softmax.int %s, ...`; `%y = torch.aten.matmul %p, %v`.
    After: `%y = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, ...` where `%k` is `%kt` before its transposition.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def fuse(root: torch.AtenMatmulOp | torch.AtenBmmOp, rewriter: PatternRewriter) -> bool:
        match = _match(root)
        if match is None:
            return False
        with fused_location(match.parts):
            for made in (_cached_attention(match), _attention(match)):
                result = None if made is None else _taken(made, library)
                if result is not None:
                    rewriter.replace_op(root, [reshaped(result, dims_of(root.result))])
                    return True
        return False

    def share(op: torch.AtenScaledDotProductAttentionOp, rewriter: PatternRewriter) -> bool:
        made = _with_shared_heads(op)
        if made is None or not is_taken(made, library):
            return False
        rewriter.replace_op(op, made)
        return True

    def fill(op: torch.AtenScaledDotProductAttentionOp, rewriter: PatternRewriter) -> bool:
        result = None if is_taken(op, library) else _with_whole_heads(op, library)
        if result is not None:
            rewriter.replace_op(op, [result])
        return result is not None

    rewrite_ops(module, fuse)
    rewrite_ops(module, share)
    rewrite_ops(module, fill)
    for function in functions(module):
        erase_dead(function)


def _taken(made: ir.OpView, library: Target) -> ir.Value | None:
    """What an op computes, as it is or from heads that are filled up; None where no engine takes it."""
    if _stays(made, library):
        return made.results[0]
    return _with_whole_heads(made, library) if isinstance(made, torch.AtenScaledDotProductAttentionOp) else None


def _stays(made: ir.OpView, library: Target) -> bool:
    """Whether an op has an engine; for CachedAttention on GPUs there are kernels and other ops."""
    reject = why_not_taken(made, library)
    if isinstance(made, torch.OperatorOp) and library.architecture is not None:
        return reject is None or reject.rule == "engine"
    return reject is None


def _match(root: torch.AtenMatmulOp | torch.AtenBmmOp) -> Attention | None:
    """The attention that ends in the matmul `root`."""
    parts: list[ir.OpView] = []
    weights, v = root.operands
    softmax = _unguarded(_through(weights, parts), parts)
    if softmax is None or argument(softmax.dim) not in (-1, len(dims_of(softmax.self_)) - 1):
        return None
    parts.append(softmax)
    found = _scores(softmax.self_, parts)
    if found is None or not is_private(parts, root):
        return None
    matmul, batch, scale, factors, masks = found
    (q, on_q), (keys, on_keys) = (_unscaled(operand, parts) for operand in matmul.operands)
    if any(broadcast(dims_of(q), dims_of(factor)) != dims_of(q) for factor in factors):
        return None
    return Attention(q, keys, v, batch, scale * on_q * on_keys, factors, masks, [*parts, root])


def _through(value: ir.Value, parts: list[ir.OpView]) -> ir.Value:
    """Look through casts between floats and through reshapes of the dims before the last two."""
    while (source := producer(value)) is not None and _keeps_rows(source):
        parts.append(source)
        value = source.operands[0]
    return value


def _keeps_rows(op: ir.OpView) -> bool:
    if not len(op.operands) or not is_float_tensor(op.operands[0]):
        return False
    if isinstance(op, torch.AtenToDtypeOp):
        return True
    return isinstance(movement_of(op), Reshape) and dims_of(op.operands[0])[-2:] == dims_of(op.results[0])[-2:]


def _unguarded(value: ir.Value, parts: list[ir.OpView]) -> torch.AtenSoftmaxIntOp | torch.Aten_SoftmaxOp | None:
    """The softmax that a value is, or that is behind `where(isnan(p), 0, p)`."""
    source = producer(value)
    if isinstance(source, torch.AtenWhereSelfOp):
        test = producer(source.condition)
        if not isinstance(test, torch.AtenIsnanOp) or test.self_ != source.other or number(source.self_) != 0:
            return None
        parts += [source, test]
        source = producer(_through(source.other, parts))
    return source if isinstance(source, _SOFTMAX) else None


def _scores(value: ir.Value, parts: list[ir.OpView]) -> tuple[ir.OpView, Dims, float, list[ir.Value], Masks] | None:
    """From the softmax's operand to the matmul of q and k: that matmul, the batch dims, the scale, factors of heads and the masks."""
    scale, factors, masks, levels, masked = 1.0, list[ir.Value](), Masks(), [dims_of(value)[:-2]], set[Dims]()
    while True:
        value = _through(value, parts)
        dims = dims_of(value)
        levels.append(dims[:-2])
        source = producer(value)
        if source is None:
            return None
        parts.append(source)
        if isinstance(source, MATMULS):
            batch = _batch(levels, masked)
            return None if batch is None else (source, batch, scale, factors, masks)
        factor = _factor(source)
        if factor is not None:
            value, scale = factor[0], scale * factor[1]
            continue
        of_heads = _factor_of_heads(source)
        if of_heads is not None:
            value, more = of_heads
            factors.append(more)
            continue
        value = masks.take(source, dims)
        if value is None or scale != 1.0 or factors:  # which scale the mask too
            return None
        masked.add(dims[:-2])


def _batch(levels: list[Dims], masked: set[Dims]) -> Dims | None:
    """The dims before the last two where masks apply, to which those join where others do; without masks, the most of them."""
    for some in (masked, levels):
        fitting = sorted((level for level in some if len(level) in _BATCH_RANKS), key=len)
        if fitting:
            return fitting[-1] if all(joins(level, fitting[-1]) for level in masked) else None
    return None


def _factor(op: ir.OpView | None) -> tuple[ir.Value, float] | None:
    """The tensor and the number of a product or quotient with a number."""
    if not isinstance(op, (*_MUL, *_DIV)):
        return None
    a, b = op.self_, op.other
    if isinstance(op, _MUL) and number(a) is not None:
        a, b = b, a
    factor = number(b)
    if not factor or not is_tensor(a.type) or a.type != op.result.type:
        return None
    return a, 1 / factor if isinstance(op, _DIV) else factor


def _factor_of_heads(op: ir.OpView) -> tuple[ir.Value, ir.Value] | None:
    """The tensor and the factors of a product with one number for each matrix."""
    if not isinstance(op, torch.AtenMulTensorOp):
        return None
    for value, factors in ((op.self_, op.other), (op.other, op.self_)):
        if value.type == op.result.type and is_float_tensor(factors) and dims_of(factors)[-2:] == (1, 1):
            return value, factors
    return None


def _unscaled(value: ir.Value, parts: list[ir.OpView]) -> tuple[ir.Value, float]:
    """An operand in front of a product with a number, and the number."""
    source = producer(value)
    factor = _factor(source) if len(list(value.uses)) == 1 else None
    if source is None or factor is None:
        return value, 1.0
    parts.append(source)
    return factor


def _attention(match: Attention) -> torch.AtenScaledDotProductAttentionOp | None:
    """The op, at the current insertion point; None where q, k and v do not have the batch dims of the scores."""
    operands = _operands(match)
    if operands is None:
        return None
    q, k, v = operands
    mask = combined(match.masks, match.batch)
    shares_heads = dims_of(k)[:-2] != dims_of(q)[:-2] or dims_of(v)[:-2] != dims_of(q)[:-2]
    return torch.AtenScaledDotProductAttentionOp(
        torch_tensor((*dims_of(q)[:-1], dims_of(v)[-1]), tensor_type(q.type).dtype),
        query=q,
        key=k,
        value=v,
        attn_mask=torch.constant_none() if mask is None else _in_type(mask, tensor_type(q.type).dtype),
        dropout_p=torch.constant_float(0.0),
        is_causal=torch.constant_bool(match.masks.is_causal),
        scale=torch.constant_float(match.scale),
        enable_gqa=torch.constant_bool(shares_heads),
    )


def _in_type(mask: ir.Value, dtype: DType) -> ir.Value:
    """A mask that is a choice between two numbers in the query's type, half of what is read; one that hides becomes finite there."""
    made = producer(mask)
    if not isinstance(made, torch.AtenWhereSelfOp) or not dtype.is_narrow:
        return mask
    own = [None if number is None else hidden_or_exact(number, dtype) for number in _choices(made)]
    numbers = [number for number in own if number is not None]
    if len(numbers) < len(own):
        return mask
    kind = torch_tensor(dims_of(mask), dtype)
    for use in made.condition.uses:  # made for another layer
        other = use.owner
        if isinstance(other, torch.AtenWhereSelfOp) and other.result.type == kind and _choices(other) == numbers:
            return other.result
    with ir.InsertionPoint.after(made), made.location:
        shown, hidden = (splat(number, (), dtype) for number in numbers)
        return torch.aten_where_self(kind, made.condition, shown, hidden)


def _choices(where: torch.AtenWhereSelfOp) -> list[float | None]:
    """The numbers that a `where` chooses between, None for what is no number."""
    found: list[float | None] = []
    for value in (where.self_, where.other):
        made = producer(value)
        number = literal_scalar(made) if isinstance(made, torch.ValueTensorLiteralOp) else None
        found.append(None if number is None else float(number))
    return found


def _operands(match: Attention) -> tuple[ir.Value, ir.Value, ir.Value] | None:
    scaled = match.q
    for factor in match.factors:
        scaled = torch.aten_mul_Tensor(scaled.type, scaled, factor)
    q = _with_batch(scaled, match.batch)
    k = _with_batch(_transposed(match.keys), match.batch)
    v = _with_batch(match.v, match.batch)
    if q is None or k is None or v is None or tensor_type(match.q.type).dtype is not tensor_type(v.type).dtype:
        return None
    return q, k, v


def _cached_attention(match: Attention) -> torch.OperatorOp | None:
    """The op that reads keys up to a number of them, at the current insertion point; None where no mask has such a number."""
    if match.masks.keys is None or match.masks.is_causal or len(match.batch) != max(_BATCH_RANKS):
        return None
    operands = _operands(match)
    if operands is None:
        return None
    b, _, rows, _ = dims_of(operands[0])
    queries = splat(rows, (b,), I32)
    counted = cast_to(reshaped(match.masks.keys, (1,)), I32)
    keys = torch.aten_expand(torch_tensor((b,), I32), counted, constant_list((b,)), torch.constant_bool(False))
    bias = combined(match.masks.beside_keys, match.batch)
    kind = torch_tensor((*dims_of(operands[0])[:3], dims_of(operands[2])[3]), tensor_type(operands[0].type).dtype)
    more = [] if bias is None else [bias]
    made = torch.OperatorOp([kind], f"{ONNX}CachedAttention", [*operands, queries, keys, *more], 0)
    made.attributes["torch.onnx.scale"] = ir.FloatAttr.get(ir.F32Type.get(), match.scale)
    made.attributes["torch.onnx.causal"] = ir.IntegerAttr.get(ir.IntegerType.get_signed(64), 0)
    return made


def _with_shared_heads(op: torch.AtenScaledDotProductAttentionOp) -> torch.AtenScaledDotProductAttentionOp | None:
    """The op on keys and values as they are before each is repeated for several heads; None where they are not."""
    k, v = (_ungrouped(simplified(value)) for value in (op.key, op.value))
    if dims_of(k) == dims_of(op.key) or dims_of(v) == dims_of(op.value):
        return None
    return torch.AtenScaledDotProductAttentionOp(
        op.result.type,
        query=op.query,
        key=k,
        value=v,
        attn_mask=op.attn_mask,
        dropout_p=op.dropout_p,
        is_causal=op.is_causal,
        scale=op.scale,
        enable_gqa=torch.constant_bool(True),
    )


def _with_whole_heads(op: torch.AtenScaledDotProductAttentionOp, library: Target) -> ir.Value | None:
    """What the op computes, from heads with features of zeros behind their own; None where no engine takes that, or nothing is missing."""
    features = dims_of(op.query)[-1]
    q, k, v = (_filled(value, library.head_features) for value in (op.query, op.key, op.value))
    if (q, k, v) == (op.query, op.key, op.value):
        return None
    scale = argument(op.scale)
    made = torch.AtenScaledDotProductAttentionOp(
        torch_tensor((*dims_of(op.result)[:-1], dims_of(v)[-1]), tensor_type(op.result.type).dtype),
        query=q,
        key=k,
        value=v,
        attn_mask=op.attn_mask,
        dropout_p=op.dropout_p,
        is_causal=op.is_causal,
        scale=torch.constant_float(1 / sqrt(features) if scale is None else scale),
        enable_gqa=op.enable_gqa,
    )
    rank = len(dims_of(op.result))
    return sliced(made.result, rank - 1, 0, dims_of(op.result)[-1]) if is_taken(made, library) else None


def _filled(value: ir.Value, multiple: int) -> ir.Value:
    dims = dims_of(value)
    return padded(value, [*[(0, 0)] * (len(dims) - 1), (0, -dims[-1] % multiple)])


def _transposed(value: ir.Value) -> ir.Value:
    rank = len(dims_of(value))
    return permuted(value, (*range(rank - 2), rank - 1, rank - 2))


def _with_batch(value: ir.Value, batch: Dims) -> ir.Value | None:
    """An operand with the given dims before its last two, or fewer heads where heads share it."""
    dims = dims_of(value)
    if dims[:-2] == (*batch[:-1], 1):
        return simplified(value)
    if prod(dims[:-2]) != prod(batch):
        return None
    return _ungrouped(simplified(reshaped(value, (*batch, *dims[-2:]))))


def _ungrouped(value: ir.Value) -> ir.Value:
    """(b, g, s, d) where the value (b, g * t, s, d) repeats each of g heads t times; else the value."""
    dims, source = dims_of(value), producer(value)
    if len(dims) != 4 or source is None or not isinstance(movement_of(source), Reshape):
        return value
    repeat = producer(source.operands[0])
    if not isinstance(repeat, BROADCASTS):
        return value
    before, after = dims_of(repeat.self_), dims_of(repeat.result)
    b, heads, s, d = dims
    groups = before[1] if len(before) == 5 else 0
    if not groups or before != (b, groups, 1, s, d) or after != (b, groups, heads // groups, s, d):
        return value
    return simplified(reshaped(repeat.self_, (b, groups, s, d)))
