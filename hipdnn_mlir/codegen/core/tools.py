"""What generating code takes beside this package."""

from hipdnn_mlir_runtime.errors import MissingToolError

from .link import needed_linker
from .lower import generator


def missing_tools() -> list[MissingToolError]:
    """What is not installed, with what to install."""
    found = []
    for need in (lambda: generator("nvidia"), needed_linker):
        try:
            need()
        except MissingToolError as error:
            found.append(error)
    return found
