"""The options of sessions, the compiler, the commands and the provider for ONNX Runtime: rows of ``options.json``.

A row says under ``in`` where it applies: ``session``, ``runtime`` (what a device is opened with), ``provider``, or a command of
``hipdnn-mlir``. An object under one of these names holds what differs there. ``runtime/generate_options.py`` makes the C++ structures.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from .errors import ModelError

_ABSENT: dict[str, Any] = {"flag": False, "text": "", "list": (), "paths": (), "texts": (), "map": (), "sizes": ()}


@dataclass(frozen=True)
class Option:
    """A row of the table, as it holds in one place.

    Attributes:
        name: As a keyword, and as the provider's key.
        type: ``flag``, ``integer``, ``number``, ``text``, ``choice``, ``path``, ``output`` (a file that is written), ``folder`` (a path,
            True or False), ``list``, ``texts`` (a list, with commas as they are), ``paths``, ``map`` (name to value) or ``sizes`` (name to
            sizes).
        help: What it does, in one or two sentences.
        default: Its value where it is not given; None where that depends on something else.
        least: Least value of an integer.
        greatest: Greatest value of an integer; None for no limit.
        choices: All values of a choice.
        form: How a value is written on a command line.
        flags: Its names on a command line.
        needs: What it has no effect without; the place that reads it knows how to tell.
    """

    name: str
    type: str
    help: str
    default: Any
    least: int
    greatest: int | None
    choices: tuple[str, ...]
    form: str
    flags: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def is_repeated(self) -> bool:
        """Whether a command line may give it several times, a value each."""
        return self.type in ("list", "texts", "paths", "map", "sizes")

    @property
    def expected(self) -> str:
        """What a value has to be, in words."""
        if self.type == "integer":
            return f"a whole number from {self.least}" + ("" if self.greatest is None else f" to {self.greatest}")
        if self.type == "choice":
            return "one of " + ", ".join(map(repr, self.choices))
        return _TYPES[self.type][0]

    @property
    def texts(self) -> tuple[str, ...]:
        """All values as texts, where there is a list of them."""
        if self.type == "flag":
            return ("auto", "0", "1") if self.default is None else ("0", "1")
        return self.choices

    @property
    def default_text(self) -> str:
        """The default as a text, as the provider has it."""
        if self.type == "flag":
            return "auto" if self.default is None else str(int(self.default))
        return str(self.default) if self.default not in (None, ()) else ""

    def read(self, value: Any, where: str = "") -> Any:
        """Return a value in the form that the runtime takes; it is hashable.

        Args:
            value: What the user gave.
            where: What the option is called there; its name by default.

        Raises:
            ModelError: The value is of another type, or out of range.
        """
        if value is None and self.default is None:
            return None
        try:
            return _TYPES[self.type][1](self, value)
        except (TypeError, ValueError) as error:
            raise ModelError("bad value", where=where or self.name, expected=self.expected, got=repr(value)) from error


class Settings(dict[str, Any]):
    """Values of options by name; hashable, so that equal ones share a device."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


def checked(place: str, given: Mapping[str, Any]) -> Settings:
    """Return the values of all options of a place, as given or by default.

    Raises:
        TypeError: There is no such option.
        ModelError: A value is of another type, or out of range.
    """
    rows = options_of(place)
    unknown = next((name for name in given if name not in rows), None)
    if unknown is not None:
        raise TypeError(f"unknown option {unknown!r}: expected one of {', '.join(rows)}")
    return Settings({name: row.read(given[name]) if name in given else row.default for name, row in rows.items()})


@cache
def options_of(place: str) -> dict[str, Option]:
    """Return the options of a place by name, in the table's order."""
    table = json.loads(resources.files(__package__).joinpath("options.json").read_text())
    return {name: _option(name, row | row.get(place, {})) for name, row in table.items() if place in row["in"]}


def _option(name: str, row: Mapping[str, Any]) -> Option:
    least, greatest = row.get("range", (0, None))
    flags = row.get("flag", "--" + name.replace("_", "-")).split()
    default = row["default"] if "default" in row else _ABSENT[row["type"]]
    choices, needs = tuple(row.get("choices", ())), tuple(row.get("needs", ()))
    form = row.get("form") or "|".join(choices)
    return Option(name, row["type"], row["help"], default, least, greatest, choices, form, tuple(flags), needs)


def _flag(_: Option, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _integer(option: Option, value: Any) -> int:
    number = operator.index(value)
    if number < option.least or (option.greatest is not None and number > option.greatest):
        raise ValueError
    return number


def _text(option: Option, value: Any) -> str:
    if not isinstance(value, str) or (option.choices and value not in option.choices):
        raise ValueError
    return value


def _path(_: Option, value: Any) -> str:
    if not os.fspath(value):
        raise ValueError
    return str(Path(value).expanduser().absolute())


def _folder(option: Option, value: Any) -> str | bool:
    return value if isinstance(value, bool) else _path(option, value)


def _list(_: Option, values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError
    return tuple(map(str, values))


def _paths(option: Option, values: Any) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError
    return tuple(_path(option, value) for value in values)


def _map(_: Option, values: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(values, Mapping):
        raise TypeError
    return tuple((name, str(int(v) if isinstance(v, bool) else v)) for name, v in sorted(values.items()))


_TYPES: dict[str, tuple[str, Callable[[Option, Any], Any]]] = {
    "flag": ("True or False", _flag),
    "integer": ("", _integer),
    "text": ("a text", _text),
    "choice": ("", _text),
    "path": ("a path", _path),
    "folder": ("a path, True or False", _folder),
    "list": ("a list of texts", _list),
    "paths": ("a list of paths", _paths),
    "map": ('a dict {"NAME": value}', _map),
}
"""By type: what a value has to be, and a function that returns it as the runtime takes it, or raises TypeError or ValueError."""
