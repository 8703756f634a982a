"""What is left behind where the compiler fails: a folder with which the failure can be repeated."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import shutil
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from hipdnn_mlir_runtime.errors import HipdnnMlirError, MachineError, ModelError, PassError, is_out_of_memory
from hipdnn_mlir_runtime.pytorch import SUFFIX

from .request import Request

_log = logging.getLogger(__name__)

_COPY_LIMIT_BYTES = 64 << 20
"""Larger files stay where they are."""
_MODEL = "model.onnx"


def as_package_error(
    error: Exception, request: Request | None = None, descriptors: Sequence[int] = ()
) -> HipdnnMlirError:
    """Return an error of this package for whatever was raised.

    What the operating system refuses, memory too, is the user's to mend, and so is a model that onnx's checker refuses where it looks at
    everything; any other exception that is not one of this package's is a defect and becomes a ``PassError`` with its traceback.

    Args:
        error: what was raised.
        request: what was asked, if that is known.
        descriptors: of the files that came with the request, the model first.
    """
    if isinstance(error, HipdnnMlirError) and not isinstance(error, PassError):
        return error
    if is_out_of_memory(error):
        return out_of_memory()
    if isinstance(error, OSError):
        where = error.filename or (request.where if request is not None else "")
        hint = "raise the limit of a file's size (ulimit -f)" if error.errno == errno.EFBIG else None
        return MachineError(error.strerror or str(error), where=str(where) or None, hint=hint)
    invalid = _invalid_model(request, descriptors) if request is not None else None
    if invalid is not None:
        _log.debug("what it ended in", exc_info=error)
        return invalid
    if isinstance(error, PassError):
        return error
    text = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    return PassError(text, detail="".join(traceback.format_exception(error)))


def _invalid_model(request: Request, descriptors: Sequence[int]) -> ModelError | None:
    """What is wrong with the request's ONNX model, if anything is."""
    from ..frontend import container, model_file
    from ..frontend.check import check_strictly

    if not (request.model or descriptors) or (request.model or "").endswith(SUFFIX):
        return None
    try:
        proto = model_file.read_model(request.model).proto if request.model else container.read_model(descriptors[0])
        check_strictly(proto, request.where)
    except ModelError as invalid:
        return invalid
    return None


def out_of_memory(where: str | None = None) -> MachineError:
    """The error of a model that takes more memory than there is."""
    return MachineError(
        "compiling it takes more memory than the compiler may use",
        where=where,
        expected="half of this machine's memory, or what ulimit -d or -v says, if that is less",
        hint="check the sizes in the model; --in-process has no limit",
    )


def with_reproducer(error: HipdnnMlirError, request: Request, descriptors: Sequence[int] = ()) -> HipdnnMlirError:
    """The error, and where it is a defect, pointing at a new folder with the model, the request, the command line and the error.

    Args:
        error: what the request ended in.
        request: what was asked.
        descriptors: of the files that came with the request, the model first.
    """
    if not isinstance(error, PassError) or error.reproducer is not None:
        return error
    try:
        directory = Path(tempfile.mkdtemp(prefix="hipdnn-mlir-reproducer-"))
        command = request.command(_add_model(directory, request, descriptors))
        (directory / "command.txt").write_text(" ".join(command) + "\n")
        (directory / "request.json").write_text(json.dumps(request.to_json(), indent=2) + "\n")
        (directory / "error.txt").write_text(f"{error}\n\n{error.detail}\n")
    except OSError as unwritable:
        _log.warning("no reproducer is saved: %s", unwritable)
        return error
    return error.with_reproducer(directory)


def _add_model(directory: Path, request: Request, descriptors: Sequence[int]) -> str:
    """Copy the model, unless it is large or missing; return its name as seen from the folder."""
    if request.model is not None:
        path = Path(request.model)
        if not path.is_file() or path.stat().st_size > _COPY_LIMIT_BYTES:
            return str(path)
        name = f"model{path.suffix}"
        shutil.copyfile(path, directory / name)
        return name
    if descriptors:
        with contextlib.suppress(OSError, HipdnnMlirError):
            from ..frontend import container

            container.save(descriptors[0], directory / _MODEL, _COPY_LIMIT_BYTES)
    return _MODEL
