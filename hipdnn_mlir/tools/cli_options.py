"""What the options and arguments of ``hipdnn-mlir`` are called and mean, where several of its commands share them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelPath = Annotated[Path, typer.Argument(help="ONNX file.", show_default=False)]
Target = Annotated[str, typer.Option(help="What to compile for.")]
Precision = Annotated[
    str, typer.Option(metavar="model|tf32|f16|bf16", help="What an f32 model runs in where that costs little accuracy.")
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
]
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
PlanCacheDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where plans are kept; default: on GPUs hipdnn-mlir/plans in the user's cache folder."
    ),
]
FindFirst = Annotated[
    bool, typer.Option("--find-first", help="Take the library's first applicable engine without a ranking of all.")
]
OverrideShapes = Annotated[
    bool, typer.Option("--override-shapes", help="Let sizes share the plans of larger ones, where engines have such.")
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
InProcess = Annotated[bool, typer.Option("--in-process", help="Compile in this process instead of a child.")]
Timeout = Annotated[float, typer.Option(metavar="SECONDS", help="Stop a child that has said nothing for this time.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
