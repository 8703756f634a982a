"""Versions of this package and of the libraries that its programs are made with, without importing any of them."""

import importlib.metadata
from functools import cache

_DISTRIBUTIONS = {"hipdnn_mlir": "hipdnn-mlir", "torch_mlir": "torch-mlir", "onnx": "onnx"}


def producers() -> dict[str, str]:
    """Versions of what makes a program; "unknown" for what is not installed as a distribution."""
    return {key: _version(name) for key, name in _DISTRIBUTIONS.items()}


@cache
def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
