"""Architectures that nobody here wrote on an NVIDIA GPU in f16, beside PyTorch's ways to run them.

``python bench/gpu/models.py pack FOLDER NAME... [--batch 1]`` exports them (bench/architectures.py) and compiles them for sm_90, without
their large weights. ``run FILE... [--autotune 8] [--max-autotune] [--profile]`` is for the GPU: it fills the weights with random numbers
and times, in turns, a run of the program and PyTorch: eager, recorded as a CUDA graph; compiled with constants folded, recorded. Weights
that are drawn say nothing about results: those are compared on the CPU, by bench/models.py.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean, median
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch._inductor.config

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from architectures import ARCHITECTURES

SMALL = 1 << 14
"""Bytes up to which a constant is carried along: indices, masks, vectors of numbers that are no weights."""
ROUNDS, SECONDS = 10, 0.05


def batched(inputs: tuple[torch.Tensor, ...], batch: int) -> tuple[torch.Tensor, ...]:
    """As many of the inputs under each other."""
    return tuple(tensor.expand(batch, *tensor.shape[1:]).contiguous() for tensor in inputs)


def pack(name: str, folder: Path, batch: int) -> None:
    """Write the program of an architecture without its large constants."""
    import hipdnn_mlir
    from torch_models import without_torchvision_ops

    keep = without_torchvision_ops()
    torch.manual_seed(0)
    module, inputs = ARCHITECTURES[name]()
    names = [f"x{index}" for index in range(len(inputs))]
    with TemporaryDirectory() as place:
        model = Path(place) / "model.onnx"
        torch.onnx.export(
            module.eval(),
            batched(inputs, batch),
            model,
            input_names=names,
            opset_version=20,
            dynamo=True,
            verbose=False,
        )
        program = hipdnn_mlir.compile(model, target="sm_90", precision="f16")
        written = {"name": name, "batch": batch} | packed_program(program)
    del keep
    (folder / f"{name}-b{batch}.json.gz").write_bytes(gzip.compress(json.dumps(written).encode(), 6))


def packed_program(program: Any) -> dict[str, Any]:
    """A program without its large constants."""
    arrays = {name: np.asarray(array) for name, array in program.tensors.items()}
    return {
        "text": program.text,
        "large": {key: [held.dtype.str, held.shape] for key, held in arrays.items() if held.nbytes > SMALL},
        "small": {
            key: [held.dtype.str, held.shape, base64.b64encode(held.tobytes()).decode()]
            for key, held in arrays.items()
            if held.nbytes <= SMALL
        },
    }


def filled(packed: dict[str, Any]) -> SimpleNamespace:
    """A program with weights: integers are zeros, floats are normal."""
    rng = np.random.default_rng(0)
    arrays = {
        key: np.frombuffer(base64.b64decode(data), kind).reshape(shape)
        for key, (kind, shape, data) in packed["small"].items()
    }
    for key, (kind, shape) in packed["large"].items():
        dtype = np.dtype(kind)
        is_float = dtype.kind in "fV"
        drawn = 0.02 * rng.standard_normal(shape, np.float32) if is_float else np.zeros(shape)
        arrays[key] = drawn.astype(dtype)
    return SimpleNamespace(text=packed["text"], tensors=arrays)


def recorded(call: Callable[[], Any], stream: torch.cuda.Stream) -> Callable[[], None]:
    """A function as a CUDA graph."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


def pytorch_ways(packed: dict[str, Any], stream: torch.cuda.Stream, tunes: bool) -> dict[str, Callable[[], None]]:
    """The ways in which PyTorch runs the architecture, recorded."""
    torch._inductor.config.freezing = True  # noqa: SLF001 - weights become constants, batch norms go into them
    module, inputs = ARCHITECTURES[packed["name"]]()
    images = any(tensor.dim() == 4 for tensor in inputs)
    module = module.eval().half().cuda()
    module = module.to(memory_format=torch.channels_last) if images else module
    feeds = [
        (tensor.half() if tensor.is_floating_point() else tensor).cuda() for tensor in batched(inputs, packed["batch"])
    ]
    feeds = [tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor for tensor in feeds]
    ways: dict[str, Callable[..., Any]] = {"graph": module, "compile": torch.compile(module)}
    if tunes:
        ways["max-autotune"] = torch.compile(module, mode="max-autotune-no-cudagraphs")
    found = {}
    for way, call in ways.items():
        try:
            found[way] = recorded(lambda call=call: call(*feeds), stream)
        except Exception as error:  # noqa: BLE001 - a way that does not run is told, and left out
            print(f"{packed['name']} {way}: {str(error).splitlines()[0][:120]}", flush=True)
    return found


