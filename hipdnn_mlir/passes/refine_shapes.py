"""hipdnn-refine-shapes: give every op whose operands are static a static result type."""

import logging

from torch_mlir import ir
from torch_mlir.dialects import func

from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import functions, operations
from ..ir.module_pass import module_pass
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import lookup
from ..ops.emitter import Emitter, Operand
from ..ops.row import OpRow
from ..ops.spec import Concat, Movement, OpView, Pad, Permute, Refusal, Reshape, Slice, TensorArg
from ..ops.strides import Dims

logger = logging.getLogger(__name__)


@module_pass("hipdnn-refine-shapes")
def refine_shapes(module: ir.Operation) -> None:
    """Replace `?` in result types by what the op table says the size is.

    torch-mlir's ONNX conversion leaves `?` on ops it creates itself (the pads of SAME convolutions, chains of slices). Types of returned
    values are the function's result types too.

    Before: `torch.aten.slice.Tensor %x, ... -> !torch.vtensor<[1,?],f32>`. After: `... -> !torch.vtensor<[1,3],f32>`.
    """
    for function in functions(module):
        for op in operations(function):
            if any(_is_dynamic(result.type) for result in op.results):
                _refine(op)
        _retype(function)


def _retype(function: func.FuncOp) -> None:
    returned = operations(function)[-1]
    kind = ir.FunctionType.get(function.type.inputs, [value.type for value in returned.operands])
    function.function_type = ir.TypeAttr.get(kind)


def _is_dynamic(kind: ir.Type) -> bool:
    try:
        return is_tensor(kind) and not tensor_type(kind).is_static
    except Refusal:
        return False


def _refine(operation: ir.OpView) -> None:
    found = lookup(operation)
    if isinstance(found, Reject):
        return
    row, op = found
    try:
        dims = movement_dims(row.move(op), op) if row.move else _computed_dims(row, op)
    except Refusal as refusal:
        logger.debug("shape of %s stays dynamic: %s", operation.operation.name, refusal.reason)
        return
    if dims is not None:
        operation.results[0].set_type(torch_tensor(dims, op.results[0].dtype))


def movement_dims(move: Movement, op: OpView) -> Dims:
    """Dims of a data movement's result."""
    match move:
        case Reshape(dims):
            return dims
        case Permute(order):
            return tuple(_dims(op.args[0])[axis] for axis in order)
        case Slice(_, sizes, _):
            if len(op.results[0].dims) < len(sizes):  # select: the indexed dim, of size 1, is dropped
                axis = int(op.args[1]) % len(sizes)
                return sizes[:axis] + sizes[axis + 1 :]
            return sizes
        case Concat(axis):
            parts = [_dims(part) for part in op.args[0]]
            return (*parts[0][:axis], sum(part[axis] for part in parts), *parts[0][axis + 1 :])
        case Pad(low, high, _):
            return tuple(a + size + b for size, a, b in zip(_dims(op.args[0]), low, high, strict=True))
    raise TypeError(f"unknown data movement {move!r}")


def _dims(argument: object) -> Dims:
    if not isinstance(argument, TensorArg):
        raise Refusal("operand", f"expected a tensor operand, got {argument!r}")
    return argument.type.static_dims()


def _computed_dims(row: OpRow, op: OpView) -> Dims | None:
    """Dims that the row's own emission gives its first result: shapes have one source."""
    if row.emit is None:
        return None
    emitter = Emitter(op.results[0].dtype)
    tensors = {arg.key: arg.type for arg in op.args if isinstance(arg, TensorArg)}
    for index, (key, kind) in enumerate(tensors.items()):
        emitter.bind(key, Operand(kind.static_dims(), kind.dtype), index)
    made = row.emit(emitter, op)
    dims = (made[0] if isinstance(made, list) else made).dims
    return dims if len(dims) == len(op.results[0].dims) else None
