"""Columns side by side as plain text, so that people and other programs can read them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

_GAP = "  "
_LEAST_FOLDED = 12
"""Characters below which no column is folded: it would be a column of syllables."""


def aligned(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    right: Collection[str] = (),
    widest: int | None = None,
    line: int | None = None,
) -> list[str]:
    """Return the lines of a table; columns that no row has anything in are left out.

    Args:
        columns: Their names, which are the first line; no such line where all are empty.
        rows: A value for each column; shown by ``str``.
        right: Columns of numbers, which end at the same place.
        widest: Characters beyond which a value goes on in the next line.
        line: Characters of a line, for which the widest columns are folded, those of numbers excepted.
    """
    texts = [[" ".join(str(value).split()) for value in row] for row in rows]
    kept = [index for index in range(len(columns)) if not rows or any(row[index] for row in texts)]
    names = [columns[index] for index in kept]
    is_right = [name in right for name in names]
    cells = [[_folded(row[index], widest) for index in kept] for row in texts]
    if line is not None:
        fitting = _fitting(names, cells, is_right, line - len(_GAP) * (len(kept) - 1))
        cells = [[_folded(row[index], width) for index, width in zip(kept, fitting, strict=True)] for row in texts]
    widths = _widths(names, cells)
    lines = [_line(names, widths, is_right)] if any(columns) else []
    for row in cells:
        height = max(map(len, row))
        parts = zip(*(cell + [""] * (height - len(cell)) for cell in row), strict=True)
        lines += [_line(part, widths, is_right) for part in parts]
    return lines


def _folded(text: str, width: int | None) -> list[str]:
    return (textwrap.wrap(text, width, break_on_hyphens=False) if width else []) or [text]


def _fitting(
    names: Sequence[str], cells: Sequence[Sequence[Sequence[str]]], is_right: Sequence[bool], line: int
) -> list[int]:
    """Return widths with which columns fit into a line, if any: the widest gives way first, words are broken where nothing else helps."""
    widths = _widths(names, cells)
    words = _widths(names, [[" ".join(cell).split() for cell in row] for row in cells])
    for longest in (words, [0] * len(names)):
        least = [max(_LEAST_FOLDED, len(name), word) for name, word in zip(names, longest, strict=True)]
        while sum(widths) > line:
            wide = [i for i, width in enumerate(widths) if width > least[i] and not is_right[i]]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _widths(names: Sequence[str], cells: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    columns = zip(*cells, strict=True) if cells else ([] for _ in names)
    return [
        max(len(name), *(len(text) for cell in column for text in cell), 0)
        for name, column in zip(names, columns, strict=True)
    ]


def _line(texts: Sequence[str], widths: Sequence[int], is_right: Sequence[bool]) -> str:
    padded = (
        text.rjust(width) if to_right else text.ljust(width)
        for text, width, to_right in zip(texts, widths, is_right, strict=True)
    )
    return _GAP.join(padded).rstrip()
