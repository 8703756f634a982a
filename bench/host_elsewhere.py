"""The host port against ONNX Runtime's CPU provider on a machine that has no compiler: carried programs, in turns, on the same inputs.

``python bench/host_elsewhere.py DIRECTORY --threads N``; ``DIRECTORY`` is one that ``bench/carried.py`` wrote. The processor's model and
its matrix instructions stand above the table.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import carried
import hipdnn_mlir
from hipdnn_mlir.cli.verification import TOLERANCES, distances
from hipdnn_mlir_runtime.cli.inputs import Inputs
from hipdnn_mlir_runtime.cli.measure import interleave


def compare(path: Path, threads: int, repeat: int) -> str:
    """Run one program and ONNX Runtime, which computes in f32; answer a line of the table.

    Raises:
        RuntimeError: The results differ by more than the precision allows.
    """
    import onnxruntime as ort

    packed = carried.load(path)
    program = carried.unpack(packed)
    session = hipdnn_mlir.Session(program, threads=threads)
    feeds = Inputs(session).draw()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    reference = ort.InferenceSession(program.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [port.name for port in session.outputs]
    worst = 0.0
    for got, want in zip(session.run(names, feeds), reference.run(names, feeds), strict=True):
        worst = max(worst, distances(got, want)[0])
    tolerance = TOLERANCES["f32" if packed.precision == "model" else packed.precision]
    if worst > tolerance:
        raise RuntimeError(
            f"{path.name}: differs from ONNX Runtime by {worst:g} of its scale, {tolerance:g} is allowed"
        )
    subjects = {"program": lambda: session.run(names, feeds), "ort": lambda: reference.run(names, feeds)}
    timings = interleave(subjects, repeat)
    ours, theirs = timings["program"].median_ms, timings["ort"].median_ms
    return f"{path.stem:24} {threads:3} {ours:9.2f} {theirs:9.2f} {ours / theirs:7.3f}   {worst:.2e}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time carried programs on the host port against ONNX Runtime.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--repeat", type=int, default=50)
    asked = parser.parse_args()
    facts = dict(
        line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line
    )  # of the last CPU, as good as any
    flags = {name for name in facts.get("flags\t\t", "").split() if name.startswith(("amx", "avx512_bf16"))}
    print(f"{facts.get('model name	', '?').strip()}, {len(os.sched_getaffinity(0))} CPUs, {' '.join(sorted(flags))}")
    print(f"{'program':24} {'thr':>3} {'ours ms':>9} {'ORT f32':>9} {'ratio':>7}   error")
    for threads in asked.threads:
        for path in sorted(asked.directory.glob("*.pkl")):
            print(compare(path, threads, asked.repeat), flush=True)


if __name__ == "__main__":
    main()
