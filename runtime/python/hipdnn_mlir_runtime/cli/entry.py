"""The entry point of the command ``hipdnn-mlir``: what has a process of its own starts it, and that loads beside the command itself."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points

STARTS = "hipdnn_mlir.starts"
"""Of the entry points of packages that start something; they are called with the command's arguments."""


def main() -> None:
    """Start what other packages have to start, then read the command line and do what it says."""
    for start in entry_points(group=STARTS):
        start.load()(sys.argv[1:])
    from .main import call

    sys.exit(call(sys.argv[1:]))
