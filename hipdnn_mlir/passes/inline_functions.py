"""hipdnn-inline-functions: operators of extensions become the MLIR functions that stand for them."""

from typing import Any

from torch_mlir import ir

from ..errors import Reject, UnsupportedError
from ..ir.blocks import body, functions
from ..ir.module_pass import module_pass
from ..ir.types import tensor_type
from ..ir.view import op_name, row_name, view
from ..mlir_functions.function import FUNCTIONS, MlirFunction
from ..mlir_functions.specialize import specialize
from ..ops.registry import ONNX
from ..ops.spec import Refusal, TensorArg
from .refine_shapes import retype


@module_pass("hipdnn-inline-functions")
def inline_functions(module: Any) -> None:
    """Put the functions that extensions registered in the place of their operators, specialized for the operands.

    Attributes are constants then, types are static, and the ops have the location of the node: from here on they are like any others.

    Before: `torch.operator "hipdnn.onnx.acme.Scale"(%x) {torch.onnx.factor = 2.0 : f32}`.
    After: `torch.aten.mul.Scalar %x, %float2.0`.
    """
    rejects = []
    for function in functions(module):
        for operation in body(function):
            known = (
                FUNCTIONS.get(row_name(operation).removeprefix(ONNX)) if operation.name == "torch.operator" else None
            )
            if known is None:
                continue
            op = op_name(operation)
            try:
                _inline(operation, known)
            except Refusal as refusal:
                rejects.append(Reject(op, refusal.rule, refusal.reason, view(operation).node))
        retype(function)
    if rejects:
        raise UnsupportedError(rejects)


def _inline(operation: Any, function: MlirFunction) -> None:
    op = view(operation)
    operands = [arg.type if isinstance(arg, TensorArg) else None for arg in op.args]
    made = specialize(function, operands, op.attributes)
    _check_results(operation, made.results)
    source = ir.Module.parse(made.text)  # alive while its ops are cloned
    entry = source.body.operations[0].operation
    block = entry.regions[0].blocks[0]
    given = zip(made.operands, operation.operands, strict=False)
    mapping = {block.arguments[position]: value for position, value in given}
    *ops, returned = (inner.operation for inner in block.operations)
    with ir.InsertionPoint(operation):
        for inner in ops:
            copy = inner.clone()
            copy.location = operation.location
            for index, operand in enumerate(inner.operands):
                copy.operands[index] = mapping[operand]
            mapping.update(zip(inner.results, copy.results, strict=True))
    for result, value in zip(operation.results, returned.operands, strict=False):
        result.replace_all_uses_with(mapping[value])
    operation.erase()


def _check_results(operation: Any, made: tuple[Any, ...]) -> None:
    """Check that the function gives what the model declares of the node's outputs, as far as it does."""
    if len(operation.results) > len(made):
        raise Refusal("results", f"the function gives {len(made)} results, the node has {len(operation.results)}")
    for index, (result, kind) in enumerate(zip(operation.results, made, strict=False)):
        declared = tensor_type(result.type)
        fits = len(declared.dims) == len(kind.dims) and declared.dtype == kind.dtype
        if not fits or any(size not in (None, d) for size, d in zip(declared.dims, kind.dims, strict=True)):
            raise Refusal("results", f"the function gives {kind} as output {index}, the model declares {declared}")
