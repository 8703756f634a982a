"""hipdnn-write-out-block-matmul: products with block-scaled weights that no engine takes are written in the ops that they stand for."""

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import F32, U8, DType

from ..ir.claims import why_not_taken
from ..ir.constants import kept
from ..ir.literals import literal, splat
from ..ir.module_pass import module_pass
from ..ir.operators import operator
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import onnx_attributes
from ..ir.view_chains import dims_of, padded, permuted, reshaped, sliced
from ..ops.registry import ONNX
from ..ops.spec import Refusal
from ..ops.strides import Dims
from ..targets.table import find_target
from ..targets.target import Target

_DEQUANTIZE = "BlockScaleDequantize"
_ROUNDS = "torch.onnx.rounds"
_MIDDLE = 8
"""Of the codes of 4 bits."""


@module_pass("hipdnn-write-out-block-matmul")
def write_out_block_matmul(module: ir.Operation, *, target: str = "host") -> None:
    """Write BlockScaleMatMul as what makes its weights, and a matmul, where no engine takes it as it is.

    What makes them is one BlockScaleDequantize where an engine takes that, and arithmetic elsewhere. It stays in the program, which stores
    the weights in 4 or 8 bits. `rounds` is dropped, first alone: it permits, it does not demand.

    Before: `%y = torch.operator "hipdnn.onnx.BlockScaleMatMul"(%a, %numbers, %scales)`.
    After: `%w = torch.operator "hipdnn.onnx.BlockScaleDequantize"(%numbers, %scales)`; `%y = torch.aten.matmul %a, %wt`.
    Or: `%n = torch.aten.to.dtype %numbers`; `%w = torch.aten.mul.Tensor %n, %scales`; `%y = torch.aten.matmul %a, %wt`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)

    def write_out(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        if op.name.value != f"{ONNX}BlockScaleMatMul":
            return False
        reject = why_not_taken(op, library)
        if reject is None or reject.rule != "engine":
            return False
        if _ROUNDS in op.attributes:
            del op.attributes[_ROUNDS]
            if why_not_taken(op, library) is None:
                return True
        rewriter.replace_op(op, [_multiplied(op, library)])
        return True

    rewrite_ops(module, write_out)


def _multiplied(op: torch.OperatorOp, library: Target) -> ir.Value:
    """The product with weights that are made of the numbers: in one kernel where an engine has it, else by arithmetic."""
    a, numbers, scales = op.operands
    k, kind = dims_of(a)[-1], tensor_type(a.type).dtype
    stated = {name: value for name, value in onnx_attributes(op).items() if name in ("block_size", "bits")}
    n, row = dims_of(scales)[0], dims_of(numbers)[1] * 8 // stated.get("bits", 4)
    weights = operator(_DEQUANTIZE, torch_tensor((n, row), kind), [numbers, scales], **stated, to=kind.name)
    if why_not_taken(weights.owner.opview, library) is not None:
        weights.owner.erase()
        weights = _written_out(numbers, scales, stated["block_size"], stated.get("bits", 4), kind)
    weights = sliced(weights, 1, 0, k) if k < dims_of(weights)[1] else weights
    return torch.aten_matmul(op.results[0].type, a, permuted(weights, (1, 0)))


def _written_out(numbers: ir.Value, scales: ir.Value, size: int, bits: int, kind: DType) -> ir.Value:
    """The weights (n, k), of whole blocks."""
    n, blocks = dims_of(scales)
    if size * bits % 8:
        raise Refusal("attribute", f"blocks of {size} numbers of {bits} bits are no whole bytes")
    size_bytes = size * bits // 8
    stored = padded(numbers, ((0, 0), (0, blocks * size_bytes - dims_of(numbers)[1])))
    # Views of the weights: as constants of their own they would be stored again beside those of few rows, which are read as they are.
    stored = _seen(stored, (n, blocks, size_bytes, 1))
    values = _halves(stored) if bits == 4 else kept(cast_to(stored, F32))
    factors = _seen(scales, (n, blocks, 1, 1))
    factors = factors if tensor_type(scales.type).dtype is F32 else kept(cast_to(factors, F32))
    scaled = torch.aten_mul_Tensor(values.type, values, factors)
    return reshaped(cast_to(scaled, kind), (n, blocks * size))


def _halves(stored: ir.Value) -> ir.Value:
    """U8 [..., 1] -> f32 [..., 2]: the lower half of each byte and the upper one, as two's complement."""
    dims = (*dims_of(stored)[:-1], 2)
    kind = torch_tensor(dims, U8)
    codes = kept(torch.aten_bitwise_right_shift_Tensor(kind, stored, literal(np.array([0, 4], np.uint8))))
    codes = torch.aten_bitwise_and_Tensor(kind, codes, splat(15, (), U8))
    codes = torch.aten_bitwise_xor_Tensor(kind, codes, splat(_MIDDLE, (), U8))
    middle = splat(_MIDDLE, (), F32)
    return torch.aten_sub_Tensor(torch_tensor(dims, F32), cast_to(codes, F32), middle, torch.constant_int(1))


def _seen(value: ir.Value, dims: Dims) -> ir.Value:
    """The value with other dims, as a view."""
    made = reshaped(value, dims)
    return made if made == value else kept(made)
