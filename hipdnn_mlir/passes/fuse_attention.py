"""hipdnn-fuse-attention: attention that exporters write out becomes one op."""

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.attention_masks import Masks, combined
from ..ir.blocks import body, erase_dead, functions
from ..ir.claims import is_taken
from ..ir.module_pass import module_pass
from ..ir.terms import fused_location, is_float_tensor, is_private, number
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import argument, defining
from ..ir.view_chains import dims_of, movement_of, permuted, reshaped, simplified
from ..ops.spec import Reshape
from ..ops.strides import Dims
from ..targets.target import Target, find_target

ATTENTION = "torch.aten.scaled_dot_product_attention"
PRODUCTS = ("torch.aten.matmul", "torch.aten.bmm")
_SOFTMAX = ("torch.aten.softmax.int", "torch.aten._softmax")
_MUL = ("torch.aten.mul.Tensor", "torch.aten.mul.Scalar")
_DIV = ("torch.aten.div.Tensor", "torch.aten.div.Scalar")
_BROADCASTS = ("torch.aten.broadcast_to", "torch.aten.expand")
_BATCH_RANKS = (1, 2)


@dataclass
class Attention:
    """What was recognized.

    Attributes:
        q, keys, v: operands of the products; `keys` are transposed, (..., d, s_kv).
        batch: dims in front of the scores' last two, where the masks apply.
        scale: factor of the scores.
        masks: what is added to them or hides some of them.
        operations: everything that becomes the one op.
    """

    q: Any
    keys: Any
    v: Any
    batch: Dims
    scale: float
    masks: Masks
    operations: list[Any]


@module_pass("hipdnn-fuse-attention")
def fuse_attention(module: Any, *, target: str = "host") -> None:
    """Recognize `softmax(q k^T * scale + mask) v` and write it as `torch.aten.scaled_dot_product_attention` where an engine takes it.

    The scale may be on q, k or the scores; the mask added, or chosen by a where; around softmax there may be casts and the guard
    (isnan, where) against rows that see nothing; keys and values may be repeated for groups of heads, and heads be a part of the batch.
    A constant causal mask becomes `is_causal`. A query that sees nothing gets 0: what the guard gives, and NaN without it.

    Before: `%s = torch.aten.matmul %q, %kt`; `%p = torch.aten.softmax.int %s, ...`; `%y = torch.aten.matmul %p, %v`.
    After: `%y = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, ...` where `%k` is `%kt` before its transposition.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in functions(module):
        for operation in body(function):
            if operation.name in PRODUCTS:
                match = _match(operation)
                if match is not None:
                    _replace(operation, match, library)
        erase_dead(function)


def _match(root: Any) -> Attention | None:
    """The attention that ends in the product `root`."""
    operations: list[Any] = []
    softmax = _unguarded(_through(root.operands[0], operations), operations)
    if softmax is None or argument(softmax.operands[1]) not in (-1, len(dims_of(softmax.operands[0])) - 1):
        return None
    operations.append(softmax)
    found = _scores(softmax.operands[0], operations)
    if found is None or not is_private(operations, root):
        return None
    product, batch, scale, masks = found
    (q, on_q), (keys, on_keys) = (_unscaled(operand, operations) for operand in product.operands)
    return Attention(q, keys, root.operands[1], batch, scale * on_q * on_keys, masks, [*operations, root])


def _through(value: Any, operations: list[Any]) -> Any:
    """Look through casts between floats and through reshapes of the dims before the last two."""
    while True:
        source: Any = defining(value)
        if source is None or not len(source.operands) or not is_float_tensor(source.operands[0]):
            return value
        is_reshape = (
            isinstance(movement_of(source), Reshape) and dims_of(source.operands[0])[-2:] == dims_of(value)[-2:]
        )
        if source.name != "torch.aten.to.dtype" and not is_reshape:
            return value
        operations.append(source)
        value = source.operands[0]


def _unguarded(value: Any, operations: list[Any]) -> Any | None:
    """The softmax that a value is, or that is behind `where(isnan(p), 0, p)`."""
    source: Any = defining(value)
    if source is not None and source.name == "torch.aten.where.self":
        test: Any = defining(source.operands[0])
        kept = source.operands[2]
        if (
            test is None
            or test.name != "torch.aten.isnan"
            or test.operands[0] != kept
            or number(source.operands[1]) != 0
        ):
            return None
        operations += [source, test]
        source = defining(_through(kept, operations))
    return source if source is not None and source.name in _SOFTMAX else None


def _scores(value: Any, operations: list[Any]) -> tuple[Any, Dims, float, Masks] | None:
    """From the softmax's operand to the product of q and k: that product, the batch dims, the scale and the masks."""
    scale, masks, levels, masked = 1.0, Masks(), [dims_of(value)[:-2]], set[Dims]()
    while True:
        value = _through(value, operations)
        dims = dims_of(value)
        levels.append(dims[:-2])
        source: Any = defining(value)
        if source is None:
            return None
        operations.append(source)
        if source.name in PRODUCTS:
            batch = _batch(levels, masked)
            return None if batch is None else (source, batch, scale, masks)
        factor = _factor(source)
        if factor is not None:
            value, scale = factor[0], scale * factor[1]
            continue
        value = masks.take(source, dims)
        if value is None or scale != 1.0:  # which scales the mask too
            return None
        masked.add(dims[:-2])


