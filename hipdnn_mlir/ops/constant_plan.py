"""The arithmetic on weights that is done at compile time, free of MLIR."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hipdnn_mlir_runtime.errors import PassError, Reject

from .evaluate import Array, evaluate
from .spec import OpView


@dataclass
class ConstantPlan:
    """What to compute from the weights, in order: later passes erase the function it was read from, and the weights may come later.

    Attributes:
        arguments: weight -> number of its value.
        literals: number of a value -> array.
        ops: operations in order, each with the number of its result; the keys of their operands are such numbers.
        results: constant -> number of its value.
    """

    arguments: dict[str, int] = field(default_factory=dict)
    literals: dict[int, Array] = field(default_factory=dict)
    ops: list[tuple[OpView, int]] = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)

    def evaluate(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """The weights with the results added under their names.

        Raises:
            PassError: an operation is not evaluated, which is a defect.
        """
        values = self.literals | {number: weights[name] for name, number in self.arguments.items()}
        for op, number in self.ops:
            result = evaluate(op, values)
            if isinstance(result, Reject):
                raise PassError(f"a constant cannot be evaluated: {result}", pass_name="evaluate-constants")
            values[number] = result
        return dict(weights) | {name: np.ascontiguousarray(values[n]) for name, n in self.results.items()}

    def stored_literals(self) -> dict[str, Array]:
        """The constants that are literals of the model: all that may depend on dynamic dimensions."""
        return {name: self.literals[number] for name, number in self.results.items() if number in self.literals}
