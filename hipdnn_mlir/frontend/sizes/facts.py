"""What holds at the sample points of dynamic dimensions and need not elsewhere: comparisons that a model makes of its own sizes."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx

from hipdnn_mlir_runtime.errors import DynamicDimensionError

from ...dynamic.facts import Arrays, Assumption, Computed, Fact, Values, varies
from ...ops.evaluate import Array

_ALL_VARY = frozenset({"Add", "Sub", "Mul", "Neg", "Concat", "Cast", "Identity", "Shape", "Size"})
"""Operators whose result is a polynomial of what they read, or its parts."""
_FIRST_VARIES = frozenset(
    {"Gather", "GatherElements", "GatherND", "Slice", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Transpose", "Split", "Expand", "Tile",
     "ReduceProd", "ReduceSum", "Pad"}
)  # fmt: skip
"""The same for what they read first; the rest has to be the same at all points."""
_COMPARISONS: dict[str, tuple[str, str, bool]] = {
    "Less": ("<", "<=", False),
    "LessOrEqual": ("<=", "<", False),
    "Greater": ("<", "<=", True),
    "GreaterOrEqual": ("<=", "<", True),
    "Equal": ("==", "!=", False),
}
"""Operator -> its relation, the relation of the operands in reverse order where it does not hold (for Equal, in any), whether they swap."""


def orders(node: onnx.NodeProto) -> bool:
    """Whether a node tells which of two operands is larger. Equal is none: torch-mlir (20261001) makes a constant of it at each size."""
    return node.op_type in _COMPARISONS and node.op_type != "Equal"


def facts_of(node: onnx.NodeProto, inputs: Sequence[Arrays], outputs: Sequence[Arrays]) -> list[Fact] | None:
    """What has to be assumed where a node on sizes is folded, or None where it must not be.

    Args:
        node: the node.
        inputs: what it reads, missing ones left out.
        outputs: what it computes.

    Raises:
        DynamicDimensionError: the sample points do not tell what the result depends on.
    """
    if not any(map(varies, inputs)):
        return []
    kind = node.op_type
    if kind in _ALL_VARY or (kind in _FIRST_VARIES and not any(map(varies, inputs[1:]))):
        return []
    if kind == "Where" and not varies(inputs[0]):
        return []
    if kind in _COMPARISONS:
        return None if varies(outputs[0]) else _compared(node, inputs, outputs[0][0])
    if kind in ("Min", "Max"):
        return _chosen(node, inputs, outputs[0])
    if kind in ("Div", "Mod") and all(arrays[0].dtype.kind in "iu" for arrays in inputs):
        if not varies(outputs[0]):  # at these points by chance; others will tell
            raise DynamicDimensionError(
                "a quotient of dynamic dimensions is the same at every sample size", where=node.name
            )
        return _divided("floordiv" if kind == "Div" else "mod", inputs)
    return None


def _columns(arrays: Arrays, shape: tuple[int, ...]) -> list[Values]:
    """Per element the numbers at the sample points."""
    rows = [np.broadcast_to(array, shape).reshape(-1).tolist() for array in arrays]
    return list(zip(*rows, strict=True))


def _compared(node: onnx.NodeProto, inputs: Sequence[Arrays], result: Array) -> list[Fact]:
    holds, otherwise, swaps = _COMPARISONS[node.op_type]
    pairs = zip(*(_columns(arrays, result.shape) for arrays in inputs), result.reshape(-1).tolist(), strict=True)
    facts: list[Fact] = []
    for a, b, is_true in pairs:
        first, second = (b, a) if swaps else (a, b)
        if is_true:
            facts.append(Assumption(holds, first, second, node.name))
        elif node.op_type == "Equal":
            facts.append(Assumption(otherwise, first, second, node.name))
        else:
            facts.append(Assumption(otherwise, second, first, node.name))
    return facts


def _chosen(node: onnx.NodeProto, inputs: Sequence[Arrays], result: Arrays) -> list[Fact]:
    is_below: Callable[[Values, Values], tuple[Values, Values]] = (
        (lambda chosen, other: (chosen, other)) if node.op_type == "Min" else (lambda chosen, other: (other, chosen))
    )
    operands = [_columns(arrays, result[0].shape) for arrays in inputs]
    facts: list[Fact] = []
    for index, chosen in enumerate(_columns(result, result[0].shape)):
        if node.op_type == "Max" and len(operands) == 2 and all(column[index] != chosen for column in operands):
            facts.append(Computed("max", operands[0][index], operands[1][index]))  # sometimes one, sometimes the other
            continue
        facts += [
            Assumption("<=", *is_below(chosen, column[index]), node.name)
            for column in operands
            if column[index] != chosen
        ]
    return facts


def _divided(operator: str, inputs: Sequence[Arrays]) -> list[Fact] | None:
    shape = np.broadcast_shapes(*(arrays[0].shape for arrays in inputs))
    pairs = list(zip(*(_columns(arrays, shape) for arrays in inputs), strict=True))
    if any(min(a) < 0 or min(b) <= 0 for a, b in pairs):
        return None
    return [Computed(operator, a, b) for a, b in pairs]
