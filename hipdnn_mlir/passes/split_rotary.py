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
from ..ir.view_chains import dims_of, joined, movement_of, sliced
from ..ops.spec import Concat, Slice


@dataclass(frozen=True)
class Rotary:
    """x * cos + (-x[half:], x[:half]) * sin over the last dim."""

    x: ir.Value
    cos: ir.Value
    sin: ir.Value
    operations: list[ir.OpView]


@module_pass("hipdnn-split-rotary")
def split_rotary(module: ir.Operation) -> None:
    """Write `x * cos + rotate_half(x) * sin` as products of the halves, joined: no rotated copy of x is made.

    Each half is one region that reads slices in place and writes its half of the result in place.

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
    with fused_location(match.operations):
        (a, b), (cos_a, cos_b), (sin_a, sin_b) = (_halves(value, match.x) for value in (match.x, match.cos, match.sin))
        kind, one = a.type, torch.constant_int(1)
        first = torch.aten_sub_Tensor(kind, _product(a, cos_a), _product(b, sin_a), one)
        second = torch.aten_add_Tensor(kind, _product(b, cos_b), _product(a, sin_b), one)
        halves = joined([first, second], len(dims_of(match.x)) - 1)
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
            if found is None or found[0] not in (u.self_, u.other) or found[0].type != root.result.type:
                continue
            x, operations = found
            cos = u.other if u.self_ == x else u.self_
            if is_private([u, v, *operations], root):
                return Rotary(x, cos, sin, [u, v, *operations, root])
    return None


def _rotated(value: ir.Value) -> tuple[ir.Value, list[ir.OpView]] | None:
    """X where the value is its halves (-b, a) joined along the last dim, and the ops that make it."""
    join = producer(value)
    move = movement_of(join)
    rank = len(dims_of(value)) if is_float_tensor(value) else 0
    if not isinstance(join, torch.AtenCatOp) or not isinstance(move, Concat) or move.axis != rank - 1:
        return None
    listed: torch.PrimListConstructOp = producer(join.tensors)
    parts = list(listed.elements)
    negation = producer(parts[0])
    if len(parts) != 2 or not isinstance(negation, torch.AtenNegOp):
        return None
    second, first = _half(negation.self_), _half(parts[1])
    if first is None or second is None or first[0] != second[0] or (first[1], second[1]) != (0, 1):
        return None
    return first[0], [join, listed, negation]


def _half(value: ir.Value) -> tuple[ir.Value, int] | None:
    """The tensor of whose last dim the value is a half, and which half."""
    source: ir.OpView = producer(value)
    move = movement_of(source)
    if not isinstance(move, Slice):
        return None
    dims = dims_of(source.operands[0])
    half = dims[-1] // 2
    whole = move.sizes[:-1] == dims[:-1] and set(move.steps) == {1}
    if not whole or move.sizes[-1] != half or 2 * half != dims[-1] or move.offsets[-1] not in (0, half):
        return None
    return source.operands[0], int(move.offsets[-1] == half)


def _halves(value: ir.Value, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The two halves of the last dim, or the value twice where that broadcasts."""
    dims = dims_of(value)
    if not dims or dims[-1] != dims_of(x)[-1]:
        return value, value
    axis, half = len(dims) - 1, dims[-1] // 2
    return sliced(value, axis, 0, half), sliced(value, axis, half, dims[-1])


def _product(x: ir.Value, factor: ir.Value) -> ir.Value:
    return torch.aten_mul_Tensor(x.type, x, factor)
