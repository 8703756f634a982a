"""The fuzz targets in Python: what once ended badly, and a few mutations, end in an error at most. `make fuzz` runs many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FUZZ = TESTS.parent / "fuzz"


@pytest.mark.parametrize(("target", "runs"), [("onnx_model", 50), ("ep_context", 50)])
def test_hostile_files_end_in_an_error_at_most(target: str, runs: int, tmp_path: Path) -> None:
    corpus = FUZZ / "regressions" / target
    command = [sys.executable, "-P", "-W", "ignore", FUZZ / f"{target}.py", f"-runs={runs}", corpus]
    path = os.pathsep.join(map(str, filter(None, [TESTS, FUZZ, os.environ.get("PYTHONPATH")])))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{runs} mutations run, 0 bad" in done.stdout
