"""Masks of attention: what is added to the scores or hides some of them, collected and written as one operand."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce

import ml_dtypes
import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.dtypes import BF16, BOOL, F32, I32, I64, DType

from ..ops.evaluate import Array
from ..ops.registry import ONNX
from ..ops.spec import Reshape, Slice
from ..ops.strides import Dims, broadcast
from .constants import argument_attributes
from .literals import constant_list, literal_array, splat
from .terms import number, without_casts
from .types import is_tensor, tensor_type, torch_tensor
from .view import producer
from .view_chains import dims_of, movement_of, reshaped

HIDDEN = -3e4
"""A score that is lowered by this much has no weight beside one that is not, in every type that models use."""
_MAX_DEPTH = 10
MATMULS = (torch.AtenMatmulOp, torch.AtenBmmOp)
_MASKED_FILLS = (torch.AtenMaskedFillScalarOp, torch.AtenMaskedFillTensorOp)
_UNDER_SOFTMAX = (
    torch.AtenMulTensorOp, torch.AtenMulScalarOp, torch.AtenDivTensorOp, torch.AtenDivScalarOp, torch.AtenAddTensorOp,
    torch.AtenAddScalarOp, torch.AtenWhereSelfOp, *_MASKED_FILLS, torch.AtenToDtypeOp, torch.AtenViewOp, torch.AtenReshapeOp,
)  # fmt: skip
"""What may stand between the matmul of q and k and the softmax."""


@dataclass(frozen=True)
class Added:
    """A tensor that is added to scores whose dims before the last two are `batch`."""

    value: ir.Value
    batch: Dims


@dataclass(frozen=True)
class Condition:
    """A bool tensor that shows scores where it holds, or where it does not, if inverted; the others become `fill`. `batch`: see `Added`."""

    value: ir.Value
    fill: float
    is_inverted: bool
    batch: Dims = ()


@dataclass
class Masks:
    """What was found between the matmul of q and k and the softmax.

    Attributes:
        added: what is added to the scores.
        visible: conditions on the scores.
        is_causal: a constant mask that hides what is above the diagonal was among them.
        keys: one of the conditions shows so many of the first keys: [1] or a scalar, of integers.
    """

    added: list[Added] = field(default_factory=list)
    visible: list[Condition] = field(default_factory=list)
    is_causal: bool = False
    keys: ir.Value | None = None

    def take(self, op: ir.OpView, dims: Dims) -> ir.Value | None:
        """The scores that a masking op reads, its mask taken in; None where the op is no mask of scores of `dims`."""
        found = _added(op) or _chosen(op)
        if found is None:
            return None
        scores, mask = found
        is_taken = dims_of(scores) == dims and (
            self._show(mask, dims) if isinstance(mask, Condition) else self._add(mask, dims)
        )
        return scores if is_taken else None

    def _add(self, mask: ir.Value, dims: Dims) -> bool:
        if not _fits(mask, dims):
            return False
        constant = number(mask)
        if constant is not None and math.isfinite(constant):
            return True  # softmax is the same for scores that are all higher
        if self.added and tensor_type(mask.type).dtype is not tensor_type(self.added[0].value.type).dtype:
            return False
        if _hides(mask):
            self.is_causal = True
        else:
            self.added.append(Added(mask, dims[:-2]))
        return True

    def _show(self, condition: Condition, dims: Dims) -> bool:
        if not _fits(condition.value, dims):
            return False
        if _shows_triangle(condition):
            self.is_causal = True
            return True
        self.visible.append(replace(condition, batch=dims[:-2]))
        self.keys = _shown_keys(condition) if self.keys is None else self.keys
        return True

    @property
    def beside_keys(self) -> "Masks":
        """The masks without the condition that `keys` stands for."""
        shown = [condition for condition in self.visible if _shown_keys(condition) != self.keys]
        return Masks(self.added, shown, self.is_causal)


def _shown_keys(condition: Condition) -> ir.Value | None:
    """The number of keys that `less(range, number)` shows."""
    source = producer(condition.value)
    if condition.is_inverted or condition.fill != -math.inf:
        return None
    if not isinstance(source, torch.AtenLtTensorOp) or math.prod(dims_of(source.other)) != 1:
        return None
    counted, dims = producer(source.self_), dims_of(source.self_)
    if not isinstance(counted, torch.OperatorOp) or counted.name.value != f"{ONNX}Range" or len(dims) != 1:
        return None
    start, _, step = map(_array, counted.operands)
    if start is None or step is None or (start.item(), step.item()) != (0, 1):
        return None
    return source.other if tensor_type(source.other.type).dtype in (I32, I64) else None


def _fits(mask: ir.Value, dims: Dims) -> bool:
    found = dims_of(mask)
    return len(found) <= len(dims) and broadcast(found, dims) == dims


def _added(op: ir.OpView) -> tuple[ir.Value, ir.Value] | None:
    """Scores and mask of a sum."""
    if not isinstance(op, torch.AtenAddTensorOp) or number(op.alpha) != 1:
        return None
    if _reaches_matmul(op.self_):
        return op.self_, op.other
    return (op.other, op.self_) if _reaches_matmul(op.other) else None


def _chosen(op: ir.OpView) -> tuple[ir.Value, Condition] | None:
    """Scores and condition of a where or a masked fill with a very negative number."""
    if isinstance(op, torch.AtenWhereSelfOp):
        condition, is_inverted = op.condition, number(op.self_) is not None
        scores, hidden = (op.other, op.self_) if is_inverted else (op.self_, op.other)
    elif isinstance(op, _MASKED_FILLS):
        scores, condition, hidden, is_inverted = op.self_, op.mask, op.value, True
    else:
        return None
    fill = number(hidden)
    if fill is None or fill > HIDDEN or not is_tensor(condition.type) or tensor_type(condition.type).dtype is not BOOL:
        return None
    return scores, Condition(condition, fill, is_inverted)


def _reaches_matmul(value: ir.Value, depth: int = _MAX_DEPTH) -> bool:
    """Whether a matmul is behind a value, through what may stand between it and the softmax."""
    source = producer(value)
    if source is None or depth == 0:
        return False
    if isinstance(source, MATMULS):
        return True
    return isinstance(source, _UNDER_SOFTMAX) and any(
        _reaches_matmul(operand, depth - 1) for operand in source.operands if is_tensor(operand.type)
    )


def _hides(mask: ir.Value) -> bool:
    """Whether an added constant is 0 up to the diagonal and hides the rest."""
    mask = _before_narrowing(mask)
    if _is_marked_causal(mask):
        return True
    array = _array(mask)
    lower = None if array is None else _lower_triangle(array)
    if array is None or lower is None:
        return False
    return bool((array[..., lower] == 0).all() and (array[..., ~lower] <= HIDDEN).all())


def _before_narrowing(mask: ir.Value) -> ir.Value:
    """A mask in front of its cast to another type of floats, and of bounds for that: what is 0 stays 0, and what hides does."""
    while True:
        mask = without_casts(mask)
        source = producer(mask)
        if not isinstance(source, torch.AtenMinimumOp | torch.AtenMaximumOp):
            return mask
        bound = number(source.other)
        if bound is None or (bound < 0 if isinstance(source, torch.AtenMinimumOp) else bound > HIDDEN):
            return mask
        mask = source.self_


def _shows_triangle(condition: Condition) -> bool:
    """Whether a constant condition holds up to the diagonal only."""
    array = _array(condition.value)
    lower = None if array is None else _lower_triangle(array)
    return array is not None and lower is not None and bool(((array != condition.is_inverted) == lower).all())


def _lower_triangle(array: Array) -> Array | None:
    """True up to the diagonal, for an array with more than one row and column: others broadcast."""
    if array.ndim < 2 or min(array.shape[-2:]) < 2:
        return None
    return np.tri(*array.shape[-2:], dtype=bool)


def _array(value: ir.Value) -> Array | None:
    """The elements of a literal under reshapes and slices, or None."""
    source = producer(value)
    moves: list[Reshape | Slice] = []
    while not isinstance(source, torch.ValueTensorLiteralOp):
        move = movement_of(source)
        if source is None or not isinstance(move, Reshape | Slice):
            return None
        moves.append(move)
        source = producer(source.operands[0])
    array = literal_array(source)
    for move in reversed(moves):
        if isinstance(move, Reshape):
            array = array.reshape(move.dims)
            continue
        window = zip(move.offsets, move.sizes, move.steps, strict=True)
        array = array[tuple(slice(start, start + size * step, step) for start, size, step in window)]
    return array.reshape(dims_of(value))


CAUSAL_MASK = "hipdnn.causal_mask"
"""Marks a constant argument that is 0 up to the diagonal of its last two dims and hides the rest; such a square anywhere on it does too."""


def is_causal_mask(array: Array) -> bool:
    """Whether an array earns the mark."""
    lower = _lower_triangle(array) if array.dtype.kind == "f" or array.dtype.name == BF16.numpy_name else None
    if lower is None or (array[..., 0, 1:] > HIDDEN).any():  # the first row says no for almost every weight
        return False
    return bool((array[..., lower] == 0).all() and (array[..., ~lower] <= HIDDEN).all())


def _is_marked_causal(value: ir.Value) -> bool:
    """Whether a value is a marked argument under reshapes that keep its last two dims and slices along its diagonal."""
    while (source := producer(value)) is not None:
        move, rows = movement_of(source), dims_of(value)[-2:]
        if isinstance(move, Reshape):
            keeps = dims_of(source.operands[0])[-2:] == rows
        else:
            keeps = isinstance(move, Slice) and move.offsets[-2:-1] == move.offsets[-1:] and set(move.steps) == {1}
        if not keeps or len(rows) != 2 or min(rows) < 2:
            return False
        value = source.operands[0]
    attributes = argument_attributes(value)
    return attributes is not None and CAUSAL_MASK in attributes


def combined(masks: Masks, batch: Dims) -> ir.Value | None:
    """One mask operand, made at the current insertion point: bool where conditions say it all, else added to the scores.

    Args:
        masks: what was found; the `batch` of each must be `joins` to this one.
        batch: dims of the scores before the last two.
    """
    visible = [replace(shown, value=_with_batch(shown.value, shown.batch, batch)) for shown in masks.visible]
    if not masks.added and all(condition.fill == -math.inf for condition in visible):
        return _joined(torch.aten_logical_and, [_shown(condition) for condition in visible], BOOL)
    added = [_with_batch(mask.value, mask.batch, batch) for mask in masks.added]
    dtype = tensor_type(added[0].type).dtype if added else F32
    penalties = [_penalty(condition, dtype) for condition in visible]
    return _joined(partial(torch.aten_add_Tensor, alpha=torch.constant_int(1)), [*added, *penalties], dtype)


def hidden_or_exact(number: float, dtype: DType) -> float | None:
    """A number of a mask in another type, where that changes nothing: one that the type has, or the least one for what hides a key."""
    with np.errstate(over="ignore"):
        own = float(dtype.numpy.type(number))
    if own == number:
        return own
    least: ml_dtypes.finfo = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]
    return float(least.min) if number <= HIDDEN else None


def joins(dims: Dims, batch: Dims) -> bool:
    """Whether adjacent dims become one each, as (2, 16, 3) becomes (32, 3)."""
    return _runs(dims, batch) is not None


def _runs(dims: Dims, batch: Dims) -> list[slice] | None:
    """The adjacent dims that become each dim of a batch; None where they do not."""
    found, at = [], 0
    for number_, size in enumerate(batch):
        stop = at
        while stop < len(dims) and (math.prod(dims[at:stop]) < size or number_ == len(batch) - 1 or stop == at):
            stop += 1
        if math.prod(dims[at:stop]) != size:
            return None
        found.append(slice(at, stop))
        at = stop
    return found if at == len(dims) else None


def _with_batch(mask: ir.Value, dims: Dims, batch: Dims) -> ir.Value:
    """A mask of scores with some dims before the last two as one of scores with a batch that those join to."""
    runs = _runs(dims, batch)
    if dims == batch or runs is None:
        return mask
    own = (1,) * (len(dims) + 2 - len(dims_of(mask))) + dims_of(mask)
    spread = list(own)
    for run in runs:
        if own[run] != dims[run] and math.prod(own[run]) > 1:  # it broadcasts along a part of what becomes one dim
            spread[run] = dims[run]
    mask = reshaped(mask, own)
    if tuple(spread) != own:
        kind = torch_tensor(tuple(spread), tensor_type(mask.type).dtype)
        mask = torch.aten_expand(kind, mask, constant_list(tuple(spread)), torch.constant_bool(False))
    return reshaped(mask, (*(math.prod(spread[run]) for run in runs), *own[-2:]))


def _shown(condition: Condition) -> ir.Value:
    """True where the condition shows a score."""
    value = condition.value
    return torch.aten_logical_not(value.type, value) if condition.is_inverted else value


def _penalty(condition: Condition, dtype: DType) -> ir.Value:
    """0 where the condition shows a score, `fill` where it hides it."""
    shown, hidden = splat(0.0, (), dtype), splat(condition.fill, (), dtype)
    holds, fails = (hidden, shown) if condition.is_inverted else (shown, hidden)
    kind = torch_tensor(dims_of(condition.value), dtype)
    return torch.aten_where_self(kind, condition.value, holds, fails)


def _joined(join: Callable[..., ir.Value], parts: Sequence[ir.Value], dtype: DType) -> ir.Value | None:
    """The parts in one operand, with broadcasting; None where there are none."""

    def pair(a: ir.Value, b: ir.Value) -> ir.Value:
        return join(torch_tensor(broadcast(dims_of(a), dims_of(b)) or (), dtype), a, b)

    return reduce(pair, parts) if parts else None
