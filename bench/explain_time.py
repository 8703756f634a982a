"""How long `explain` takes on ResNet-50: ``python bench/explain_time.py``. Median and fastest of 11, seconds.

Three rows: the call in a process that has explained before; the call in a new process, imports left out; the whole command, which starts
Python twice, since the compiler runs in a child.
"""

from __future__ import annotations

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
        rows = {"call, again": [], "call, first": [], "command": []}
        for _ in range(RUNS):
            start = time.perf_counter()
            explain(path)
            rows["call, again"].append(time.perf_counter() - start)
            done = subprocess.run([sys.executable, "-c", _FIRST, path], capture_output=True, text=True, check=True)
            rows["call, first"].append(float(done.stdout))
            start = time.perf_counter()
            subprocess.run([sys.executable, "-m", "hipdnn_mlir", "explain", path], capture_output=True, check=True)
            rows["command"].append(time.perf_counter() - start)
    for name, times in rows.items():
        print(f"{name:12} median {statistics.median(times):.2f} s, fastest {min(times):.2f} s")


if __name__ == "__main__":
    main()
