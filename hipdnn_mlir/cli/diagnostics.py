"""What hipdnn-opt reads, and its messages: each names a place in the file, as mlir-opt's do."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ..ir.assembly import column_before, generic_text

_SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
_EXPECTED = re.compile(r"expected-error(?:@([+-]\d+))?\s*\{\{(.*?)\}\}")
_POSITION = re.compile(r"\"-\":(\d+):(\d+)")
"""A place in the text that the bindings parse, which has no name."""


@dataclass(frozen=True)
class Diagnostic:
    """An error of MLIR's: its location as MLIR prints it, empty where there is none, and its message."""

    location: str
    message: str


@dataclass(frozen=True)
class Source:
    """A module to parse: the name of its file, and its text with the line numbers of the file."""

    name: str
    text: str

    @cached_property
    def generic(self) -> str:
        """The text that MLIR parses."""
        return generic_text(self.text)

    def message(self, found: Diagnostic) -> str:
        """One line: file, line and column where known, and what is wrong."""
        position = _POSITION.search(found.location)
        if position is None:
            named = re.search(r"\"([^\"]+)\"", found.location)
            return f"{self.name}: error: {f'at {named[1]}: ' if named else ''}{found.message}"
        line, column = int(position[1]), int(position[2])
        lines = (text.split("\n") for text in (self.text, self.generic))
        mine, changed = (text[line - 1] if 0 < line <= len(text) else "" for text in lines)
        return f"{self.name}:{line}:{column_before(mine, changed, column)}: error: {found.message}"


def split_source(name: str, text: str) -> list[Source]:
    """The modules between `// -----` lines of a file."""
    starts = [0, *(match.end() for match in _SPLIT.finditer(text))]
    ends = [*(match.start() for match in _SPLIT.finditer(text)), len(text)]
    return [
        Source(name, "\n" * text.count("\n", 0, start) + text[start:end])
        for start, end in zip(starts, ends, strict=True)
    ]


def report_unexpected(source: Source, diagnostics: Sequence[Diagnostic]) -> int:
    """Report expectations without a diagnostic and diagnostics that nobody expected; returns their number."""
    left = list(diagnostics)
    problems = []
    for line, message in _expected(source.text):
        found = next((d for d in left if message in d.message and _may_be_at(d, line)), None)
        if found is None:
            problems.append(f"{source.name}:{line}: expected error {message!r} was not produced")
        else:
            left.remove(found)
    problems += [f"unexpected: {source.message(found)}" for found in left]
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return len(problems)


def _expected(text: str) -> list[tuple[int, str]]:
    """Lines, counted from 1, and parts of the messages that comments expect there."""
    return [
        (number + int(match[1] or 0), match[2])
        for number, line in enumerate(text.splitlines(), 1)
        for match in _EXPECTED.finditer(line)
    ]


def _may_be_at(found: Diagnostic, line: int) -> bool:
    """Whether a diagnostic is at a line; one without a place may be anywhere."""
    return f":{line}:" in found.location or not found.location or "unknown" in found.location
