"""The fuzz targets in Python: what once ended badly, and a few mutations, end in an error at most. `make fuzz` runs many."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FUZZ = TESTS.parent / "fuzz"


@pytest.mark.parametrize("target", ["onnx_model", "ep_context"])
def test_hostile_files_end_in_an_error_at_most(target: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-W", "ignore", FUZZ / f"{target}.py", "-runs=30", FUZZ / "regressions" / target]
    path = os.pathsep.join(map(str, filter(None, [TESTS, FUZZ, os.environ.get("PYTHONPATH")])))
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "30 mutations run, 0 bad" in done.stdout
