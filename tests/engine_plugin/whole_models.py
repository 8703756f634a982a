"""Whole models whose graphs run somewhere else, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime as ort

import hipdnn_mlir
import models
from engine_plugin.loader import Array
from engine_plugin.steps import RunGraph, run_steps
from gpu.test_rocm_programs import convolutions, lines, norms, products

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "perceptron": models.mlp,
    "perceptron of odd sizes": lambda: models.mlp(1, (7, 5, 3)),
    "resnet": lambda: models.resnet(2),
    "resnet50": models.resnet50,
    "mobilenet_v2": lambda: models.mobilenet_v2(2, 32, rows=((1, 8, 1, 1), (4, 12, 2, 2)), stem=8, head=32, classes=10),
    "encoder": lambda: models.encoder(layers=2, s=16, d=32, heads=4, ffn=64),
    "convolutions": convolutions,
    "lines": lines,
    "products": products,
    "norms": norms,
}


def compare(name: str, run_graph: RunGraph) -> int:
    """Run a model's program step by step, and in ONNX Runtime; the number of its graphs.

    Raises:
        AssertionError: The values differ.
    """
    model = MODELS[name]()
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = hipdnn_mlir.compile(model, target="host")
    feeds = _feeds(reference)
    for got, want in zip(run_steps(program, feeds, run_graph), reference.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-4)
    return len(program.model.executables)


def _feeds(reference: ort.InferenceSession) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    feeds = {port.name: rng.standard_normal(port.shape, np.float32) for port in reference.get_inputs()}
    if "mask" in feeds:
        feeds["mask"] = np.where(rng.random(feeds["mask"].shape) < 0.25, -1e4, 0).astype(np.float32)
    return feeds
