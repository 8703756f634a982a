"""The provider by its name in ``InferenceSession(providers=...)``, as ONNX Runtime's own providers are asked for."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import onnxruntime as ort
import pytest

import hipdnn_mlir_runtime

from .sessions import EP_NAME, reference, register
from .small_models import convolution, inputs_for

BY_NAME = tuple(int(part) for part in ort.__version__.split(".")[:2]) >= (1, 25)
needs_names = pytest.mark.skipif(
    not BY_NAME, reason=f"ONNX Runtime {ort.__version__} takes no registered provider by name"
)


DIMS: list[int | str] = ["batch", 3, 32, 32]


def make(options: dict[str, object], settings: ort.SessionOptions | None = None) -> ort.InferenceSession:
    register()
    providers = [(EP_NAME, options), "CPUExecutionProvider"]
    session = ort.InferenceSession(convolution(DIMS).SerializeToString(), settings, providers=providers)
    session.disable_fallback()
    return session


@needs_names
def test_options_beside_the_name_have_their_effect(tmp_path) -> None:
    model = convolution(DIMS)
    x = inputs_for(model, batch=2)
    (want,) = reference(model, x)
    errors = {}
    for precision in ("model", "bf16"):
        session = make({"precision": precision, "cache_dir": tmp_path, "threads": 1})
        assert session.get_providers() == [EP_NAME, "CPUExecutionProvider"]
        (got,) = session.run(None, x)
        errors[precision] = np.abs(got - want).max() / np.abs(want).max()
    assert errors["model"] < 1e-5
    assert 1e-4 < errors["bf16"] < 2e-2


@needs_names
def test_dimension_fixed_in_the_session_options_is_static(tmp_path) -> None:
    settings = ort.SessionOptions()
    settings.add_free_dimension_override_by_name("batch", 2)
    session = make({"cache_dir": tmp_path}, settings)
    (program,) = tmp_path.glob("*.hipdnn")
    with hipdnn_mlir_runtime.load(program) as compiled:
        assert tuple(compiled.inputs[0].shape) == (2, 3, 32, 32)
    x = inputs_for(convolution(DIMS), batch=2)
    np.testing.assert_allclose(session.run(None, x)[0], reference(convolution(DIMS), x)[0], rtol=1e-5, atol=1e-5)


@needs_names
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precison": "bf16"}, r"HipDNNExecutionProvider: unknown option 'precison': expected one of 'threads'.*'precision'"),
        ({"precision": "fp16"}, "HipDNNExecutionProvider: option 'precision' = 'fp16': expected one of 'model', 'tf32', 'f16', 'bf16'"),
        ({"threads": "many"}, "HipDNNExecutionProvider: option 'threads' = 'many': expected a whole number from 0 to 4096"),
        ({"strict": True}, "HipDNNExecutionProvider: option 'strict' = 'True': expected '0' or '1'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)  # fmt: skip
def test_wrong_option_is_an_error_and_no_session_without_the_provider(options, message) -> None:
    with pytest.raises(Exception, match=message):
        make(options)


FRESH = """
import sys, onnxruntime as ort; from hipdnn_mlir_runtime import ort_ep
name, model = sys.argv[1], "examples/digits/digits.onnx"
if name: ort.register_execution_provider_library(name, ort_ep.get_library_path())
try:
    for _ in range(2): ort_ep.register()
except RuntimeError as error:
    sys.exit(str(error))
session = ort.InferenceSession(model, providers=["HipDNNExecutionProvider", "CPUExecutionProvider"])
kinds = {device.device.type.name for device in ort.get_ep_devices() if device.ep_name == ort_ep.get_ep_name()}
print(session.get_providers()[0], session.get_input_epdevices()[0].device.type.name, *sorted(kinds))
"""


def fresh(registered_as: str, cwd, cache) -> subprocess.CompletedProcess[str]:
    """Register and make a session in a process where every warning is an error."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "XDG_CACHE_HOME": str(cache),
    }
    command = [sys.executable, "-W", "error", "-P", "-c", FRESH, registered_as]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@needs_names
@pytest.mark.parametrize("registered_as", ["", "hipdnn.virtual"])
def test_best_device_is_taken_when_none_is_named(registered_as, pytestconfig: pytest.Config, tmp_path) -> None:
    done = fresh(registered_as, pytestconfig.rootpath, tmp_path)
    told = [line for line in done.stderr.splitlines() if "takes longer than" not in line]  # the machine may be busy
    assert told == []
    name, taken, *offered = done.stdout.split()
    assert name == EP_NAME
    assert taken == ("GPU" if "GPU" in offered else "CPU")
    assert registered_as == "" or offered == ["CPU", "GPU"]


@pytest.mark.skipif(BY_NAME, reason=f"ONNX Runtime {ort.__version__} takes registered providers by name")
def test_register_says_what_to_do_where_names_are_not_taken(pytestconfig: pytest.Config, tmp_path) -> None:
    done = fresh("", pytestconfig.rootpath, tmp_path)
    assert done.returncode == 1
    expected = f"ONNX Runtime {ort.__version__} does not take {EP_NAME} by name, 1.25 and later do: use ort_ep.add_to_session_options"
    assert done.stderr.startswith(expected)
