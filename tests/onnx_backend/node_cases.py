"""The node cases of the installed onnx package."""

from __future__ import annotations

import atexit
import functools
import os
import pickle
import tempfile
from pathlib import Path

from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_node_model_tests

_FILE = "HIPDNN_NODE_CASES"


@functools.cache
def node_cases() -> dict[str, TestCase]:
    """The cases by name. Making them takes seconds: once for a process and all that it starts afterwards, which find them in a file."""
    if kept := os.environ.get(_FILE):
        cases: dict[str, TestCase] = pickle.loads(Path(kept).read_bytes())
        return cases
    cases = {case.name: case for case in load_node_model_tests()}
    with tempfile.NamedTemporaryFile(prefix="node_cases_", delete=False) as file:
        atexit.register(Path(file.name).unlink)
        pickle.dump(cases, file)
    os.environ[_FILE] = file.name
    return cases
