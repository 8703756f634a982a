"""hipdnn-rename-unconverted-ops: keep ONNX ops that torch-mlir cannot convert alive through its passes."""

from typing import Any

from torch_mlir import ir

from .registration import body, functions, module_pass


@module_pass("hipdnn-rename-unconverted-ops")
def rename_unconverted_ops(module: Any, *, ops: str = "") -> None:
    """Rename the given ONNX operators so that `convert-torch-onnx-to-torch` leaves them alone.

    An unknown `torch.operator "onnx.X"` is a hard error of that pass; as `"hipdnn.onnx.X"` it survives and is reported later.

    Before: `torch.operator "onnx.Loop"(...)`. After, with `ops=Loop`: `torch.operator "hipdnn.onnx.Loop"(...)`.

    Args:
        module: the module operation.
        ops: operator names separated by commas.
    """
    names = {f"onnx.{name}" for name in ops.split(",") if name}
    for function in functions(module):
        for operation in body(function):
            if operation.name == "torch.operator" and ir.StringAttr(operation.attributes["name"]).value in names:
                name = ir.StringAttr(operation.attributes["name"]).value
                operation.attributes["name"] = ir.StringAttr.get(f"hipdnn.{name}")
