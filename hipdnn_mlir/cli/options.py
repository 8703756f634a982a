"""The options and arguments that commands of ``hipdnn-mlir`` share: names, meanings, and how their texts are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from ..dynamic.input_sizes import Given
from ..errors import ModelError
from .option_needs import CHILD, COMPILING, is_program


def _onnx_path(path: Path) -> Path:
    if is_program(path):
        raise ModelError("a program file, compiled already", where=str(path), expected="an ONNX file")
    return path


ModelPath = Annotated[Path, typer.Argument(help="ONNX file.", show_default=False, callback=_onnx_path)]
Target = Annotated[str, typer.Option(help="What to compile for."), COMPILING]
Precision = Annotated[
    str,
    typer.Option(metavar="model|tf32|f16|bf16", help="What an f32 model runs in where that costs little accuracy."),
    COMPILING,
]
SHAPE_FORM = "NAME=1x3x224x224, NAME=batch,3,?,? or SIZE=4"
ShapeOptions = Annotated[
    list[str],
    typer.Option(
        "--shape",
        metavar="NAME=SIZES",
        help="Sizes that the model leaves open: x=1x3x224x224, x=batch,3,?,? (names and ? stay open), or batch=4, batch=?, batch=n.",
    ),
]
BUCKET_FORM = "SIZE=1,2,4,8"
BucketOptions = Annotated[
    list[str],
    typer.Option(
        "--bucket",
        metavar=BUCKET_FORM,
        help="Round an open size up to one of these: inputs are padded, outputs cut back, and the program is loaded for these sizes alone. "
        "For GPUs every open size needs some.",
    ),
    COMPILING,
]
InputFiles = Annotated[
    list[str], typer.Option("--input", metavar="NAME=FILE.npy", help="An input; the others are random.")
]
RANGE_FORM = "NAME=LOW:HIGH"
Ranges = Annotated[
    list[str],
    typer.Option(
        "--range",
        metavar=RANGE_FORM,
        help="Draw an input from LOW up to HIGH, without HIGH itself; default: valid indices where it is used as such.",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of random inputs; default 0.", show_default=False)]


def _positive(seconds: float) -> float:
    if not seconds > 0:
        raise ModelError("no time", where="--timeout", expected="seconds above 0", got=f"{seconds:g}")
    return seconds


Tune = Annotated[
    int, typer.Option(min=0, metavar="N", help="Time N plans of each graph, take the fastest; 0: the library's first.")
]
Engine = Annotated[
    str, typer.Option(metavar="NAME", help="Engine that graphs go to where it takes them, see 'devices'.")
]
Knobs = Annotated[
    list[str], typer.Option("--knob", metavar="NAME=VALUE", help="A knob to set for the engine of --engine.")
]
Tf32 = Annotated[
    bool | None,
    typer.Option(
        "--tf32", help="Products of f32 may round their operands to TF32; default: as the program was compiled."
    ),
]
DeviceNumber = Annotated[
    int, typer.Option("--device", min=0, metavar="N", help="Number of the GPU to run on, see 'devices'.")
]
Graph = Annotated[bool, typer.Option("--graph", help="On a GPU, record a run as a graph of the device and replay it.")]
PlanCacheDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where plans are kept; default: on GPUs hipdnn-mlir/plans in the user's cache folder."
    ),
]
ComparePlans = Annotated[
    bool,
    typer.Option(
        "--compare-plans/--no-compare-plans",
        help="On GPUs: use a plan only after it has answered as the CPU does on random operands.",
    ),
]
Policies = Annotated[
    list[str],
    typer.Option(
        "--policy", metavar="NAME", help="Heuristic policy that ranks engines, see 'devices'; several in order."
    ),
]
PluginDirs = Annotated[
    list[Path], typer.Option("--plugin-dir", metavar="DIR", help="Folder or file of hipDNN engine plugins to load.")
]
PluginMode = Annotated[
    str, typer.Option(metavar="additive|absolute", help="Load plugins beside the library's own, or in their place.")
]
InProcess = Annotated[bool, typer.Option("--in-process", help="Compile in this process instead of a child."), COMPILING]
Timeout = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="Stop a child that has said nothing for this time.", callback=_positive),
    COMPILING,
    CHILD,
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


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
