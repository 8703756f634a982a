"""From an ONNX model to the torch dialect: the import, and torch-mlir's conversion of what it can convert."""

import re

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import PassError, Reject, UnsupportedError

from ..frontend.importer import import_model, left_aside
from ..frontend.prepare import Slim
from ..ir.imported import Imported
from ..ir.module_pass import PASSES
from ..passes.pipeline import TORCH_STEPS, Runner


def convert(slim: Slim, context: ir.Context, runner: Runner) -> Imported:
    """Import a model and run the ONNX conversion step; an operator that torch-mlir refuses is left aside, for the op table to judge.

    Args:
        slim: from `slim_models`.
        context: from dialect.make_context().
        runner: runs the conversion, dumps IR.

    Raises:
        ModelError: as for `import_model`.
        UnsupportedError: as for `import_model`; the conversion stops for a reason that leaving an operator aside does not mend.
    """
    aside = left_aside(slim)
    while True:
        imported = import_model(slim, context)
        module = imported.module.operation
        with context, ir.Location.unknown():
            PASSES["hipdnn-rename-unconverted-ops"].run(module, ops=",".join(aside))
            try:
                runner.run(module, TORCH_STEPS[:1])
            except PassError as error:
                name = _unconverted(error.detail)
                if name is None or name in aside:
                    rejects = [Reject(name or "model", "torch-mlir", f"no conversion: {error.message}")]
                    raise UnsupportedError(rejects) from error
                aside.append(name)
                continue
        return imported


def _unconverted(report: str) -> str | None:
    """The ONNX operator that torch-mlir's conversion refused."""
    match = re.search(r'failed to legalize operation \'torch\.operator\'.*?name = "onnx\.(\w+)"', report, re.DOTALL)
    return match.group(1) if match else None
