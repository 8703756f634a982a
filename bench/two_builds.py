"""Two installations of the runtime against each other: ``python bench/two_builds.py PYTHON OTHER FILE.hipdnn...``.

PYTHON and OTHER are interpreters that have the package, such as one with the wheel of ``make manylinux``. Each runs in a process, in turns,
on one thread, and its CPU time counts. A line for each program file: the ratio of OTHER to PYTHON, its median and quartiles over the turns.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

TURNS = 60
TURN_US = 30_000

_WORKER = """
import sys, time
import numpy as np
from hipdnn_mlir_runtime.session.session import Session
session = Session(sys.argv[1], threads=1)
draw = np.random.default_rng(0)
feeds = {
    port.name: draw.integers(0, 2, port.shape) if port.dtype == "i64" else draw.standard_normal(port.shape, np.float32)
    for port in session.inputs
}
session.run(None, feeds)
for line in sys.stdin:
    start = time.thread_time()
    for _ in range(int(line)):
        session.run(None, feeds)
    print((time.thread_time() - start) / int(line) * 1e6, flush=True)
"""


def time_us(worker: subprocess.Popen[str], count: int) -> float:
    """Ask a worker for so many runs; microseconds of one."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(f"{count}\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


def main(first: str, other: str, *programs: str) -> None:
    """Print a line for each program."""
    for program in programs:
        workers = [
            subprocess.Popen([python, "-c", _WORKER, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for python in (first, other)
        ]
        fastest = min(time_us(workers[0], 2) for _ in range(3))
        count = max(1, int(TURN_US / fastest))
        ratios = []
        for turn in range(TURNS):
            order = workers if turn % 2 else workers[::-1]
            times = {id(worker): time_us(worker, count) for worker in order}
            ratios.append(times[id(workers[1])] / times[id(workers[0])])
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{Path(program).name:24} {fastest:9.0f} us  {middle:.3f} ({low:.3f} to {high:.3f})", flush=True)
        for worker in workers:
            worker.kill()


if __name__ == "__main__":
    main(*sys.argv[1:])
