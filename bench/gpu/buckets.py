"""Models with dynamic dimensions on an NVIDIA GPU: a file with programs for all combinations of buckets, against ONNX Runtime on the CPU.

``python bench/gpu/buckets.py pack DIRECTORY`` compiles the models, and writes inputs of many sizes with ONNX Runtime's outputs beside them;
``python bench/gpu/buckets.py run DIRECTORY`` runs them on the GPU: arrays in host memory, PyTorch's on the device, bound ones, plain and
recorded. One line per check; exits 1 where one fails.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

# The models live with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import hipdnn_mlir

LIMIT = 2e-4
"""Largest relative distance of outputs, as norms: the models are of f32."""


def pack(directory: Path) -> None:
    """Compile, and compute the outputs that are wanted."""
    import onnxruntime as ort

    from bucket_models import BUCKETS, SAFE, SIZES, feeds_of
    from hipdnn_mlir.compiler.specializations import compile_specializations

    directory.mkdir(parents=True, exist_ok=True)
    for title, (proto, symbol) in SAFE.items():
        name = title.replace(" ", "_")
        symbols = {dim.dim_param for port in proto.graph.input for dim in port.type.tensor_type.shape.dim} - {""}
        buckets = {found: BUCKETS if found == symbol else [3] for found in sorted(symbols)}
        program = compile_specializations(proto, buckets=buckets, target="sm_90", precision="model")
        program.save(directory / f"{name}.hipdnn")
        reference = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
        for number, size in enumerate(SIZES):
            feeds = feeds_of(_ports(proto), {**dict.fromkeys(symbols, 3), symbol: size})
            outputs = dict(zip((o.name for o in proto.graph.output), reference.run(None, feeds), strict=True))
            named = {f"in {key}": array for key, array in feeds.items()} | {
                f"out {key}": array for key, array in outputs.items()
            }
            np.savez(directory / f"{name}-{number}.npz", **named)
        print(f"{name}: {len(SIZES)} sizes")


def _ports(proto: Any) -> Any:
    """A model's inputs as those of a session."""
    from onnx import helper

    def port(value: Any) -> SimpleNamespace:
        kind = value.type.tensor_type
        dims = [dim.dim_param or dim.dim_value for dim in kind.shape.dim]
        return SimpleNamespace(name=value.name, shape=dims, numpy_dtype=helper.tensor_dtype_to_np_dtype(kind.elem_type))

    return SimpleNamespace(inputs=[port(value) for value in proto.graph.input])


def far(got: np.ndarray, want: np.ndarray) -> float:
    """Norm of the difference over the norm of what is wanted."""
    if got.shape != want.shape or not np.isfinite(got.astype(np.float64)).all():
        return float("inf")
    return float(np.linalg.norm(got.astype(np.float64) - want) / max(np.linalg.norm(want.astype(np.float64)), 1e-30))


def check_program(path: Path) -> float:
    """The greatest error over all sizes and ways to run."""
    import torch

    worst = 0.0
    for graph in (False, True):
        session = hipdnn_mlir.Session(path, port="cuda", graph=graph)
        stream = torch.cuda.Stream()
        cases = sorted(path.parent.glob(f"{path.stem}-*.npz"))
        if not cases:
            return float("inf")
        for case in cases * 2:  # twice: recorded runs are replayed
            with np.load(case) as stored:
                feeds = {key[3:]: stored[key] for key in stored.files if key.startswith("in ")}
                wanted = {key[4:]: stored[key] for key in stored.files if key.startswith("out ")}
            for array, want in zip(session.run(None, feeds), wanted.values(), strict=True):
                worst = max(worst, far(array, want))
            there = {key: torch.from_numpy(array).cuda() for key, array in feeds.items()}
            out = {
                key: torch.zeros(array.shape, dtype=torch.from_numpy(array).dtype).cuda()
                for key, array in wanted.items()
            }
            torch.cuda.synchronize()
            run = session.bind(there, out, stream=stream.cuda_stream)
            for _ in range(3):
                run()
            stream.synchronize()
            for key, want in wanted.items():
                worst = max(worst, far(out[key].cpu().numpy(), want))
    return worst


def main(arguments: Sequence[str] | None = None) -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description="Check programs for buckets of dynamic dimensions on an NVIDIA GPU.")
    parser.add_argument("what", choices=("pack", "run"))
    parser.add_argument("directory", type=Path)
    asked = parser.parse_args(arguments)
    if asked.what == "pack":
        return pack(asked.directory)
    paths = sorted(asked.directory.glob("*.hipdnn"))
    if not paths:
        parser.error(f"{asked.directory} has no program: pack some first")
    failed = False
    for path in paths:
        try:
            worst = check_program(path)
        except Exception:  # noqa: BLE001 - one program's failure is a line of the report
            traceback.print_exc()
            worst = float("inf")
        failed |= not worst <= LIMIT
        print(f"{path.stem:28} error {worst:.1e} {'ok' if worst <= LIMIT else 'WRONG'}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
