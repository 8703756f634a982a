"""The image classifiers that the onnx package ships, as they are; `ort_ep.test_models` gives them, or the others, random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hipdnn_mlir
import light
from light_models import light_models

pytestmark = pytest.mark.slow


def test_all_light_models_are_present_when_onnx_is_installed() -> None:
    assert len(light.paths()) == 9


@pytest.mark.parametrize("path", light_models("bvlc_alexnet", "inception_v1", "inception_v2", "squeezenet"))
def test_light_model_gives_its_recorded_output_when_run_as_shipped(path: Path) -> None:
    recorded = onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb"))
    session = hipdnn_mlir.compile(path).session()
    (port,) = session.inputs
    # The package's convention for these files: the input counts up from 0 to 1.
    size = int(np.prod(port.shape))
    image = (np.arange(size, dtype=np.float32) / size).reshape(port.shape)
    (got,) = session.run(None, {port.name: image})
    np.testing.assert_allclose(got, numpy_helper.to_array(recorded), rtol=1e-3, atol=1e-5)
