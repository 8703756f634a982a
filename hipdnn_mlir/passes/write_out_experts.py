"""hipdnn-write-out-experts: products with the weights of chosen experts are written in basic ops where a target has no kernel for them."""

from typing import NamedTuple

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import F32, I64, U8

from ..ir.constants import kept
from ..ir.literals import constant_list, literal, splat
from ..ir.module_pass import module_pass
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import has_kernel, onnx_attributes
from ..ir.view_chains import dims_of, permuted, reshaped
from ..ops.registry import ONNX
from ..targets.table import find_target

_FUNCTION = "expert_matmul"


class _Weights(NamedTuple):
    """Weights [experts, n, depth] of floats, or codes with scales, and zeros or None, of blocks."""

    stored: ir.Value
    scales: ir.Value | None
    zeros: ir.Value | None
    bits: int


@module_pass("hipdnn-write-out-experts")
def write_out_experts(module: ir.Operation, *, target: str = "host") -> None:
    """Write ExpertMatMul as matmuls where the target has no kernel.

    Few rows gather the weights of their experts. Where rows choose more often than there are experts, all of them multiply all rows, and
    results are gathered. Codes become floats in the program, which stores them as they are.

    Before: `%y = torch.operator "hipdnn.onnx.ExpertMatMul"(%x, %experts, %weights)`.
    After: `%w = torch.aten.index_select %weights, %int0, %chosen`; `%y = torch.aten.matmul %w, %columns`.

    Args:
        module: the module operation.
        target: whose kernels to ask for.
    """
    if find_target(target).architecture is None:
        return
    from ..codegen.generate import FUNCTIONS

    if _FUNCTION in FUNCTIONS:
        return

    def write_out(op: torch.OperatorOp, rewriter: PatternRewriter) -> bool:
        if op.name.value != f"{ONNX}ExpertMatMul" or not (has_kernel(op) and _has_whole_blocks(op)):
            return False
        rewriter.replace_op(op, [_written_out(op)])
        return True

    rewrite_ops(module, write_out)


def _has_whole_blocks(op: torch.OperatorOp) -> bool:
    stated, depth = onnx_attributes(op), dims_of(op.operands[0])[2]
    return not stated.get("bits", 0) or depth % stated["block_size"] == 0


def _written_out(op: torch.OperatorOp) -> ir.Value:
    x, experts, stored, *more = op.operands
    scales, zeros = (more[index] if index < len(more) else None for index in range(2))
    weights = _Weights(stored, scales, zeros, onnx_attributes(op).get("bits", 0))
    (rows, shared, depth), choices = dims_of(x), dims_of(experts)[1]
    chosen = reshaped(experts, (rows * choices,))
    if rows * choices > dims_of(stored)[0]:
        found = _of_all(reshaped(x, (rows * shared, depth)), chosen, weights, choices if shared == 1 else 1)
    else:
        spread = torch.aten_expand(
            torch_tensor((rows, choices, depth), F32),
            x,
            constant_list((rows, choices, depth)),
            torch.constant_bool(False),
        )
        found = _of_chosen(reshaped(spread, (rows * choices, depth, 1)), chosen, weights)
    return reshaped(found, dims_of(op.results[0]))


def _of_chosen(columns: ir.Value, chosen: ir.Value, weights: _Weights) -> ir.Value:
    """Each column times the weights of its own expert."""
    stored, scales, zeros = (part if part is None else _taken(part, chosen) for part in weights[:3])
    own = _Weights(stored or weights.stored, scales, zeros, weights.bits)
    matrices = _floats(own)
    count, n, _ = dims_of(matrices)
    return torch.aten_matmul(torch_tensor((count, n, 1), F32), matrices, columns)


def _of_all(x: ir.Value, chosen: ir.Value, weights: _Weights, choices: int) -> ir.Value:
    """All rows times the weights of all experts, of which each choice takes one row."""
    (rows, _), matrices = dims_of(x), permuted(_floats(weights), (0, 2, 1))
    count, _, n = dims_of(matrices)
    every = torch.aten_matmul(torch_tensor((count, rows, n), F32), reshaped(x, (1, *dims_of(x))), matrices)
    kind, one = torch_tensor(dims_of(chosen), I64), torch.constant_int(1)
    own = literal(np.repeat(np.arange(rows, dtype=np.int64), choices))
    wide = chosen if tensor_type(chosen.type).dtype is I64 else _as_i64(chosen)
    firsts = torch.aten_mul_Tensor(kind, wide, splat(rows, (), I64))
    return _taken(reshaped(every, (count * rows, n)), torch.aten_add_Tensor(kind, firsts, own, one))


def _as_i64(value: ir.Value) -> ir.Value:
    code, no, none = torch.constant_int(4), torch.constant_bool(False), torch.constant_none()
    return torch.aten_to_dtype(torch_tensor(dims_of(value), I64), value, code, no, no, none)


def _taken(value: ir.Value, places: ir.Value) -> ir.Value:
    dims = (*dims_of(places), *dims_of(value)[1:])
    return torch.aten_index_select(
        torch_tensor(dims, tensor_type(value.type).dtype), value, torch.constant_int(0), places
    )


def _floats(weights: _Weights) -> ir.Value:
    """The weights in f32 [experts, n, depth]."""
    if weights.scales is None:
        return kept(cast_to(weights.stored, F32))
    count, n, blocks = dims_of(weights.scales)
    stored = reshaped(weights.stored, (count, n, blocks, dims_of(weights.stored)[2] // blocks))
    codes = _halves(stored) if weights.bits == 4 else kept(cast_to(stored, F32))
    zero = splat(1 << (weights.bits - 1), (), F32)
    if weights.zeros is not None:
        zero = cast_to(reshaped(weights.zeros, (count, n, blocks, 1)), F32)
    centred = torch.aten_sub_Tensor(codes.type, codes, zero, torch.constant_int(1))
    scaled = torch.aten_mul_Tensor(codes.type, centred, reshaped(weights.scales, (count, n, blocks, 1)))
    return reshaped(scaled, (count, n, blocks * dims_of(codes)[3]))


def _halves(stored: ir.Value) -> ir.Value:
    """U8 [..., bytes] -> f32 [..., 2 * bytes]: the lower half of each byte, then the upper one."""
    dims = dims_of(stored)
    kind = torch_tensor((*dims, 2), U8)
    pairs = reshaped(stored, (*dims, 1))
    shifted = kept(torch.aten_bitwise_right_shift_Tensor(kind, pairs, literal(np.array([0, 4], np.uint8))))
    codes = torch.aten_bitwise_and_Tensor(kind, shifted, splat(15, (), U8))
    return cast_to(reshaped(codes, (*dims[:-1], 2 * dims[-1])), F32)
