"""One measurement in a process that has done nothing before: ``python bench/fresh.py compile|load|save FILE THREADS``.

Prints JSON: milliseconds of the imports, and from the file to a session that is ready to run; of ``save`` those of compiling and of
writing the program beside the model, and the largest resident memory in bytes.
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
        action: ``compile`` or ``save`` for an ONNX file, ``load`` for a program file.
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
    if action == "save":
        program = hipdnn_mlir.compile(file)
        compiled = time.perf_counter()
        program.save(file.with_suffix(".hipdnn"))
        saved = time.perf_counter()
        return {
            "import_ms": 1e3 * (imported - start),
            "compile_ms": 1e3 * (compiled - imported),
            "save_ms": 1e3 * (saved - compiled),
            "peak_bytes": _peak_bytes(),
        }
    if action == "compile":
        hipdnn_mlir.compile(file).session(threads=threads)
    else:
        load(file, threads=threads)
    ready = time.perf_counter()
    return {"import_ms": 1e3 * (imported - start), "ready_ms": 1e3 * (ready - imported)}


def _peak_bytes() -> int:
    """The largest resident memory of this program; what getrusage returns may be that of the process which started it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
