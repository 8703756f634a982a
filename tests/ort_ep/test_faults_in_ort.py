"""What the system refuses to a session of ONNX Runtime: its nodes run on the CPU provider, or nothing is kept."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from .sessions import make_session, placed_nodes, reference, session_options
from .small_models import convolution, inputs_for, many_weights

FILE_LIMIT = 8192


@contextmanager
def file_limit(most: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_model_larger_than_a_file_may_be_runs_on_the_cpu_with_one_warning(tmp_path: Path, capfd) -> None:
    model = many_weights()
    settings = session_options(tmp_path, options={"compiler": "subprocess"})
    settings.log_severity_level = 2
    with file_limit(FILE_LIMIT):
        session = onnxruntime.InferenceSession(model.SerializeToString(), sess_options=settings)
    (warning,) = (line for line in capfd.readouterr().err.splitlines() if "all nodes run on the CPU: " in line)
    assert f"files may have {FILE_LIMIT} (ulimit -f): raise that limit" in warning
    assert placed_nodes(session)[0] == []
    x = inputs_for(model)
    np.testing.assert_array_equal(session.run(None, x)[0], reference(model, x)[0])


# A process of its own, whose compiler has the limit, too.
_LIMITED = """
import resource, sys
import onnxruntime
from tests.ort_ep.sessions import session_options
from tests.ort_ep.small_models import convolution
model, settings = convolution(), session_options(sys.argv[1], options={"compiler": "subprocess"})
resource.setrlimit(resource.RLIMIT_FSIZE, (2 * model.ByteSize(),) * 2)
onnxruntime.InferenceSession(model.SerializeToString(), sess_options=settings)
"""


def test_program_larger_than_a_file_may_be_names_the_limit(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[2])])}
    command = [sys.executable, "-P", "-c", _LIMITED, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert re.search(r"File too large; raise .* \(ulimit -f\)$", done.stderr.strip()), done.stderr


WITHOUT = {
    "a home": {"HOME": "", "XDG_CACHE_HOME": ""},
    "a temporary folder": {"TMPDIR": "/none"},
}


@pytest.mark.parametrize("folder", WITHOUT)
def test_session_runs_without(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in WITHOUT[folder].items():
        monkeypatch.setenv(name, value)
    model = convolution()
    session = make_session(model, "", options={"compiler": "subprocess"})
    assert placed_nodes(session)[1] == []
    x = inputs_for(model)
    np.testing.assert_allclose(session.run(None, x)[0], reference(model, x)[0], rtol=1e-5, atol=1e-5)
