"""Each executable of carried programs by itself: the same descriptors on the GPU's library and on the host's, on the same random operands.

``python bench/gpu/executables.py DIRECTORY [--models ...]``; ``bench/carried.py`` wrote the directory. The host computes in f32 inside and
is checked against ONNX Runtime elsewhere; here it is the reference.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

# The scripts beside this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import carried
import hipdnn_mlir
from hipdnn_mlir.abi import Attribute, DataType, Descriptor
from hipdnn_mlir.dtypes import BY_NAME, DType
from hipdnn_mlir.ops.strides import extent

_BY_CODE = {dtype.hipdnn: dtype for dtype in BY_NAME.values() if dtype.hipdnn is not None}
LIMITS = {"f32": 1e-5, "f16": 2e-3, "bf16": 1.6e-2}


def tensors(executable: dict[str, Any]) -> dict[int, dict[Attribute, Any]]:
    """The tensors of an executable by uid: attribute -> values."""
    found = {}
    for kind, attributes, *_ in executable["descriptors"]:
        if kind == Descriptor.TENSOR_DESCRIPTOR:
            values = {Attribute(name): value for name, _, value in attributes}
            found[values[Attribute.TENSOR_UNIQUE_ID][0]] = values
    return found


def alone(program: dict[str, Any], executable: dict[str, Any], target: str) -> str:
    """A program of this executable only; its inputs and outputs are its operands' memory, flat."""
    described = tensors(executable)
    ports: dict[str, list[Any]] = {"in": [], "out": []}
    buffers, places = [], []
    for operand in executable["operands"]:
        values = described[operand["uid"]]
        dtype = _dtype(values)
        size = extent(tuple(values[Attribute.TENSOR_DIMENSIONS]), tuple(values[Attribute.TENSOR_STRIDES]))
        is_input = operand["role"] == "in"
        port = {"name": f"t{operand['uid']}", "dtype": dtype.name, "dims": [size], "buffer": len(buffers)}
        ports[operand["role"]].append(port)
        places.append({"buffer": len(buffers), "offset": 0})
        size_bytes = size * dtype.numpy.itemsize
        buffers.append({"kind": "input" if is_input else "output", "bytes": size_bytes, "first": 0, "last": 0})
    step = {"executable": 0, "name": executable["summary"], "operands": places, "kind": "execute"}
    return json.dumps({
        **{key: program[key] for key in ("producer", "model", "tf32") if key in program},
        "format": 1, "target": target, "inputs": ports["in"], "outputs": ports["out"], "constants": [], "buffers": buffers,
        "executables": [executable], "steps": [step],
    })  # fmt: skip


def _dtype(values: dict[Attribute, Any]) -> DType:
    return _BY_CODE[DataType(values[Attribute.TENSOR_DATA_TYPE][0])]


def compare(program: dict[str, Any], executable: dict[str, Any], seed: int) -> tuple[float, str, str]:
    """The largest relative distance between both, the type of the first output, and what ran."""
    rng = np.random.default_rng(seed)
    sessions = [
        hipdnn_mlir.Session(carried.InMemory(alone(program, executable, target), {}, None))
        for target in (program["target"], "host")
    ]
    feeds = {}
    for port in sessions[0].inputs:
        size = port.shape[0]
        feeds[port.name] = rng.standard_normal(size, np.float32).astype(port.numpy_dtype)
    got, want = (session.run(None, feeds) for session in sessions)
    worst = 0.0
    described = tensors(executable)
    for port, a, b in zip(sessions[0].outputs, got, want, strict=True):
        values = described[int(port.name[1:])]
        dims, strides = values[Attribute.TENSOR_DIMENSIONS], values[Attribute.TENSOR_STRIDES]
        views = [
            np.lib.stride_tricks.as_strided(x, dims, [s * x.itemsize for s in strides]).astype(np.float64)
            for x in (a, b)
        ]
        worst = max(worst, float(np.linalg.norm(views[0] - views[1]) / np.linalg.norm(views[1])))
    return worst, sessions[0].outputs[0].dtype, sessions[0].steps[0].get("description", "")


def main() -> None:
    """Print a line per executable."""
    parser = argparse.ArgumentParser(
        description="Compare executables of carried programs between the GPU and the host."
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--models", nargs="+")
    asked = parser.parse_args()
    seen: set[str] = set()
    for path in sorted(asked.directory.glob("*.pkl")):
        if asked.models and path.stem not in asked.models:
            continue
        program = json.loads(carried.load(path).text)
        for executable in program["executables"]:
            if executable["name"] in seen:
                continue
            seen.add(executable["name"])
            shapes = [t[Attribute.TENSOR_DIMENSIONS] for t in tensors(executable).values()]
            try:
                error, kind, ran = compare(program, executable, len(seen))
                verdict = "ok" if error <= LIMITS[kind] else "WRONG"
            except hipdnn_mlir.HipdnnMlirError as failure:
                error, verdict, ran = float("nan"), "FAILED", str(failure)
            print(
                f"{path.stem:20} {verdict:6} {error:.1e} {executable['summary']:28} {shapes[:2]} {ran[-160:]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
