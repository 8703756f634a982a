"""hipdnn-split-rotary: rotary embedding that exporters write with a rotated copy is computed half by half."""

from dataclasses import dataclass, replace

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.constants import constant_values
from ..ir.module_pass import module_pass
from ..ir.terms import fused_location, is_float_tensor, is_private
from ..ir.view import argument, producer, readers
from ..ir.view_chains import dims_of, joined, movement_of, padded, reshaped, sliced
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

    Rows in front that are kept (a class token's) are rotated by constant tables of 1 and 0, where the others' tables are constant.

    Before: `%r = torch.aten.cat [-%b, %a]` of the halves of %x; `%u = torch.aten.mul.Tensor %x, %cos`;
    `%v = torch.aten.mul.Tensor %r, %sin`; `%y = torch.aten.add.Tensor %u, %v`.
    After: `torch.aten.cat [%a * %cos_a - %b * %sin_a, %b * %cos_b + %a * %sin_b]`.
    """
    for function in functions(module):
        constants = constant_values(function)
        for op in operations(function):
            if isinstance(op, torch.AtenAddTensorOp) and is_float_tensor(op.result):
                _split(op, constants)
        erase_dead(function)


def _split(op: torch.AtenAddTensorOp, constants: set[ir.Value]) -> None:
    """Write a sum that ends a rotary embedding otherwise."""
    match = _match(op)
    if match is None:
        return
    root = _with_kept_rows(match, op) if constants.issuperset((match.cos, match.sin)) else None
    with ir.InsertionPoint(root or op), fused_location(match.operations):
        whole = match if root is None else _padded(match, root)
        root = root or op
        rotated = whole.rotated
        (a, b), (cos_a, cos_b), (sin_a, sin_b) = (
            _halves(value, rotated) for value in (rotated.x, whole.cos, whole.sin)
        )
        kind, one = a.type, torch.constant_int(1)
        first = torch.aten_sub_Tensor(kind, _product(a, cos_a), _product(b, sin_a), one)
        second = torch.aten_add_Tensor(kind, _product(b, cos_b), _product(a, sin_b), one)
        if rotated.steps > 1:
            first, second = (reshaped(half, (*dims_of(half), 1)) for half in (first, second))
        halves = joined([first, second], len(dims_of(first)) - 1)
        root.result.replace_all_uses_with(reshaped(halves, dims_of(root.result)))


def _with_kept_rows(match: Rotary, op: torch.AtenAddTensorOp) -> torch.AtenCatOp | None:
    """What joins the first rows of a tensor and its other rows, rotated, where the tables have a row for each of those."""
    listed = _only_reader(op)
    join = None if listed is None else _only_reader(listed)
    rows, move = len(dims_of(op.result)) - 2, movement_of(join)
    if not isinstance(join, torch.AtenCatOp) or not isinstance(move, Concat) or move.axis != rows:
        return None
    if any(dims_of(table)[-2:] != dims_of(op.result)[-2:] for table in (match.cos, match.sin)):
        return None
    parts: torch.PrimListConstructOp = listed
    kept, *rest = parts.elements
    whole = _cut(match.rotated.x, rows, dims_of(kept)[rows])
    if whole is None or dims_of(whole) != dims_of(join.result):
        return None
    return join if rest == [op.result] and whole == _cut(kept, rows, 0) else None


def _only_reader(op: ir.OpView) -> ir.OpView | None:
    reading = readers(op.results[0])
    return reading[0] if len(reading) == 1 else None


def _cut(value: ir.Value, axis: int, start: int) -> ir.Value | None:
    """The tensor of which a value is what is next to each other from a start on along an axis."""
    source = producer(value)
    move = movement_of(source)
    if source is None or not isinstance(move, Slice) or set(move.steps) != {1}:
        return None
    starts = tuple(start * (number == axis) for number in range(len(move.offsets)))
    return source.operands[0] if move.offsets == starts else None


def _padded(match: Rotary, join: torch.AtenCatOp) -> Rotary:
    """The rotation of all rows of the tensor: those in front by 1 and 0."""
    rows = len(dims_of(join.result)) - 2
    count = dims_of(join.result)[rows] - dims_of(match.rotated.x)[rows]
    x = _cut(match.rotated.x, rows, count)
    cos, sin = (
        padded(table, [(0, 0)] * (len(dims_of(table)) - 2) + [(count, 0), (0, 0)], fill)
        for table, fill in ((match.cos, 1.0), (match.sin, 0.0))
    )
    return replace(match, rotated=replace(match.rotated, x=x), cos=cos, sin=sin)


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
