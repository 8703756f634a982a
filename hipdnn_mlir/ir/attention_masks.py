"""Masks of attention: what is added to the scores or hides some of them, collected and written as one operand."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch

from ..dtypes import BF16, BOOL, F32, DType
from ..ops.evaluate import Array
from ..ops.spec import Reshape, Slice
from ..ops.strides import Dims, broadcast
from .literals import literal_array, splat
from .terms import number
from .types import is_tensor, tensor_type, torch_tensor
from .view import defining
from .view_chains import dims_of, movement_of

HIDDEN = -3e4
"""A score that is lowered by this much has no weight beside one that is not, in every type that models use."""
_MAX_DEPTH = 10
_PRODUCTS = ("torch.aten.matmul", "torch.aten.bmm")


@dataclass
class Masks:
    """What was found between the product of q and k and the softmax.

    Attributes:
        added: tensors added to the scores.
        visible: conditions (bool) with the number that scores become where they do not hold, and whether they are the other way round.
        is_causal: a constant mask that hides what is above the diagonal was among them.
    """

    added: list[Any] = field(default_factory=list)
    visible: list[tuple[Any, float, bool]] = field(default_factory=list)
    is_causal: bool = False

    def take(self, operation: Any, dims: Dims) -> Any | None:
        """The scores that a masking op reads, its mask taken in; None where the op is no mask of scores of `dims`."""
        taken = _added(operation) or _chosen(operation)
        if taken is None:
            return None
        scores, mask = taken
        if dims_of(scores) != dims or not _fits(mask[0], dims):
            return None
        if len(mask) == 1 and (constant := number(mask[0])) is not None and math.isfinite(constant):
            return scores  # softmax is the same for scores that are all higher
        if (
            len(mask) == 1
            and self.added
            and tensor_type(mask[0].type).dtype is not tensor_type(self.added[0].type).dtype
        ):
            return None
        causal = _hides(mask) if len(mask) == 1 else _shows_triangle(mask)
        if causal:
            self.is_causal = True
        elif len(mask) == 1:
            self.added.append(mask[0])
        else:
            self.visible.append(mask)
        return scores


def _fits(mask: Any, dims: Dims) -> bool:
    found = dims_of(mask)
    return len(found) <= len(dims) and broadcast(found, dims) == dims


def _added(operation: Any) -> tuple[Any, tuple[Any]] | None:
    """Scores and mask of a sum."""
    if operation.name != "torch.aten.add.Tensor" or number(operation.operands[2]) != 1:
        return None
    a, b = operation.operands[0], operation.operands[1]
    if _reaches_product(a):
        return a, (b,)
    return (b, (a,)) if _reaches_product(b) else None


def _chosen(operation: Any) -> tuple[Any, tuple[Any, float, bool]] | None:
    """Scores and condition of a where or a masked fill with a very negative number."""
    if operation.name == "torch.aten.where.self":
        condition, a, b = operation.operands
        inverted = number(a) is not None
        scores, fill = (b, number(a)) if inverted else (a, number(b))
    elif operation.name.startswith("torch.aten.masked_fill."):
        scores, condition, fill_operand = operation.operands
        fill, inverted = number(fill_operand), True
    else:
        return None
    if fill is None or fill > HIDDEN or not is_tensor(condition.type) or tensor_type(condition.type).dtype is not BOOL:
        return None
    return scores, (condition, fill, inverted)


def _reaches_product(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Whether a product is behind a value, through what may stand between it and the softmax."""
    source: Any = defining(value)
    if source is None or depth == 0:
        return False
    if source.name in _PRODUCTS:
        return True
    parts = ("mul", "div", "add", "where", "masked_fill", "to", "view", "reshape")
    if not source.name.startswith("torch.aten.") or source.name.split(".")[2] not in parts:
        return False
    return any(_reaches_product(operand, depth - 1) for operand in source.operands if is_tensor(operand.type))


def _hides(mask: tuple[Any]) -> bool:
    """Whether an added constant is 0 up to the diagonal and hides the rest."""
    if _is_marked_causal(mask[0]):
        return True
    array = _array(mask[0])
    lower = None if array is None else _lower_triangle(array)
    if array is None or lower is None:
        return False
    return bool((array[..., lower] == 0).all() and (array[..., ~lower] <= HIDDEN).all())


