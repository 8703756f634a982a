"""Carried programs on a GPU: checked on fresh inputs against an f32 CPU reference, then timed, step by step and as one recorded graph.

``python bench/gpu/run.py DIRECTORY [--models ...] [--autotune N] [--tf32]``; ``bench/carried.py --target sm_90`` wrote the directory.
Times are medians of series between device events; inputs rotate, so that a run does not find its input in the cache of the run before.
"""

from __future__ import annotations

import argparse
import datetime as dt
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import torch

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import carried
import hipdnn_mlir
import hipdnn_mlir_runtime.session.devices
import pytorch
from hipdnn_mlir_runtime.dtypes import BY_NAME
from hipdnn_mlir_runtime.session.options import SessionOptions, device_options
from hipdnn_mlir_runtime.session.profiling.profile import profile as timed
from pytorch import INPUT_SETS, time_us

LIMITS = {"f32": 2e-3, "f16": 2e-2}
"""Largest relative distance of outputs, as norms; that of f32 allows TF32."""
WANTED_US = {
    "resnet50-f16-model": 430, "resnet50-f16-b32-model": 1300, "resnet50-tf32": 520, "resnet50-b32-tf32": 2050,
    "encoder-f16-model": 480, "encoder-f16-b32-model": 1650, "mlp-f16-model": 12,
}  # fmt: skip
"""Microseconds of a recorded run on an H200 that these programs are to stay below."""


def inputs_of(session: hipdnn_mlir.Session, seed: int) -> dict[str, np.ndarray]:
    """Fresh random inputs: standard normal."""
    rng = np.random.default_rng(seed)
    return {
        port.name: rng.standard_normal(port.shape, np.float32).astype(BY_NAME[port.dtype].numpy)
        for port in session.inputs
    }


def reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs by ONNX Runtime on the CPU in f32, of the very weights and inputs that the GPU has."""
    wide = carried.retyped(model, onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT)
    run = ort.InferenceSession(wide.SerializeToString(), providers=["CPUExecutionProvider"])
    return run.run(None, {name: array.astype(np.float32) for name, array in feeds.items()})


def distance(got: np.ndarray, want: np.ndarray) -> float:
    """Norm of the difference over the norm of the reference."""
    return float(np.linalg.norm(got.astype(np.float64) - want) / np.linalg.norm(want.astype(np.float64)))


class Subject:
    """One program on the GPU with device arrays for its inputs and outputs."""

    def __init__(self, program: carried.InMemory, plans: SessionOptions, *, graph: bool) -> None:
        self.session = hipdnn_mlir.Session(program, port="cuda", graph_capture=graph, **plans)
        self.stream = torch.cuda.Stream()
        feeds = [inputs_of(self.session, 100 + index) for index in range(INPUT_SETS)]
        self.host = feeds
        self.feeds = [{name: torch.from_numpy(array).cuda() for name, array in one.items()} for one in feeds]
        self.out = [
            {
                port.name: torch.full(
                    tuple(port.shape), torch.nan, dtype=getattr(torch, BY_NAME[port.dtype].numpy.name)
                ).cuda()
                for port in self.session.outputs
            }
            for _ in feeds
        ]
        torch.cuda.synchronize()
        self.runs = [
            self.session.bind(feed, out, stream=self.stream.cuda_stream)
            for feed, out in zip(self.feeds, self.out, strict=True)
        ]

    def __call__(self, index: int) -> None:
        """Queue one run."""
        self.runs[index]()

    def outputs(self, index: int) -> list[np.ndarray]:
        """What the last run of these inputs wrote."""
        self.stream.synchronize()
        return [self.out[index][port.name].cpu().numpy() for port in self.session.outputs]


def against_pytorch(path: Path, us: float) -> str:
    """PyTorch's times of the same model, and how ours compares to the best of them."""
    times = pytorch.times_of(carried.load(path).model)
    ways = "  ".join(f"{way} {time:.1f} us" for way, time in times.items())
    return f"{'':24} PyTorch: {ways}  ours / best {us / min(times.values()):.3f}"


def against_wanted(us: float, wanted: float) -> str:
    """What a run is to take, and whether it does."""
    return f"wanted {wanted} us, {'reached' if us <= wanted else f'MISSED by {us / wanted - 1:.1%}'}"


