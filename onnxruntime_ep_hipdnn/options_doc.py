"""The table of provider options in docs/onnxruntime.md, from the library's own: ``python -m onnxruntime_ep_hipdnn.options_doc FILE``."""

import sys
from pathlib import Path

from ._library import Option, get_options

BEGIN, END = "<!-- options: generated -->", "<!-- end of options -->"


def table() -> str:
    """Return the options as a markdown table."""
    lines = ["| option | value | default | |", "|---|---|---|---|"]
    lines += [f"| `{row.key}` | {_value(row)} | {_default(row)} | {row.help} |" for row in get_options()]
    return "\n".join(lines)


def with_table(page: str) -> str:
    """Return a page with the table between its markers brought up to date.

    Raises:
        ValueError: The page lacks the markers.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no markers {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _value(row: Option) -> str:
    return ", ".join(f"`{value}`" for value in row.values) if row.values else row.type


def _default(row: Option) -> str:
    return f"`{row.default}`" if row.default else "empty"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text()))
