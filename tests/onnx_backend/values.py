"""Inputs and outputs of node cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper


def to_array(value: Any) -> Any:
    """Return a case's value as an array where it is a tensor or a NumPy scalar."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value
