"""hipdnn-mlir: ONNX models as hipDNN programs.

    import hipdnn_mlir

    session = hipdnn_mlir.compile("model.onnx").session()
    outputs = session.run(None, {"x": array})

The compiler and the runtime load on first use, so that importing the package is quick and a host that only runs programs never loads MLIR.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compile import Program as Program
    from .compile import compile as compile  # noqa: A004 - the public name
    from .errors import HipdnnMlirError as HipdnnMlirError
    from .errors import Reject as Reject
    from .report.explain import Explanation as Explanation
    from .report.explain import explain as explain
    from .session import Session as Session
    from .session import load as load

_HOMES = {
    "Program": "compile", "compile": "compile", "HipdnnMlirError": "errors", "Reject": "errors", "Explanation": "report.explain",
    "explain": "report.explain", "Session": "session", "load": "session",
}  # fmt: skip
__all__ = ["Explanation", "HipdnnMlirError", "Program", "Reject", "Session", "compile", "explain", "load"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps the import of a submodule, `hipdnn_mlir.compile`, from hiding the public function of the same name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
