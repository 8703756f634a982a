"""Files that appear complete or not at all: written beside their place, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from .errors import HipdnnMlirError, MachineError

_partial: set[Path] = set()
"""Files that are being written."""


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends; where the block raises, what was there stays and nothing else is left.

    Args:
        path: Destination: a file, which is replaced, or nothing yet.

    Raises:
        MachineError: The file cannot be written.
        HipdnnMlirError: The destination is a folder, or no regular file: a device would be replaced.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        found = "a folder" if path.is_dir() else "not a regular file"
        raise HipdnnMlirError(found, where=str(path), expected="the name of the file to write")
    partial = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    _partial.add(partial)
    hint = "choose another folder"
    try:
        with partial.open("xb") as file:
            hint = "free some space or choose another folder"
            yield file
        partial.replace(path)
    except OSError as error:
        raise MachineError(f"cannot write: {error.strerror or error}", where=str(path), hint=hint) from error
    finally:
        partial.unlink(missing_ok=True)
        _partial.discard(partial)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of UTF-8.

    Raises:
        HipdnnMlirError: As for ``written``.
    """
    with written(path) as file:
        file.write(text.encode())


def discard_partial_files() -> None:
    """Delete the files that this process is writing, before it ends without unwinding."""
    for partial in [*_partial]:
        partial.unlink(missing_ok=True)
