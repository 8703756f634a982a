"""Completion of command lines by shells, through shtab."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ModelError
from ..options import Option
from .command import Argument

Mark = Callable[[argparse.Action, Argument | Option], None]
"""Is shown each action of a parser, with what it was made from."""


def script(parser: Callable[[Mark], argparse.ArgumentParser], shell: str) -> str:
    """Return the script that a shell reads to complete a command's options, choices and files.

    Args:
        parser: Makes the command's parser, and shows each action.
        shell: One that shtab knows.

    Raises:
        ModelError: shtab is not installed.
    """
    try:
        import shtab
    except ImportError as error:
        message = "completion needs the package shtab"
        raise ModelError(message, where="--print-completion", hint="pip install shtab") from error

    def files(patterns: Sequence[str]) -> Any:
        return shtab.glob(*patterns) if patterns else shtab.FILE

    def mark(action: argparse.Action, what: Argument | Option) -> None:
        if isinstance(what, Option) and what.choices:
            action.choices = what.choices
        elif isinstance(what, Option) and what.type in ("path", "output", "folder", "paths"):
            suffix = what.form.partition(".")[2]
            patterns = ["*.onnx", "*.pt2"] if what.form == "MODEL" else [f"*.{suffix}"] if suffix else []
            action.complete = shtab.DIRECTORY if what.form == "DIR" else files(patterns)  # type: ignore[attr-defined]
        elif isinstance(what, Argument) and what.patterns:
            action.complete = files(what.patterns)  # type: ignore[attr-defined]

    text: str = shtab.complete(parser(mark), shell)
    return text
