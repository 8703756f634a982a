"""One measurement against its target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What is measured.
        target: Largest value that counts as reached.
        measured: The value, in the unit of ``unit``.
        unit: ``x`` for a ratio, ``s``, or empty for a count.
        note: What stands behind the value.
    """

    name: str
    target: float
    measured: float
    unit: str = ""
    note: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def is_reached(self) -> bool:
        """Whether the value is at most its target."""
        return self.measured <= self.target
