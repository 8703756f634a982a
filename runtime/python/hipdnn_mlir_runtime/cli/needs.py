"""Options that have no effect under some circumstances: an error there, never ignored.

A row of the table of options says what it needs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ..options import Option


@dataclass(frozen=True)
class Need:
    """What options need to have an effect.

    Attributes:
        kind: What such options are called.
        missing: Why a command with these parameters lacks it, and what to do; None where it does not.
    """

    kind: str
    missing: Callable[[Mapping[str, Any]], tuple[str, str] | None]


def is_program(path: Path) -> bool:
    """Return whether a path names a program file, by its suffix."""
    return path.suffix == ".hipdnn"


def check_folder(path: Path | None, option: str) -> None:
    """Refuse a file to write that is a folder, or of which the folder is not there, before work is done for it.

    Args:
        path: The file; None for none.
        option: What names it.

    Raises:
        ModelError: It is a folder, or there is no such folder.
    """
    if path is None:
        return
    if path.is_dir():
        raise ModelError("a folder", where=str(path), expected="the name of the file to write")
    if not path.parent.is_dir():
        raise ModelError("no such directory", where=str(path.parent), hint=f"create it, or choose another {option}")


def _is_compiled(given: Mapping[str, Any]) -> tuple[str, str] | None:
    models = given["models"] if "models" in given else [given["model"]]
    if not all(map(is_program, models)):
        return None
    return f"{models[0].name} is compiled already", "compile the model with {them}"


def _has_no_child(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return ("--in-process compiles without one", "leave one of them out") if given["in_process"] else None


def _compares_nothing(given: Mapping[str, Any]) -> tuple[str, str] | None:
    option = "--compare" if "compare" in given else "--against"
    return None if given[option[2:]] else ("nothing is compared", f"add {option} ort, or torch for a .pt2 file")


def _makes_no_page(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return None if given["html"] is not None else ("none is asked for", "add --html FILE")


def _makes_no_view(given: Mapping[str, Any]) -> tuple[str, str] | None:
    found = given["html"] or given["netron"]
    return None if found is not None else ("neither is asked for", "add --html FILE or --netron FILE")


def _has_no_model(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return None if given["reference"] is not None else ("none is given", "add --reference MODEL")


def _is_model(given: Mapping[str, Any]) -> tuple[str, str] | None:
    model: Path = given["model"]
    return None if is_program(model) else (f"{model.name} is a model, compiled here", "leave {them} out")


NEEDS = {
    "program": Need("of program files", _is_model),
    "page": Need("of the page", _makes_no_page),
    "view": Need("of the page and of the file for Netron", _makes_no_view),
    "page_model": Need("of the program's model", _has_no_model),
    "model": Need("of compiling", _is_compiled),
    "child": Need("of the compiler's child process", _has_no_child),
    "comparison": Need("of a comparison", _compares_nothing),
}
"""What commands know of the needs in the table; the provider knows of others."""


def check_needs(rows: Sequence[Option], values: Mapping[str, Any]) -> None:
    """Refuse options without effect.

    Args:
        rows: The options that the user gave, whatever their value.
        values: All that the command is given.

    Raises:
        ModelError: Options need what is not there; all of one kind are named.
    """
    for need, what in NEEDS.items():
        flags = [row.flags[0] for row in rows if need in row.needs]
        found = what.missing(values) if flags else None
        if found is not None:
            are, them = ("options", "them") if len(flags) > 1 else ("an option", "it")
            reason, hint = found
            raise ModelError(f"{are} {what.kind}, and {reason}", where=", ".join(flags), hint=hint.format(them=them))


def check_outputs(rows: Iterable[Option], arguments: Iterable[str], values: Mapping[str, Any]) -> None:
    """Refuse to write a file that the command reads, or one file twice.

    Args:
        rows: The options of the command.
        arguments: What else it is given.
        values: All that it is given.

    Raises:
        ModelError: An output is such a file.
    """
    rows = list(rows)
    known = {f"the {name}": values[name] for name in arguments}
    known |= {row.flags[0]: values[row.name] for row in rows if row.type == "path"}
    known |= {f"--input {name}": path for name, path in values.get("inputs", {}).items()}
    taken = {os.path.realpath(path): what for what, path in known.items() if isinstance(path, Path)}
    for row in rows:
        if row.type != "output" or values[row.name] is None:
            continue
        what = taken.setdefault(os.path.realpath(values[row.name]), row.flags[0])
        if what != row.flags[0]:
            message = f"{values[row.name]} would be overwritten: it is also {what}"
            raise ModelError(message, where=row.flags[0], hint="write to another file")
