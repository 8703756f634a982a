"""The options of commands: declared from the table of options, and how their texts are read."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..dynamic.input_sizes import Given
from ..errors import ModelError
from ..options import Option, options_of
from .option_needs import CheckedCommand, is_program

if TYPE_CHECKING:
    from ..session.options import SessionOptions

SHAPE_FORM = "NAME=1x3x224x224, NAME=batch,3,?,? or SIZE=4"
BUCKET_FORM = "SIZE=1,2,4,8"
RANGE_FORM = "NAME=LOW:HIGH"
_TYPES: dict[str, Any] = {
    "flag": bool,
    "integer": int,
    "number": float,
    "text": str,
    "choice": str,
    "path": Path,
    "folder": Path,
    "paths": list[Path],
}
"""What a command line holds by type of option; of the others texts."""


def _onnx_path(path: Path) -> Path:
    if is_program(path):
        raise ModelError("a program file, compiled already", where=str(path), expected="an ONNX file")
    return path


ModelPath = Annotated[Path, typer.Argument(help="ONNX file.", show_default=False, callback=_onnx_path)]


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command: its last parameter becomes the options that the table has for it, read from their texts."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        *arguments, _ = inspect.signature(function, eval_str=True).parameters.values()

        @functools.wraps(function)
        def call(**given: Any) -> None:
            values = [given.pop(argument.name) for argument in arguments]
            read = {key: _PARSERS[key](value) if key in _PARSERS else value for key, value in given.items()}
            function(*values, SimpleNamespace(**read))

        options = [_parameter(row) for row in options_of(name).values()]
        call.__signature__ = inspect.Signature([*arguments, *options])  # type: ignore[attr-defined]
        app.command(name, cls=CheckedCommand)(call)
        return call

    return register


def _parameter(row: Option) -> inspect.Parameter:
    """Return an option as typer reads it from a signature."""
    kind = _TYPES.get(row.type, list[str])
    names = (f"{row.flags[0]}/--no-{row.flags[0][2:]}",) if row.default is True else row.flags
    metavar = row.form or ("N" if row.type == "integer" else None)
    option = typer.Option(*names, help=row.help.replace("`", "'"), metavar=metavar)
    default = list(row.default) if isinstance(row.default, tuple) else row.default
    annotation: Any = Annotated[kind if default is not None else kind | None, option]
    return inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def session_options(given: SimpleNamespace) -> SessionOptions:
    """Return those of a command's options that are a session's."""
    names = options_of("session")
    return cast("SessionOptions", {name: value for name, value in vars(given).items() if name in names})


def parse_shapes(texts: list[str]) -> dict[str, tuple[Given, ...] | Given]:
    """Return what is said of sizes from texts such as ``x=1x3x224x224``, ``ids=batch,?`` or ``batch=4``; ``x=`` is a scalar.

    Raises:
        ModelError: A text is not of this form, or a name has two.
    """
    shapes: dict[str, tuple[Given, ...] | Given] = {}
    for name, value in _pairs(texts, "--shape", SHAPE_FORM, empty=True).items():
        text = f"{name}={value}"
        parts = value.split(",") if "," in value else value.split("x") if re.fullmatch(r"[\dx?-]*", value) else [value]
        if not all(re.fullmatch(r"\d+|\?|[A-Za-z_][\w.]*", part.strip()) for part in parts if value):
            raise ModelError("bad sizes", where="--shape", expected=SHAPE_FORM, got=repr(text))
        sizes = tuple(int(part) if part.isdigit() else part.strip() for part in parts) if value else ()
        shapes[name] = sizes[0] if len(sizes) == 1 else sizes
    return shapes


def parse_knobs(texts: list[str]) -> dict[str, str]:
    """Return the knobs that texts such as ``TILE=64`` name.

    Raises:
        ModelError: A text is not of this form, or a knob has two.
    """
    return _pairs(texts, "--knob", "NAME=VALUE")


def parse_files(texts: list[str]) -> dict[str, Path]:
    """Return the files of inputs that texts such as ``x=x.npy`` name.

    Raises:
        ModelError: A text is not of this form, or an input has two.
    """
    return {name: Path(file) for name, file in _pairs(texts, "--input", "NAME=FILE.npy").items()}


def parse_ranges(texts: list[str]) -> dict[str, tuple[float, float]]:
    """Return the ranges that texts such as ``ids=0:30522`` or ``x=-0.5:0.5`` name.

    Raises:
        ModelError: A text is not of this form, an input has two, or a range is empty.
    """
    ranges = {}
    for name, value in _pairs(texts, "--range", RANGE_FORM).items():
        ends = value.split(":")
        try:
            low, high = (int(end) if re.fullmatch(r"[+-]?\d+", end) else float(end) for end in ends)
        except ValueError as error:
            got = repr(f"{name}={value}")
            raise ModelError("bad value", where="--range", expected=RANGE_FORM, got=got) from error
        if not low < high:
            expected = "LOW below HIGH, which is not drawn itself"
            raise ModelError(f"nothing to draw {name!r} from", where="--range", expected=expected, got=value)
        ranges[name] = low, high
    return ranges


def parse_buckets(texts: list[str]) -> dict[str, list[int]]:
    """Return the buckets that texts such as ``batch=1,2,4,8`` name.

    Raises:
        ModelError: A text is not of this form, or a size has two.
    """
    buckets: dict[str, list[int]] = {}
    for name, value in _pairs(texts, "--bucket", BUCKET_FORM).items():
        if not re.fullmatch(r"-?\d{1,18}(,-?\d{1,18})*", value):
            raise ModelError("bad value", where="--bucket", expected=BUCKET_FORM, got=repr(f"{name}={value}"))
        buckets[name] = [int(size) for size in value.split(",")]
    return buckets


def _pairs(texts: list[str], option: str, form: str, *, empty: bool = False) -> dict[str, str]:
    """Return VALUE by NAME of texts NAME=VALUE, split at the first sign of equality.

    Args:
        texts: What the user gave.
        option: The option it was given to, for the message.
        form: What would have been right, for the message.
        empty: Whether VALUE may be empty.

    Raises:
        ModelError: A text is not of this form, or two have the same name.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals or not (value or empty):
            raise ModelError("bad value", where=option, expected=form, got=repr(text))
        if name in pairs:
            raise ModelError(f"two values for {name!r}", where=option, expected="each name once")
        pairs[name] = value
    return pairs


_PARSERS: dict[str, Callable[[list[str]], Any]] = {
    "shapes": parse_shapes,
    "buckets": parse_buckets,
    "knobs": parse_knobs,
    "inputs": parse_files,
    "ranges": parse_ranges,
}
"""How lists of texts are read, by option."""
