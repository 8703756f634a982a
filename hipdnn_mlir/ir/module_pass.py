"""How a pass is written and found: a function over the module, entered under its command-line name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

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
        PASSES[name] = ModulePass(name, run, inspect.unwrap(run).__kwdefaults__ or {}, after)
        return run

    return enter
