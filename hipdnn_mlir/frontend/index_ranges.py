"""Values of inputs that a model uses as indices: those that whatever they index has elements for."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.strides import Dims
from .shape_inference import attributes_of, static_dims

Range = tuple[int, int]
"""From the first number to the second one, that one excluded."""
ZERO: Range = (0, 1)
"""An index that is valid whatever it is an index of."""


def _along_axis(attributes: Mapping[str, Any], data: Dims, _: Dims) -> int:
    axis: int = attributes.get("axis", 0)
    return data[axis]


def _of_tuples(attributes: Mapping[str, Any], data: Dims, indices: Dims) -> int:
    start = attributes.get("batch_dims", 0)
    return min(data[start : start + indices[-1]], default=1)


_INDEXED: dict[str, Callable[[Mapping[str, Any], Dims, Dims], int]] = {
    **dict.fromkeys(("Gather", "GatherElements", "Scatter", "ScatterElements"), _along_axis),
    **dict.fromkeys(("GatherND", "ScatterND"), _of_tuples),
}
"""Operator -> how many elements its operand 0 has for the indices that are its operand 1."""
_ALL: Sequence[int] | None = None
_KEEPING: dict[str, Sequence[int] | None] = {
    **dict.fromkeys(
        (
            "Cast", "Clip", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Pad", "Reshape", "Slice",
            "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
        ),
        (0,),
    ),
    **dict.fromkeys(("Scatter", "ScatterElements", "ScatterND"), (0, 2)),
    "Where": (1, 2),
    **dict.fromkeys(("Concat", "Max", "Min"), _ALL),
}  # fmt: skip
"""Operator -> the operands whose elements its result has, all of them for _ALL."""
_ARITHMETIC = ("Add", "Sub", "Mul")


def index_ranges(models: Sequence[onnx.ModelProto], inputs: Iterable[str]) -> dict[str, Range]:
    """Valid values of the inputs that reach indices, through moves and arithmetic with constants.

    Args:
        models: One model with the types of its values, at one or more sizes; what differs between them is then ZERO.
        inputs: Names of the inputs in question.
    """
    found = [_Indices(model.graph).ranges() for model in models]
    return common([{name: ranges[name] for name in inputs if name in ranges} for ranges in found])


def common(rows: Sequence[Mapping[str, Range]]) -> dict[str, Range]:
    """What is valid in all cases: a range that is the same in all of them, else ZERO."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: rows[0][name] if all(row.get(name) == rows[0].get(name) for row in rows) else ZERO for name in names}


class _Indices:
    """Follows the indices of a graph back to its inputs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._nodes = list(graph.node)
        self._makers = {name: node for node in graph.node for name in node.output}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        values = (*graph.input, *graph.output, *graph.value_info)
        self._dims = {value.name: static_dims(value) for value in values}
        self._dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}

    def ranges(self) -> dict[str, Range]:
        """The range of each value that has no maker."""
        left = [(node.input[1], (-size, size)) for node in self._nodes for size in self._sizes(node)]
        seen = set(left)
        found: dict[str, Range] = {}
        while left:
            name, (low, high) = left.pop()
            maker = self._makers.get(name)
            if maker is None:
                other = found.get(name, (low, high))
                found[name] = max(low, other[0]), min(high, other[1])
                continue
            more = set(self._wanted(maker, low, high)) - seen
            seen |= more
            left += more
        return {name: _usual(*limits) for name, limits in found.items()}

    def _sizes(self, node: onnx.NodeProto) -> Iterator[int]:
        """How many elements there are for the indices of a node, if it has such; 1 where that is not known."""
        if node.op_type in _INDEXED and not node.domain:
            data, indices = (self._dims.get(name) for name in node.input[:2])
            if data is None or indices is None:
                yield 1
            else:
                yield max(_INDEXED[node.op_type](attributes_of(node), data, indices), 1)

    def _wanted(self, node: onnx.NodeProto, low: int, high: int) -> Iterator[tuple[str, Range]]:
        """Operands of a node, with the range that they need for its results to have the given one."""
        if node.op_type in _KEEPING:
            positions = _KEEPING[node.op_type]
            for position, name in enumerate(node.input):
                # `Where(i < 0, i + n, i)`: what is computed is for other elements than those that are kept.
                is_other = node.op_type == "Where" and self._is_arithmetic(name)
                if name and not is_other and (positions is None or position in positions):
                    yield name, (low, high)
        elif node.op_type in _ARITHMETIC:
            for name, other in (tuple(node.input), tuple(node.input)[::-1]):
                constant = self._constants.get(other)
                if constant is not None and name not in self._constants:
                    yield from (
                        (name, limits) for limits in _before(node, name, numpy_helper.to_array(constant), low, high)
                    )

    def _is_arithmetic(self, name: str) -> bool:
        return name in self._makers and self._makers[name].op_type in _ARITHMETIC


def _before(node: onnx.NodeProto, name: str, constant: Any, low: int, high: int) -> Iterator[Range]:
    """The range of an operand for a result in a range, where the other operand is a constant; nothing where that is not simple."""
    if not constant.size or not np.all(np.isfinite(constant)) or np.any(constant != np.floor(constant)):
        return
    least, greatest = int(constant.min()), int(constant.max())
    if node.op_type == "Add":
        yield low - least, high - greatest
    elif node.op_type == "Sub" and name == node.input[0]:
        yield low + greatest, high + least
    elif node.op_type == "Mul" and least > 0:
        yield -(-low // (greatest if low < 0 else least)), -(-high // (greatest if high > 0 else least))


def _usual(low: int, high: int) -> Range:
    """The values of a range that are not negative, if there are any; ZERO where the range is empty."""
    if max(low, 0) < high:
        return max(low, 0), high
    return (low, high) if low < high else ZERO
