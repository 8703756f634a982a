"""hipdnn-merge-products: products of one value with several weights as one product."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import body, functions
from ..ir.constants import constant_values
from ..ir.module_pass import module_pass
from ..ir.terms import fused_location
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, defining
from ..ops.strides import Dims
from ..targets.target import find_target
from ..walks import operands_first

_PRODUCTS = ("torch.aten.matmul", "torch.aten.mm")


@module_pass("hipdnn-merge-products")
def merge_products(module: Any, *, target: str = "host") -> None:
    """Join products that share their left operand, weights side by side, and show each part of the result as a slice.

    For targets on which a kernel costs more to start than a view costs to read: queries, keys and values of attention, the two halves of a
    gated layer. Each product has constant weights, and all of them a constant bias of one dim, or none has.

    Before: `%q = matmul %x, %wq; %k = matmul %x, %wk`, `%wq[768, 768]` and `%wk[768, 768]`.
    After: `%qk = matmul %x, cat(%wq, %wk)` and two slices of it.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    if not find_target(target).merges_products:
        return
    for function in functions(module):
        groups: dict[Any, list[_Product]] = {}
        operations = body(function)
        constants = constant_values(function)
        order = {operation: index for index, operation in enumerate(operations)}
        for operation in operations:
            if (found := _product(operation, constants)) is not None:
                groups.setdefault((operation.operands[0], found.bias is None), []).append(found)
        for group in groups.values():
            if len(group) > 1:
                _merge(group, order)


@dataclass(frozen=True)
class _Product:
    """A product, and the sum with its bias where it has one."""

    operation: Any
    bias: Any = None
    sum: Any = None

    @property
    def result(self) -> Any:
        """What the rest of the program reads."""
        return (self.operation if self.sum is None else self.sum).results[0]

    @property
    def columns(self) -> int:
        """Columns of the weights."""
        return tensor_type(self.operation.operands[1].type).static_dims()[1]


def _product(operation: Any, constants: set[Any]) -> _Product | None:
    if operation.name not in _PRODUCTS:
        return None
    x, weight, result = (tensor_type(value.type) for value in (*operation.operands, operation.results[0]))
    if not (x.is_static and weight.is_static and result.is_static) or len(weight.dims) != 2 or len(x.dims) < 2:
        return None
    if operation.operands[0] in constants or operation.operands[1] not in constants:
        return None
    uses = list(operation.results[0].uses)
    reader = uses[0].owner.operation if len(uses) == 1 else None
    if reader is None or reader.name != "torch.aten.add.Tensor" or argument(reader.operands[2]) != 1:
        return _Product(operation)
    bias = next((value for value in list(reader.operands)[:2] if value != operation.results[0]), None)
    is_row = bias is not None and bias in constants and tensor_type(bias.type).dims == (weight.dims[1],)
    if not is_row or reader.results[0].type != operation.results[0].type:
        return _Product(operation)
    return _Product(operation, bias, reader)


def _hoist(value: Any, place: Any, order: dict[Any, int]) -> None:
    """Move the ops that compute a constant in front of an op, where they are behind it."""

    def behind(operands: Iterable[Any]) -> list[Any]:
        sources = (defining(operand) for operand in operands)
        return [source for source in sources if source is not None and order[source] >= order[place]]

    for root in behind([value]):
        for operation in operands_first(root, lambda op: behind(op.operands)):
            operation.move_before(place)
            order[operation] = order[place] - 1


def _merge(group: list[_Product], order: dict[Any, int]) -> None:
    """One product in front of the first of them."""
    first = group[0].operation
    operations = [op for found in group for op in (found.operation, found.sum) if op is not None]
    known = [value for found in group for value in (found.operation.operands[1], found.bias) if value is not None]
    with ir.InsertionPoint(first), fused_location(operations):
        for value in known:
            _hoist(value, first, order)
        dims = tensor_type(first.results[0].type).static_dims()
        total = sum(found.columns for found in group)
        weight = _joined([found.operation.operands[1] for found in group], 1)
        merged = _made(first.name, (*dims[:-1], total), first.operands[0], weight)
        if group[0].bias is not None:
            row = _joined([found.bias for found in group], 0)
            merged = _made("torch.aten.add.Tensor", (*dims[:-1], total), merged, row, torch.constant_int(1))
        start = 0
        for found in group:
            found.result.replace_all_uses_with(_columns(merged, start, start + found.columns))
            start += found.columns
    for operation in reversed(operations):
        operation.erase()


def _made(name: str, dims: Dims, like: Any, *operands: Any) -> Any:
    kind = torch_tensor(dims, tensor_type(like.type).dtype)
    return ir.Operation.create(name, results=[kind], operands=[like, *operands]).result


def _joined(values: list[Any], axis: int) -> Any:
    kinds = [tensor_type(value.type) for value in values]
    dims = list(kinds[0].static_dims())
    dims[axis] = sum(kind.static_dims()[axis] for kind in kinds)
    parts = ir.Operation.create(
        "torch.prim.ListConstruct", results=[ir.Type.parse("!torch.list<vtensor>")], operands=values
    ).result
    joined = torch_tensor(tuple(dims), kinds[0].dtype)
    return ir.Operation.create("torch.aten.cat", results=[joined], operands=[parts, torch.constant_int(axis)]).result


def _columns(value: Any, start: int, end: int) -> Any:
    dims = tensor_type(value.type).static_dims()
    axis = len(dims) - 1
    numbers = [torch.constant_int(number) for number in (axis, start, end, 1)]
    return _made("torch.aten.slice.Tensor", (*dims[:-1], end - start), value, *numbers)
