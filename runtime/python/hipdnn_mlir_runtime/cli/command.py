"""What a command of ``hipdnn-mlir`` is. Those of the compiler come from the package that has it, found by its entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol, TypeVar

from ..errors import MissingToolError, ModelError
from ..precision import UNCHANGED
from .needs import is_program
from .progress import working

Result = TypeVar("Result")
GROUP = "hipdnn_mlir.commands"
"""Of the entry points of packages with commands."""


@dataclass(frozen=True)
class Argument:
    """What a command is given beside options.

    Attributes:
        name: Its name in ``given``.
        help: What it is.
        patterns: Of the files that it may be, for shells.
        check: Returns the path to use; raises ModelError where the command has no use for it. A folder stands for the only such file in it.
        is_many: Whether there may be several of it; it is a list then.
    """

    name: str
    help: str
    patterns: tuple[str, ...] = ()
    check: Callable[[Path], Path] = lambda path: path
    is_many: bool = False

    def read(self, path: Path) -> Path:
        """Return the path to use for a given one.

        Raises:
            ModelError: The command has no use for it, it is not there, or it is a folder with no such file or with several.
        """
        if not (self.patterns and path.is_dir()):
            path = self.check(path)
            if self.patterns and not path.exists():
                raise ModelError("no such file", where=str(path), hint="check the path")
            return path
        found = sorted(file for pattern in self.patterns for file in path.glob(pattern))
        if len(found) != 1:
            none = f"it holds no {' or '.join(pattern[1:] for pattern in self.patterns)} file"
            hint = f"name one of {', '.join(file.name for file in found)}" if found else none
            raise ModelError("a folder", where=str(path), hint=hint)
        return self.check(found[0])


@dataclass(frozen=True)
class Command:
    """A command; its options are those that the table has for its name.

    Attributes:
        name: What the user types.
        run: Does it, and returns the exit code; the first line of its docstring says what.
        arguments: What it is given beside options.
    """

    name: str
    run: Callable[[SimpleNamespace], int]
    arguments: tuple[Argument, ...] = ()

    @property
    def help(self) -> str:
        """What it does, in a line."""
        return (self.run.__doc__ or "").partition("\n")[0]


class Compiler(Protocol):
    """What the compiler's package offers to the command."""

    @property
    def commands(self) -> Sequence[Command]:
        """The commands that need it."""

    def load_extensions(self, names: Sequence[str] = ()) -> None:
        """Import extensions, those of the environment and the given ones."""

    def missing_tools(self) -> Sequence[MissingToolError]:
        """What compiling for GPUs lacks here."""

    def missing_target(self, name: str) -> ModelError | None:
        """The error of compiling for a GPU's architecture that no target is of; None where there is a target."""

    def with_program(self, given: SimpleNamespace, use: Callable[[Path], Result]) -> Result:
        """Compile ``given.model`` to a file that is there while it is used; again without graphs that the library turns out to refuse."""

    def write_page(
        self,
        program: Path,
        output: Path,
        *,
        sizes: Mapping[str, int],
        times_us: Sequence[float] | None = None,
        reference: Path | None = None,
        precision: str = UNCHANGED,
    ) -> None:
        """Write the page about a program: see ``hipdnn_mlir.report.page``."""

    def write_partitioned(self, program: Path, output: Path, *, sizes: Mapping[str, int]) -> None:
        """Write a program's steps as an ONNX file."""


def find_compiler() -> Compiler | None:
    """Return the compiler's part of the command; None where it is not installed.

    Raises:
        ModelError: It is installed, and cannot be imported.
    """
    found = next(iter(entry_points(group=GROUP)), None)
    if found is None:
        return None
    try:
        compiler: Compiler = found.load()
    except Exception as error:
        message = f"the compiler cannot be imported: {type(error).__name__}: {error}"
        raise ModelError(message, hint="see hipdnn-mlir doctor") from error
    return compiler


def needed_compiler(where: str) -> Compiler:
    """Return the compiler's part of the command.

    Args:
        where: What needs it, for the message.

    Raises:
        ModelError: It is not installed, or cannot be imported.
    """
    compiler = find_compiler()
    if compiler is None:
        raise ModelError("the compiler is not installed", where=where, hint="pip install hipdnn-mlir")
    return compiler


def use_program(given: SimpleNamespace, use: Callable[[Path], Result]) -> Result:
    """Return what a function makes of the program that a command is given: the file itself, or a model compiled.

    Args:
        given: ``model``, and the options of compiling and of sessions.
        use: Loads the program and does the command's work.

    Raises:
        ModelError: A model is given, and there is no compiler.
    """
    model: Path = given.model

    def used(program: Path) -> Result:
        with working(f"running {model.name}", quiet=given.quiet):
            return use(program)

    if is_program(model):
        return used(model)
    return needed_compiler(str(model)).with_program(given, used)


def version_of(distribution: str) -> str:
    """Return the version of an installed distribution; empty where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
