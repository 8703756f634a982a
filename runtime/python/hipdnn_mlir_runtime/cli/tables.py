"""Tables on a terminal: titles in bold, columns folded to the line. Elsewhere they are plain, with a line for each row."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence

from ..tables import aligned


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], right: Collection[str] = ()) -> str:
    """Return a table under a title.

    Args:
        title: What the rows are.
        columns: Names of the columns; no line where all are empty.
        rows: A value for each column; shown by ``str``, on one line.
        right: Columns of numbers, which end at the same place.
    """
    head, lines = (1 if any(columns) else 0), aligned(columns, rows, right=right, line=line_width())
    return "\n".join([*map(emphasized, (title, *lines[:head])), *lines[head:]])


def line_width() -> int | None:
    """Return the characters of a line of standard output; None where it is no terminal, and lines have any length."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def folded(text: str) -> str:
    """Return a line of text as lines that standard output has room for."""
    width = line_width()
    return text if width is None else textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def emphasized(text: str, colour: str = "1") -> str:
    """Return a text in bold or in a colour of terminals (``31`` red, ``32`` green, ``33`` yellow), where standard output is one."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours() else text


_OURS = re.compile(r"\x1b\[(?:0|1|3[123])m")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text for a terminal: characters that control it or the order of others, which names may hold, are written out.

    What ``emphasized`` writes stays, where it writes any.
    """
    if not has_colours():
        return _written_out(text)
    parts = zip(_OURS.split(text), [*_OURS.findall(text), ""], strict=True)
    return "".join(_written_out(part) + ours for part, ours in parts)


def _written_out(text: str) -> str:
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def has_colours() -> bool:
    """Return whether standard output shows colours: a terminal, and the user has not set NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
