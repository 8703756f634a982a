"""hipdnn-split-rotary: rotary embedding that exporters write with a rotated copy is computed half by half."""

from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from ..ir.blocks import erase_dead, functions
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import fused_location, is_float_tensor, is_private
from ..ir.view import argument, producer
from ..ir.view_chains import dims_of, joined, movement_of, reshaped, sliced
from ..ops.spec import Concat, Reshape, Slice
from ..ops.strides import Dims


@dataclass(frozen=True)
class Rotated:
    """The halves (-b, a) of x over the last dim: those before and behind the middle, or every second element.

    Attributes:
        x: the tensor.
        steps: 1, or 2 where a has the elements of even index.
        operations: what makes it of x.
    """

    x: ir.Value
    steps: int
    operations: list[ir.OpView]


@dataclass(frozen=True)
class Rotary:
    """x * cos + rotated * sin."""

    rotated: Rotated
    cos: ir.Value
    sin: ir.Value
    operations: list[ir.OpView]


@module_pass("hipdnn-split-rotary")
def split_rotary(module: ir.Operation) -> None:
    """Write `x * cos + rotated(x) * sin` as products of the halves, joined: no rotated copy of x is made.

    Each half is one region that reads slices in place and writes its half of the result in place. Halves are those of the last dim, or
    its elements of even and of odd index.

    Before: `%r = torch.aten.cat [-%b, %a]` of the halves of %x; `%u = torch.aten.mul.Tensor %x, %cos`;
    `%v = torch.aten.mul.Tensor %r, %sin`; `%y = torch.aten.add.Tensor %u, %v`.
    After: `torch.aten.cat [%a * %cos_a - %b * %sin_a, %b * %cos_b + %a * %sin_b]`.
    """
    rewrite_ops(module, _split)
    for function in functions(module):
        erase_dead(function)


def _split(op: torch.AtenAddTensorOp, rewriter: PatternRewriter) -> bool:
    """The sum that ends a rotary embedding."""
    match = _match(op) if is_float_tensor(op.result) else None
    if match is None:
        return False
    rotated, dims = match.rotated, dims_of(op.result)
    with fused_location(match.operations):
        (a, b), (cos_a, cos_b), (sin_a, sin_b) = (
            _halves(value, rotated) for value in (rotated.x, match.cos, match.sin)
        )
        kind, one = a.type, torch.constant_int(1)
        first = torch.aten_sub_Tensor(kind, _product(a, cos_a), _product(b, sin_a), one)
        second = torch.aten_add_Tensor(kind, _product(b, cos_b), _product(a, sin_b), one)
        if rotated.steps > 1:
            first, second = (reshaped(half, (*dims_of(half), 1)) for half in (first, second))
        halves = reshaped(joined([first, second], len(dims_of(first)) - 1), dims)
    rewriter.replace_op(op, [halves])
    return True


def _match(root: torch.AtenAddTensorOp) -> Rotary | None:
    if argument(root.alpha) != 1:
        return None
    for straight, turned in ((root.self_, root.other), (root.other, root.self_)):
        u, v = producer(straight), producer(turned)
        if not isinstance(u, torch.AtenMulTensorOp) or not isinstance(v, torch.AtenMulTensorOp):
            continue
        for rotated, sin in ((v.self_, v.other), (v.other, v.self_)):
            found = _rotated(rotated)
            if found is None or found.x not in (u.self_, u.other) or found.x.type != root.result.type:
                continue
            cos = u.other if u.self_ == found.x else u.self_
            if is_private([u, v, *found.operations], root):
                return Rotary(found, cos, sin, [u, v, *found.operations, root])
    return None


def _rotated(value: ir.Value) -> Rotated | None:
    """What a value is the rotation of."""
    if not is_float_tensor(value) or not dims_of(value):
        return None
    *rows, size = dims_of(value)
    join, operations, steps = producer(value), list[ir.OpView](), 1
    if (
        join is not None
        and isinstance(movement_of(join), Reshape)
        and dims_of(join.operands[0]) == (*rows, size // 2, 2)
    ):
        operations, steps, join = [join], 2, producer(join.operands[0])
    move = movement_of(join)
    if not isinstance(join, torch.AtenCatOp) or not isinstance(move, Concat):
        return None
    if move.axis != len(dims_of(join.result)) - 1:
        return None
    listed: torch.PrimListConstructOp = producer(join.tensors)
    operations += [join, listed]
    parts = [_without_reshape(part, operations) if steps > 1 else part for part in listed.elements]
    negation = producer(parts[0])
    if len(parts) != 2 or not isinstance(negation, torch.AtenNegOp):
        return None
    second, first = _half(negation.self_, steps), _half(parts[1], steps)
    if first is None or second is None or first[0] != second[0] or (first[1], second[1]) != (0, 1):
        return None
    return Rotated(first[0], steps, [*operations, negation])


def _without_reshape(value: ir.Value, operations: list[ir.OpView]) -> ir.Value:
    """What a reshape that appends a dim of one element reads."""
    source = producer(value)
    if source is None or not isinstance(movement_of(source), Reshape):
        return value
    if (*dims_of(source.operands[0]), 1) != dims_of(value):
        return value
    operations.append(source)
    return source.operands[0]


def _half(value: ir.Value, steps: int) -> tuple[ir.Value, int] | None:
    """The tensor of whose last dim the value is a half, and which half."""
    source: ir.OpView = producer(value)
    move = movement_of(source)
    if not isinstance(move, Slice):
        return None
    dims = dims_of(source.operands[0])
    half = dims[-1] // 2
    ones: Dims = (1,) * (len(dims) - 1)
    if 2 * half != dims[-1] or move.sizes != (*dims[:-1], half) or move.steps != (*ones, steps):
        return None
    starts = (0, half) if steps == 1 else (0, 1)
    return (source.operands[0], starts.index(move.offsets[-1])) if move.offsets[-1] in starts else None


def _halves(value: ir.Value, rotated: Rotated) -> tuple[ir.Value, ir.Value]:
    """The two halves of the last dim, or the value twice where that broadcasts."""
    dims, size = dims_of(value), dims_of(rotated.x)[-1]
    if not dims or dims[-1] != size:
        return value, value
    axis, half = len(dims) - 1, size // 2
    if rotated.steps > 1:
        return sliced(value, axis, 0, size, rotated.steps), sliced(value, axis, 1, size, rotated.steps)
    return sliced(value, axis, 0, half), sliced(value, axis, half, size)


def _product(x: ir.Value, factor: ir.Value) -> ir.Value:
    return torch.aten_mul_Tensor(x.type, x, factor)
