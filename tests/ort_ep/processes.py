"""Which processes this one has started."""

from __future__ import annotations

import os
from pathlib import Path


def children() -> set[int]:
    """Return the ids of this process's children."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == os.getpid():
            found.add(int(status.parent.name))
    return found
