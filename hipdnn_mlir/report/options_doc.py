"""What is made from the table of options: ``python -m hipdnn_mlir.report.options_doc`` writes it, in the project's folder.

A test compares.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path

from hipdnn_mlir_runtime.options import Option, options_of

_PYTHON = {
    "flag": "bool",
    "integer": "int",
    "text": "str",
    "path": "str | os.PathLike[str]",
    "folder": "str | os.PathLike[str] | bool",
    "list": "Sequence[str]",
    "paths": "Sequence[str | os.PathLike[str]]",
    "map": "Mapping[str, int | float | str]",
}
_TEXTS = {
    "text": "text",
    "path": "path",
    "output": "path",
    "folder": "path",
    "list": "`A,B`",
    "paths": "`DIR:DIR`",
    "map": "`NAME=VALUE,...`",
    "sizes": "`NAME=1,2;...`",
}
"""How a value of the provider is written, by type."""
_WORDS = {
    "flag": "`True`, `False`",
    "integer": "integer",
    "text": "text",
    "path": "path",
    "folder": "path, `True`, `False`",
    "list": "list",
    "paths": "list of paths",
    "map": "dict",
}
"""What a keyword's value is, by type."""


def session_types() -> str:
    """Return the keywords of a session as a TypedDict."""
    lines = ["", "", "class SessionOptions(TypedDict, total=False):", '    """The options of a ``Session``."""', ""]
    for row in options_of("session").values():
        lines.append(f"    {row.name}: {_type(row)}")
        lines += textwrap.wrap(f'"""{row.help}"""', 136, initial_indent=" " * 4, subsequent_indent=" " * 4)
    return "\n".join([*lines, "", ""])


def session_table() -> str:
    """Return the options of a session as a markdown table, with the names that the commands have for them."""
    lines = ["| option | command line | value | default | |", "|---|---|---|---|---|"]
    for row in options_of("session").values():
        flag = f"`{_flag(row)}`" if row.name in options_of("run") else ""
        values = ", ".join(f"`{choice}`" for choice in row.choices) or _WORDS[row.type] + _range(row)
        default = f"`{row.default}`" if row.default not in (None, (), "") else ""
        lines.append(f"| `{row.name}` | {flag} | {values} | {default} | {row.help} |")
    return "\n".join(lines)


def provider_table() -> str:
    """Return the provider's options as a markdown table."""
    lines = ["| option | value | default | |", "|---|---|---|---|"]
    for row in options_of("provider").values():
        values = ", ".join(f"`{text}`" for text in row.texts) or _TEXTS.get(row.type, row.type) + _range(row)
        default = f"`{row.default_text}`" if row.default_text else "empty"
        lines.append(f"| `{row.name}` | {values} | {default} | {row.help} |")
    return "\n".join(lines)


def _type(row: Option) -> str:
    kind = _PYTHON.get(row.type) or f"Literal[{', '.join(map(json.dumps, row.choices))}]"
    return kind + (" | None" if row.default is None else "")


def _flag(row: Option) -> str:
    negated = "--no-" + row.name.replace("_", "-")
    form = {"flag": "", "integer": " N", "choice": ""}.get(row.type, f" {row.form}")
    return negated if row.default is True else row.flags[0] + form


def _range(row: Option) -> str:
    return f", {row.least} to {row.greatest}" if row.type == "integer" else ""


MADE: dict[str, tuple[str, str, Callable[[], str]]] = {
    "docs/onnxruntime.md": ("<!-- options: generated -->", "<!-- end of options -->", provider_table),
    "docs/plans.md": ("<!-- options: generated -->", "<!-- end of options -->", session_table),
    "runtime/python/hipdnn_mlir_runtime/session/options.py": (
        "# options: generated",
        "# end of options",
        session_types,
    ),
}
"""File -> the lines before and after what is made, and what makes it."""


def between(page: str, begin: str, end: str, make: Callable[[], str]) -> str:
    """Return a file's text with what is made in it, between two lines, brought up to date.

    Raises:
        ValueError: The text lacks one of the lines.
    """
    before, found_begin, rest = page.partition(f"{begin}\n")
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"there are no lines {begin} and {end}")
    return f"{before}{begin}\n{make()}\n{end}{after}"


if __name__ == "__main__":
    for name, made in MADE.items():
        Path(name).write_text(between(Path(name).read_text(), *made))
