"""hipdnn-fuse-group-norm: group norm written out around an instance norm is computed with the channels split, activation included."""

from collections.abc import Mapping

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import erase_dead, functions, operations
from ..ir.module_pass import module_pass
from ..ir.terms import number
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import argument, producer, readers
from ..ir.view_chains import dims_of, movement_of, reshaped
from ..ops.spec import Reshape
from ..ops.strides import Dims

_UNARY = (
    torch.AtenSiluOp, torch.AtenReluOp, torch.AtenSigmoidOp, torch.AtenTanhOp, torch.AtenGeluOp, torch.AtenLeakyReluOp,
)  # fmt: skip
_BINARY = (torch.AtenMulTensorOp, torch.AtenAddTensorOp, torch.AtenSubTensorOp)
_MIN_RANK = 3


@module_pass("hipdnn-fuse-group-norm")
def fuse_group_norm(module: ir.Operation) -> None:
    """Split the channels of a group norm once, from its input to behind its scale, bias and activation, so that all of it is one region.

    Exporters reshape x to (n, groups, rest), apply instance norm, reshape back, and scale and shift each channel.

    Before: `%a = torch.aten.reshape %x` to (n, g, c/g * h * w); `%b = torch.aten.instance_norm %a, ...`; `%c = torch.aten.reshape %b` to
    (n, c, h, w); `%d = torch.aten.mul.Tensor %c, %scale`; `%e = torch.aten.add.Tensor %d, %bias`; `%f = torch.aten.silu %e`.
    After: the same ops on (n, g, c/g, h, w), where x is a view in any layout, and one reshape at the end.
    """
    for function in functions(module):
        for op in operations(function):
            if isinstance(op, torch.AtenInstanceNormOp):
                _split_channels(op)
        erase_dead(function)


def _split_channels(norm: torch.AtenInstanceNormOp) -> None:
    source = producer(norm.input)
    if source is None or not isinstance(movement_of(source), Reshape) or not argument(norm.use_input_stats):
        return
    x, (n, groups, *_) = source.operands[0], dims_of(norm.input)
    dims = dims_of(x)
    if len(dims) < _MIN_RANK or n != dims[0] or dims[1] % groups:
        return
    back = _only_reader(norm.result)
    if back is None or not isinstance(movement_of(back), Reshape) or dims_of(back.result) != dims:
        return
    chain = _chain(back.result, dims)
    last = chain[-1] if chain else back
    with ir.InsertionPoint(last):
        with norm.location:
            split = {norm.input: reshaped(x, _split(dims, dims, groups))}
        split[back.result] = _copy(norm, split, dims, groups)
        for op in chain:
            split[op.result] = _copy(op, split, dims, groups)
        with last.location:
            result = reshaped(split[last.result], dims)
    last.result.replace_all_uses_with(result)


def _only_reader(value: ir.Value) -> ir.OpView | None:
    found = readers(value)
    return found[0] if len(found) == 1 else None


def _chain(value: ir.Value, dims: Dims) -> list[ir.OpView]:
    """The ops that can be computed with split channels: one after the other, with operands smaller than the norm's result."""
    chain: list[ir.OpView] = []
    while (reader := _only_reader(value)) is not None and _joins(reader, value, dims):
        chain.append(reader)
        value = reader.result
    return chain


def _joins(reader: ir.OpView, value: ir.Value, dims: Dims) -> bool:
    if len(reader.results) != 1 or reader.results[0].type != value.type:
        return False
    if isinstance(reader, _UNARY):
        return True
    if not isinstance(reader, _BINARY):
        return False
    other = reader.other if reader.self_ == value else reader.self_
    return number(other) is not None or dims_of(other) != dims


def _split(sizes: Dims, dims: Dims, groups: int) -> Dims:
    """The sizes of an operand that broadcasts to `dims`, its channels split in two dims; no channel dim, none of the two."""
    channel = len(sizes) - len(dims) + 1
    if channel < 0:
        return sizes
    split = (1, 1) if sizes[channel] == 1 else (groups, dims[1] // groups)
    return (*sizes[:channel], *split, *sizes[channel + 1 :])


def _copy(op: ir.OpView, split: Mapping[ir.Value, ir.Value], dims: Dims, groups: int) -> ir.Value:
    """The op on operands with split channels; its result has the dims of the first tensor of full rank among them."""
    with op.location:
        operands = [split[value] if value in split else _seen(value, dims, groups) for value in op.operands]
        shapes = [dims_of(value) for value in operands if is_tensor(value.type)]
        kind = torch_tensor(max(shapes, key=lambda sizes: (len(sizes), sizes)), tensor_type(op.result.type).dtype)
        return type(op)(kind, *operands).result


def _seen(operand: ir.Value, dims: Dims, groups: int) -> ir.Value:
    """An operand from outside of the chain, its channels split."""
    if not is_tensor(operand.type) or not dims_of(operand):
        return operand
    return reshaped(operand, _split(dims_of(operand), dims, groups))
