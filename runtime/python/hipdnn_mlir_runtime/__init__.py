"""hipdnn-mlir-runtime: runs compiled programs, in Python and in ONNX Runtime, with no compiler installed.

    import hipdnn_mlir_runtime

    session = hipdnn_mlir_runtime.load("model.hipdnn")
    outputs = session.run(None, {"x": array})

Needs NumPy alone. It logs to ``hipdnn_mlir`` and below, as the compiler does. Its library loads on first use, so that importing the
package is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import HipdnnMlirError as HipdnnMlirError
    from .session.devices import list_devices as list_devices
    from .session.session import Session as Session
    from .session.session import load as load

    __version__: str

_HOMES = {
    "HipdnnMlirError": "errors",
    "Session": "session.session",
    "list_devices": "session.devices",
    "load": "session.session",
}
__all__ = ["HipdnnMlirError", "Session", "list_devices", "load"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module on first use."""
    if name == "__version__":
        return import_module("importlib.metadata").version("hipdnn-mlir-runtime")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
