"""An encoder of BERT-base's sizes, its linear layers in floats of 8 bits, beside itself in f16 on an NVIDIA GPU.

``python bench/gpu/float8.py pack FOLDER [--batch 32] [--layers 12] [--checked 2]`` writes it with QuantizeLinear and DequantizeLinear
(E4M3, scales per tensor) around each of six linear layers a block, for 128 tokens, and without them; both are compiled for sm_90 in f16. It
keeps what ONNX Runtime's CPU provider gives for a stack of `--checked` layers. ``run FOLDER`` is for the GPU: it compares that result, and
times the whole stacks in turns. Their weights are drawn there.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TOKENS, HEADS, WIDTH, INNER = 128, 12, 768, 3072
ROUNDS = 10
AMAX = 6.0
"""Of values in front of linear layers, which norms and activations bound."""
_E4M3 = np.dtype(ml_dtypes.float8_e4m3fn)
_GREATEST = 448.0


class Encoder:
    """A stack of blocks, written node by node."""

    def __init__(self, layers: int, batch: int, *, is_quantized: bool) -> None:
        self._rng, self._batch, self._is_quantized = np.random.default_rng(0), batch, is_quantized
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        value = "x"
        for _ in range(layers):
            value = self._block(value)
        shape = [batch, TOKENS, WIDTH]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", value))
        graph = helper.make_graph(self._nodes, "encoder", [x], [y], self._constants)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)

    def _block(self, x: str) -> str:
        query, key, value = (
            self._heads(self._linear(x, WIDTH, WIDTH), order) for order in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
        )
        scores = self._op("MatMul", query, key)
        scores = self._op(
            "Softmax", self._op("Mul", scores, self._constant(np.float32((WIDTH // HEADS) ** -0.5))), axis=-1
        )
        mixed = self._op("Transpose", self._op("MatMul", scores, value), perm=[0, 2, 1, 3])
        mixed = self._op("Reshape", mixed, self._constant(np.array([self._batch, TOKENS, WIDTH])))
        x = self._norm(self._op("Add", x, self._linear(mixed, WIDTH, WIDTH)))
        inner = self._op("Gelu", self._linear(x, WIDTH, INNER), approximate="tanh")
        return self._norm(self._op("Add", x, self._linear(inner, INNER, WIDTH)))

    def _linear(self, x: str, rows: int, columns: int) -> str:
        weights = self._rng.standard_normal((rows, columns), np.float32) * np.float32(rows**-0.5)
        bias = self._constant(self._rng.standard_normal(columns, np.float32) * np.float32(0.1))
        if not self._is_quantized:
            return self._op("Add", self._op("MatMul", x, self._constant(weights)), bias)
        zero, scale = self._constant(np.zeros((), _E4M3)), self._constant(np.float32(AMAX / _GREATEST))
        x = self._op("DequantizeLinear", self._op("QuantizeLinear", x, scale, zero), scale, zero)
        step = np.float32(np.abs(weights).max() / _GREATEST)
        stored = self._op(
            "DequantizeLinear", self._constant((weights / step).astype(_E4M3)), self._constant(step), zero
        )
        return self._op("Add", self._op("MatMul", x, stored), bias)

    def _heads(self, x: str, order: tuple[int, ...]) -> str:
        shape = self._constant(np.array([self._batch, TOKENS, HEADS, WIDTH // HEADS]))
        return self._op("Transpose", self._op("Reshape", x, shape), perm=list(order))

    def _norm(self, x: str) -> str:
        ones, zeros = self._constant(np.ones(WIDTH, np.float32)), self._constant(np.zeros(WIDTH, np.float32))
        return self._op("LayerNormalization", x, ones, zeros, axis=-1)

    def _constant(self, array: Any) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self._constants)}"))
        return str(self._constants[-1].name)

    def _op(self, op: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(
            helper.make_node(op, [*inputs], [f"v{len(self._nodes)}"], name=f"{op}_{len(self._nodes)}", **attributes)
        )
        return str(self._nodes[-1].output[0])


def inputs(batch: int) -> np.ndarray:
    """The same random values everywhere."""
    return np.random.default_rng(7).standard_normal((batch, TOKENS, WIDTH)).astype(np.float32)


def pack(folder: Path, batch: int, layers: int, checked: int) -> None:
    """Write the programs, and the result of ONNX Runtime."""
    import onnxruntime as ort

    import hipdnn_mlir

    small = Encoder(checked, batch, is_quantized=True).model
    hipdnn_mlir.compile(small, target="sm_90", precision="f16").save(folder / "checked.hipdnn")
    session = ort.InferenceSession(small.SerializeToString(), providers=["CPUExecutionProvider"])
    np.save(folder / "checked.npy", session.run(None, {"x": inputs(batch)})[0].astype(np.float16))
    for name, is_quantized in (("float8", True), ("f16", False)):
        program = hipdnn_mlir.compile(
            Encoder(layers, batch, is_quantized=is_quantized).model, target="sm_90", precision="f16"
        )
        arrays = {
            key: [np.asarray(array).dtype.name, np.asarray(array).shape] for key, array in program.tensors.items()
        }
        written = json.dumps({"text": program.text, "arrays": arrays, "batch": batch})
        (folder / f"{name}.json.gz").write_bytes(gzip.compress(written.encode(), 6))


def drawn(packed: dict[str, Any]) -> SimpleNamespace:
    """A program whose constants are random numbers of a linear layer's size."""
    rng = np.random.default_rng(0)
    arrays = {}
    for key, (name, shape) in packed["arrays"].items():
        size = 100 if name.startswith("float8") else 0.03
        arrays[key] = (size * rng.standard_normal(shape, np.float32)).astype(np.dtype(name))
    return SimpleNamespace(text=packed["text"], tensors=arrays)


