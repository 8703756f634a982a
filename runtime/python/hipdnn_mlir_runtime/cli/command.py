"""What a command of ``hipdnn-mlir`` is. Those of the compiler come from the package that has it, found by its entry point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

from ..errors import ModelError
from .execution import Options, Report

GROUP = "hipdnn_mlir.commands"
"""Of the entry points of packages with commands."""


@dataclass(frozen=True)
class Argument:
    """What a command is given beside options.

    Attributes:
        name: Its name in ``given``.
        help: What it is.
        check: Returns the path to use; raises ModelError where the command has no use for it.
    """

    name: str
    help: str
    check: Callable[[Path], Path] = lambda path: path


@dataclass(frozen=True)
class Command:
    """A command; its options are those that the table has for its name.

    Attributes:
        name: What the user types.
        run: Does it, and returns the exit code; the first line of its docstring says what.
        argument: What it is given beside options, if anything.
    """

    name: str
    run: Callable[[SimpleNamespace], int]
    argument: Argument | None = None

    @property
    def help(self) -> str:
        """What it does, in a line."""
        return (self.run.__doc__ or "").partition("\n")[0]


class Compiler(Protocol):
    """What the compiler's package offers to the command."""

    @property
    def commands(self) -> Sequence[Command]:
        """The commands that need it."""

    def run_model(self, model: Path, given: SimpleNamespace, options: Options) -> Report:
        """Compile a model and run it: ``run`` of an ONNX file."""


def find_compiler() -> Compiler | None:
    """Return the compiler's part of the command; None where it is not installed."""
    found = next(iter(entry_points(group=GROUP)), None)
    compiler: Compiler | None = None if found is None else found.load()
    return compiler


def no_compiler(where: str) -> ModelError:
    """Return the error for what needs the compiler where there is none."""
    return ModelError("the compiler is not installed", where=where, hint="pip install hipdnn-mlir")
