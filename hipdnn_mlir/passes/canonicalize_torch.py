"""hipdnn-canonicalize-torch: bring torch ops into the forms that the op table takes."""

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import erase_dead, functions, operations
from ..ir.literals import splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import fused_location, is_float_tensor, is_private, number
from ..ir.types import is_tensor, tensor_type
from ..ir.view import argument, lookup, op_name, producer, readers, row_name, view
from ..ir.view_chains import BROADCASTS, REPEATS, dims_of, reshaped, simplified
from ..ops.registry import ONNX
from ..ops.spec import OpView, Pad, Permute, Refusal, Reshape, Slice, TensorArg
from ..ops.strides import broadcast
from ..targets.table import find_target

_COPIES = (torch.AtenAliasOp, torch.AtenCloneOp, torch.AtenContiguousOp, torch.AtenDetachOp, torch.AtenToDtypeOp)
_TAKES_ALL = ("torch.aten.slice.Tensor", "GatherND")
"""Ops that change nothing where they keep the dims. ONNX's Slice and Pad keep them at some sizes of a dynamic dimension: they stay."""
_REDUCTIONS = (torch.AtenSumDimIntListOp, torch.AtenMeanDimOp, torch.AtenAmaxOp, torch.AtenAminOp)
_ELEMENTWISE = (
    torch.AtenAddTensorOp, torch.AtenSubTensorOp, torch.AtenMulTensorOp, torch.AtenDivTensorOp, torch.AtenWhereSelfOp,
    torch.AtenMaximumOp, torch.AtenMinimumOp,
)  # fmt: skip


@module_pass("hipdnn-canonicalize-torch")
def canonicalize_torch(module: ir.Operation, *, target: str = "host") -> None:
    """Drop ops that change nothing, split hidden factors off, and supply operands that hipDNN requires.

    - a cast to the own type, a reshape or repetition to the own dims, an identity transpose, a copy: gone; for GPUs, whose programs have
      exact sizes, also a slice of everything and a border of nothing
    - `add(x, b, alpha)` becomes `add(x, mul(b, alpha), 1)`, so that a constant b is scaled at compile time
    - a broadcast whose only readers broadcast anyway: gone; a constant of one element that only they read has rank 0
    - GatherElements of positions that are the same along some dims reads them as they are, with dims of 1
    - a matmul, and the bias behind it, whose result is reshaped to more rows' dims: of operands with those dims, as its readers are
    - a reduction that drops its dims, which its only reader puts back, keeps them, so that they may be one kernel
    - layer norm of a 16-bit x that was cast to f32 reads x itself: it is computed in f32 anyway
    - layer norm without scale or bias gets constant ones or zeros

    Before: `torch.aten.add.Tensor %x, %b, %float2`. After: `%s = torch.aten.mul.Scalar %b, %float2`; `torch.aten.add.Tensor %x, %s, %int1`.

    Args:
        module: the module operation.
        target: what it is compiled for.
    """
    is_exact = find_target(target).architecture is not None
    for function in functions(module):
        for op in operations(function):
            if _changes_nothing(op, is_exact=is_exact):
                op.results[0].replace_all_uses_with(op.operands[0])
                op.erase()
    rewrite_ops(
        module,
        _split_alpha,
        _drop_broadcast,
        _share_positions,
        _drop_rank,
        _unflatten_matmul,
        _keep_reduced_dims,
        _complete_layer_norm,
    )
    for function in functions(module):
        erase_dead(function)


def _changes_nothing(op: ir.OpView, *, is_exact: bool) -> bool:
    """Whether an op returns its first operand; `is_exact`: it has to at these sizes alone."""
    if not op.operands or not op.results:
        return False
    source, result = op.operands[0], op.results[0]
    if not is_tensor(source.type) or source.type != result.type:
        return False
    return isinstance(op, _COPIES) or _moves_nothing(op, is_exact=is_exact)


def _moves_nothing(op: ir.OpView, *, is_exact: bool) -> bool:
    found = lookup(op)
    if isinstance(found, Reject) or found[0].move is None:
        return isinstance(op, REPEATS)
    try:
        move = found[0].move(found[1])
    except Refusal:
        return False
    if isinstance(move, Permute):
        return move.order == tuple(range(len(move.order)))
    if is_exact and isinstance(move, Pad | Slice):
        return True
    return isinstance(move, Reshape) or op_name(op) in _TAKES_ALL


def _split_alpha(op: torch.AtenAddTensorOp | torch.AtenSubTensorOp, rewriter: PatternRewriter) -> bool:
    """Take the factor off the second operand."""
    if argument(op.alpha) == 1:
        return False
    scaled = torch.aten_mul_Scalar(op.other.type, op.other, op.alpha)
    rewriter.replace_op(op, type(op)(op.result.type, op.self_, scaled, torch.constant_int(1)))
    return True


