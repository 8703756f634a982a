"""Failures sorted by cause: two hundred cases with one cause are one row, with a count and an example."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .cases import Case, Suite

CAUSES = {
    "wrong values": r"AssertionError: (Not equal to|(Array|Item)s are not equal|Unexpected type)|^off by |answers (wrongly|otherwise)",
    "hung": r"^hang: ",
    "crashed": r"^crash: |process ended by signal|cannot be killed",
    "out of memory": r"out of memory|OutOfMemory|ALLOC_FAILED|MemoryError|bad_alloc",
    "not loadable": r"cannot open|does not load|is missing: the library|too old|hipModule(Load|Get)|WrongTargetError|ProgramError",
    "compile refused": r"UnsupportedError|ModelError|^model: ",
    "refused by the library": r"PlanRefusedError|refused|NOT_SUPPORTED|NOT_APPLICABLE|no engine|BAD_PARAM",
    "device error": r"DeviceError|HIP error",
    "compiler failed": r"PassError|^compile: ",
    "other than the interface says": r"got .*expected|expected .*got",
    "other": "",
    "not run": r"^no time was left|cases in a row had hung",
}
"""Cause -> what its messages look like. Rows are shown in this order, and a message has the first cause that fits."""
_FIRST = ("hung", "crashed", "not run")
"""Said by who runs the cases: what a process wrote before it died may look like any other cause."""
_LEFT_OUT = re.compile(r"^.*answers (?:wrongly|otherwise).*it is left out$", re.MULTILINE)
_NOISE = re.compile(r"^run: |(?:First \d+ m|M)ismatch(?:es are)? at ind.*?(?=Max absolute|$)|ACTUAL: .*")
"""Of numpy's message about arrays that differ: how many and how much stays."""
_NORMAL = (
    (re.compile(r"(Not equal to tolerance).*?( \w+ location mismatch|$).*"), r"\1\2"),
    (re.compile(r"\bg_[0-9a-f]{8,}"), "a graph"),
    (re.compile(r"0x[0-9a-fA-F]+"), "N"),
    (re.compile(r"'[^']*'|\"[^\"]*\""), "'...'"),
    (re.compile(r"\b(nan|inf)\b|[-+]?\d+(\.\d*)?(e[-+]?\d+)?"), "N"),
    (re.compile(r"N(?:[\s,.:x/\[\]()_-]+N)+"), "N"),
    (re.compile(r"\s+"), " "),
)
_MOST = 160
"""Letters of a message in a row."""


@dataclass
class Row:
    """Equal failures.

    Attributes:
        cause: In ``CAUSES``.
        message: What they have in common, without numbers and names.
        is_failure: False where nothing failed by it: what a library did although another way was found, what the compiler does not take.
        cases: Suite and case of each.
    """

    cause: str
    message: str
    is_failure: bool
    cases: list[tuple[str, Case]] = field(default_factory=list)
    example: str = ""

    @property
    def order(self) -> tuple[bool, int, int]:
        """Failures first, by cause, the most frequent first."""
        return not self.is_failure, [*CAUSES].index(self.cause), -len(self.cases)


def cause_of(reason: str) -> str:
    """The cause that a message tells."""
    names = [*_FIRST, *(name for name in CAUSES if name not in _FIRST)]
    return next(name for name in names if re.search(CAUSES[name], reason))


def shortened(reason: str) -> str:
    """The message on one line, without single elements of arrays."""
    return " ".join(_NOISE.sub("", reason).split())


def normalized(reason: str, case: str = "") -> str:
    """The message without what differs between equal failures: numbers, names, the case."""
    text = shortened(reason)
    if case:
        text = text.replace(case, "'...'")
    for pattern, by in _NORMAL:
        text = pattern.sub(by, text)
    return text.strip()[:_MOST]


def rows(suites: Iterable[Suite]) -> list[Row]:
    """Everything that is not as it should be, sorted by cause."""
    found: dict[tuple[str, str, bool], Row] = {}
    for suite in suites:
        for case in suite.cases:
            for cause, reason in _told(case):
                is_failure = case.status == "failed" and reason == case.reason
                key = (cause, normalized(reason, case.name), is_failure)
                row = found.setdefault(key, Row(*key, example=reason))
                row.cases.append((suite.name, case))
    return sorted(found.values(), key=lambda row: row.order)


def _told(case: Case) -> Iterator[tuple[str, str]]:
    """Cause and message of what a case shows: its failure or refusal, and plans that were left out for what they answered."""
    if case.status in ("failed", "recovered", "rejected", "refused", "unrun"):
        yield _cause_by_status(case), case.reason
    lines = {normalized(line, case.name): line for line in _LEFT_OUT.findall(case.log)}
    for line in lines.values():
        yield "wrong values", line


def _cause_by_status(case: Case) -> str:
    if case.status in ("recovered", "refused"):
        wrong = re.search(CAUSES["wrong values"], case.reason)
        return "wrong values" if wrong else "refused by the library"
    if case.status == "rejected":
        return "compile refused"
    return cause_of(case.reason)
