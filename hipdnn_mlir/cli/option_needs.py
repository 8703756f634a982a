"""Options that have no effect under some circumstances: an error there, never ignored.

An option says what it needs in its annotation, ``Annotated[str, typer.Option(...), COMPILING]``. Commands of the class ``CheckedCommand``
refuse options that the user gave without it, whatever their value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from typer.core import TyperCommand

from ..errors import ModelError


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


COMPILING = Need("of compiling", _is_compiled)
CHILD = Need("of the compiler's child process", _has_no_child)
COMPARISON = Need("of a comparison", _compares_nothing)


class CheckedCommand(TyperCommand):
    """A command that refuses options without effect."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises:
            ModelError: Options are given that need what is not there; all of one kind are named.
        """
        for need, options in self._given(ctx).items():
            found = need.missing(ctx.params)
            if found is not None:
                are, them = ("options", "them") if len(options) > 1 else ("an option", "it")
                reason, hint = found
                message = f"{are} {need.kind}, and {reason}"
                raise ModelError(message, where=", ".join(options), hint=hint.format(them=them))
        return super().invoke(ctx)

    def _given(self, ctx: Any) -> dict[Need, list[str]]:
        """Return the options that the user gave, by what they need."""
        assert self.callback is not None
        needs = needs_of(self.callback)
        given: dict[Need, list[str]] = {}
        for parameter in self.params:
            source = ctx.get_parameter_source(parameter.name or "")
            if source is not None and source.name == "COMMANDLINE":
                for need in needs.get(parameter.name or "", ()):
                    given.setdefault(need, []).append(parameter.opts[0])
        return given


def needs_of(command: Callable[..., Any]) -> dict[str, list[Need]]:
    """Return what the parameters of a command say that they need."""
    hints = get_type_hints(inspect.unwrap(command), include_extras=True)
    return {
        name: [extra for extra in get_args(hint)[1:] if isinstance(extra, Need)]
        for name, hint in hints.items()
        if get_origin(hint) is Annotated
    }
