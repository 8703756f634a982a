"""A type checker refuses values that are not in the tables of options and targets."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

from hipdnn_mlir.targets.table import _WITH_FUSILLI, TARGETS, TargetName
from hipdnn_mlir_runtime.options import options_of
from hipdnn_mlir_runtime.precision import Precision

ROOT = Path(__file__).parent.parent
CODE = """
import hipdnn_mlir

hipdnn_mlir.compile("m.onnx", precision="f16", target="gfx942", buckets={"batch": [1, 8]})
hipdnn_mlir.compile("m.onnx", precision="fp16")
hipdnn_mlir.compile("m.onnx", target="cuda")
hipdnn_mlir.load("m.hipdnn", threads=2, plugin_mode="additive")
hipdnn_mlir.load("m.hipdnn", plugin_mode="odd")
"""


def test_names_are_those_of_the_tables() -> None:
    assert get_args(Precision) == options_of("compile")["precision"].choices
    assert set(get_args(TargetName)) == {*TARGETS, *_WITH_FUSILLI}


def test_mypy_refuses_what_is_no_choice(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(CODE)
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", tmp_path / "user.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = re.findall(r"user\.py:(\d+): error: .*\[arg-type\]", done.stdout)
    assert wrong == ["5", "6", "8"], done.stdout + done.stderr
