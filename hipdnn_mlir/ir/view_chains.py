"""Data movement at the current insertion point, and chains of reshapes and transposes seen as one of each, of the furthest tensor."""

from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.errors import Reject

from ..ops.spec import Movement, Permute, Refusal, Reshape
from ..ops.strides import Dims, packed, restride
from .literals import constant_list, tensor_list
from .types import tensor_type, torch_tensor
from .view import lookup, producer

BROADCASTS = (torch.AtenExpandOp, torch.AtenBroadcastToOp)
REPEATS = (*BROADCASTS, torch.AtenTileOp, torch.AtenRepeatOp)
"""Ops that repeat their first operand."""


def movement_of(op: ir.OpView | None) -> Movement | None:
    """What a data movement does, or None for any other op."""
    if op is None:
        return None
    found = lookup(op)
    if isinstance(found, Reject) or found[0].move is None:
        return None
    try:
        return found[0].move(found[1])
    except Refusal:
        return None


def dims_of(value: ir.Value) -> Dims:
    """Static dims of a tensor."""
    return tensor_type(value.type).static_dims()


def reshaped(value: ir.Value, dims: Dims) -> ir.Value:
    """`value` under other dims, made at the current insertion point where they differ."""
    if dims_of(value) == dims:
        return value
    kind = torch_tensor(dims, tensor_type(value.type).dtype)
    return torch.aten_view(kind, value, constant_list(dims))


def permuted(value: ir.Value, order: Dims) -> ir.Value:
    """Dim i of the result is dim order[i] of `value`; made at the current insertion point where it changes anything."""
    if order == tuple(range(len(order))):
        return value
    dims = dims_of(value)
    kind = torch_tensor(tuple(dims[axis] for axis in order), tensor_type(value.type).dtype)
    return torch.aten_permute(kind, value, constant_list(order))


def simplified(value: ir.Value) -> ir.Value:
    """The same tensor from the furthest op that has its elements, with at most one reshape and one transpose in between."""
    source, order = origin(value)
    dims = dims_of(value)
    stored = tuple(dims[axis] for axis in order)
    inverse = tuple(order.index(axis) for axis in range(len(order)))
    return permuted(reshaped(source, stored), inverse)


def is_copied(op: ir.OpView) -> bool:
    """Whether an op is a reshape of a transposed tensor whose strides do not show it."""
    source = producer(op.operands[0]) if isinstance(movement_of(op), Reshape) else None
    order = movement_of(source)
    if source is None or not isinstance(order, Permute):
        return False
    return _strides(dims_of(source.operands[0]), [order, Reshape(dims_of(op.results[0]))]) is None


def origin(value: ir.Value) -> tuple[ir.Value, Dims]:
    """The furthest tensor that has the elements of `value`, and the dims of `value` from the slowest to the fastest in that tensor."""
    dims = dims_of(value)
    best: tuple[ir.Value, Dims] = (value, tuple(range(len(dims))))
    moves: list[Movement] = []
    while True:
        op = producer(value)
        move = movement_of(op)
        if op is None or not isinstance(move, Reshape | Permute):
            return best
        moves.insert(0, move)
        value = op.operands[0]
        strides = _strides(dims_of(value), moves)
        if strides is not None:
            best = (value, _stored_order(dims, strides))


def _strides(dims: Dims, moves: list[Movement]) -> Dims | None:
    """Strides in a packed tensor of `dims` of what the moves make of it, or None where no strides show it."""
    strides = packed(dims)
    for move in moves:
        if isinstance(move, Permute):
            dims, strides = tuple(dims[a] for a in move.order), tuple(strides[a] for a in move.order)
        elif isinstance(move, Reshape):
            seen = restride(dims, strides, move.dims)
            if seen is None:
                return None
            dims, strides = move.dims, seen
    return strides


def _stored_order(dims: Dims, strides: Dims) -> Dims:
    """Axes from the slowest; axes of size 1 stay in place where the others do."""
    axes = [axis for axis, size in enumerate(dims) if size != 1]
    if sorted(axes, key=lambda axis: -strides[axis]) == axes:
        return tuple(range(len(dims)))
    return tuple(sorted(range(len(dims)), key=lambda axis: (-strides[axis], axis)))


def padded(value: ir.Value, borders: Sequence[tuple[int, int]], fill: float = 0.0) -> ir.Value:
    """Zeros or another number around the value: a pair of counts per dim."""
    if not any(map(any, borders)):
        return value
    sizes = tuple(low + size + high for size, (low, high) in zip(dims_of(value), borders, strict=True))
    counts = tuple(count for border in reversed(borders) for count in border)
    dtype = tensor_type(value.type).dtype
    kind = torch_tensor(sizes, dtype)
    number = torch.constant_float(fill) if dtype.is_float else torch.constant_int(int(fill))
    return torch.aten_constant_pad_nd(kind, value, constant_list(counts), number)


def sliced(value: ir.Value, axis: int, start: int, end: int, step: int = 1) -> ir.Value:
    """Every `step`-th element from `start` up to `end` along an axis."""
    dims = dims_of(value)
    size = len(range(start, end, step))
    kind = torch_tensor((*dims[:axis], size, *dims[axis + 1 :]), tensor_type(value.type).dtype)
    return torch.aten_slice_Tensor(kind, value, *map(torch.constant_int, (axis, start, end, step)))


def joined(values: Sequence[ir.Value], axis: int) -> ir.Value:
    """Tensors side by side along an axis."""
    dims = dims_of(values[0])
    size = sum(dims_of(value)[axis] for value in values)
    kind = torch_tensor((*dims[:axis], size, *dims[axis + 1 :]), tensor_type(values[0].type).dtype)
    return torch.aten_cat(kind, tensor_list(values), torch.constant_int(axis))