def series(call: Callable[[], object], stream: torch.cuda.Stream) -> float:
    """Microseconds of a call, between the events around as many as fill the time."""
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    count = 5
    while True:
        start.record(stream)
        for _ in range(count):
            call()
        stop.record(stream)
        stop.synchronize()
        elapsed = start.elapsed_time(stop) / 1e3
        if elapsed >= SECONDS:
            return 1e6 * elapsed / count
        count *= 2


def measure(file: str, autotune: int, tunes: bool, profiles: bool) -> float:
    """Print a line; return the time of the program over that of the best of the others."""
    from hipdnn_mlir_runtime.session.profiling.profile import profile
    from hipdnn_mlir_runtime.session.session import Session

    packed = json.loads(gzip.decompress(Path(file).read_bytes()))
    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        session = Session(filled(packed), port="cuda", autotune=autotune, graph_capture=True)
        dtypes = {
            port.name: torch.from_numpy(np.empty(0, port.numpy_dtype)).dtype
            for port in (*session.inputs, *session.outputs)
        }
        feeds = {
            port.name: torch.randn(port.shape, device="cuda").to(dtypes[port.name])
            if dtypes[port.name].is_floating_point
            else torch.ones(port.shape, dtype=dtypes[port.name], device="cuda")
            for port in session.inputs
        }
        out = {port.name: torch.empty(port.shape, dtype=dtypes[port.name], device="cuda") for port in session.outputs}
        ways = {"program": session.bind(feeds, out, stream=stream), **pytorch_ways(packed, stream, tunes)}
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, call in ways.items():
                times[way].append(series(call, stream))
        if profiles:
            arrays = {name: tensor.cpu().numpy() for name, tensor in feeds.items()}
            rows = sorted(profile(session, arrays, repeat=10).steps, key=lambda row: -row.time.median_us)
            for row in rows[:12]:
                print(f"  {row.time.median_us:8.1f} us {row.engine:24} {row.operations}  {str(row.name)[:60]}")
    ours, *others = (median(values) for values in times.values())
    ratio = ours / min(others)
    shown = ", ".join(f"{way} {median(values):.1f}" for way, values in times.items())
    print(f"{packed['name']} batch {packed['batch']}: {shown} us: {ratio:.2f} x the best", flush=True)
    torch.compiler.reset()
    return ratio


def main() -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("names", nargs="+")
    packing.add_argument("--batch", type=int, default=1)
    running = commands.add_parser("run")
    running.add_argument("files", nargs="+")
    running.add_argument("--autotune", type=int, default=8)
    running.add_argument("--max-autotune", action="store_true")
    running.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if given.command == "pack":
        given.folder.mkdir(parents=True, exist_ok=True)
        for name in given.names:
            pack(name, given.folder, given.batch)
        return
    print(torch.cuda.get_device_name(), "PyTorch", torch.__version__)
    ratios = []
    for file in given.files:
        try:
            ratios.append(measure(file, given.autotune, given.max_autotune, given.profile))
        except Exception as error:  # noqa: BLE001 - a line of the table, whatever it is
            print(f"{file}: {type(error).__name__}: {str(error).splitlines()[0][:200]}", flush=True)
    if ratios:
        print(
            f"geometric mean {geometric_mean(ratios):.3f} of {len(ratios)}, above 1.0: {sum(ratio > 1 for ratio in ratios)}"
        )


if __name__ == "__main__":
    sys.exit(main())
