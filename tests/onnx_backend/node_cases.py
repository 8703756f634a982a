"""The node cases of the installed onnx package."""

from __future__ import annotations

import functools
import pickle
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_node_model_tests

_KEPT = Path(__file__).parents[2] / "build" / f"node_cases-{onnx.__version__}-{np.__version__}.pickle"


@functools.cache
def node_cases() -> dict[str, TestCase]:
    """The cases by name. Making them takes seconds: other processes, and later ones, find them in a file."""
    if _KEPT.is_file():
        known: dict[str, TestCase] = pickle.loads(_KEPT.read_bytes())
        return known
    cases = {case.name: case for case in load_node_model_tests()}
    _KEPT.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=_KEPT.parent, delete=False) as file:
        pickle.dump(cases, file)
    Path(file.name).replace(_KEPT)
    return cases
