"""Attention on the host library: one SDPA graph against the three graphs it replaces (matmul, softmax rows, matmul), and ONNX Runtime.

Plans take turns, so that a ratio compares runs of the same moments. Operands lie as a model stores them: heads side by side in a token.

Usage: python bench/host_attention.py [--threads 1 2] [--rounds 60] [--dtype f32] [--json FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from hipdnn_mlir_runtime.abi import Pointwise, Reduce
from host_engines.anchor_graph import ONEDNN, AnchorGraph
from host_engines.host_graph import ROWWISE, HostGraph
from host_engines.sdpa_graph import Attention

PAUSE_S = 0.002
"""Between two libraries' turns, until the other one's threads have gone to sleep."""
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Case:
    """One attention: batch, heads of queries and of keys, lengths, features of a head."""

    name: str
    batch: int
    heads: int
    key_heads: int
    queries: int
    keys: int
    features: int = 64
    masked: bool = False

    def operands(self, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Query, key, value, result as (b, h, s, d) views of (b, s, h, d), and the mask over keys."""
        rng = np.random.default_rng(0)

        def stored(heads: int, length: int) -> np.ndarray:
            return (
                rng.standard_normal((self.batch, length, heads, self.features), np.float32).astype(dtype).swapaxes(1, 2)
            )

        q, k, v = stored(self.heads, self.queries), stored(self.key_heads, self.keys), stored(self.key_heads, self.keys)
        mask = np.zeros((self.batch, 1, 1, self.keys), np.float32) if self.masked else None
        return q, k, v, stored(self.heads, self.queries), mask


CASES = [
    Case("BERT-base s128", 1, 12, 12, 128, 128),
    Case("BERT-base s128, mask", 1, 12, 12, 128, 128, masked=True),
    Case("BERT-base s512, mask", 1, 12, 12, 512, 512, masked=True),
    Case("ViT-B s197", 1, 12, 12, 197, 197),
    Case("ViT-B s197, batch 4", 4, 12, 12, 197, 197),
    *(Case(f"decode s_kv {keys}", 1, 12, 12, 1, keys) for keys in (1, 64, 512, 2048)),
    Case("decode GQA 32/8 d128 s_kv 1024", 1, 32, 8, 1, 1024, 128),
    Case("prefill s1024 d128", 1, 8, 8, 1024, 1024, 128),
]


def three_graphs(case: Case, dtype: Any, threads: int) -> Callable[[], None]:
    """Scores, softmax and weighted sum as plans of their own; key heads are repeated beforehand."""
    q, k, v, o, mask = case.operands(dtype)
    k, v = (np.repeat(x.swapaxes(1, 2), case.heads // case.key_heads, axis=2).swapaxes(1, 2) for x in (k, v))
    scores = np.empty((*q.shape[:3], case.keys), dtype)
    weights = np.empty_like(scores)
    product = AnchorGraph()
    value = product.matmul(product.tensor(q), product.tensor(k.swapaxes(2, 3)), product.virtual(scores.shape, dtype))
    product.then(Pointwise.MUL, value, product.scalar(case.features**-0.5, dtype), out=product.tensor(scores))
    softmax = HostGraph()
    x = softmax.tensor(scores)
    if mask is not None:
        x = softmax.pointwise(Pointwise.ADD, [x, softmax.tensor(mask)], softmax.virtual(scores.shape))
    rows = (*scores.shape[:3], 1)
    high = softmax.reduction(Reduce.MAX, x, softmax.virtual(rows))
    shifted = softmax.pointwise(Pointwise.SUB, [x, high], softmax.virtual(scores.shape))
    power = softmax.pointwise(Pointwise.EXP, [shifted], softmax.virtual(scores.shape))
    total = softmax.reduction(Reduce.ADD, power, softmax.virtual(rows))
    softmax.pointwise(Pointwise.DIV, [power, total], softmax.tensor(weights))
    weighted = AnchorGraph()
    weighted.matmul(weighted.tensor(weights), weighted.tensor(v), weighted.tensor(o))
    plans = [product.plan(ONEDNN, threads), softmax.plan(ROWWISE, threads), weighted.plan(ONEDNN, threads)]

    def run() -> None:
        for plan in plans:
            plan.execute()

    return run


def one_graph(case: Case, dtype: Any, threads: int) -> Callable[[], None]:
    """The SDPA graph."""
    q, k, v, o, mask = case.operands(dtype)
    plan = Attention(q, k, v, scale=case.features**-0.5, mask=mask).plan(o, threads=threads)
    return plan.execute


def onnxruntime(case: Case, threads: int) -> Callable[[], None] | None:
    """com.microsoft.MultiHeadAttention in f32; None where heads are grouped."""
    if case.heads != case.key_heads:
        return None
    q, k, v, _, _ = case.operands(np.float32)
    flat = {
        name: np.ascontiguousarray(x.swapaxes(1, 2)).reshape(case.batch, x.shape[2], -1)
        for name, x in zip("qkv", (q, k, v), strict=True)
    }
    inputs = list(flat)
    if case.masked:
        flat["mask"] = np.ones((case.batch, case.keys), np.int32)
        inputs += ["", "mask"]
    node = helper.make_node("MultiHeadAttention", inputs, ["o"], domain="com.microsoft", num_heads=case.heads)
    types = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}
    graph = helper.make_graph(
        [node],
        "attention",
        [helper.make_tensor_value_info(n, types[a.dtype], a.shape) for n, a in flat.items()],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in flat.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    binding.bind_ortvalue_output("o", ort.OrtValue.ortvalue_from_numpy(np.empty_like(session.run(None, flat)[0])))
    return lambda: session.run_with_iobinding(binding)


def measure(case: Case, dtype: str, threads: int, rounds: int) -> dict[str, Any]:
    """Medians in microseconds of calls that take turns of a tenth of the rounds."""
    calls = {"sdpa": one_graph(case, DTYPES[dtype], threads), "three": three_graphs(case, DTYPES[dtype], threads)}
    if (reference := onnxruntime(case, threads)) is not None:
        calls["ort_f32"] = reference
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(10):
        for name, call in calls.items():
            time.sleep(PAUSE_S)
            call()
            for _ in range(max(rounds // 10, 1)):
                start = time.perf_counter_ns()
                call()
                samples[name].append((time.perf_counter_ns() - start) / 1000)
    row: dict[str, Any] = {
        "case": case.name,
        "dtype": dtype,
        "threads": threads,
        **{n: median(s) for n, s in samples.items()},
    }
    row["flops_per_ns"] = 4e-3 * case.batch * case.heads * case.queries * case.keys * case.features / row["sdpa"]
    return row


def main() -> None:
    """Prints one line per case and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--dtype", choices=list(DTYPES), default="f32")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for threads in arguments.threads:
        for case in CASES:
            row = measure(case, arguments.dtype, threads, arguments.rounds)
            rows.append(row)
            ort_text = (
                f"  ort f32 {row['ort_f32']:8.1f} ({row['sdpa'] / row['ort_f32']:.2f})" if "ort_f32" in row else ""
            )
            ratio = row["sdpa"] / row["three"]
            line = f"{threads} {row['case']:32s} sdpa {row['sdpa']:8.1f} us {row['flops_per_ns']:6.1f} GF/s"
            line += f"  three {row['three']:8.1f} ({ratio:.2f})"
            sys.stdout.write(line + ort_text + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
