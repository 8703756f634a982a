"""Counts heap allocations of steady-state runs by the shared library that makes them, however large or small.

The counter has to be preloaded: ``python bench/allocations.py PROGRAM`` starts itself again with it and prints JSON.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

RUNS = 20
_SOURCE = Path(__file__).with_name("count_allocations.c")


def count(program: Path, threads: int) -> dict[str, float]:
    """Return allocations per run by library; Python and NumPy, the caller's side, are left out.

    Args:
        program: A ``.hipdnn`` file.
        threads: CPU threads of a run.

    Raises:
        RuntimeError: There is no C compiler, or the measuring process failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch, "count_allocations.so")
        compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
        command = [compiler, "-O2", "-shared", "-fPIC", str(_SOURCE), "-o", str(library)]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise RuntimeError(f"cannot build the allocation counter: {compiled.stderr}")
        measured = subprocess.run(
            [sys.executable, "-P", __file__, str(program), str(threads)],
            env={**os.environ, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=False,
        )
    if measured.returncode:
        raise RuntimeError(f"counting allocations failed: {measured.stderr}")
    by_library: dict[str, float] = json.loads(measured.stdout)
    return by_library


def is_runtime(library: str) -> bool:
    """Return whether a library is one of this package's; its copy of oneDNN is not."""
    return library.startswith(("_runtime", "libhipdnn")) and not library.startswith("libhipdnn_dnnl")


def _measure(program: str, threads: int) -> dict[str, float]:
    """Run in the preloaded process: warm up, then record."""
    import numpy as np

    from hipdnn_mlir_runtime.cli.inputs import Inputs
    from hipdnn_mlir_runtime.session.session import Session

    session = Session(program, threads=threads)
    feeds = Inputs(session).draw()
    out = dict(zip([port.name for port in session.outputs], session.run(None, feeds), strict=True))
    for _ in range(3):
        session.run(None, feeds, out=out)
    counter = ctypes.CDLL(None)
    counter.allocations_stop.restype = ctypes.c_size_t
    addresses = ctypes.POINTER(ctypes.c_void_p)()
    counter.allocations_start()
    for _ in range(RUNS):
        session.run(None, feeds, out=out)
    total = counter.allocations_stop(ctypes.byref(addresses))
    callers = np.ctypeslib.as_array(ctypes.cast(addresses, ctypes.POINTER(ctypes.c_uint64)), (min(total, 1 << 16),))
    by_library = Counter(_library_of(int(address)) for address in callers)
    return {name: number / RUNS for name, number in by_library.items() if not _is_caller(name)}


def _library_of(address: int) -> str:
    """Return the file name of the mapping that holds an address."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split()
        start, end = (int(part, 16) for part in fields[0].split("-"))
        if start <= address < end:
            return Path(fields[5]).name if len(fields) > 5 else "anonymous"
    return "unknown"


def _is_caller(library: str) -> bool:
    """Return whether a library belongs to the caller's side: the interpreter, NumPy, ctypes."""
    return library.startswith(("python", "libpython", "_multiarray", "_ctypes", "libffi"))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure(sys.argv[1], int(sys.argv[2]))))
