"""hipdnn-fuse-integer-sums: a residual and a Relu join the quantized operator in front, which then rounds once."""

from dataclasses import dataclass

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import F32, I8
from hipdnn_mlir_runtime.errors import Reject

from ..ir.blocks import erase_dead, functions
from ..ir.claims import Graphs
from ..ir.module_pass import module_pass
from ..ir.operators import is_operator, operator, operator_name
from ..ir.outlining import try_members
from ..ir.patterns import rewrite_ops
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, lookup, onnx_attributes, producer, readers
from ..ir.view_chains import dims_of
from ..targets.table import find_target
from ..targets.target import Target

_LEAST = -128
"""Of signed bytes: where that is the zero point, clipping is a Relu."""


@module_pass("hipdnn-fuse-integer-sums")
def fuse_integer_sums(module: ir.Operation, *, target: str = "host") -> None:
    """Write a quantized operator, its sum with other bytes and a Relu as one graph with one rounding, where an engine takes it.

    The result differs from that of two roundings by up to a step, and by more where the first one clipped. Where the first zero point is
    the least byte, clipping may stand for a Relu, and nothing is done.

    Before: `%q = QuantizedConv ... {to = "i8"}`; `%s = add (Dequantize %q), (Dequantize %r)`; `%y = Quantize (relu %s) {to = "i8"}`.
    After: `%f = QuantizedConv ... {to = "f32"}`; `%s = add %f, (Dequantize %r {zero = 0})`; `%y = Quantize %s {scale = 1, zero = 0}`, with
    the scales and zero points in the factor and the offset.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def fuse(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        chain = _chain(op)
        made = chain and _fused(op, chain, library)
        if not made:
            return False
        rewriter.replace_op(op, [made])
        return True

    rewrite_ops(module, fuse)
    for function in functions(module):
        erase_dead(function)


@dataclass
class _Chain:
    """What is in front of a Quantize: a quantized operator, its Dequantize, the other operand of a sum."""

    product: ir.OpView
    first: ir.OpView
    other: ir.OpView | None
    relu: bool


def _chain(op: torch.OperatorOp) -> _Chain | None:
    if not is_operator(op, "Quantize") or tensor_type(op.results[0].type).dtype is not I8:
        return None
    value, relu = op.operands[0], False
    source = producer(value)
    if isinstance(source, torch.AtenReluOp) and _is_read_once(value):
        value, relu = source.self_, True
        source = producer(value)
    if relu and onnx_attributes(op)["zero"] not in (_LEAST, 0):
        return None
    if isinstance(source, torch.AtenAddTensorOp) and _is_read_once(value) and argument(source.alpha) == 1:
        sides = [source.self_, source.other]
        for side, other in (sides, reversed(sides)):
            product, first, added = _product(side), producer(side), _dequantized(other)
            is_sum = product is not None and added is not None and dims_of(other) == dims_of(side)
            if is_sum and onnx_attributes(first)["zero"] != _LEAST:
                return _Chain(product, first, added, relu)
        return None
    product = _product(value) if relu else None
    return _Chain(product, source, None, relu) if product is not None and source is not None else None


def _dequantized(value: ir.Value) -> ir.OpView | None:
    """The Dequantize of signed bytes that makes a value."""
    made = producer(value)
    if made is None or not is_operator(made, "Dequantize"):
        return None
    return made if tensor_type(made.operands[0].type).dtype is I8 else None


def _product(value: ir.Value) -> ir.OpView | None:
    """The quantized operator whose signed bytes a value dequantizes, where nothing else reads them."""
    scaled = _dequantized(value)
    if scaled is None or not _is_read_once(value) or not _is_read_once(scaled.operands[0]):
        return None
    made = producer(scaled.operands[0])
    return made if is_operator(made, "QuantizedConv", "QuantizedMatMul") else None


def _is_read_once(value: ir.Value) -> bool:
    return len(readers(value)) == 1


def _fused(op: torch.OperatorOp, chain: _Chain, library: Target) -> ir.Value | None:
    """The rounding at the end of the graph; None, and nothing made, where no engine takes it."""
    last, first = onnx_attributes(op), onnx_attributes(chain.first)
    x, w, zero, factor, offset = chain.product.operands
    step = first["scale"] / last["scale"]
    moved = last["zero"] - first["zero"] * step
    wide = torch_tensor(dims_of(op.results[0]), F32)
    stated = onnx_attributes(chain.product) | {"to": "f32"}
    added = None
    if chain.other is not None:
        residual = onnx_attributes(chain.other)
        scale = residual["scale"] / last["scale"]
        moved -= residual["zero"] * scale
        added = operator("Dequantize", wide, [chain.other.operands[0]], scale=scale, zero=0)
    factors = [_times(factor, step), _plus(_times(offset, step), moved)]
    total = operator(operator_name(chain.product), wide, [x, w, zero, *factors], **stated)
    members = [total]
    if added is not None:
        total = torch.aten_add_Tensor(wide, total, added, torch.constant_int(1))
        members = [added, *members, total]
    if chain.relu and last["zero"] == 0:
        total = torch.aten_relu(wide, total)
        members.append(total)
    rounded = operator("Quantize", op.results[0].type, [total], scale=1.0, zero=0, to="i8")
    members.append(rounded)
    # A region has a result if something reads it.
    op.results[0].replace_all_uses_with(rounded)
    if _is_taken([value.owner for value in members], library):
        return rounded
    rounded.replace_all_uses_with(op.results[0])
    for value in reversed(members):
        value.owner.erase()
    return None


def _is_taken(members: list[ir.OpView], library: Target) -> bool:
    found = {op: seen for op in members if not isinstance(seen := lookup(op), Reject)}
    return len(found) == len(members) and not isinstance(try_members(members, found, Graphs(library)), Reject)


def _times(vector: ir.Value, number: float) -> ir.Value:
    return torch.aten_mul_Scalar(vector.type, vector, torch.constant_float(number))


def _plus(vector: ir.Value, number: float) -> ir.Value:
    return torch.aten_add_Scalar(vector.type, vector, torch.constant_float(number), torch.constant_int(1))
