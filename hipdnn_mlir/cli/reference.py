"""docs/cli.md's list of commands and options, from the parser: ``python -m hipdnn_mlir.cli.reference`` writes it, in the project's folder.

A test compares.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from hipdnn_mlir_runtime.cli.main import all_commands
from hipdnn_mlir_runtime.cli.parser import parsers_of

from ..report.options_doc import between

PAGE = Path("docs/cli.md")
LINES = "<!-- commands: generated -->", "<!-- end of commands -->"


def reference() -> str:
    """Return a section of markdown for each command, with its arguments and options in a table."""
    return "\n\n".join(map(_section, parsers_of(all_commands())[1].values()))


def _section(parser: argparse.ArgumentParser) -> str:
    actions = [action for action in parser._actions if not isinstance(action, argparse._SubParsersAction)]  # noqa: SLF001
    common = {"help", "version", "verbose", "quiet"}
    rows = [f"| {_spelling(action)} | {_cell(action.help or '')} |" for action in actions if action.dest not in common]
    title = parser.prog.partition(" ")[2]
    table = ["", "| argument or option | |", "|---|---|", *rows] if rows else []
    return "\n".join([f"### {title}", "", _cell(parser.description or ""), *table])


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`"
    takes_value = action.nargs != 0 and isinstance(action.metavar, str)
    value = f" {action.metavar}".replace("|", "/") if takes_value else ""
    return ", ".join(f"`{flag}{value}`" for flag in action.option_strings)


def _cell(text: str) -> str:
    """Return a text of the parser as markdown: what it quotes becomes code."""
    return re.sub(r"(?<!\w)'([^']+)'(?!\w)", r"`\1`", text.replace("%%", "%")).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(between(PAGE.read_text(), *LINES, reference))
