"""From a command line to a command and what it is given; the options are declared by the table of options."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

from ..errors import ModelError, meant
from ..options import Option, options_of
from .command import Command, needed_compiler, version_of
from .completion import Mark, script
from .needs import check_needs, check_outputs
from .options import read

PROGRAM = "hipdnn-mlir"
_COMPLETION = "--print-completion"
GROUPS = {"cache": "List and delete what is kept between processes: compiled programs, plans."}
"""First words of commands that have two."""
_KNOWN_ELSEWHERE = ("compile", "explain", "generate", "quantize", "serve", "verify")
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
    parser, parsers = parsers_of(commands)
    group, rest = _taken(arguments, {name.partition(" ")[0] for name in by_name})
    name, rest = (group, rest) if group in by_name else _member(parsers, group, rest)
    if name not in by_name:
        _refuse(parser, by_name, arguments)
    found, unknown = parsers[name].parse_known_args(rest)
    if unknown and not unknown[0].startswith("-"):
        names = " and ".join(argument.name for argument in by_name[name].arguments)
        raise ModelError(
            "one word too many",
            where=unknown[0],
            expected=f"{name} {names}".rstrip(),
            hint=f"see '{PROGRAM} {name} --help'",
        )
    if unknown:
        flags = [flag for row in options_of(name).values() for flag in row.flags]
        raise _unknown("option", unknown[0].partition("=")[0], flags, f"{PROGRAM} {name}")
    return by_name[name], _given(by_name[name], vars(found))


def _taken(arguments: Sequence[str], words: Collection[str]) -> tuple[str, list[str]]:
    """Return which of some words is meant, empty for none, and what else there is: the first word, or the first of these behind options."""
    known = arguments[:1] if arguments and not arguments[0].startswith("-") else arguments
    at = next((index for index, text in enumerate(known) if text in words), None)
    return ("", [*arguments]) if at is None else (arguments[at], [*arguments[:at], *arguments[at + 1 :]])


def _member(
    parsers: Mapping[str, argparse.ArgumentParser], group: str, arguments: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the command of a group, such as ``cache list``, and what else there is; say what is wrong where it is none of them."""
    members = [name.partition(" ")[2] for name in parsers if name.startswith(f"{group} ")]
    word, rest = _taken(arguments, members)
    if group and not word:
        parsers[group].parse_known_args([text for text in arguments if text in ("-h", "--help", "--version")])
        unknown = next((text for text in arguments if not text.startswith("-")), None)
        if unknown is not None:
            raise _unknown("command", unknown, members, f"{PROGRAM} {group}")
        raise ModelError("no command", where=group, expected=f"{group} {', '.join(members)}")
    return f"{group} {word}", rest


def _refuse(parser: argparse.ArgumentParser, commands: Mapping[str, Command], arguments: Sequence[str]) -> NoReturn:
    """Print help or the version where that is asked for; else say what is wrong."""
    if any(text.partition("=")[0] == _COMPLETION for text in arguments):
        parser.parse_known_args([*arguments])
    word = next((text for text in arguments if not text.startswith("-")), None)
    if word in _KNOWN_ELSEWHERE:
        needed_compiler(word)  # says why there is none
    if word is not None:
        raise _unknown("command", word, [*commands], PROGRAM)
    parser.parse_known_args([*arguments])
    unknown = next((text for text in arguments if text not in ("-v", "--verbose", "-q", "--quiet")), None)
    if unknown is not None:
        raise _unknown("option", unknown, ["--help", "--version", "--quiet", "--verbose", _COMPLETION], PROGRAM)
    raise ModelError("no command", expected=", ".join(commands), hint=f"see '{PROGRAM} --help'")


def _unknown(kind: str, word: str, known: Sequence[str], program: str) -> ModelError:
    return ModelError(f"no such {kind}", where=word, hint=f"{meant(word, known)} see '{program} --help'".lstrip())


class _PrintCompletion(argparse.Action):
    """Prints what a shell reads to complete command lines, and ends, as help does."""

    def __call__(self, parser: argparse.ArgumentParser, _namespace: object, values: Any, *_: object) -> None:
        sys.stdout.write(script(lambda mark: parsers_of(self.const, mark)[0], values) + "\n")
        parser.exit()