def _batch(levels: list[Dims], masked: set[Dims]) -> Dims | None:
    """The dims before the last two where masks apply; without masks, the most of them."""
    fitting = sorted((level for level in masked or levels if len(level) in _BATCH_RANKS), key=len)
    return fitting[-1] if fitting and len(masked) <= 1 else None


def _factor(operation: Any) -> tuple[Any, float] | None:
    """The tensor and the number of a product or quotient with a number."""
    if operation.name not in (*_MUL, *_DIV):
        return None
    a, b = operation.operands
    if number(a) is not None and operation.name in _MUL:
        a, b = b, a
    factor = number(b)
    if not factor or not is_tensor(a.type) or a.type != operation.results[0].type:
        return None
    return a, 1 / factor if operation.name in _DIV else factor


def _unscaled(value: Any, operations: list[Any]) -> tuple[Any, float]:
    """An operand in front of a product with a number, and the number."""
    source: Any = defining(value)
    factor = _factor(source) if source is not None and len(list(value.uses)) == 1 else None
    if factor is None:
        return value, 1.0
    operations.append(source)
    return factor


def _replace(root: Any, match: Attention, target: Target) -> None:
    """Put the one op in the root's place, unless no engine takes it."""
    with ir.InsertionPoint(root), fused_location(match.operations):
        made = _attention(match)
        if made is None or not is_taken(made, target):
            return
        result = reshaped(made.results[0], dims_of(root.results[0]))
    root.results[0].replace_all_uses_with(result)


def _attention(match: Attention) -> Any | None:
    """The op, at the current insertion point; None where q, k and v do not have the batch dims of the scores."""
    q = _with_batch(match.q, match.batch)
    k = _with_batch(_transposed(match.keys), match.batch)
    v = _with_batch(match.v, match.batch)
    if q is None or k is None or v is None or tensor_type(match.q.type).dtype is not tensor_type(v.type).dtype:
        return None
    dims, dtype = (*dims_of(q)[:-1], dims_of(v)[-1]), tensor_type(q.type).dtype
    mask = combined(match.masks)
    return ir.Operation.create(
        ATTENTION,
        results=[torch_tensor(dims, dtype)],
        operands=[
            q, k, v, torch.constant_none() if mask is None else mask, torch.constant_float(0.0),
            torch.constant_bool(match.masks.is_causal), torch.constant_float(match.scale),
            torch.constant_bool(dims_of(k)[:-2] != dims_of(q)[:-2] or dims_of(v)[:-2] != dims_of(q)[:-2]),
        ],
    )  # fmt: skip


def _transposed(value: Any) -> Any:
    rank = len(dims_of(value))
    return permuted(value, (*range(rank - 2), rank - 1, rank - 2))


def _with_batch(value: Any, batch: Dims) -> Any | None:
    """An operand with the given dims before its last two, or fewer heads where heads share it."""
    dims = dims_of(value)
    if dims[:-2] == (*batch[:-1], 1):
        return simplified(value)
    if _count(dims[:-2]) != _count(batch):
        return None
    value = simplified(reshaped(value, (*batch, *dims[-2:])))
    return _ungrouped(value)


def _count(dims: Dims) -> int:
    total = 1
    for size in dims:
        total *= size
    return total


def _ungrouped(value: Any) -> Any:
    """(b, g, s, d) where the value (b, g * t, s, d) repeats each of g heads t times; else the value."""
    dims, source = dims_of(value), defining(value)
    if len(dims) != 4 or source is None or not isinstance(movement_of(source), Reshape):
        return value
    repeat: Any = defining(source.operands[0])
    if repeat is None or repeat.name not in _BROADCASTS:
        return value
    before, after = dims_of(repeat.operands[0]), dims_of(repeat.results[0])
    b, heads, s, d = dims
    groups = before[1] if len(before) == 5 else 0
    if not groups or before != (b, groups, 1, s, d) or after != (b, groups, heads // groups, s, d):
        return value
    return simplified(reshaped(repeat.operands[0], (b, groups, s, d)))
