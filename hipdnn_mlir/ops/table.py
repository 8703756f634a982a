"""The op table as a whole: torch op name -> row."""

from . import families  # noqa: F401 - a family enters its rows when it is imported
from .registry import ONNX, ROWS
from .row import OpRow


def find(name: str) -> OpRow | None:
    """The row of an op, or None."""
    return rows().get(name)


def rows() -> dict[str, OpRow]:
    """All rows by op name."""
    return ROWS


CONVERTED = frozenset({"Cast"})
"""Operators with a row of their own for those cases only that torch-mlir's conversion refuses."""


def own_operators() -> list[str]:
    """ONNX operators with a row of their own that torch-mlir's conversion is kept from."""
    names = (name.removeprefix(ONNX) for name in rows() if name.startswith(ONNX))
    return [name for name in names if name not in CONVERTED]
