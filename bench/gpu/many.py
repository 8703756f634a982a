"""All GPUs of a host against one of them: sessions on each in one process, and a process for each.

``python bench/gpu/many.py PROGRAM [--seconds 5] [--turns 3] [--resident]``. Each session runs a program of fixed sizes, one run after the
other, from a thread or a process of its own: on inputs in the host's memory, as a server does, or on PyTorch's tensors on the GPU. One GPU
and all take turns; printed are runs a second, and how many times those of one GPU that is. First, outputs of all GPUs are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import hipdnn_mlir_runtime
from hipdnn_mlir_runtime.session.devices import list_devices

Session = hipdnn_mlir_runtime.Session


def feeds_of(session: Session) -> dict[str, np.ndarray]:
    """Random inputs."""
    rng = np.random.default_rng(0)
    return {port.name: rng.standard_normal(port.shape).astype(port.numpy_dtype) for port in session.inputs}


def runs(session: Session, given: argparse.Namespace, seconds: float) -> float:
    """Runs a second of one session."""
    feeds: Any = feeds_of(session)
    run = partial(session.run, None, feeds)
    if given.resident:
        import torch

        device = f"cuda:{session.device_settings['device']}"
        feeds = {name: torch.from_numpy(array).to(device) for name, array in feeds.items()}
        dtypes = {port.name: torch.from_numpy(np.empty(0, port.numpy_dtype)).dtype for port in session.outputs}
        out = {port.name: torch.empty(port.shape, dtype=dtypes[port.name], device=device) for port in session.outputs}
        run = session.bind(feeds, out)
    for _ in range(5):
        run()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        run()
        count += 1
    return count / (time.perf_counter() - start)


def in_one_process(sessions: list[Session], given: argparse.Namespace) -> float:
    """Runs a second of several sessions, each from a thread of its own."""
    with ThreadPoolExecutor(len(sessions)) as pool:
        return sum(pool.map(lambda session: runs(session, given, given.seconds), sessions))


def in_processes(count: int, given: argparse.Namespace) -> float:
    """Runs a second of a process for each GPU; they begin together."""
    command = [
        sys.executable,
        __file__,
        given.program,
        "--seconds",
        str(given.seconds),
        *["--resident"][: given.resident],
        "--device",
    ]
    started = [
        subprocess.Popen([*command, str(device)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for device in range(count)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return sum(float(process.communicate()[0]) for process in started)


def main() -> None:
    """Measure, or be the process of one GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--resident", action="store_true")
    parser.add_argument("--device", type=int)
    given = parser.parse_args()
    if given.device is not None:
        session = hipdnn_mlir_runtime.load(given.program, device=given.device)
        runs(session, given, 0.5)
        print("ready", flush=True)
        sys.stdin.readline()
        print(runs(session, given, given.seconds))
        return
    devices = [row for row in list_devices() if row.port == "cuda" and not row.problem]
    print(f"{len(devices)} x {devices[0].name}, {given.program}")
    sessions = [hipdnn_mlir_runtime.load(given.program, device=row.ordinal) for row in devices]
    outputs = [session.run(None, feeds_of(session)) for session in sessions]
    for other in outputs[1:]:
        for got, want in zip(other, outputs[0], strict=True):
            np.testing.assert_array_equal(got, want)
    found: dict[str, list[float]] = {"one process": [], "a process each": []}
    for _ in range(given.turns):
        for name, all_of_them, one in (
            ("one process", lambda: in_one_process(sessions, given), lambda: runs(sessions[0], given, given.seconds)),
            (
                "a process each",
                lambda: in_processes(len(devices), given),
                lambda: in_processes(1, given),
            ),
        ):
            alone, together = one(), all_of_them()
            found[name].append(together / alone)
            print(f"{name}: one GPU {alone:.1f} runs/s, all {together:.1f}: {together / alone:.3f} x", flush=True)
    print(", ".join(f"{name} {median(ratios):.3f} x" for name, ratios in found.items()))


if __name__ == "__main__":
    main()
