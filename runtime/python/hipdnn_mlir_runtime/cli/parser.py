"""From a command line to a command and what it is given; the options are declared by the table of options."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from ..errors import ModelError
from ..options import Option, options_of
from .command import Command, needed_compiler, version_of
from .needs import check_needs
from .options import read

PROGRAM = "hipdnn-mlir"
_KNOWN_ELSEWHERE = ("compile", "explain", "verify")
"""Commands of the compiler, to be told from words that mean nothing where it is not installed."""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others."""

    def error(self, message: str) -> NoReturn:
        raise ModelError(message, hint=f"see '{self.prog} --help'")


def parse(commands: Sequence[Command], arguments: Sequence[str]) -> tuple[Command, SimpleNamespace]:
    """Return the command that is asked for, and its argument and options by name.

    Args:
        commands: All commands there are.
        arguments: What the user typed; options may lie before the command.

    Raises:
        ModelError: There is no such command or option, a value is none of its choices, or an option has no effect.
        SystemExit: Help or the version was asked for, and is printed.
    """
    by_name = {command.name: command for command in commands}
    parser, parsers = _parsers(commands)
    at = _command_at(arguments, by_name)
    if at is None:
        _refuse(parser, by_name, arguments)
    name = arguments[at]
    found, unknown = parsers[name].parse_known_args([*arguments[:at], *arguments[at + 1 :]])
    if unknown:
        flags = [flag for row in options_of(name).values() for flag in row.flags]
        raise _unknown("option", unknown[0].partition("=")[0], flags, f"{PROGRAM} {name}")
    return by_name[name], _given(by_name[name], vars(found))


def parsers_of(commands: Sequence[Command]) -> argparse.ArgumentParser:
    """Return the parser of all commands, for what is made from it: completion of command lines, documents."""
    return _parsers(commands)[0]


def _command_at(arguments: Sequence[str], commands: Mapping[str, Command]) -> int | None:
    """Return which word is the command: the first one, or the first command behind options."""
    if arguments and not arguments[0].startswith("-"):
        return 0 if arguments[0] in commands else None
    return next((index for index, text in enumerate(arguments) if text in commands), None)


def _refuse(parser: argparse.ArgumentParser, commands: Mapping[str, Command], arguments: Sequence[str]) -> NoReturn:
    """Print help or the version where that is asked for; else say what is wrong."""
    word = next((text for text in arguments if not text.startswith("-")), None)
    if word in _KNOWN_ELSEWHERE:
        needed_compiler(word)  # says why there is none
    if word is not None:
        raise _unknown("command", word, [*commands], PROGRAM)
    parser.parse_known_args([*arguments])
    unknown = next((text for text in arguments if text not in ("-v", "--verbose", "-q", "--quiet")), None)
    if unknown is not None:
        raise _unknown("option", unknown, ["--help", "--version", "--quiet", "--verbose"], PROGRAM)
    raise ModelError("no command", expected=", ".join(commands), hint=f"see '{PROGRAM} --help'")


def _unknown(kind: str, word: str, known: Sequence[str], program: str) -> ModelError:
    near = difflib.get_close_matches(word, known, n=1)
    meant = f"did you mean {near[0]}? " if near else ""
    return ModelError(f"no such {kind}", where=word, hint=f"{meant}see '{program} --help'")


def _parsers(commands: Sequence[Command]) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    common = _Parser(add_help=False, allow_abbrev=False)
    common.add_argument("-v", "--verbose", action="store_true", help="Log to standard error.")
    common.add_argument("-q", "--quiet", action="store_true", help="Print results and errors alone.")
    common.add_argument("--version", action="version", version=_version())
    parser = _Parser(
        PROGRAM,
        description="Compile ONNX models to hipDNN programs, and run them.",
        epilog=f"'{PROGRAM} COMMAND --help' shows the options of a command.",
        parents=[common],
        allow_abbrev=False,
    )
    found = parser.add_subparsers(metavar="COMMAND", title="commands", dest="command", parser_class=_Parser)
    parsers: dict[str, argparse.ArgumentParser] = {}
    for command in commands:
        one = found.add_parser(
            command.name, help=command.help, description=command.help, parents=[common], allow_abbrev=False
        )
        for argument in command.arguments:
            one.add_argument(argument.name, type=Path, help=argument.help)
        for row in options_of(command.name).values():
            _declare(one, row)
        parsers[command.name] = one
    return parser, parsers


def _declare(parser: argparse.ArgumentParser, row: Option) -> None:
    """Declare an option, as a text: what it means is read later, with errors that say what would have been right."""
    how: dict[str, Any] = {"dest": row.name, "help": _help(row), "default": argparse.SUPPRESS}
    if row.type == "flag" and row.default is True:
        how["action"] = argparse.BooleanOptionalAction
    elif row.type == "flag":
        how["action"] = "store_true"
    else:
        how["metavar"] = row.form or {"integer": "N", "path": "FILE"}.get(row.type, "VALUE")
        how["action"] = "append" if row.is_repeated else "store"
    parser.add_argument(*row.flags, **how)


def _help(row: Option) -> str:
    default = "" if row.type == "flag" or row.default in (None, "", ()) else f" Default: {row.default}."
    return (row.help.replace("`", "'") + default).replace("%", "%%")


def _given(command: Command, found: Mapping[str, Any]) -> SimpleNamespace:
    """Return what the user gave, and defaults; refuse options without effect."""
    rows = options_of(command.name)
    values: dict[str, Any] = {name: found[name] for name in ("verbose", "quiet")}
    for name, row in rows.items():
        given = found.get(name, [] if row.is_repeated else None)
        values[name] = row.default if given is None else read(row, given)
    for argument in command.arguments:
        values[argument.name] = argument.check(found[argument.name])
    check_needs([row for name, row in rows.items() if name in found], values)
    return SimpleNamespace(**values)


def _version() -> str:
    compiler = version_of("hipdnn-mlir")
    return f"hipdnn-mlir-runtime {version_of('hipdnn-mlir-runtime')}, {f'hipdnn-mlir {compiler}' if compiler else 'no compiler'}"
