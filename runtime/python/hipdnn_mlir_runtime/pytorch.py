"""Files of exported PyTorch programs (`.pt2`), and tensors as NumPy has them. PyTorch is imported where one is met."""

from __future__ import annotations

import logging
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .dtypes import OF_ML_DTYPES, is_foreign
from .errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor
    from torch.export import ExportedProgram

SUFFIX = ".pt2"
_LOGGERS = ("torch.export", "torch._subclasses.fake_tensor", "torch.fx.experimental.symbolic_shapes")
"""Which log what is an exception a moment later."""


def is_exported(path: Path) -> bool:
    """Return whether a path names what `torch.export.save` writes, by its suffix."""
    return path.suffix == SUFFIX


def need_torch(where: str | Path) -> None:
    """Refuse to go on without PyTorch.

    Args:
        where: What needs it.

    Raises:
        ModelError: It is not installed.
    """
    if find_spec("torch") is None:
        raise ModelError("PyTorch is not installed", where=str(where), hint="pip install torch")


def load_exported(path: Path) -> ExportedProgram:
    """Load a `.pt2` file. PyTorch may run code that the file holds.

    Raises:
        ModelError: PyTorch is not installed; the file is missing, or was not written by `torch.export.save`.
    """
    need_torch(path)
    import torch

    if not path.is_file():
        raise ModelError("cannot read the model: no such file", where=str(path), hint="check the path")
    expected = "a file that torch.export.save wrote"
    if not zipfile.is_zipfile(path):
        raise ModelError("not an exported PyTorch program", where=str(path), expected=expected)
    try:
        with without_logs(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch warns of its own code
            return torch.export.load(path)
    except Exception as error:  # whatever reading a broken file ends in
        message = f"PyTorch {torch.__version__} cannot load it: {first_line(error)}"
        hint = "torch.save writes other files: torch.export.save(torch.export.export(module, args), path)"
        raise ModelError(message, where=str(path), expected=expected, hint=hint) from error


@contextmanager
def without_logs() -> Iterator[None]:
    """While inside, PyTorch does not log what it then raises."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    were_disabled = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, was_disabled in zip(loggers, were_disabled, strict=True):
            logger.disabled = was_disabled


def first_line(error: Exception) -> str:
    """Return what an exception says, in a line; what it says of warnings, which are not shown, is left out."""
    told = str(error).strip().partition("\n")[0].partition(" Please check the warnings")[0]
    return told.rstrip(".") or type(error).__name__


def to_numpy(tensor: Tensor) -> npt.NDArray[Any]:
    """Return a tensor's values, without a copy where they are dense in the host's memory."""
    import torch

    dense = tensor.detach().cpu().contiguous()
    name = str(dense.dtype).removeprefix("torch.")
    if name in OF_ML_DTYPES:
        integers = torch.int8 if dense.element_size() == 1 else torch.int16
        return dense.view(integers).numpy().view(OF_ML_DTYPES[name].numpy)
    return dense.numpy()


def from_numpy(array: npt.NDArray[Any]) -> Tensor:
    """Return a tensor in an array's memory."""
    import torch

    if is_foreign(array.dtype):
        return torch.from_numpy(array.view(f"i{array.dtype.itemsize}")).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)
