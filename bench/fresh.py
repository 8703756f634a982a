"""One measurement in a process that has done nothing before: ``python bench/fresh.py compile|load FILE THREADS``.

Prints JSON: milliseconds of the imports, and from the file to a session that is ready to run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path


def measure(action: str, file: Path, threads: int) -> dict[str, float]:
    """Start a fresh process and return what it measured.

    Args:
        action: ``compile`` for an ONNX file, ``load`` for a program file.
        file: The file to start from.
        threads: CPU threads of the session.

    Raises:
        RuntimeError: The process failed.
    """
    command = [sys.executable, "-P", __file__, action, str(file), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"measuring {action} failed: {done.stderr}")
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _main(action: str, file: Path, threads: int) -> dict[str, float]:
    start = time.perf_counter()
    import hipdnn_mlir

    # Imports the session and NumPy with it; the compiler is imported on its first use, which counts.
    load = hipdnn_mlir.load
    imported = time.perf_counter()
    if action == "compile":
        hipdnn_mlir.compile(file).session(threads=threads)
    else:
        load(file, threads=threads)
    ready = time.perf_counter()
    return {"import_ms": 1e3 * (imported - start), "ready_ms": 1e3 * (ready - imported)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
