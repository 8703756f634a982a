"""hipdnn-merge-matmuls: matmuls of one value with several weights as one matmul."""

from collections.abc import Iterable
from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch

from hipdnn_mlir_runtime.walks import operands_first

from ..ir.blocks import functions, operations
from ..ir.constants import constant_values
from ..ir.module_pass import module_pass
from ..ir.terms import fused_location
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, producer, readers
from ..ir.view_chains import dims_of, joined, sliced
from ..targets.table import find_target

_ACTIVATIONS = (
    torch.AtenSiluOp, torch.AtenGeluOp, torch.AtenSigmoidOp, torch.AtenReluOp, torch.AtenTanhOp,
)  # fmt: skip


@module_pass("hipdnn-merge-matmuls")
def merge_matmuls(module: ir.Operation, *, target: str = "host") -> None:
    """Join matmuls that share their left operand, weights side by side, and show each part of the result as a slice.

    For targets on which a kernel costs more to start than a view costs to read: queries, keys and values of attention. Each matmul has
    constant weights, and all of them a constant bias of one dim, or none has. The two halves of a gated layer stay apart, since kernels
    multiply one by the other as they write it.

    Before: `%q = matmul %x, %wq; %k = matmul %x, %wk`, `%wq[768, 768]` and `%wk[768, 768]`.
    After: `%qk = matmul %x, cat(%wq, %wk)` and two slices of it.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    if not find_target(target).merges_matmuls:
        return
    for function in functions(module):
        groups: dict[tuple[ir.Value, bool], list[_Matmul]] = {}
        ops = operations(function)
        constants = constant_values(function)
        order = {op: index for index, op in enumerate(ops)}
        for op in ops:
            if isinstance(op, torch.AtenMatmulOp | torch.AtenMmOp) and _is_of_constant(op, constants):
                found = _matmul(op, constants)
                groups.setdefault((op.self_, found.bias is None), []).append(found)
        for group in groups.values():
            if len(group) > 1 and not _is_gated(group):
                _merge(group, order)


@dataclass(frozen=True)
class _Matmul:
    """A matmul, and the sum with its bias where it has one."""

    op: torch.AtenMatmulOp | torch.AtenMmOp
    bias: ir.Value | None = None
    sum: torch.AtenAddTensorOp | None = None

    @property
    def weight(self) -> ir.Value:
        """The right operand."""
        return self.op.operands[1]

    @property
    def result(self) -> ir.Value:
        """What the rest of the program reads."""
        return (self.op if self.sum is None else self.sum).result

    @property
    def columns(self) -> int:
        """Columns of the weights."""
        return dims_of(self.weight)[1]


def _is_of_constant(op: torch.AtenMatmulOp | torch.AtenMmOp, constants: set[ir.Value]) -> bool:
    """Whether a matmul has constant weights of two dims, and nothing else constant."""
    x, weight, result = (tensor_type(value.type) for value in (*op.operands, op.result))
    if not (x.is_static and weight.is_static and result.is_static) or len(weight.dims) != 2 or len(x.dims) < 2:
        return False
    left, right = op.operands
    return left not in constants and right in constants


def _matmul(op: torch.AtenMatmulOp | torch.AtenMmOp, constants: set[ir.Value]) -> _Matmul:
    reading = readers(op.result)
    add = reading[0] if len(reading) == 1 else None
    if not isinstance(add, torch.AtenAddTensorOp) or argument(add.alpha) != 1:
        return _Matmul(op)
    bias = add.other if add.self_ == op.result else add.self_
    is_row = bias in constants and tensor_type(bias.type).dims == dims_of(op.result)[-1:]
    return _Matmul(op, bias, add) if is_row and add.result.type == op.result.type else _Matmul(op)


def _is_gated(group: list[_Matmul]) -> bool:
    """Whether they are two, and one or an activation of it is multiplied by the other."""
    if len(group) != 2:
        return False
    return bool(_products(group[0].result) & _products(group[1].result))


def _products(value: ir.Value) -> set[ir.OpView]:
    """The multiplications of a value, or of what alone is computed from it."""
    reading = readers(value)
    if len(reading) == 1 and isinstance(reading[0], _ACTIVATIONS):
        reading = readers(reading[0].result)
    return {op for op in reading if isinstance(op, torch.AtenMulTensorOp)}


def _hoist(value: ir.Value, place: ir.OpView, order: dict[ir.OpView, int]) -> None:
    """Move the ops that compute a constant in front of an op, where they are behind it."""

    def behind(operands: Iterable[ir.Value]) -> list[ir.OpView]:
        sources = (producer(operand) for operand in operands)
        return [source for source in sources if source is not None and order[source] >= order[place]]

    for root in behind([value]):
        for op in operands_first(root, lambda op: behind(op.operands)):
            op.move_before(place)
            order[op] = order[place] - 1


def _merge(group: list[_Matmul], order: dict[ir.OpView, int]) -> None:
    """One matmul in front of the first of them."""
    first = group[0].op
    parts = [op for found in group for op in (found.op, found.sum) if op is not None]
    biases = [found.bias for found in group if found.bias is not None]
    with ir.InsertionPoint(first), fused_location(parts):
        for value in (*(found.weight for found in group), *biases):
            _hoist(value, first, order)
        total = sum(found.columns for found in group)
        kind = torch_tensor((*dims_of(first.result)[:-1], total), tensor_type(first.self_.type).dtype)
        merged = type(first)(kind, first.self_, joined([found.weight for found in group], 1)).result
        if biases:
            merged = torch.aten_add_Tensor(kind, merged, joined(biases, 0), torch.constant_int(1))
        start, axis = 0, len(dims_of(merged)) - 1
        for found in group:
            found.result.replace_all_uses_with(sliced(merged, axis, start, start + found.columns))
            start += found.columns
    for op in reversed(parts):
        op.erase()
