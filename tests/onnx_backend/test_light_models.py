"""The nine image classifiers that the onnx package ships: as they are, and with random weights against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import hipdnn_mlir
import light

pytestmark = pytest.mark.slow

MODELS = light.paths()


def test_all_light_models_are_present_when_onnx_is_installed() -> None:
    assert len(MODELS) == 9


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_light_model_equals_onnxruntime_when_weights_are_random(path: Path) -> None:
    model = light.with_random_weights(onnx.load(path))
    options = ort.SessionOptions()
    options.log_severity_level = 3
    reference = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (port,) = reference.get_inputs()
    session = hipdnn_mlir.compile(model).session()
    for seed in range(2):
        feeds = {port.name: np.random.default_rng(seed).random(port.shape, np.float32)}
        (got,), (want,) = session.run(None, feeds), reference.run(None, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_light_model_gives_its_recorded_output_when_run_as_shipped(path: Path) -> None:
    recorded = onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb"))
    session = hipdnn_mlir.compile(path).session()
    (port,) = session.inputs
    # The package's convention for these files: the input counts up from 0 to 1.
    size = int(np.prod(port.shape))
    image = (np.arange(size, dtype=np.float32) / size).reshape(port.shape)
    (got,) = session.run(None, {port.name: image})
    np.testing.assert_allclose(got, numpy_helper.to_array(recorded), rtol=1e-3, atol=1e-5)
