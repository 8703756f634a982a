"""hipdnn-mlir: ONNX models as hipDNN programs.

    import hipdnn_mlir

    session = hipdnn_mlir.compile("model.onnx").session()
    outputs = session.run(None, {"x": array})

The compiler and the runtime load on first use, so that importing the package is quick and a host that only runs programs never loads MLIR.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .compiler.compile import compile as compile  # noqa: A004 - the public name
    from .compiler.program import Program as Program
    from .errors import HipdnnMlirError as HipdnnMlirError
    from .errors import Reject as Reject
    from .report.explain import Explanation as Explanation
    from .report.explain import explain as explain
    from .session.session import Session as Session
    from .session.session import load as load

__path__ = extend_path(__path__, __name__)
"""What is compiled lies in the installed package, also where Python was started beside the sources of this one."""

_HOMES = {
    "Explanation": "report.explain",
    "HipdnnMlirError": "errors",
    "Program": "compiler.program",
    "Reject": "errors",
    "Session": "session.session",
    "compile": "compiler.compile",
    "explain": "report.explain",
    "load": "session.session",
}
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
