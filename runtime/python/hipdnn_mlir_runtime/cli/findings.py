"""One thing that `doctor` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        topic: What it belongs to.
        status: ``problem`` needs something done, ``note`` is worth knowing.
        text: What was found.
        fix: What to do; empty where there is nothing to do.
    """

    topic: str
    status: Status
    text: str
    fix: str = ""
