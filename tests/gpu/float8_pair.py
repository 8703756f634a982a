"""NVIDIA's instruction that rounds two numbers to floats of 8 bits."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


def float8_pair(kind: str, upper: Array, lower: Array) -> Array:
    """Codes of two floats of 8 bits, saturated; NaN has one code."""
    dtype = np.dtype({"e4m3x2": ml_dtypes.float8_e4m3fn, "e5m2x2": ml_dtypes.float8_e5m2}[kind])
    greatest = float(ml_dtypes.finfo(dtype).max)
    codes = [
        np.where(np.isnan(x), np.uint8(0x7F), np.clip(x, -greatest, greatest).astype(dtype).view(np.uint8))
        for x in (upper, lower)
    ]
    return (codes[0].astype(np.uint16) << 8 | codes[1]).view(np.int16)
