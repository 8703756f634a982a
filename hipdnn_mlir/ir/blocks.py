"""A module's functions and their ops: listed, cloned, erased."""

from torch_mlir import ir
from torch_mlir.dialects import func

from hipdnn_mlir_runtime.walks import operands_first

from .view import producer


def functions(module: ir.Operation) -> list[func.FuncOp]:
    """The module's functions that have a body."""
    return [op for op in operations(module) if isinstance(op, func.FuncOp) and not op.is_external]


def public_functions(module: ir.Operation) -> list[func.FuncOp]:
    """The module's functions with a body that are called from outside: not `@hipdnn_constants`."""
    return [function for function in functions(module) if function.sym_visibility is None]


def operations(parent: ir.OpView) -> list[ir.OpView]:
    """A snapshot of the ops in the entry block of a function, or of another op with a body, safe to iterate while rewriting."""
    return list(parent.regions[0].blocks[0].operations)


def erase_dead(function: func.FuncOp) -> None:
    """Erase side-effect-free torch ops without uses, last first."""
    for op in reversed(operations(function)):
        if op.operation.name.startswith("torch.") and all(not list(result.uses) for result in op.results):
            op.erase()


def clone_into(op: ir.OpView, mapping: dict[ir.Value, ir.Value]) -> None:
    """Clone an op and the constants it reads at the current insertion point, operands renamed by `mapping`, which grows."""

    def unmapped(reader: ir.OpView) -> list[ir.OpView]:
        sources = (producer(operand) for operand in reader.operands if operand not in mapping)
        return [source for source in sources if source is not None]

    for original in operands_first(op, unmapped):
        copy = original.clone()
        for index, operand in enumerate(original.operands):
            copy.operands[index] = mapping[operand]
        mapping.update(zip(original.results, copy.results, strict=True))
