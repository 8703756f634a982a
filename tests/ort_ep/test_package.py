"""What the package offers beside the library."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from hipdnn_mlir_runtime import ort_ep

from .sessions import placed_nodes, reference, register
from .small_models import convolution, inputs_for


def test_helpers_follow_the_conventions() -> None:
    assert Path(ort_ep.get_library_path()).is_absolute()
    assert ort_ep.get_ep_names() == [ort_ep.get_ep_name()]
    assert ort_ep.get_ep_name().endswith("ExecutionProvider")


@pytest.mark.parametrize("device", ["cpu", "gpu", None])
def test_one_call_makes_a_session_ready(device, tmp_path) -> None:
    register()  # the virtual GPU is on offer
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    ort_ep.add_to_session_options(options, {"cache_dir": str(tmp_path)}, device=device)
    model = convolution()
    session = ort.InferenceSession(model.SerializeToString(), sess_options=options)
    assert len(placed_nodes(session)[0]) == 2
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)


FRESH = """
import onnxruntime as ort; from hipdnn_mlir_runtime import ort_ep
for device in (None, "cpu"):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 3
    ort_ep.add_to_session_options(options, {"placement": "maximal"}, device=device)
    prefix = "ep." + ort_ep.get_ep_name().lower() + "."
    print(options.get_session_config_entry(prefix + "threads"), options.get_session_config_entry(prefix + "placement"))
try:
    ort_ep.add_to_session_options(ort.SessionOptions(), device="gpu")
except ValueError as error:
    print(error)
"""


def test_fresh_process_registers_once_and_hands_threads_on() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", FRESH], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[:2] == ["3 maximal", "3 maximal"], done.stderr
    assert "no device of the kind 'gpu'" in done.stdout
