"""hipdnn-fuse-group-norm: group norm written out around an instance norm is computed with the channels split, activation included."""

from typing import Any

from torch_mlir import ir

from ..ir.blocks import body, erase_dead, functions
from ..ir.module_pass import module_pass
from ..ir.terms import number
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import argument, defining
from ..ir.view_chains import dims_of, movement_of, reshaped
from ..ops.spec import Reshape
from ..ops.strides import Dims

_NORM = "torch.aten.instance_norm"
_UNARY = (
    "torch.aten.silu",
    "torch.aten.relu",
    "torch.aten.sigmoid",
    "torch.aten.tanh",
    "torch.aten.gelu",
    "torch.aten.leaky_relu",
)
_BINARY = ("torch.aten.mul.Tensor", "torch.aten.add.Tensor", "torch.aten.sub.Tensor")
_MIN_RANK = 3


@module_pass("hipdnn-fuse-group-norm")
def fuse_group_norm(module: Any) -> None:
    """Split the channels of a group norm once, from its input to behind its scale, bias and activation, so that all of it is one region.

    Exporters reshape x to (n, groups, rest), apply instance norm, reshape back, and scale and shift each channel.

    Before: `%a = torch.aten.reshape %x` to (n, g, c/g * h * w); `%b = torch.aten.instance_norm %a, ...`; `%c = torch.aten.reshape %b` to
    (n, c, h, w); `%d = torch.aten.mul.Tensor %c, %scale`; `%e = torch.aten.add.Tensor %d, %bias`; `%f = torch.aten.silu %e`.
    After: the same ops on (n, g, c/g, h, w), where x is a view in any layout, and one reshape at the end.
    """
    for function in functions(module):
        for operation in body(function):
            if operation.name == _NORM:
                _split_channels(operation)
        erase_dead(function)


def _split_channels(norm: Any) -> None:
    source: Any = defining(norm.operands[0])
    if not isinstance(movement_of(source), Reshape) or not argument(norm.operands[5]):
        return
    x, groups = source.operands[0], dims_of(norm.operands[0])[1]
    dims = dims_of(x)
    back = _only_reader(norm.results[0])
    is_group_norm = len(dims) >= _MIN_RANK and dims_of(norm.operands[0])[:1] == dims[:1] and dims[1] % groups == 0
    if (
        not is_group_norm
        or back is None
        or not isinstance(movement_of(back), Reshape)
        or dims_of(back.results[0]) != dims
    ):
        return
    last = _last_of_chain(back, dims)
    with ir.InsertionPoint(last), norm.location:
        value = _copy(norm, [reshaped(x, _split(dims, dims, groups)), *list(norm.operands)[1:]])
    following = _only_reader(back.results[0]) if last != back else None
    old = back.results[0]
    while following is not None:
        with ir.InsertionPoint(last), following.location:
            value = _copy(following, [_seen(operand, old, value, dims, groups) for operand in following.operands])
        old = following.results[0]
        following = _only_reader(old) if following != last else None
    with ir.InsertionPoint(last), last.location:
        result = reshaped(value, dims)
    last.results[0].replace_all_uses_with(result)


def _only_reader(value: Any) -> Any | None:
    readers = [use.owner.operation for use in value.uses]
    return readers[0] if len(readers) == 1 else None


def _last_of_chain(back: Any, dims: Dims) -> Any:
    """The last op that can be computed with split channels: one after the other, with operands smaller than the norm's result."""
    last = back
    while (reader := _only_reader(last.results[0])) is not None and _joins(reader, last.results[0], dims):
        last = reader
    return last


def _joins(reader: Any, value: Any, dims: Dims) -> bool:
    if len(reader.results) != 1 or reader.results[0].type != value.type:
        return False
    if reader.name in _UNARY:
        return True
    if reader.name not in _BINARY:
        return False
    others = [operand for operand in reader.operands if is_tensor(operand.type) and operand != value]
    return len(others) == 1 and (number(others[0]) is not None or dims_of(others[0]) != dims)


def _split(sizes: Dims, dims: Dims, groups: int) -> Dims:
    """The sizes of an operand that broadcasts to `dims`, its channels split in two dims; no channel dim, none of the two."""
    channel = len(sizes) - len(dims) + 1
    if channel < 0:
        return sizes
    split = (1, 1) if sizes[channel] == 1 else (groups, dims[1] // groups)
    return (*sizes[:channel], *split, *sizes[channel + 1 :])


def _seen(operand: Any, old: Any, new: Any, dims: Dims, groups: int) -> Any:
    """An operand of an op of the chain, its channels split."""
    if operand == old:
        return new
    if not is_tensor(operand.type) or not dims_of(operand):
        return operand
    return reshaped(operand, _split(dims_of(operand), dims, groups))


def _copy(operation: Any, operands: list[Any]) -> Any:
    """The op on other operands; its result has the dims of the first tensor of full rank among them."""
    dims = max((dims_of(value) for value in operands if is_tensor(value.type)), key=lambda sizes: (len(sizes), sizes))
    kind = torch_tensor(dims, tensor_type(operation.results[0].type).dtype)
    return ir.Operation.create(operation.name, results=[kind], operands=operands, loc=operation.location).result
