"""hipdnn-split-rotary: rotary embedding that exporters write with a rotated copy is computed half by half."""

from dataclasses import dataclass
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, erase_dead, functions
from ..ir.module_pass import module_pass
from ..ir.terms import fused_location, is_float_tensor, is_private
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, defining
from ..ir.view_chains import dims_of, movement_of
from ..ops.spec import Concat, Slice

_MUL = "torch.aten.mul.Tensor"


@dataclass(frozen=True)
class Rotary:
    """x * cos + (-x[half:], x[:half]) * sin over the last dim."""

    x: Any
    cos: Any
    sin: Any
    operations: list[Any]


@module_pass("hipdnn-split-rotary")
def split_rotary(module: Any) -> None:
    """Write `x * cos + rotate_half(x) * sin` as products of the halves, joined: no rotated copy of x is made.

    Each half is one region that reads slices in place and writes its half of the result in place.

    Before: `%r = torch.aten.cat [-%b, %a]` of the halves of %x; `%u = torch.aten.mul.Tensor %x, %cos`;
    `%v = torch.aten.mul.Tensor %r, %sin`; `%y = torch.aten.add.Tensor %u, %v`.
    After: `torch.aten.cat [%a * %cos_a - %b * %sin_a, %b * %cos_b + %a * %sin_b]`.
    """
    for function in functions(module):
        for operation in body(function):
            if operation.name == "torch.aten.add.Tensor" and is_float_tensor(operation.results[0]):
                match = _match(operation)
                if match is not None:
                    _replace(operation, match)
        erase_dead(function)


def _match(root: Any) -> Rotary | None:
    if argument(root.operands[2]) != 1:
        return None
    for straight, turned in ((0, 1), (1, 0)):
        u, v = defining(root.operands[straight]), defining(root.operands[turned])
        if u is None or v is None or u.name != _MUL or v.name != _MUL:
            continue
        for first in (0, 1):
            found = _rotated(v.operands[first])
            if found is None or found[0] not in u.operands or found[0].type != root.results[0].type:
                continue
            x, operations = found
            cos = u.operands[1] if u.operands[0] == x else u.operands[0]
            if is_private([u, v, *operations], root):
                return Rotary(x, cos, v.operands[1 - first], [u, v, *operations, root])
    return None


def _rotated(value: Any) -> tuple[Any, list[Any]] | None:
    """X where the value is its halves (-b, a) joined along the last dim, and the ops that make it."""
    join: Any = defining(value)
    move = movement_of(join)
    rank = len(dims_of(value)) if is_float_tensor(value) else 0
    if not isinstance(move, Concat) or move.axis != rank - 1:
        return None
    listed: Any = defining(join.operands[0])
    parts = list(listed.operands)
    negation = defining(parts[0])
    if len(parts) != 2 or negation is None or negation.name != "torch.aten.neg":
        return None
    halves = [_half(negation.operands[0]), _half(parts[1])]
    if halves[0] is None or halves[1] is None or halves[0][0] != halves[1][0] or (halves[0][1], halves[1][1]) != (1, 0):
        return None
    return halves[0][0], [join, listed, negation]


def _half(value: Any) -> tuple[Any, int] | None:
    """The tensor of whose last dim the value is a half, and which half."""
    source: Any = defining(value)
    move = movement_of(source)
    if not isinstance(move, Slice):
        return None
    dims = dims_of(source.operands[0])
    half = dims[-1] // 2
    whole = move.sizes[:-1] == dims[:-1] and set(move.steps) == {1}
    if not whole or move.sizes[-1] != half or 2 * half != dims[-1] or move.offsets[-1] not in (0, half):
        return None
    return source.operands[0], int(move.offsets[-1] == half)


def _replace(root: Any, match: Rotary) -> None:
    with ir.InsertionPoint(root), fused_location(match.operations):
        (a, b), (cos_a, cos_b), (sin_a, sin_b) = (_halves(value, match.x) for value in (match.x, match.cos, match.sin))
        first = _combined("torch.aten.sub.Tensor", _product(a, cos_a), _product(b, sin_a))
        second = _combined("torch.aten.add.Tensor", _product(b, cos_b), _product(a, sin_b))
        parts = ir.Operation.create(
            "torch.prim.ListConstruct", results=[ir.Type.parse("!torch.list<vtensor>")], operands=[first, second]
        ).result
        axis = torch.constant_int(len(dims_of(match.x)) - 1)
        joined = ir.Operation.create("torch.aten.cat", results=[match.x.type], operands=[parts, axis]).result
    root.results[0].replace_all_uses_with(joined)


def _halves(value: Any, x: Any) -> tuple[Any, Any]:
    """The two halves of the last dim, or the value twice where that broadcasts."""
    dims = dims_of(value)
    if not dims or dims[-1] != dims_of(x)[-1]:
        return value, value
    half = dims[-1] // 2
    kind = torch_tensor((*dims[:-1], half), tensor_type(value.type).dtype)
    last, one = torch.constant_int(len(dims) - 1), torch.constant_int(1)
    made = [
        ir.Operation.create(
            "torch.aten.slice.Tensor",
            results=[kind],
            operands=[value, last, torch.constant_int(start), torch.constant_int(start + half), one],
        ).result
        for start in (0, half)
    ]
    return made[0], made[1]


def _product(x: Any, factor: Any) -> Any:
    return ir.Operation.create(_MUL, results=[x.type], operands=[x, factor]).result


def _combined(name: str, u: Any, v: Any) -> Any:
    return ir.Operation.create(name, results=[u.type], operands=[u, v, torch.constant_int(1)]).result
