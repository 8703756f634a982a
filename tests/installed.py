"""Where the installed package keeps its libraries."""

from pathlib import Path

import hipdnn_mlir_runtime


def library(name: str) -> Path:
    """The path of an installed library, `host` for libhipdnn_host.so."""
    paths = [Path(folder, "lib", f"libhipdnn_{name}.so") for folder in hipdnn_mlir_runtime.__path__]
    return next(path for path in paths if path.is_file())