def _drop_broadcast(op: torch.AtenExpandOp | torch.AtenBroadcastToOp, rewriter: PatternRewriter) -> bool:
    """A broadcast read only by elementwise ops of the same result shape."""
    reading = readers(op.result)
    if not reading or not all(isinstance(reader, _ELEMENTWISE) for reader in reading):
        return False
    if not all(_still_broadcasts(view(reader), op.result, op.self_) for reader in reading):
        return False
    rewriter.replace_op(op, [op.self_])
    return True


def _share_positions(op: torch.OperatorOp, _: PatternRewriter) -> bool:
    """The positions of GatherElements before they are repeated."""
    repeat = producer(op.operands[1]) if row_name(op) == f"{ONNX}GatherElements" else None
    if not isinstance(repeat, BROADCASTS):
        return False
    dims = dims_of(repeat.self_)
    op.operands[1] = reshaped(repeat.self_, (*(1,) * (len(dims_of(op.results[0])) - len(dims)), *dims))
    return True


def _drop_rank(op: torch.ValueTensorLiteralOp, rewriter: PatternRewriter) -> bool:
    """A number as a tensor of one element, as exporters write it: beside others it needs no dims."""
    reading, found = readers(op.result), number(op.result)
    if found is None or not dims_of(op.result) or not all(isinstance(reader, _ELEMENTWISE) for reader in reading):
        return False
    plain = splat(found, (), tensor_type(op.result.type).dtype)
    if not all(_still_broadcasts(view(reader), op.result, plain) for reader in reading):
        return False
    rewriter.replace_op(op, [plain])
    return True


def _unflatten_matmul(op: torch.AtenReshapeOp | torch.AtenViewOp, rewriter: PatternRewriter) -> bool:
    """Exporters flatten all dims but the last, multiply, add a bias, and restore the dims, which readers have."""
    if not is_float_tensor(op.self_) or not is_float_tensor(op.result):
        return False
    source, dims, biases = producer(op.self_), dims_of(op.result), []
    if isinstance(source, torch.AtenAddTensorOp) and dims_of(source.other) == dims[-1:]:
        biases, source = [source], producer(source.self_)
    if not isinstance(source, torch.AtenMmOp) or not is_private([source, *biases], op):
        return False
    if dims_of(source.result)[-1:] != dims[-1:]:
        return False
    with fused_location([source, *biases, op]):
        rows = simplified(reshaped(source.self_, (*dims[:-1], dims_of(source.self_)[-1])))
        made = torch.aten_matmul(op.result.type, rows, source.mat2)
        for bias in biases:
            made = torch.aten_add_Tensor(op.result.type, made, bias.other, bias.alpha)
    rewriter.replace_op(op, [made])
    return True


def _keep_reduced_dims(
    op: torch.AtenUnsqueezeOp | torch.AtenReshapeOp | torch.AtenViewOp, rewriter: PatternRewriter
) -> bool:
    """A reduction whose only reader puts its dims back keeps them."""
    source = producer(op.self_)
    if not isinstance(source, _REDUCTIONS) or argument(source.keepdim) is not False or not is_private([source], op):
        return False
    dims, axes = dims_of(source.self_), argument(source.dim) or ()
    reduced = {axis % len(dims) for axis in axes}
    if dims_of(op.result) != tuple(1 if axis in reduced else size for axis, size in enumerate(dims)):
        return False
    with fused_location([source, op]):
        operands = [torch.constant_bool(True) if each == source.keepdim else each for each in source.operands]
        made = type(source)(op.result.type, *operands)
    rewriter.replace_op(op, made)
    return True


def _still_broadcasts(op: OpView, old: ir.Value, new: ir.Value) -> bool:
    """Whether the op's result keeps its dims when operand `old` becomes `new`."""
    shapes = [
        tensor_type(new.type).static_dims() if a.key == old else a.type.static_dims()
        for a in op.args
        if isinstance(a, TensorArg)
    ]
    return broadcast(*shapes) == op.results[0].dims


def _complete_layer_norm(op: torch.AtenLayerNormOp | torch.AtenNativeLayerNormOp, rewriter: PatternRewriter) -> bool:
    """Read what a cast in front of the norm reads, and supply a missing scale and bias."""
    source, x = producer(op.input), op.input
    if isinstance(source, torch.AtenToDtypeOp) and source.self_.type == op.results[0].type:
        x = source.self_
    missing = [argument(operand) is None for operand in (op.weight, op.bias)]
    if x == op.input and not any(missing):
        return False
    dims, dtype = tuple(argument(op.normalized_shape)), tensor_type(x.type).dtype
    weight = splat(1.0, dims, dtype) if missing[0] else op.weight
    bias = splat(0.0, dims, dtype) if missing[1] else op.bias
    results = [result.type for result in op.results]
    more = [op.cudnn_enable] if isinstance(op, torch.AtenLayerNormOp) else []
    rewriter.replace_op(op, type(op)(*results, x, op.normalized_shape, weight, bias, op.eps, *more))
    return True
