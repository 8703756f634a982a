"""hipdnn-canonicalize-torch: bring torch ops into the forms that the op table takes."""

from typing import Any

from torch_mlir import ir

from ..errors import Reject
from ..ir.blocks import body, erase_dead, functions
from ..ir.literals import constant_int, splat
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type
from ..ir.view import defining, lookup, view
from ..ops.spec import OpView, Permute, Refusal, Reshape, TensorArg
from ..ops.strides import broadcast

_ALIASES = ("torch.aten.contiguous", "torch.aten.clone", "torch.aten.detach", "torch.aten.alias")
_BROADCASTS = ("torch.aten.expand", "torch.aten.broadcast_to")
_ELEMENTWISE = ("torch.aten.add.Tensor", "torch.aten.sub.Tensor", "torch.aten.mul.Tensor", "torch.aten.div.Tensor", "torch.aten.where.self",
                "torch.aten.maximum", "torch.aten.minimum")  # fmt: skip
LAYER_NORM_SCALE, LAYER_NORM_BIAS = 2, 3


@module_pass("hipdnn-canonicalize-torch")
def canonicalize_torch(module: Any) -> None:
    """Drop ops that change nothing, split hidden factors off, and supply operands that hipDNN requires.

    - a cast to the own type, a reshape to the own dims, an identity transpose, a copy: gone
    - `add(x, b, alpha)` becomes `add(x, mul(b, alpha), 1)`, so that a constant b is scaled at compile time
    - a broadcast whose only readers broadcast anyway: gone
    - layer norm of a 16-bit x that was cast to f32 reads x itself: it is computed in f32 anyway
    - layer norm without scale or bias gets constant ones or zeros

    Before: `torch.aten.add.Tensor %x, %b, %float2`. After: `%s = torch.aten.mul.Scalar %b, %float2`; `torch.aten.add.Tensor %x, %s, %int1`.
    """
    for function in functions(module):
        for operation in body(function):
            for rule in (_drop_noop, _split_alpha, _drop_broadcast, _narrow_layer_norm, _complete_layer_norm):
                if rule(operation):
                    break
        erase_dead(function)


def _view(operation: Any) -> OpView | None:
    try:
        return view(operation)
    except Refusal:
        return None


def _drop_noop(operation: Any) -> bool:
    """Replace an op that returns its operand unchanged."""
    if not operation.name.startswith("torch.") or not len(operation.operands) or not len(operation.results):
        return False
    source, result = operation.operands[0], operation.results[0]
    if not is_tensor(source.type) or source.type != result.type:
        return False
    if operation.name not in _ALIASES and operation.name != "torch.aten.to.dtype" and not _moves_nothing(operation):
        return False
    result.replace_all_uses_with(source)
    operation.erase()
    return True


def _moves_nothing(operation: Any) -> bool:
    found = lookup(operation)
    if isinstance(found, Reject) or found[0].move is None:
        return operation.name in _BROADCASTS
    try:
        move = found[0].move(found[1])
    except Refusal:
        return False
    if isinstance(move, Permute):
        return move.order == tuple(range(len(move.order)))
    return isinstance(move, Reshape) or operation.name == "torch.aten.slice.Tensor"


def _split_alpha(operation: Any) -> bool:
    """add/sub with a factor on the second operand."""
    if operation.name not in ("torch.aten.add.Tensor", "torch.aten.sub.Tensor"):
        return False
    op = _view(operation)
    if op is None or op.args[2] == 1:
        return False
    scaled = operation.operands[1]
    with ir.InsertionPoint(operation), operation.location:
        product = ir.Operation.create(
            "torch.aten.mul.Scalar", results=[scaled.type], operands=[scaled, operation.operands[2]]
        ).result
        one = constant_int(1)
    operation.operands[1] = product
    operation.operands[2] = one
    return True


def _drop_broadcast(operation: Any) -> bool:
    """A broadcast read only by elementwise ops of the same result shape."""
    if operation.name not in _BROADCASTS:
        return False
    source, result = operation.operands[0], operation.results[0]
    readers = [use.owner.operation for use in result.uses]
    if not readers or any(reader.name not in _ELEMENTWISE for reader in readers):
        return False
    for reader in readers:
        op = _view(reader)
        if op is None or not _still_broadcasts(op, result, source):
            return False
    result.replace_all_uses_with(source)
    operation.erase()
    return True


def _still_broadcasts(op: OpView, old: Any, new: Any) -> bool:
    """Whether the op's result keeps its dims when operand `old` becomes `new`."""
    shapes = [
        tensor_type(new.type).static_dims() if a.key == old else a.type.static_dims()
        for a in op.args
        if isinstance(a, TensorArg)
    ]
    return broadcast(*shapes) == op.results[0].dims


def _narrow_layer_norm(operation: Any) -> bool:
    """Drop the cast in front of a layer norm whose result has the type from before it; always False: the norm may lack operands too."""
    if operation.name not in ("torch.aten.native_layer_norm", "torch.aten.layer_norm"):
        return False
    source = defining(operation.operands[0])
    if (
        source is not None
        and source.name == "torch.aten.to.dtype"
        and source.operands[0].type == operation.results[0].type
    ):
        operation.operands[0] = source.operands[0]
    return False


def _complete_layer_norm(operation: Any) -> bool:
    """Constant ones for a missing scale, zeros for a missing bias."""
    if operation.name not in ("torch.aten.native_layer_norm", "torch.aten.layer_norm"):
        return False
    op = _view(operation)
    if op is None or not isinstance(op.args[0], TensorArg):
        return False
    for index, fill in ((LAYER_NORM_SCALE, 1.0), (LAYER_NORM_BIAS, 0.0)):
        if op.args[index] is None:
            kind = tensor_type(operation.operands[0].type)
            with ir.InsertionPoint(operation), operation.location:
                operation.operands[index] = splat(fill, tuple(op.args[1]), kind.dtype)
    return True
