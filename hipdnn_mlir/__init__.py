"""hipdnn-mlir: ONNX models as hipDNN programs.

    import hipdnn_mlir

    session = hipdnn_mlir.compile("model.onnx").session()
    outputs = session.run(None, {"x": array})

The compiler and the runtime load on first use, so that importing the package is quick and a host that only runs programs never loads MLIR.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hipdnn_mlir_runtime.errors import HipdnnMlirError as HipdnnMlirError
    from hipdnn_mlir_runtime.errors import Reject as Reject
    from hipdnn_mlir_runtime.session.session import Session as Session
    from hipdnn_mlir_runtime.session.session import load as load

    from .compiler.compile import compile as compile  # noqa: A004 - the public name
    from .compiler.program import Program as Program
    from .report.explain import Explanation as Explanation
    from .report.explain import explain as explain

    __version__: str

_HOMES = {
    "Explanation": "hipdnn_mlir.report.explain",
    "HipdnnMlirError": "hipdnn_mlir_runtime.errors",
    "Program": "hipdnn_mlir.compiler.program",
    "Reject": "hipdnn_mlir_runtime.errors",
    "Session": "hipdnn_mlir_runtime.session.session",
    "compile": "hipdnn_mlir.compiler.compile",
    "explain": "hipdnn_mlir.report.explain",
    "load": "hipdnn_mlir_runtime.session.session",
}
__all__ = ["Explanation", "HipdnnMlirError", "Program", "Reject", "Session", "compile", "explain", "load"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name == "__version__":
        return import_module("importlib.metadata").version("hipdnn-mlir")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
