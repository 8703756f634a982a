"""Quantized models of timm on an NVIDIA GPU, beside the same models in f16.

``python bench/gpu/integers.py pack FOLDER NAME... [--batch 32]`` makes them as bench/quantized.py does (u8 values, s8 weights per channel),
compiles both for sm_90, and keeps what ONNX Runtime's CPU provider gives for random images. ``run FOLDER NAME... [--batch 32]
[--profile]`` is for the GPU: it compares results, and times both programs in turns. The f16 program is carried without its weights.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from statistics import median
from tempfile import gettempdir
from typing import Any

import numpy as np
import torch

# The scripts beside this folder; models.py is the one in it.
sys.path.append(str(Path(__file__).resolve().parent.parent))

from models import ROUNDS, filled, packed_program, series


def images(batch: int) -> np.ndarray:
    """The same random images everywhere."""
    return np.random.default_rng(7).standard_normal((batch, 3, 224, 224)).astype(np.float32)


def pack(name: str, folder: Path, batch: int) -> None:
    """Write both programs, and the result of ONNX Runtime."""
    import hipdnn_mlir
    from quantized import make, reference_of
    from torch_models import without_torchvision_ops

    keep = without_torchvision_ops()
    path = make(name, Path(gettempdir(), "quantized-models"), batch)
    hipdnn_mlir.compile(path, target="sm_90").save(folder / f"{name}-b{batch}.hipdnn")
    wide = path.with_name(path.name.replace("-int8", "-prepared"))
    plain = packed_program(hipdnn_mlir.compile(wide, target="sm_90", precision="f16"))
    (folder / f"{name}-b{batch}-f16.json.gz").write_bytes(gzip.compress(json.dumps(plain).encode(), 6))
    np.save(folder / f"{name}-b{batch}.npy", reference_of(path, 2).run(None, {"x": images(batch)})[0])
    del keep


def bound(program: Any, autotune: int, batch: int, stream: torch.cuda.Stream) -> tuple[Any, Any, torch.Tensor]:
    """A session, a run of it, and what that writes."""
    from hipdnn_mlir_runtime.session.session import Session

    session = Session(program, port="cuda", autotune=autotune, graph_capture=True)
    (port,) = session.outputs
    out = torch.empty(port.shape, dtype=torch.float32, device="cuda")
    return session, session.bind({"x": torch.from_numpy(images(batch)).cuda()}, {port.name: out}, stream=stream), out


def measure(name: str, folder: Path, batch: int, autotune: int, profiles: bool) -> None:
    """Print a line: how far the results are from ONNX Runtime's, both times and their ratio."""
    from hipdnn_mlir_runtime.session.profiling.profile import profile

    stream = torch.cuda.Stream()
    with torch.inference_mode(), torch.cuda.stream(stream):
        session, run, out = bound(str(folder / f"{name}-b{batch}.hipdnn"), autotune, batch, stream)
        plain = json.loads(gzip.decompress((folder / f"{name}-b{batch}-f16.json.gz").read_bytes()))
        session_plain, run_plain, _ = bound(filled(plain), autotune, batch, stream)
        run()
        stream.synchronize()
        wanted = np.load(folder / f"{name}-b{batch}.npy")
        apart = np.abs(out.cpu().numpy() - wanted)
        times: dict[str, list[float]] = {"int8": [], "f16": []}
        for _ in range(ROUNDS):
            times["int8"].append(series(run, stream))
            times["f16"].append(series(run_plain, stream))
        for profiled in (session, session_plain) if profiles else ():
            rows = sorted(profile(profiled, {"x": images(batch)}, repeat=10).steps, key=lambda row: -row.time.median_us)
            for row in rows[:24]:
                print(
                    f"  {row.time.median_us:8.1f} us {row.engine:16} {str(row.operations)[:60]:60} {str(row.name)[:60]}"
                )
    ours, theirs = (median(values) for values in times.values())
    largest = np.abs(wanted).max()
    print(f"{name} batch {batch}: int8 {ours:.1f} us, f16 {theirs:.1f}: {ours / theirs:.2f}; from ONNX Runtime's at most "
          f"{apart.max() / largest:.4f} of the largest, {np.median(apart) / largest:.4f} in the middle", flush=True)  # fmt: skip


def main() -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["pack", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--autotune", type=int, default=8)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for name in given.names:
        if given.command == "pack":
            pack(name, given.folder, given.batch)
        else:
            measure(name, given.folder, given.batch, given.autotune, given.profile)


if __name__ == "__main__":
    main()
