"""Inputs and outputs of node cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.runner import Runner

_ATOL = {"float32": 1e-6, "float64": 1e-9, "float16": 1e-3, "bfloat16": 1e-2}
"""Smallest absolute tolerance per type: sums near zero round differently in another order."""


def to_array(value: Any) -> Any:
    """Return a case's value as an array where it is a tensor or a NumPy scalar."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def assert_similar(outputs: Sequence[Any], expected: Sequence[Any], rtol: float, atol: float) -> None:
    """Compare as onnx's runner does, the tolerances being a case's own.

    Raises:
        AssertionError: They differ.
    """
    np.testing.assert_equal(len(outputs), len(expected))
    for output, reference in zip(outputs, expected, strict=True):
        least = _ATOL.get(getattr(reference, "dtype", np.dtype("V")).name, 0.0)
        Runner.assert_similar_outputs([reference], [output], rtol, max(atol, least))
