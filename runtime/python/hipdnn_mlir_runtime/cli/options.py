"""The options of commands: how their texts are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from ..errors import ModelError
from ..options import Option, options_of

if TYPE_CHECKING:
    from ..session.options import SessionOptions

Given = int | str
"""What is said of a size: a number, or a name."""
SHAPE_FORM = "NAME=1x3x224x224, NAME=batch,3,?,? or SIZE=4"
BUCKET_FORM = "SIZE=1,2,4,8"
RANGE_FORM = "NAME=LOW:HIGH"


def read(row: Option, given: Any) -> Any:
    """Return the value of an option.

    Args:
        row: The option.
        given: Its text on the command line; a list of texts where it may be repeated, of a list option with commas in them or not; True or
            False of a flag.

    Raises:
        ModelError: A text is not of the option's form.
    """
    if row.name in _PARSERS:
        return _PARSERS[row.name](given)
    match row.type:
        case "integer":
            return row.read(int(given) if re.fullmatch(r"[+-]?\d{1,18}", given) else given, where=row.flags[0])
        case "number":
            return _number(given, row.flags[0])
        case "choice":
            return row.read(given, where=row.flags[0])
        case "path" | "output" | "folder":
            return Path(given)
        case "list":
            texts = dict.fromkeys(part for text in given for part in text.split(","))
            return [_choice(row, text) for text in texts] if row.choices else [*texts]
        case "paths":
            return [Path(path) for path in given]
    return given


def _choice(row: Option, text: str) -> str:
    if text not in row.choices:
        raise ModelError(
            "bad value", where=row.flags[0], expected=f"one of {', '.join(map(repr, row.choices))}", got=repr(text)
        )
    return text


def _number(text: str, flag: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:  # all are tolerances and times
        raise ModelError("bad value", where=flag, expected="a number from 0", got=repr(text))
    return number


def session_options(given: SimpleNamespace) -> SessionOptions:
    """Return those of a command's options that are a session's."""
    names = options_of("session")
    return cast("SessionOptions", {name: value for name, value in vars(given).items() if name in names})


def same_options(command: str, given: SimpleNamespace) -> list[str]:
    """Return the options of sessions and of compiling with which another command does as this one was told, as on a command line."""
    arguments: list[str] = []
    for name, row in options_of(command).items():
        value = vars(given).get(name, row.default)
        is_shared = name in options_of("session") or "model" in row.needs
        if not is_shared or value == row.default or (row.is_repeated and not value):
            continue
        if row.type == "flag":
            arguments.append(row.flags[0] if value else f"--no-{row.flags[0][2:]}")
            continue
        texts = [f"{key}={text}" for key, text in value.items()] if row.type == "map" else value
        for text in texts if row.is_repeated else [value]:
            arguments += [row.flags[0], str(text)]
    return arguments


def parse_shapes(texts: list[str]) -> dict[str, tuple[Given, ...] | Given]:
    """Return what is said of sizes from texts such as ``x=1x3x224x224``, ``ids=batch,?`` or ``batch=4``; ``x=`` is a scalar.

    Raises:
        ModelError: A text is not of this form, or a name has two.
    """
    shapes: dict[str, tuple[Given, ...] | Given] = {}
    for name, value in _pairs(texts, "--shape", SHAPE_FORM, empty=True).items():
        text = f"{name}={value}"
        parts = value.split(",") if "," in value else value.split("x") if re.fullmatch(r"[\dx?-]*", value) else [value]
        if not all(re.fullmatch(r"\d{1,30}|\?|[A-Za-z_][\w.]*", part.strip()) for part in parts if value):
            hint = "? leaves a dimension dynamic" if any(part.strip().startswith("-") for part in parts) else None
            raise ModelError("bad sizes", where="--shape", expected=SHAPE_FORM, got=repr(text), hint=hint)
        sizes = tuple(int(part) if part.isdigit() else part.strip() for part in parts) if value else ()
        shapes[name] = sizes[0] if len(sizes) == 1 else sizes
    return shapes


def parse_knobs(texts: list[str]) -> dict[str, str]:
    """Return the knobs that texts such as ``TILE=64`` name.

    Raises:
        ModelError: A text is not of this form, or a knob has two.
    """
    return _pairs(texts, "--knob", "NAME=VALUE")


def parse_last_valid(texts: list[str]) -> dict[str, str]:
    """Return the masks of outputs that texts such as ``logits=attention_mask`` name.

    Raises:
        ModelError: A text is not of this form, or an output has two.
    """
    return _pairs(texts, "--last-valid", "OUTPUT=MASK")


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
        if not re.fullmatch(r"-?\d{1,30}(,-?\d{1,30})*", value):
            raise ModelError("bad value", where="--bucket", expected=BUCKET_FORM, got=repr(f"{name}={value}"))
        buckets[name] = [int(size) for size in value.split(",")]
    return buckets


def _pairs(texts: list[str], option: str, form: str, *, empty: bool = False) -> dict[str, str]:
    """Return VALUE by NAME of texts NAME=VALUE, split at the last sign of equality: names in a model may have some.

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
        name, equals, value = text.rpartition("=")
        if not name or not equals or not (value or empty):
            raise ModelError("bad value", where=option, expected=form, got=repr(text))
        if name in pairs:
            raise ModelError(f"two values for {name!r}", where=option, expected="each name once")
        pairs[name] = value
    return pairs


_PARSERS: dict[str, Callable[[list[str]], Any]] = {
    "shapes": parse_shapes,
    "buckets": parse_buckets,
    "last_valid": parse_last_valid,
    "knobs": parse_knobs,
    "inputs": parse_files,
    "ranges": parse_ranges,
}
"""How lists of texts are read, by option."""
