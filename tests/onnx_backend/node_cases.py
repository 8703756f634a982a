"""The node cases of the installed onnx package."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_node_model_tests
from onnx.reference import ReferenceEvaluator

_KEPT = Path(__file__).parents[2] / "build" / f"node_cases-{onnx.__version__}-{np.__version__}.pickle"
_DRAWS = frozenset({"Bernoulli", "RandomUniformLike"})


@functools.cache
def node_cases() -> dict[str, TestCase]:
    """The cases by name. Making them takes seconds: other processes, and later ones, find them in a file."""
    if _KEPT.is_file():
        known: dict[str, TestCase] = pickle.loads(_KEPT.read_bytes())
        return _seeded(known)
    cases = {case.name: case for case in load_node_model_tests()}
    _KEPT.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=_KEPT.parent, delete=False) as file:
        pickle.dump(cases, file)
    Path(file.name).replace(_KEPT)
    return _seeded(cases)


def _seeded(cases: dict[str, TestCase]) -> dict[str, TestCase]:
    """The cases, where a seed decides the numbers with those of onnx's reference implementation: the stated ones are of no seed.

    The cases of Bernoulli call their numbers informational.
    """
    for name, case in cases.items():
        drawing = next((node for node in case.model.graph.node if node.op_type in _DRAWS), None)
        if drawing is not None and any(attribute.name == "seed" for attribute in drawing.attribute):
            data_sets = [(inputs, _results(case.model, inputs)) for inputs, _ in case.data_sets]
            cases[name] = dataclasses.replace(case, data_sets=data_sets)
    return cases


def _results(model: onnx.ModelProto, inputs: Any) -> list[Any]:
    names = [value.name for value in model.graph.input]
    return list(ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))))
