"""Programs that the page and the export are tested on."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import hipdnn_mlir
from models import GraphBuilder, encoder

ROOT = Path(__file__).parents[2]
SIZES = {"mixed": {"batch": 6}}
"""Sizes of the programs that need some."""


def mixed() -> onnx.ModelProto:
    """A dynamic model whose program has graphs, kernels, a copy, and a concatenation that is written in place and is an output."""
    b = GraphBuilder("mixed")
    x = b.input("x", ["batch", 8])
    taken = b.op("Gather", x, b.constant([0, 3, 5], "int64"), axis=1)
    joined = b.op("Concat", b.op("CumSum", taken, b.constant(1, "int64")), x, taken, axis=1)
    result = b.op("Relu", b.op("MatMul", joined, b.normal([14, 4], 1)))
    same = b.op("Identity", x)
    return b.model({result: ["batch", 4], joined: ["batch", 14], same: ["batch", 8]})


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory, small_program: Path) -> dict[str, Path]:
    """Program files by name, none of them to be written to."""
    folder = tmp_path_factory.mktemp("programs")
    models = {
        "digits": ROOT / "examples" / "digits" / "digits.onnx",
        "encoder": encoder(layers=2, s=16, d=32, heads=4, ffn=64),
        "mixed": mixed(),
    }
    for name, model in models.items():
        hipdnn_mlir.compile(model).save(folder / f"{name}.hipdnn")
    hipdnn_mlir.compile(mixed(), target="gfx942", buckets={"batch": [1, 4]}).save(folder / "elsewhere.hipdnn")
    return {"small": small_program, **{path.stem: path for path in folder.glob("*.hipdnn")}}


@pytest.fixture(params=["small", "digits", "encoder", "mixed", "elsewhere"])
def named(request: pytest.FixtureRequest, programs: dict[str, Path]) -> tuple[Path, dict[str, int]]:
    """Each program with the sizes that it is shown at."""
    return programs[request.param], SIZES.get(request.param, {})
