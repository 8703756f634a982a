"""hipdnn-rename-unconverted-ops: keep ONNX ops that torch-mlir cannot convert alive through its passes."""

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.module_pass import module_pass


@module_pass("hipdnn-rename-unconverted-ops")
def rename_unconverted_ops(module: ir.Operation, *, ops: str = "") -> None:
    """Rename the given ONNX operators so that `convert-torch-onnx-to-torch` leaves them alone.

    An unknown `torch.operator "onnx.X"` is a hard error of that pass; as `"hipdnn.onnx.X"` it survives and is reported later.

    Before: `torch.operator "onnx.Loop"(...)`. After, with `ops=Loop`: `torch.operator "hipdnn.onnx.Loop"(...)`.

    Args:
        module: the module operation.
        ops: operator names separated by commas.
    """
    names = {f"onnx.{name}" for name in ops.split(",") if name}

    def rename(operation: ir.Operation) -> ir.WalkResult:
        match operation.opview:
            case torch.OperatorOp() as op if op.name.value in names:
                op.name = ir.StringAttr.get(f"hipdnn.{op.name.value}")
        return ir.WalkResult.ADVANCE

    if names:
        module.walk(rename)
