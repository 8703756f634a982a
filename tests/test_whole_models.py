"""Whole networks with random weights equal ONNX Runtime, in as few steps as their structure asks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
import models

Build = Callable[[], onnx.ModelProto]


def feeds_for(reference: ort.InferenceSession) -> dict[str, np.ndarray]:
    """Return standard normal inputs, except for an additive mask that hides a quarter of the positions."""
    rng = np.random.default_rng(0)
    feeds = {port.name: rng.standard_normal(port.shape, np.float32) for port in reference.get_inputs()}
    if "mask" in feeds:
        feeds["mask"] = np.where(rng.random(feeds["mask"].shape) < 0.25, -1e4, 0).astype(np.float32)
    return feeds


def run_both(model: onnx.ModelProto) -> tuple[hipdnn_mlir.Session, np.ndarray, np.ndarray]:
    """Return the session, its output and ONNX Runtime's."""
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = feeds_for(reference)
    session = hipdnn_mlir.compile(model).session()
    (got,), (want,) = session.run(None, feeds), reference.run(None, feeds)
    assert want.std() > 0.1
    return session, got, want


def copies_after_input(session: hipdnn_mlir.Session) -> list[str]:
    """Return the steps that only move data, but for the first step, which may bring the input to another layout."""
    return [step["name"] for step in session.steps[1:] if step["kind"] == "copy" or step["summary"] == "copy"]


@pytest.mark.parametrize(
    ("build", "layers"),
    [
        pytest.param(lambda: models.mlp(), 2, id="mlp"),
        pytest.param(lambda: models.mlp(1, (7, 5, 3)), 2, id="mlp-odd"),
        pytest.param(lambda: models.resnet(2), 12, id="resnet-small"),
        pytest.param(models.resnet50, 56, id="resnet50"),
        pytest.param(
            lambda: models.mobilenet_v2(2, 32, rows=((1, 8, 1, 1), (4, 12, 2, 2)), stem=8, head=32, classes=10),
            12,
            id="mobilenet-small",
        ),
        pytest.param(models.mobilenet_v2, 54, id="mobilenet_v2"),
    ],
)
def test_classifier_equals_onnxruntime_in_one_step_per_layer_when_compiled(build: Build, layers: int) -> None:
    session, got, want = run_both(build())
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    assert not copies_after_input(session)
    assert layers <= session.stats.steps <= layers + 1
    assert session.stats.arena_bytes <= 1.1 * session.stats.largest_live_bytes


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: models.encoder(2, 2, 16, 32, 4, 64), id="small"),
        pytest.param(lambda: models.encoder(1, 1, 7, 24, 3, 40, gelu="erf"), id="odd-erf"),
        pytest.param(lambda: models.encoder(2, gelu="erf"), id="base-2-layers-erf"),
        pytest.param(models.encoder, id="base", marks=pytest.mark.nightly),
    ],
)
def test_encoder_equals_onnxruntime_without_copies_when_compiled(build: Build) -> None:
    session, got, want = run_both(build())
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-4)
    assert not copies_after_input(session)
    assert session.stats.arena_bytes <= 1.1 * session.stats.largest_live_bytes
