"""What a model assumes of its own sizes at the sample points, and need not hold elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ops.evaluate import Array

Values = tuple[int, ...]
"""One number per sample point."""


@dataclass(frozen=True)
class Assumption:
    """`a relation b`, with the numbers at the sample points.

    Attributes:
        relation: `<`, `<=`, `==` or `!=`.
        node: the ONNX node that compares.
    """

    relation: str
    a: Values
    b: Values
    node: str


@dataclass(frozen=True)
class Computed:
    """`operator(a, b)` is computed, with `operator` one of the expressions'.

    Attributes:
        node: the ONNX node that computes it, where there is one.
    """

    operator: str
    a: Values
    b: Values
    node: str = ""


Fact = Assumption | Computed
Arrays = Sequence[Array]
"""One array per sample point."""


def varies(arrays: Arrays) -> bool:
    """Whether a value is not the same at all sample points."""
    return any(array is not arrays[0] and not np.array_equal(array, arrays[0]) for array in arrays)
