"""How long `explain` takes on ResNet-50: ``python bench/explain_time.py``. Median and fastest of 11, seconds.

Three rows: the call in a process that has explained before; the call in a new process, imports left out; the whole command, which starts
Python twice, since the compiler runs in a child. Both new processes find compiled bytecode, as they do in an installation.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# The models live with the tests, which this directory is not a part of.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import onnx

import models
from hipdnn_mlir.report.explain import explain

RUNS = 11
_FIRST = """
import sys, time
from hipdnn_mlir.report.explain import explain
start = time.perf_counter()
explain(sys.argv[1])
print(time.perf_counter() - start)
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "resnet50.onnx")
        onnx.save(models.resnet50(), path)
        environment = {
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(Path(folder, "bytecode")),
        }

        def seconds(*arguments: str | Path) -> tuple[float, str]:
            start = time.perf_counter()
            command = [sys.executable, *arguments, path]
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder, env=environment)
            return time.perf_counter() - start, done.stdout

        seconds("-m", "hipdnn_mlir", "explain")
        rows = {"call, again": [], "call, first": [], "command": []}
        for _ in range(RUNS):
            start = time.perf_counter()
            explain(path)
            rows["call, again"].append(time.perf_counter() - start)
            rows["call, first"].append(float(seconds("-c", _FIRST)[1]))
            rows["command"].append(seconds("-m", "hipdnn_mlir", "explain")[0])
    for name, times in rows.items():
        print(f"{name:12} median {statistics.median(times):.2f} s, fastest {min(times):.2f} s")


if __name__ == "__main__":
    main()
