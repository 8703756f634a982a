"""What holds at the sample points of dynamic dimensions and need not elsewhere: comparisons that a model makes of its own sizes."""

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import onnx

from ...dynamic.facts import Arrays, Assumption, Computed, Fact, Values, varies
from ...ops.evaluate import Array
from .cuts import is_whole, untold

_ALL_VARY = frozenset({"Add", "Sub", "Mul", "Neg", "Concat", "Identity", "Shape", "Size"})
"""Operators whose result is a polynomial of what they read, or its parts."""
_OF_FLOATS = frozenset({"Add", "Sub", "Mul", "Cast", "Floor", "Ceil", "Round"})
"""Operators that make whole numbers of whole floats."""
_EXACT = 2**24
"""Whole numbers that floats of 32 bits have, up to this one."""
_SMALL = 2
"""Bytes of integers that sizes may be too large for."""
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
    if any(arrays[0].dtype.kind == "f" for arrays in inputs if varies(arrays)):
        return _of_floats(node, inputs, outputs[0])
    if kind == "Cast":
        return _cast(node, inputs[0], outputs[0])
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
            raise untold(node, "gives the same of dynamic dimensions at every sample size", 2 * _divisor(inputs))
        return _divided(node, inputs)
    return None


def _columns(arrays: Arrays, shape: tuple[int, ...]) -> list[Values]:
    """Per element the numbers at the sample points."""
    rows = [map(int, np.broadcast_to(array, shape).reshape(-1).tolist()) for array in arrays]
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


def _cast(node: onnx.NodeProto, operand: Arrays, result: Arrays) -> list[Fact] | None:
    """That numbers fit into a small type, and which of them are 0 where they become truth values."""
    dtype = result[0].dtype
    columns = _columns(operand, result[0].shape)
    if dtype.kind == "b":
        zero = (0,) * len(operand)
        pairs = zip(columns, result[0].reshape(-1).tolist(), strict=True)
        return None if varies(result) else [Assumption("!=" if true else "==", c, zero, node.name) for c, true in pairs]
    if dtype.kind not in "iu" or dtype.itemsize > _SMALL:
        return []
    return [Assumption("<=", column, (int(np.iinfo(dtype).max),) * len(column), node.name) for column in columns]


def _of_floats(node: onnx.NodeProto, inputs: Sequence[Arrays], result: Arrays) -> list[Fact] | None:
    """That a size as a float of 32 bits, and what is made of it and numbers, is not rounded; other floats are left to each run."""
    kind = node.op_type
    (floats, *others) = sorted(inputs, key=varies, reverse=True)
    if floats[0].dtype.itemsize < np.dtype(np.float32).itemsize or any(map(varies, others)):
        return None
    if kind == "Identity" or (kind in _FIRST_VARIES and floats is inputs[0]):
        return []
    if kind not in _OF_FLOATS or not all(map(is_whole, chain.from_iterable(inputs))):
        return None
    if kind == "Cast" and result[0].dtype.kind == "f":
        return None
    facts = _cast(node, floats, result) if kind == "Cast" else []
    made = [arrays for arrays in (floats, result) if arrays[0].dtype.kind == "f"]
    columns = chain.from_iterable(_columns(arrays, arrays[0].shape) for arrays in made)
    exact = [Assumption("<=", column, (_EXACT,) * len(column), node.name) for column in columns if len(set(column)) > 1]
    return None if facts is None else [*facts, *exact]


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


def _divisor(inputs: Sequence[Arrays]) -> int:
    """The largest number by which sizes are divided; 0 where it is a size, too."""
    return 0 if varies(inputs[1]) else int(inputs[1][0].max(initial=0))


def _divided(node: onnx.NodeProto, inputs: Sequence[Arrays]) -> list[Fact] | None:
    shape = np.broadcast_shapes(*(arrays[0].shape for arrays in inputs))
    pairs = list(zip(*(_columns(arrays, shape) for arrays in inputs), strict=True))
    if any(min(a) < 0 or min(b) <= 0 for a, b in pairs):
        return None
    operator = "floordiv" if node.op_type == "Div" else "mod"
    return [Computed(operator, a, b, node.name) for a, b in pairs]
