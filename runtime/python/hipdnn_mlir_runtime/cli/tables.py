"""Tables as plain text: columns side by side, one line a row, so that other programs can read them too."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Sequence

_GAP = "  "
_LEAST_FOLDED = 30
"""Characters below which a last column is not folded: it would be a column of syllables."""


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], right: Collection[str] = ()) -> str:
    """Return a table under a title.

    On a terminal the last column is folded where it is wider than the rest of the line.

    Args:
        title: What the rows are.
        columns: Names of the columns; no line where all are empty.
        rows: A value for each column; shown by ``str``, on one line.
        right: Columns of numbers, which end at the same place.
    """
    cells = [[" ".join(str(value).split()) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    left = sum(widths[:-1]) + len(_GAP) * (len(columns) - 1)
    room = shutil.get_terminal_size().columns - left
    fold = sys.stdout.isatty() and room >= _LEAST_FOLDED
    head = _line(columns, columns, widths, right)
    lines = [emphasized(title), *([emphasized(head)] if head else [])]
    for row in cells:
        last = textwrap.wrap(row[-1], room, break_on_hyphens=False) if fold else []
        first, *rest = last or [row[-1]]
        lines.append(_line([*row[:-1], first], columns, widths, right))
        lines += [" " * left + text for text in rest]
    return "\n".join(lines)


def emphasized(text: str, colour: str = "1") -> str:
    """Return a text in bold or in a colour of terminals (``31`` red, ``32`` green, ``33`` yellow), where standard output is one."""
    return f"\x1b[{colour}m{text}\x1b[0m" if has_colours() else text


def has_colours() -> bool:
    """Return whether standard output shows colours: a terminal, and the user has not set NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _line(row: Sequence[str], columns: Sequence[str], widths: Sequence[int], right: Collection[str]) -> str:
    aligned = [
        text.rjust(width) if column in right else text.ljust(width)
        for text, column, width in zip(row, columns, widths, strict=True)
    ]
    return _GAP.join(aligned).rstrip()
