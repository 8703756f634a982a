"""How a pass is written and found: a function over the module, entered under its command-line name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hipdnn_mlir.ir_view import defining
from hipdnn_mlir.walks import operands_first

PassFunction = Callable[..., None]


@dataclass(frozen=True)
class ModulePass:
    """A registered pass: command-line name, function (module operation, **options), option names with defaults.

    `after` names the step that a pass of an extension follows in every compilation; it is empty for those of the pipeline.
    """

    name: str
    run: PassFunction
    options: dict[str, str]
    after: str = ""

    @property
    def summary(self) -> str:
        """First line of the function's docstring."""
        return (inspect.getdoc(self.run) or "").splitlines()[0]


PASSES: dict[str, ModulePass] = {}


def module_pass(name: str, *, after: str = "") -> Callable[[PassFunction], PassFunction]:
    """Enter the decorated function as pass `name`; its keyword-only parameters are the pass's options, all strings."""

    def enter(run: PassFunction) -> PassFunction:
        keywords = [p for p in inspect.signature(run).parameters.values() if p.kind is p.KEYWORD_ONLY]
        PASSES[name] = ModulePass(name, run, {p.name: p.default for p in keywords}, after)
        return run

    return enter


def functions(module: Any) -> list[Any]:
    """The module's functions that have a body."""
    found = (op.operation for op in module.regions[0].blocks[0].operations)
    return [op for op in found if op.name == "func.func" and len(op.regions[0].blocks) > 0]


def body(function: Any) -> list[Any]:
    """A snapshot of the operations in a function's entry block, safe to iterate while rewriting."""
    return [op.operation for op in function.regions[0].blocks[0].operations]


def erase_dead(function: Any) -> None:
    """Erase side-effect-free torch ops without uses, last first."""
    for operation in reversed(body(function)):
        if operation.name.startswith("torch.") and all(not list(result.uses) for result in operation.results):
            operation.erase()


def clone_into(operation: Any, mapping: dict[Any, Any]) -> None:
    """Clone an op and the constants it reads at the current insertion point, operands renamed by `mapping`, which grows."""

    def unmapped(reader: Any) -> list[Any]:
        sources = (defining(operand) for operand in reader.operands if operand not in mapping)
        return [source for source in sources if source is not None]

    for original in operands_first(operation, unmapped):
        copy = original.clone()
        for index, operand in enumerate(original.operands):
            copy.operands[index] = mapping[operand]
        mapping.update(zip(original.results, copy.results, strict=True))
