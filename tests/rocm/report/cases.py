"""What became of the cases of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

STATUSES = ("passed", "recovered", "refused", "rejected", "failed", "unrun")
"""``recovered``: the library refused graphs, and the program without them was right. ``refused``: by the library, as it may.
``rejected``: by the compiler. ``unrun``: no time was left. On one engine alone also ``untaken``: another one ran it."""


@dataclass(frozen=True)
class Case:
    """One case.

    Attributes:
        name: As its suite knows it.
        status: One of ``STATUSES``.
        reason: Why it did not pass.
        log: What it wrote to standard error.
    """

    name: str
    status: str
    reason: str = ""
    log: str = ""


@dataclass
class Suite:
    """The cases of a suite.

    Attributes:
        name: What it is, and for which target.
        cases: What became of each that is known by name.
        passed: How many more passed.
        seconds: How long all took.
        engine: The only one that was asked; empty where the library chose.
    """

    name: str
    cases: list[Case] = field(default_factory=list)
    passed: int = 0
    seconds: float = 0.0
    engine: str = ""

    def add(self, results: Mapping[str, Mapping[str, Any]]) -> None:
        """Add what workers answered."""
        for name, result in results.items():
            reason = "; ".join(map(str, result.get("reasons", ())))
            self.cases.append(Case(name, str(result["status"]), reason, str(result.get("log", ""))))

    @property
    def counts(self) -> Counter[str]:
        """Cases by status."""
        return Counter(case.status for case in self.cases) + Counter(passed=self.passed)

    def with_status(self, *statuses: str) -> list[Case]:
        """The cases that have one of these."""
        return [case for case in self.cases if case.status in statuses]


def failed(suites: Iterable[Suite]) -> int:
    """How many cases failed."""
    return sum(suite.counts["failed"] for suite in suites)
