"""What is made from the schema of a program file: ``python -m hipdnn_mlir.report.records_doc`` writes it, in the project's folder.

A test compares.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..program.schema import SCHEMA
from .options_doc import between

_PYTHON = {
    "text": "str",
    "flag": "bool",
    "integer": "int",
    "dtype": "str",
    "size": "int",
    "[size]": "Sequence[Size]",
    "json": "dict[str, Any]",
    "value": "Any",
    "descriptor": "Any",
    "expression": "list[Any]",
}
"""Python types; the others are records, unions and choices."""
_WORDS = {
    "text": "string",
    "flag": "boolean",
    "integer": "integer",
    "dtype": "dtype",
    "size": "size",
    "json": "object",
    "value": "value",
    "descriptor": "[descriptor](#descriptors)",
    "expression": "[expression](#dynamic-dimensions)",
}
"""The types in the document."""
_EMPTY = {"[]": "list", "{}": "dict"}

Row = dict[str, Any]


def tables() -> str:
    """Return the records as markdown tables, the whole first."""
    lines = []
    for name, record in reversed(SCHEMA["records"].items()):
        base = (
            f" It has the fields of [{record['includes']}](#{record['includes'].lower()}) too."
            if "includes" in record
            else ""
        )
        lines += [f"### {name}", "", record["help"] + base, "", "| field | type | |", "|---|---|---|"]
        for field, row in record["fields"].items():
            people = " For people." if row.get("reader") == "people" and record.get("reader") != "people" else ""
            lines.append(f"| `{field}` | {_words(row)} | {row['help']}{people} |")
        lines.append("")
    return "\n".join(lines[:-1])


def _words(row: Row) -> str:
    kind = row["type"]
    inner = kind.strip("[]{}")
    if inner in SCHEMA["choices"]:
        words = ", ".join(f"`{value}`" for value in SCHEMA["choices"][inner])
    else:
        words = _WORDS.get(inner, f"[{inner}](#{inner.lower()})" if inner in SCHEMA["records"] else inner)
    for bracket in reversed(kind[: len(kind) - len(kind.lstrip("[{"))]):
        words = f"{'list' if bracket == '[' else 'object'} of {words}"
    if "default" not in row:
        return words
    default = row["default"]
    return f"{words}, may be missing" + (f" (`{json.dumps(default)}`)" if default not in (None, [], {}, "") else "")


def classes() -> str:
    """Return the records as dataclasses."""
    lines = []
    for name, values in SCHEMA["choices"].items():
        lines += [f"{name} = Literal[{', '.join(map(json.dumps, values))}]"]
    waiting = dict(SCHEMA["unions"])
    for name, record in SCHEMA["records"].items():
        if record.get("python") is not False:
            lines += _class(name, record)
        for union, kinds in list(waiting.items()):
            if name == list(kinds.values())[-1]:
                lines += ["", "", f"{union} = {' | '.join(kinds.values())}"]
                del waiting[union]
    return "\n".join([*lines, "", ""])


def _class(name: str, record: Row) -> Iterator[str]:
    is_whole = "includes" in record
    rows = record["fields"] | (SCHEMA["records"][record["includes"]]["fields"] if is_whole else {})
    rows = {field: row for field, row in rows.items() if row.get("python") is not False}
    fields = {field: (_type(row), _default(row, is_whole)) for field, row in rows.items()}
    if is_whole:  # what has no default comes first
        fields = dict(sorted(fields.items(), key=lambda item: item[1][1] is not None))
    kind = next((kind for kinds in SCHEMA["unions"].values() for kind, other in kinds.items() if other == name), None)
    yield from ("", "", "@dataclass", f"class {record.get('python', name)}:", f'    """{record["help"]}"""', "")
    left = [default for _, default in fields.values()]
    for place, (field, (annotation, default)) in enumerate(fields.items()):
        # A default in front of a field that has none is no dataclass.
        ending = f" = {default}" if default is not None and None not in left[place:] else ""
        yield f"    {field}: {annotation}{ending}"
        yield from textwrap.wrap(f'"""{rows[field]["help"]}"""', 136, initial_indent=" " * 4, subsequent_indent=" " * 4)
    if kind:
        yield f'    kind: str = "{kind}"'


def _type(row: Row) -> str:
    if "python" in row:
        return str(row["python"])
    kind = row["type"]
    inner = kind.strip("[]{}")
    name = _PYTHON.get(inner, inner)
    if SCHEMA["records"].get(inner, {}).get("python") is False:
        name = "dict[str, Any]"
    for bracket in reversed(kind[: len(kind) - len(kind.lstrip("[{"))]):
        name = f"list[{name}]" if bracket == "[" else f"dict[str, {name}]"
    name = _PYTHON.get(kind, name)
    return f"{name} | None" if row.get("default", "") is None else name


def _default(row: Row, is_whole: bool) -> str | None:
    """The default of a field as Python; None where it has none. A program is put together list by list."""
    if is_whole and row["type"][0] == "[":
        return "field(default_factory=list)"
    if "default" not in row:
        return None
    text = json.dumps(row["default"])
    return f"field(default_factory={_EMPTY[text]})" if text in _EMPTY else repr(row["default"]).replace("'", '"')


MADE: dict[str, tuple[str, str, Callable[[], str]]] = {
    "docs/program-format.md": ("<!-- records: generated -->", "<!-- end of records -->", tables),
    "hipdnn_mlir/program/schema.py": ("# records: generated", "# end of records", classes),
}
"""File -> the lines before and after what is made, and what makes it."""


if __name__ == "__main__":
    for name, made in MADE.items():
        Path(name).write_text(between(Path(name).read_text(), *made))
