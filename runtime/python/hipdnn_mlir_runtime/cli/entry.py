"""The entry point of the command ``hipdnn-mlir``: what has a process of its own starts it, and that loads beside the command itself."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points

STARTS = "hipdnn_mlir.starts"
"""Of the entry points of packages that start something; they are called with the command's arguments."""
_STANDARD_ERROR = 2


def _open_closed_streams() -> None:
    """Give standard streams that the caller has closed (``2>&-``) the null device; what is opened later would take their numbers."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(_STANDARD_ERROR, "w")


def main() -> None:
    """Start what other packages have to start, then read the command line and do what it says."""
    _open_closed_streams()
    for start in entry_points(group=STARTS):
        start.load()(sys.argv[1:])
    from .main import call

    sys.exit(call(sys.argv[1:]))
