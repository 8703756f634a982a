"""Whole networks run in ONNX Runtime with every node on the provider, and equal the CPU provider."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import light
import models
from light_models import light_models
from ort_ep import sessions

pytestmark = pytest.mark.slow

Build = Callable[[], onnx.ModelProto]

SMALL = {
    "mlp": models.mlp,
    "resnet-small": lambda: models.resnet(2),
    "mobilenet-small": lambda: models.mobilenet_v2(
        2, 32, rows=((1, 8, 1, 1), (4, 12, 2, 2)), stem=8, head=32, classes=10
    ),
    "encoder-small": lambda: models.encoder(2, 2, 16, 32, 4, 64),
    "encoder-odd-erf": lambda: models.encoder(1, 1, 7, 24, 3, 40, gelu="erf"),
}
NO_CACHE = {"cache_limit_mb": "0"}
"""Programs hold the weights, hundreds of megabytes of them."""


def feeds_for(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return standard normal inputs, except for an additive mask that hides a quarter of the positions."""
    rng = np.random.default_rng(0)
    dims = {port.name: [dim.dim_value for dim in port.type.tensor_type.shape.dim] for port in model.graph.input}
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in dims.items()}
    if "mask" in feeds:
        feeds["mask"] = np.where(rng.random(feeds["mask"].shape) < 0.25, -1e4, 0).astype(np.float32)
    return feeds


def run_wholly_placed(model: onnx.ModelProto, cache_dir: Path, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the provider's output, which ran every node in one program, and the CPU provider's."""
    feeds = feeds_for(model)
    session = sessions.make_session(model, cache_dir, kind=kind, options=NO_CACHE, wholly=True)
    on_ep, elsewhere = sessions.placed_nodes(session)
    assert (len(on_ep), elsewhere) == (sessions.count_nodes(model), [])
    assert len(sessions.partitions(session)) == 1
    (got,), (want,) = session.run(None, feeds), sessions.reference(model, feeds)
    return got, want


@pytest.mark.parametrize("kind", sessions.KINDS)
@pytest.mark.parametrize("build", SMALL.values(), ids=SMALL.keys())
def test_small_network_equals_the_cpu_provider_on_either_device(build: Build, kind: str, tmp_path: Path) -> None:
    got, want = run_wholly_placed(build(), tmp_path, kind)
    assert want.std() > 0.1
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("path", light_models("resnet50", "shufflenet", "squeezenet"))
def test_light_model_equals_the_cpu_provider_when_weights_are_random(path: Path, tmp_path: Path) -> None:
    got, want = run_wholly_placed(light.with_random_weights(onnx.load(path)), tmp_path, "cpu")
    assert got.std() > 1e-4
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)
