"""What is left behind where the compiler fails: a folder with which the failure can be repeated."""

from __future__ import annotations

import json
import shutil
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import HipdnnMlirError, ModelError, PassError

COPY_LIMIT_BYTES = 64 << 20
"""Larger files stay where they are."""
MODEL = "model.onnx"


def as_package_error(error: Exception) -> HipdnnMlirError:
    """Return an error of this package for whatever was raised.

    What the operating system refuses is the user's to mend; any other exception that is not one of this package's is a defect and becomes
    a ``PassError`` with its traceback.
    """
    if isinstance(error, HipdnnMlirError):
        return error
    if isinstance(error, OSError):
        return ModelError(error.strerror or str(error), where=str(error.filename or "") or None)
    text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return PassError(text, detail="".join(traceback.format_exception(error)))


class Reproducer:
    """A new folder for temporary files: model, request, command line, error.

    Attributes:
        directory: The folder.
    """

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="hipdnn-mlir-reproducer-"))

    def add_model(self, path: Path) -> str:
        """Copy a model, unless it is large or missing; return its name as seen from the folder."""
        if not path.is_file() or path.stat().st_size > COPY_LIMIT_BYTES:
            return str(path)
        shutil.copyfile(path, self.directory / MODEL)
        return MODEL

    def describe(self, request: Mapping[str, Any], command: Sequence[str], error: PassError) -> None:
        """Write down what was asked, how to ask it again, and what happened."""
        (self.directory / "command.txt").write_text(" ".join(command) + "\n")
        (self.directory / "request.json").write_text(json.dumps(request, indent=2) + "\n")
        (self.directory / "error.txt").write_text(f"{error}\n\n{error.detail}\n")
