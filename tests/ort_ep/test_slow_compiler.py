"""A session that waits for the compiler says so, once, in a line that users see by default."""

from __future__ import annotations

import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest

from .small_models import alternating

SESSION = """
import sys
import onnxruntime as ort
from hipdnn_mlir_runtime import ort_ep
model, python, *settings = sys.argv[1:]
options = ort.SessionOptions()
ort_ep.add_to_session_options(options, {"python": python, "placement": "maximal", **dict(text.split("=") for text in settings)})
ort.InferenceSession(model, sess_options=options)
"""


def lines_of_a_session(model: Path, python: Path, *settings: str) -> list[str]:
    """What the log says of the compiler, at ONNX Runtime's default level."""
    arguments = [sys.executable, "-c", SESSION, str(model), str(python), *settings]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=300)
    return [line for line in done.stderr.splitlines() if "takes longer" in line]


@pytest.mark.slow
def test_a_long_session_says_so_once_and_the_next_is_silent_where_there_is_a_cache(tmp_path: Path) -> None:
    model, slow_python, cache = tmp_path / "model.onnx", tmp_path / "python", tmp_path / "cache"
    onnx.save(alternating(), model)  # four programs
    slow_python.write_text(f'#!/bin/sh\nsleep 6\nexec {shlex.quote(sys.executable)} "$@"\n')
    slow_python.chmod(0o755)
    with ThreadPoolExecutor() as pool:  # both sleep at the same time
        first, without = (
            pool.submit(lines_of_a_session, model, slow_python, option)
            for option in (f"cache_dir={cache}", "cache_limit_mb=0")
        )
    (line,) = first.result()
    assert f"compiling for target 'host' takes longer than 5 s; later sessions find the result in {cache}" in line
    assert "W:onnxruntime" in line
    assert lines_of_a_session(model, slow_python, f"cache_dir={cache}") == []
    (line,) = without.result()
    assert "no cache is used, so each session takes as long" in line
