"""The digit classifier of the examples, and what ONNX Runtime says of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

import hipdnn_mlir

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS = EXAMPLES / "digits/digits.onnx"
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
Images = npt.NDArray[np.float32]
_BATCH = 60


def compiled(buckets: Sequence[int] = ()) -> hipdnn_mlir.Program:
    """The classifier with an open batch, or with buckets of it."""
    shapes: dict[str, Any] = {"image": ("batch", 1, 8, 8)}
    return hipdnn_mlir.compile(DIGITS, shapes=shapes, buckets={"batch": buckets} if buckets else {})


def digits_of(images: Images) -> npt.NDArray[Any]:
    """What ONNX Runtime gives, whose model takes 60 at once."""
    session = onnxruntime.InferenceSession(DIGITS)
    filled = np.concatenate([images, np.zeros((-len(images) % _BATCH, 1, 8, 8), np.float32)])
    parts = [session.run(None, {"image": filled[at : at + _BATCH]})[0] for at in range(0, len(filled), _BATCH)]
    return np.concatenate(parts)[: len(images)]
