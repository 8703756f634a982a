"""Options that have no effect under some circumstances: an error there, never ignored.

A row of the table of options says what it needs. Commands of the class ``CheckedCommand`` refuse options that the user gave without it,
whatever their value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from ..errors import ModelError
from ..options import options_of


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


def _is_compiled(given: Mapping[str, Any]) -> tuple[str, str] | None:
    model = Path(given["model"])
    return (f"{model.name} is compiled already", "compile the model with {them}") if is_program(model) else None


def _has_no_child(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return ("--in-process compiles without one", "leave one of them out") if given["in_process"] else None


def _compares_nothing(given: Mapping[str, Any]) -> tuple[str, str] | None:
    return ("nothing is compared", "add --compare ort") if given["compare"] is None else None


NEEDS = {
    "model": Need("of compiling", _is_compiled),
    "child": Need("of the compiler's child process", _has_no_child),
    "comparison": Need("of a comparison", _compares_nothing),
}
"""What commands know of the needs in the table; the provider knows of others."""


class CheckedCommand(TyperCommand):
    """A command that refuses values outside the table and options without effect."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            ModelError: A value is none of its choices, or options are given that need what is not there; all of one kind are named.
        """
        for need, options in self._given(ctx).items():
            found = NEEDS[need].missing(ctx.params)
            if found is not None:
                are, them = ("options", "them") if len(options) > 1 else ("an option", "it")
                reason, hint = found
                message = f"{are} {NEEDS[need].kind}, and {reason}"
                raise ModelError(message, where=", ".join(options), hint=hint.format(them=them))
        return super().invoke(ctx)

    def _given(self, ctx: Any) -> dict[str, list[str]]:
        """Return the options that the user gave, by what they need."""
        given: dict[str, list[str]] = {}
        for name, row in options_of(self.name or "").items():
            source = ctx.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                if row.type in ("integer", "choice"):
                    row.read(ctx.params[name], where=row.flags[0])
                for need in row.needs:
                    if need in NEEDS:
                        given.setdefault(need, []).append(row.flags[0])
        return given