def surroundings() -> str:
    """The date, the GPU and what runs on it."""
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip().splitlines()
    library = hipdnn_mlir_runtime.session.devices.open_device(device_options({}, "cuda", is_tf32=False)).version
    versions = f"CUDA {torch.version.cuda}, PyTorch {torch.__version__}, hipDNN {library}"
    return f"{dt.datetime.now(dt.UTC):%Y-%m-%d}, {'; '.join(gpu)}, {versions}"


def report(path: Path, steps: int, plans: SessionOptions) -> tuple[str, float]:
    """Check and time one program; answer its line of the table, and microseconds of a recorded run."""
    packed = carried.load(path)
    start = time.perf_counter()
    program = carried.unpack(packed)
    unpacked_s = time.perf_counter() - start
    start = time.perf_counter()
    hipdnn_mlir.Session(program, port="cuda", **plans)  # chooses plans and keeps them
    loaded_s = time.perf_counter() - start
    plain = Subject(program, plans, graph=False)
    recorded = Subject(program, plans, graph=True)
    kind = plain.session.outputs[0].dtype
    worst, wanted = 0.0, reference(program.model, plain.host[0])
    for subject in (plain, recorded, recorded, recorded):
        subject(0)
        for got, want in zip(subject.outputs(0), wanted, strict=True):
            worst = max(worst, distance(got, want))
    first, replayed = plain.outputs(0), recorded.outputs(0)
    plain(0)
    # Some plans add up in an order of their own each time: then a replay cannot be told from another run.
    varies = not _equal(first, plain.outputs(0))
    same = "varies, as plain runs do" if varies else "equal" if _equal(first, replayed) else "DIFFERS"
    times = [time_us(subject, subject.stream) for subject in (plain, recorded)]
    verdict = "ok" if worst <= LIMITS[kind] else "WRONG"
    if steps:
        profile(plain, steps)
    line = (
        f"{path.stem:24} steps {plain.session.stats.steps:4} load {loaded_s:6.2f} s (weights {unpacked_s:5.2f} s)  "
        f"plain {times[0]:9.1f} us  graph {times[1]:9.1f} us  error {worst:.1e} {verdict} replay {same}"
    )
    if path.stem in WANTED_US:
        line += f"  {against_wanted(times[1], WANTED_US[path.stem])}"
    return line, times[1]


def _equal(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def profile(subject: Subject, count: int) -> None:
    """Print the steps that take longest."""
    rows = sorted(timed(subject.session, subject.host[0], repeat=10).steps, key=lambda row: -row.time.median_us)
    total = sum(row.time.median_us for row in rows)
    print(f"  {len(rows)} steps, {total:.0f} us between events")
    for row in rows[:count]:
        print(f"  {row.time.median_us:8.1f} us  {row.operations:32} {row.description or row.kind:60} {row.name}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Check and time carried programs on a GPU.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--models", nargs="+", help="stems of files; all by default")
    parser.add_argument("--autotune", type=int, default=0, help="plans to time for each graph")
    parser.add_argument(
        "--tf32", action="store_true", help="let products of f32 round to TF32, also in programs compiled without"
    )
    parser.add_argument("--pytorch", action="store_true", help="time PyTorch's ways to run each model beside it")
    parser.add_argument("--steps", type=int, default=0, help="steps to print of each program's profile")
    asked = parser.parse_args(arguments)
    print(f"{surroundings()}; autotune {asked.autotune}")
    # A folder of its own: plain and recorded runs have the same plans, and nothing is left of an earlier call.
    with tempfile.TemporaryDirectory() as folder:
        plans = SessionOptions(autotune=asked.autotune, tf32=asked.tf32 or None, plan_cache=folder)
        for path in sorted(asked.directory.glob("*.pkl")):
            if asked.models and path.stem not in asked.models:
                continue
            try:
                line, us = report(path, asked.steps, plans)
                print(line, flush=True)
                if asked.pytorch:
                    print(against_pytorch(path, us), flush=True)
            except Exception:  # noqa: BLE001 - one program's failure is a line of the report
                print(f"{path.stem}: failed", flush=True)
                traceback.print_exc()


if __name__ == "__main__":
    main()