def parsers_of(
    commands: Sequence[Command], mark: Mark = lambda *_: None
) -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the whole, and those of its commands by name, groups before their members.

    Args:
        commands: What they are made for.
        mark: Called with every argument and option, and what it was made from.
    """
    common = _Parser(add_help=False, allow_abbrev=False)
    common.add_argument("-v", "--verbose", action="store_true", help="Log to standard error.")
    common.add_argument("-q", "--quiet", action="store_true", help="Print results and errors alone.")
    common.add_argument("--version", action="version", version=versions())
    parser = _Parser(
        PROGRAM,
        description="Compile ONNX models to hipDNN programs, and run them.",
        epilog=f"'{PROGRAM} COMMAND --help' shows the options of a command.",
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument(
        _COMPLETION,
        action=_PrintCompletion,
        const=commands,
        choices=("bash", "zsh", "tcsh"),
        help="Print what a shell needs to complete command lines.",
    )
    folders = {"": _subparsers(parser)}
    parsers: dict[str, argparse.ArgumentParser] = {}

    def add(group: str, name: str, text: str) -> argparse.ArgumentParser:
        made = folders[group].add_parser(name, help=text, description=text, parents=[common], allow_abbrev=False)
        return parsers.setdefault(f"{group} {name}".strip(), made)

    for command in commands:
        group, _, name = command.name.rpartition(" ")
        if group not in folders:
            folders[group] = _subparsers(add("", group, GROUPS[group]))
        one = add(group, name, command.help)
        for argument in command.arguments:
            count: dict[str, Any] = {"nargs": "+"} if argument.is_many else {}
            mark(one.add_argument(argument.name, type=Path, help=argument.help, **count), argument)
        for row in options_of(command.name).values():
            mark(_declare(one, row), row)
    return parser, parsers


def _subparsers(parser: argparse.ArgumentParser) -> Any:
    return parser.add_subparsers(metavar="COMMAND", title="commands", dest="command", parser_class=_Parser)


def _declare(parser: argparse.ArgumentParser, row: Option) -> argparse.Action:
    """Declare an option, as a text: what it means is read later, with errors that say what would have been right."""
    how: dict[str, Any] = {"dest": row.name, "help": _help(row), "default": argparse.SUPPRESS}
    if row.type == "flag" and row.default is True:
        how["action"] = argparse.BooleanOptionalAction
    elif row.type == "flag":
        how["action"] = "store_true"
    else:
        how["metavar"] = row.form or {"integer": "N", "path": "FILE", "output": "FILE"}.get(row.type, "VALUE")
        how["action"] = "append" if row.is_repeated else "store"
    return parser.add_argument(*row.flags, **how)


def _help(row: Option) -> str:
    default = "" if row.type == "flag" or row.default in (None, "", (), []) else f" Default: {row.default}."
    return (row.help.replace("`", "'") + default).replace("%", "%%")


def _given(command: Command, found: Mapping[str, Any]) -> SimpleNamespace:
    """Return what the user gave, and defaults; refuse options without effect."""
    rows = options_of(command.name)
    values: dict[str, Any] = {name: found[name] for name in ("verbose", "quiet")}
    for name, row in rows.items():
        given = found.get(name, [] if row.is_repeated else None)
        values[name] = row.default if given is None else read(row, given)
    for argument in command.arguments:
        given = found[argument.name]
        values[argument.name] = [*map(argument.read, given)] if argument.is_many else argument.read(given)
    check_needs([row for name, row in rows.items() if name in found], values)
    check_outputs(rows.values(), [argument.name for argument in command.arguments], values)
    return SimpleNamespace(**values)


def versions() -> str:
    """Return what `--version` prints: both packages."""
    compiler = version_of("hipdnn-mlir")
    return f"hipdnn-mlir-runtime {version_of('hipdnn-mlir-runtime')}, {f'hipdnn-mlir {compiler}' if compiler else 'no compiler'}"
