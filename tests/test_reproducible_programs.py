"""Program files are reproducible: neither the order of sets in a process nor the folder of the model is in their bytes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import models
from bucket_models import SAFE

MODELS = {
    "perceptron": lambda: SAFE["perceptron"][0],
    "mlp": lambda: models.mlp(2),
    "resnet": models.resnet,
    "mobilenet": lambda: models.mobilenet_v2(1, 32, rows=[(1, 16, 1, 1), (6, 24, 2, 2)], stem=8, head=32, classes=10),
    "encoder": lambda: models.encoder(1, 1, 16, 32, 2, 64),
    "slices": models.slices,
}
PATIENCE_S = 600
"""For what may only end by waiting without end."""
COMPILE_ALL = """
import sys
from pathlib import Path
import hipdnn_mlir
folder, target = Path(sys.argv[1]), sys.argv[2]
for path in sorted(folder.glob("*.onnx"), reverse=len(sys.argv) > 3):
    options = {"buckets": {"b": [2, 4]}} if path.stem == "perceptron" else {}
    hipdnn_mlir.compile(path, target=target, **options).save(path.with_suffix(".hipdnn"))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("target", ["host", "sm_90", "gfx942"])
def test_the_same_models_make_the_same_files_in_any_process_and_folder(target: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second" / "in a folder"
    first.mkdir()
    for name, make in MODELS.items():
        onnx.save(make(), first / f"{name}.onnx")
    shutil.copytree(first, second)
    for seed, folder, order in (("0", first, []), ("1", second, ["reversed"])):
        command = [sys.executable, "-P", "-W", "ignore", "-c", COMPILE_ALL, folder, target, *order]
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode == 0, done.stderr
    for name in MODELS:
        made = [(folder / f"{name}.hipdnn").read_bytes() for folder in (first, second)]
        assert made[0] == made[1], name
