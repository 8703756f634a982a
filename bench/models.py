"""Architectures that nobody here wrote, compiled, and timed on the CPU in turns with ONNX Runtime's CPU provider.

``python bench/models.py [NAME...] [--threads 1,2] [--turns 3] [--json FILE]`` exports each with random weights, and prints a line: program
time / ONNX Runtime's for each number of threads, the seconds that ``hipdnn-mlir compile`` takes beside those allowed, and its memory beyond
that of a model of one node, as a multiple of the weights. Needs timm, torchvision and transformers.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

SHORTEST_BLOCK_S, CALLS = 0.25, (3, 30)
"""A turn of one subject takes as many calls as fill this time, within bounds."""
PAUSE_S = 0.1
"""Threads of ONNX Runtime still spin for up to 65 ms after a run."""


def names() -> list[str]:
    """All architectures."""
    from architectures import ARCHITECTURES

    return list(ARCHITECTURES)


def export(name: str, file: Path) -> list[np.ndarray[Any, Any]]:
    """Write an architecture as a model; return its inputs."""
    import torch

    from architectures import ARCHITECTURES, settle
    from torch_models import without_torchvision_ops

    keep = without_torchvision_ops()
    torch.manual_seed(0)
    module, inputs = ARCHITECTURES[name]()
    module = settle(module, inputs)
    names = [f"x{index}" for index in range(len(inputs))]
    torch.onnx.export(
        module, inputs, file, input_names=names, opset_version=20, dynamo=True, external_data=False, verbose=False
    )
    del keep
    return [tensor.numpy() for tensor in inputs]


def compile_apart(model: Path, program: Path) -> tuple[float, float]:
    """Seconds and bytes at the peak of ``hipdnn-mlir compile`` in a process of its own."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "hipdnn_mlir", "compile", str(model), "-o", str(program)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    message = child.stderr.read().decode() if child.stderr else ""
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"compile: {(message.strip().splitlines() or ['no message'])[0]}")
    return time.perf_counter() - start, usage.ru_maxrss * 1024


def compile_nothing(folder: Path) -> tuple[float, float]:
    """What :func:`compile_apart` takes for a model of one node."""
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "one", value[:1], value[1:])
    onnx.save(
        onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9),
        folder / "one.onnx",
    )
    return compile_apart(folder / "one.onnx", folder / "one.hipdnn")


def block(call: Callable[[], object]) -> list[float]:
    """Seconds of as many calls as make a turn, after one that brings the caches back."""
    time.sleep(PAUSE_S)
    call()
    times: list[float] = []
    while len(times) < CALLS[0] or (len(times) < CALLS[1] and sum(times) < SHORTEST_BLOCK_S):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times


def compare(model: Path, program: Path, inputs: list[np.ndarray[Any, Any]], threads: int, turns: int) -> dict[str, Any]:
    """Median milliseconds of both and the largest difference, relative to the largest value."""
    import onnxruntime as ort

    import hipdnn_mlir

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    theirs = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feeds = dict(zip([each.name for each in theirs.get_inputs()], inputs, strict=True))
    with ExitStack() as stack:
        session = stack.enter_context(hipdnn_mlir.load(program, threads=threads))
        calls = {"ours": lambda: session.run(None, feeds), "ort": lambda: theirs.run(None, feeds)}
        (got, *_), (want, *_) = (call() for call in calls.values())
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(turns):
            for name, call in calls.items():
                times[name] += block(call)
    error = float(np.abs(got - want).max() / max(float(np.abs(want).max()), 1e-30))
    ours, ort_ms = (1e3 * median(times[name]) for name in calls)
    return {"ours_ms": ours, "ort_ms": ort_ms, "ratio": ours / ort_ms, "error": error}


def measure(name: str, threads: list[int], turns: int, base_bytes: float) -> dict[str, Any]:
    """Everything about one architecture.

    PyTorch and the runtimes are in processes of their own: the memory of a parent counts as its child's.
    """
    with TemporaryDirectory() as text:
        folder = Path(text)
        model, program = folder / "model.onnx", folder / "model.hipdnn"
        inputs = apart(export, name, model)
        weights = model.stat().st_size
        seconds, peak = compile_apart(model, program)
        return {
            "name": name,
            "weights": weights,
            "compile_s": seconds,
            "memory": (peak - base_bytes) / weights,
            "runs": {count: apart(compare, model, program, inputs, count, turns) for count in threads},
        }


def apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def line(row: dict[str, Any]) -> str:
    """One architecture for the terminal."""
    runs = "  ".join(
        f"{run['ours_ms']:8.2f} / {run['ort_ms']:8.2f} = {run['ratio']:.2f}" for run in row["runs"].values()
    )
    error = max(run["error"] for run in row["runs"].values())
    spent = f"{row['compile_s']:5.1f} of {allowed_s(row):4.1f} s  {row['memory']:4.1f} x {row['weights'] / 1e6:.0f} MB"
    return f"{row['name']:30} {runs}  {error:7.0e}  {spent}"


def allowed_s(row: dict[str, Any]) -> float:
    """Seconds that compiling an architecture may take."""
    return 2 + float(row["weights"]) / 1e8


def summary(rows: list[dict[str, Any]], threads: list[int]) -> list[str]:
    """What the lines say together."""
    lines = []
    for count in threads:
        ratios = sorted((row["runs"][count]["ratio"], row["name"]) for row in rows)
        slow = ", ".join(f"{name} {ratio:.2f}" for ratio, name in reversed(ratios) if ratio > 1.05)
        mean, middle = (of(ratio for ratio, _ in ratios) for of in (geometric_mean, median))
        lines.append(
            f"{count} thread(s): geometric mean {mean:.3f}, median {middle:.2f} of {len(ratios)}; above 1.05: {slow or 'none'}"
        )
    late = [row["name"] for row in rows if row["compile_s"] > allowed_s(row)]
    lines.append(
        f"compiled within 2 s + 1 s per 100 MB: {len(rows) - len(late)} of {len(rows)}; not: {', '.join(late) or 'none'}"
    )
    return lines


def main() -> None:
    """Print a line for each architecture, each measured in a process of its own, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    threads = [int(each) for each in given.threads.split(",")]
    with TemporaryDirectory() as folder:
        base_s, base_bytes = compile_nothing(Path(folder))
    print(f"compile of one node: {base_s:.1f} s, {base_bytes / 1e6:.0f} MB")
    rows = []
    for name in given.names or apart(names):
        try:
            rows.append(measure(name, threads, given.turns, base_bytes))
        except Exception as error:  # noqa: BLE001 - a line of the table, whatever it is
            print(f"{name:30} failed: {str(error)[:200]}", flush=True)
            continue
        print(line(rows[-1]), flush=True)
        if given.json:
            given.json.write_text(json.dumps(rows))
    if rows:
        print("\n".join(summary(rows, threads)))


if __name__ == "__main__":
    main()