def _shows_triangle(mask: tuple[Any, float, bool]) -> bool:
    """Whether a constant condition holds up to the diagonal only."""
    array = _array(mask[0])
    lower = None if array is None else _lower_triangle(array)
    return array is not None and lower is not None and bool(((array != mask[2]) == lower).all())


def _lower_triangle(array: Array) -> Array | None:
    """True up to the diagonal, for an array with more than one row and column: others broadcast."""
    if array.ndim < 2 or min(array.shape[-2:]) < 2:
        return None
    return np.tri(*array.shape[-2:], dtype=bool)


def _array(value: Any) -> Array | None:
    """The elements of a literal under reshapes and slices, or None."""
    source: Any = defining(value)
    moves: list[Reshape | Slice] = []
    while source is not None and source.name != "torch.vtensor.literal":
        move = movement_of(source)
        if not isinstance(move, Reshape | Slice):
            return None
        moves.append(move)
        source = defining(source.operands[0])
    if source is None:
        return None
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
    lower = _lower_triangle(array) if array.dtype.kind == "f" or array.dtype == BF16.numpy else None
    if lower is None or (array[..., 0, 1:] > HIDDEN).any():  # the first row says no for almost every weight
        return False
    return bool((array[..., lower] == 0).all() and (array[..., ~lower] <= HIDDEN).all())


def _is_marked_causal(value: Any) -> bool:
    """Whether a value is a marked argument under reshapes that keep its last two dims and slices along its diagonal."""
    while (source := defining(value)) is not None:
        move, rows = movement_of(source), dims_of(value)[-2:]
        if isinstance(move, Reshape):
            keeps = dims_of(source.operands[0])[-2:] == rows
        else:
            keeps = isinstance(move, Slice) and move.offsets[-2:-1] == move.offsets[-1:] and set(move.steps) == {1}
        if not keeps or len(rows) != 2 or min(rows) < 2:
            return False
        value = source.operands[0]
    function = value.owner.owner.operation
    attributes = ir.ArrayAttr(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    number_of = ir.BlockArgument(value).arg_number
    return number_of < len(attributes) and CAUSAL_MASK in ir.DictAttr(attributes[number_of])


def combined(masks: Masks) -> Any | None:
    """One mask operand, made at the current insertion point: bool where conditions say it all, else added to the scores."""
    if not masks.added and all(fill == -math.inf for _, fill, _ in masks.visible):
        conditions = [_inverted(condition) if inverted else condition for condition, _, inverted in masks.visible]
        return _joined("torch.aten.logical_and", conditions, BOOL)
    dtype = tensor_type(masks.added[0].type).dtype if masks.added else F32
    penalties = [_penalty(*condition, dtype) for condition in masks.visible]
    return _joined("torch.aten.add.Tensor", [*masks.added, *penalties], dtype, torch.constant_int(1))


def _inverted(condition: Any) -> Any:
    return ir.Operation.create("torch.aten.logical_not", results=[condition.type], operands=[condition]).result


def _penalty(condition: Any, fill: float, inverted: bool, dtype: DType) -> Any:
    """0 where the condition shows a score, `fill` where it hides it."""
    shown, hidden = splat(0.0, (), dtype), splat(fill, (), dtype)
    kind = torch_tensor(dims_of(condition), dtype)
    operands = [condition, hidden, shown] if inverted else [condition, shown, hidden]
    return ir.Operation.create("torch.aten.where.self", results=[kind], operands=operands).result


def _joined(name: str, parts: list[Any], dtype: DType, *more: Any) -> Any | None:
    """The parts in one operand, with broadcasting; None where there are none."""
    whole = None
    for part in parts:
        if whole is None:
            whole = part
            continue
        dims = broadcast(dims_of(whole), dims_of(part)) or ()
        kind = torch_tensor(dims, dtype)
        whole = ir.Operation.create(name, results=[kind], operands=[whole, part, *more]).result
    return whole
