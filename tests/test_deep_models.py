"""Models of any depth: nothing in the compiler recurses over layers, results stay right, and time grows with the layers, not faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir
from deep_models import MODELS, WIDTH
from drawing import every
from hipdnn_mlir_runtime.walks import operands_first

pytestmark = pytest.mark.slow

KINDS = ["host", "sm_90", "gfx942+fusilli", "gfx942", "gfx1201"]
"""A target of each kind: within one, targets differ in tables alone."""
FEW, MANY = 12, 24
"""Layers. From the smaller number on every kind of layer is there, and kernels are as long as they get."""
ON_OTHERS = {
    "sm_90": ("encoder", "convolutions", "movement", "views", "elementwise", "rows", "products", "sizes", "dense"),
    "gfx942+fusilli": ("convolutions", "encoder", "rows", "dense"),
    "gfx942": ("weights", "dense"),
    "gfx1201": ("dense",),
}
"""Models whose layers become other code there than on the host; for those that vary tables alone, few."""
OURS = str(Path(hipdnn_mlir.__file__).parent)


def _deepest_call(action: Callable[[], object]) -> int:
    """How many calls of the compiler's functions lie inside each other at most."""
    depth = deepest = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        if frame.f_code.co_filename.startswith(OURS):
            depth += {"call": 1, "return": -1}.get(event, 0)
            deepest = max(deepest, depth)

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return deepest


def _options(name: str, target: str) -> dict[str, Any]:
    """Code for GPUs is made for exact sizes."""
    return {"shapes": {"n": 4}} if name == "sizes" and target != "host" else {}


def _compile(name: str, layers: int, target: str, **options: Any) -> hipdnn_mlir.Program:
    return hipdnn_mlir.compile(MODELS[name](layers), target=target, **_options(name, target), **options)


def _depths(name: str, target: str, **options: Any) -> list[int]:
    layers = (FEW // 4, MANY // 4) if name == "encoder" else (FEW, MANY)  # whose layers are long, and all the same
    _compile(name, 2, target, **options)  # what is imported on the way counts once
    return [_deepest_call(lambda n=n: _compile(name, n, target, **options)) for n in layers]


@pytest.mark.parametrize("name", MODELS)
def test_calls_are_as_deep_for_many_layers_as_for_few(name: str) -> None:
    few, many = _depths(name, "host")
    assert many <= few


@pytest.mark.parametrize("on", every(3, [(name, target) for target, names in ON_OTHERS.items() for name in names]))
def test_calls_are_as_deep_for_many_layers_on_other_kinds_of_targets(on: tuple[str, str]) -> None:
    few, many = _depths(*on)
    assert many <= few


@pytest.mark.parametrize("name", ["movement", "convolutions"])
def test_calls_are_as_deep_for_many_layers_when_they_become_narrow(name: str) -> None:
    few, many = _depths(name, "host", precision="f16")
    assert many <= few


def test_calls_are_as_deep_for_many_layers_when_a_size_has_buckets() -> None:
    few, many = _depths("sizes", "host", buckets={"n": [2, 4]})
    assert many <= few


@pytest.mark.parametrize("name", every(4, MODELS))
def test_results_equal_onnxruntime_when_there_are_400_layers(name: str) -> None:
    layers = {"encoder": 24, "views": 100}  # the time of MLIR's bufferization is not linear in views of one buffer
    model = MODELS[name](layers.get(name, 400))
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    dims = [4 if isinstance(size, str) else size for size in session.get_inputs()[0].shape]
    x = np.random.default_rng(0).standard_normal(dims, np.float32)
    (want,) = session.run(None, {"x": x})
    (got,) = hipdnn_mlir.compile(model).session().run(None, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", every(4, KINDS[1:]))
def test_400_layers_compile_on_every_other_kind_of_target(target: str) -> None:
    program = hipdnn_mlir.compile(MODELS["dense"](400), target=target)
    assert sum(array.shape == (WIDTH, WIDTH) for array in program.weights.values()) == 400


def test_operands_come_first_when_a_graph_is_deep_and_shared() -> None:
    # 2 ** 5000 paths lead to node 0
    order = operands_first(5000, lambda node: [node - 1, max(node - 2, 0)] if node else [])
    assert order == [*range(5001)]
