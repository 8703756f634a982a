"""hipdnn-write-out-recurrence: an LSTM whose weights are bytes is one of floats where a target has no kernel for it."""

from torch_mlir import ir
from torch_mlir.dialects import torch
from torch_mlir.rewrite import PatternRewriter

from hipdnn_mlir_runtime.dtypes import F32, I32

from ..ir.module_pass import module_pass
from ..ir.operators import is_operator
from ..ir.patterns import rewrite_ops
from ..ir.terms import cast_to
from ..ir.types import torch_tensor
from ..ir.view import has_kernel
from ..ir.view_chains import dims_of, padded, permuted, reshaped, sliced
from ..ops.families.recurrence import PANEL, QUANTIZED_RECURRENCE, RECURRENCE, depth_of
from ..ops.registry import ONNX
from ..targets.table import find_target

_FUNCTION = "quantized_recurrence"
_CELL, _REVERSE = "torch.onnx.cell", "torch.onnx.reverse"


@module_pass("hipdnn-write-out-recurrence")
def write_out_recurrence(module: ir.Operation, *, target: str = "host") -> None:
    """Write QuantizedRecurrence as Recurrence where the target has no kernel: weights become floats, and states are not rounded.

    Before: `%r:4 = torch.operator "hipdnn.onnx.QuantizedRecurrence"(%rows, %bytes, %state, %cell, %factors, %shifts)`.
    After: `%w = torch.aten.mul.Tensor %shifted, %factors`; `%r:4 = torch.operator "hipdnn.onnx.Recurrence"(%rows, %w, %state, %cell)`.

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
        if not is_operator(op, QUANTIZED_RECURRENCE) or not has_kernel(op):
            return False
        _write_out(op)
        rewriter.erase_op(op)
        return True

    rewrite_ops(module, write_out)


def _write_out(op: torch.OperatorOp) -> None:
    rows, weights, state, cell, factors, shifts, *lengths = op.operands
    *results, scratch = op.results
    kinds = [*(result.type for result in results), torch_tensor((3, *dims_of(scratch)[1:]), I32)]
    operands = [rows, _floats(weights, factors, shifts, dims_of(state)[2]), state, cell, *lengths]
    made = torch.OperatorOp(kinds, f"{ONNX}{RECURRENCE}", operands, 0)
    made.attributes[_CELL] = ir.StringAttr.get("lstm")
    made.attributes[_REVERSE] = op.attributes[_REVERSE]
    for before, after in zip(results, made.results, strict=False):
        before.replace_all_uses_with(after)


def _floats(weights: ir.Value, factors: ir.Value, shifts: ir.Value, hidden: int) -> ir.Value:
    """What bytes in pairs stand for, a list of [directions, panels, gates, depth, columns of a panel]."""
    (directions,), depth = dims_of(shifts), depth_of(hidden)
    lines = dims_of(factors)[0] // directions // PANEL
    pairs = permuted(reshaped(weights, (directions * lines, depth // 2, PANEL, 2)), (0, 1, 3, 2))
    values = cast_to(sliced(reshaped(pairs, (directions, lines, depth, PANEL)), 2, 0, hidden), F32)
    shift = cast_to(reshaped(shifts, (directions, 1, 1, 1)), F32)
    shifted = torch.aten_add_Tensor(values.type, values, shift, torch.constant_int(1))
    made = torch.aten_mul_Tensor(values.type, shifted, reshaped(factors, (directions, lines, 1, PANEL)))
    if depth > hidden:
        made = padded(made, [(0, 0), (0, 0), (0, depth - hidden), (0, 0)])
    return reshaped(made, (directions * lines * depth * PANEL,))