def measure(folder: Path, autotune: int, *, profiles: bool) -> None:
    """Print how far the result is from ONNX Runtime's, both times and their ratio."""
    import torch

    from hipdnn_mlir_runtime.session.profiling.profile import profile
    from hipdnn_mlir_runtime.session.session import Session
    from models import series

    stream = torch.cuda.Stream()
    packed = {
        name: json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes())) for name in ("float8", "f16")
    }
    batch = packed["f16"]["batch"]
    sources: dict[str, Any] = {
        "checked": str(folder / "checked.hipdnn"),
        **{name: drawn(each) for name, each in packed.items()},
    }
    runs, sessions, outs = {}, {}, {}
    with torch.inference_mode(), torch.cuda.stream(stream):
        for name, source in sources.items():
            sessions[name] = session = Session(source, port="cuda", autotune=autotune, graph_capture=True)
            (port,) = session.outputs
            outs[name] = torch.empty(port.shape, dtype=torch.float32, device="cuda")
            runs[name] = session.bind(
                {"x": torch.from_numpy(inputs(batch)).cuda()}, {port.name: outs[name]}, stream=stream
            )
        runs["checked"]()
        stream.synchronize()
        wanted = np.load(folder / "checked.npy").astype(np.float32)
        apart, largest = np.abs(outs["checked"].cpu().numpy() - wanted), np.abs(wanted).max()
        print(
            f"from ONNX Runtime's at most {apart.max() / largest:.4f} of the largest, {np.median(apart) / largest:.5f} in the middle"
        )
        times: dict[str, list[float]] = {"float8": [], "f16": []}
        for _ in range(ROUNDS):
            for name, values in times.items():
                values.append(series(runs[name], stream))
        for name in times if profiles else ():
            rows = sorted(
                profile(sessions[name], {"x": inputs(batch)}, repeat=10).steps, key=lambda row: -row.time.median_us
            )
            for row in rows[:16]:
                print(
                    f"  {name} {row.time.median_us:8.1f} us {row.engine:16} {str(row.operations)[:60]:60} {str(row.name)[:60]}"
                )
    ours, theirs = (median(values) for values in times.values())
    print(f"batch {batch}: float8 {ours:.1f} us, f16 {theirs:.1f}: {ours / theirs:.2f}", flush=True)


def main() -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["pack", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--checked", type=int, default=2)
    parser.add_argument("--autotune", type=int, default=8)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.command == "pack":
        pack(given.folder, given.batch, given.layers, given.checked)
    else:
        measure(given.folder, given.autotune, profiles=given.profile)


if __name__ == "__main__":
    main()
