"""Runs whole models, by names in lines: `python -P -m rocm.report.model_worker TARGET [ENGINE [PLUGIN]]`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import suite as op_suite

import hipdnn_mlir
import models
from onnx_backend.report import Result

PRECISIONS = {"f32": 1e-3, "f16": 2e-2}
"""With the greatest error of outputs, as norms: products of f32 may be summed in another order, those of f16 round each operand."""
MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": lambda: models.mlp(32),  # few rows are generated code, which no engine runs
    "resnet": models.resnet,
    "mobilenet_v2": models.mobilenet_v2,
    "encoder": lambda: models.encoder(layers=2, s=64, d=64, heads=4, ffn=128),
}


def run(case: str, target: str, engine: str = "", plugin: str = "") -> Result:
    """Run `MODEL in PRECISION`.

    Args:
        case: What to run.
        target: What it is compiled for.
        engine: The engine that runs every graph that it takes, as it answers; empty for the library's choice.
        plugin: The file of its plugin, which is loaded in the place of all others: what it refuses is compiled another way.
    """
    name, _, precision = case.partition(" in ")
    options: dict[str, Any] = {"engine": engine, "compare_plans": False} if engine else {}
    options |= {"plugin_dirs": [plugin], "plugin_mode": "absolute"} if plugin else {}
    error, engines = model_error(name, precision, target, options)
    if engine and engine not in engines:
        return {"status": "untaken", "reasons": []}
    most = PRECISIONS[precision]
    # A NaN is no small error.
    reasons = [] if error <= most else [f"off by {error:.1e}, at most {most:.0e}"]
    return {"status": "failed" if reasons else "passed", "reasons": reasons}


def model_error(name: str, precision: str, target: str, plans: Mapping[str, Any]) -> tuple[float, set[str]]:
    """The greatest difference from ONNX Runtime among a model's outputs, as norms, of a plain run and of recorded ones; what ran it."""
    model = MODELS[name]()
    rng = np.random.default_rng(0)
    dims = {port.name: [d.dim_value for d in port.type.tensor_type.shape.dim] for port in model.graph.input}
    feeds = {port: rng.standard_normal(sizes).astype(np.float32) for port, sizes in dims.items()}
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    options = {} if precision == "f32" else {"precision": precision}
    program = hipdnn_mlir.compile(model, target=target, **options)
    plain, recorded = program.session(**plans), program.session(graph_capture=True, **plans)
    runs = [plain.run(None, feeds), *(recorded.run(None, feeds) for _ in range(3))]
    wanted = session.run(None, feeds)
    errors = [
        float(np.linalg.norm(np.asarray(a) - b) / np.linalg.norm(b))
        for run in runs
        for a, b in zip(run, wanted, strict=True)
    ]
    return float(np.max(errors)), {str(step.get("engine")) for step in plain.steps}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    op_suite.serve(lambda case: run(case, *sys.argv[1:]))
