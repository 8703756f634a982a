"""hipDNN's norms on an NVIDIA GPU as graphs for cuDNN: targets have kernels of their own for them, the port takes them all the same.

``python bench/gpu/norms.py pack DIRECTORY`` compiles norms, and batch norms with ReLU, as the host's target does, for the GPU's name, and
writes ONNX Runtime's outputs beside them; ``python bench/gpu/norms.py run DIRECTORY`` runs them on the GPU. One line each; exits 1 where
one is wrong, or refused and need not be.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

# The scripts beside this folder, and the models, which live with the tests.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import HipdnnMlirError

REFUSED = "BatchNormalizationOfImages"
"""In C order, which cuDNN computes wrongly: the port says so."""

LIMITS = {"f32": 1e-5, "f16": 2e-3}
"""Largest relative distance of outputs, as norms, by the type of the model."""


def models() -> Iterator[tuple[str, Any]]:
    """Norms by name."""
    from models import GraphBuilder

    for rows, columns in (((6, 4), 32), ((128,), 768), ((1, 5), 4096)):
        for kind in ("LayerNormalization", "RMSNormalization"):
            b = GraphBuilder(kind, opset=23)
            dims = [*rows, columns]
            vectors = [b.uniform([columns], 0.5, 1.5)] + ([b.normal([columns], 0.5)] if kind[0] == "L" else [])
            yield f"{kind}-{columns}", b.model({b.op(kind, b.input("x", dims), *vectors, axis=-1): dims})
    for dims in ([1, 64, 14, 14], [1, 5, 7, 9], [128, 96], [2, 8, 6, 6]):
        for then in ("", "Relu"):
            b = GraphBuilder("BatchNormalization", opset=20)
            vectors = [b.uniform([dims[1]], 0.5, 1.5) for _ in range(4)]
            y = b.op("BatchNormalization", b.input("x", dims), *vectors)
            name = "BatchNormalization" if len(dims) == 2 or dims[0] == 1 else REFUSED
            yield f"{name}{then}-{dims[1]}", b.model({b.op(then, y) if then else y: dims})


def pack(directory: Path, target: str) -> None:
    """Compile, and compute the outputs that are wanted."""
    import onnx
    import onnxruntime as ort

    import carried

    directory.mkdir(parents=True, exist_ok=True)
    for name, model in models():
        (port,) = model.graph.input
        dims = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        x = np.random.default_rng(1).standard_normal(dims).astype(np.float32)
        # ONNX Runtime's CPU provider has no RMS norm of every version; onnx's own reference has.
        try:
            (wanted,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
                None, {"x": x}
            )
        except Exception:  # noqa: BLE001 - it has classes of its own for what it does not implement
            from onnx.reference import ReferenceEvaluator

            (wanted,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.savez(directory / f"{name}.npz", x=x, wanted=wanted)
        narrow = carried.retyped(model, onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
        for dtype, typed in zip(LIMITS, (model, narrow), strict=True):
            program = hipdnn_mlir.compile(typed, target="host")
            replace(program, model=replace(program.model, target=target)).save(directory / f"{name}-{dtype}.hipdnn")
    print(f"{len(list(directory.glob('*.hipdnn')))} programs")


def check(path: Path, port: str) -> bool:
    """Run one; say how far it is from what is wanted."""
    name, dtype = path.stem.rsplit("-", 1)
    with np.load(path.parent / f"{name}.npz") as stored:
        x, wanted = stored["x"], stored["wanted"]
    try:
        session = hipdnn_mlir.Session(path, port=port)
        (got,) = session.run(None, {"x": x.astype(session.inputs[0].numpy_dtype)})
    except HipdnnMlirError as error:
        is_right = name.startswith(REFUSED) and "broadcasts beyond two dims" in str(error)
        print(f"{path.stem:36} refused{' as it must be' if is_right else ''}: {error}")
        return is_right
    error = float(np.linalg.norm(got.astype(np.float64) - wanted) / np.linalg.norm(wanted))
    is_right = bool(error <= LIMITS[dtype]) and not name.startswith(REFUSED)  # not of NaN
    plans = ", ".join(str(step.get("description", "")) for step in session.steps)
    print(f"{path.stem:36} error {error:.1e} {'ok' if is_right else 'WRONG'}  {plans}")
    return is_right


def main(arguments: Sequence[str] | None = None) -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description="Check norms as graphs for cuDNN on an NVIDIA GPU.")
    parser.add_argument("what", choices=("pack", "run"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("--target", default="sm_90", help="whose name programs get")
    parser.add_argument("--port", default="cuda", help="where to run")
    asked = parser.parse_args(arguments)
    if asked.what == "pack":
        return pack(asked.directory, asked.target)
    paths = sorted(asked.directory.glob("*.hipdnn"))
    if not paths:
        parser.error(f"{asked.directory} has no program: pack some first")
    results = [check(path, asked.port) for path in paths]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
