"""Causal masks that a model has for a new text, and for one token of an old one, but not for several.

onnxruntime-genai's model builder writes attention out where it does not use `GroupQueryAttention` (f16 and bf16 with `-e cpu`). It
expands a mask of s x s elements to s x total: that is defined where total is s, or s is 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.evaluate import Array


def widen_square_masks(graph: onnx.GraphProto) -> None:
    """Let the causal mask of s new tokens have as many columns as there are keys: they all see what is before them.

    Before: `Expand(Unsqueeze*(Where(r < Reshape(r + 1), 0, ConstantOfShape([s, s]))), [batch, 1, s, total])`, where r = Range(0, s, 1).
    After: `Expand(Unsqueeze*(Where(Range(0, total, 1) < Reshape(r + 1) + (total - s), 0, fill)), [batch, 1, s, total])`.
    Where the first is defined, the second is the same.

    Args:
        graph: nodes in order; modified.
    """
    values = _Values(graph)
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        mask = values.square_mask(node) if node.op_type == "Expand" else None
        if mask is not None:
            nodes += _widened(mask, node, graph)
        nodes.append(node)
    if len(nodes) != len(graph.node):
        del graph.node[:]
        graph.node.extend(nodes)


@dataclass(frozen=True)
class _SquareMask:
    """A mask that an Expand reads.

    Attributes:
        count: the value that is s.
        rows: r + 1 as a column.
        shown: the constant for what is seen.
        hidden: the number for what is not, of one element.
        moves: the nodes behind the mask, from the first.
    """

    count: str
    rows: str
    shown: str
    hidden: Array
    moves: list[onnx.NodeProto]


class _Values:
    """What makes the values of a graph, and what its constants are."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._makers: dict[str, onnx.NodeProto] = {name: node for node in graph.node for name in node.output}
        self._constants: dict[str, onnx.TensorProto] = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self._constants[node.output[0]] = node.attribute[0].t

    def square_mask(self, expand: onnx.NodeProto) -> _SquareMask | None:
        """The mask that an Expand reads, if it is one of s x s elements."""
        moves: list[onnx.NodeProto] = []
        where = self._maker(expand, 0)
        while where.op_type == "Unsqueeze":
            moves.insert(0, where)
            where = self._maker(where, 0)
        less, fill = self._maker(where, 0, "Where"), self._maker(where, 2, "Where")
        counted, column = self._maker(less, 0, "Less"), self._maker(less, 1, "Less")
        next_one = self._maker(column, 0, "Reshape")
        is_square = (
            counted.op_type == "Range"
            and fill.op_type == "ConstantOfShape"
            and next_one.op_type == "Add"
            and next_one.input[0] == less.input[0]
            and self._is(next_one.input[1], 1)
            and self._is(where.input[1], 0)
            and self._is(counted.input[0], 0)
            and self._is(counted.input[2], 1)
        )
        if not is_square or not fill.attribute:
            return None
        hidden = numpy_helper.to_array(fill.attribute[0].t).reshape(())
        return _SquareMask(counted.input[1], less.input[1], where.input[1], hidden, moves)

    def _maker(self, node: onnx.NodeProto, index: int, operator: str = "") -> onnx.NodeProto:
        """What makes an operand of a node of an operator; an empty node where nothing does."""
        if node.op_type not in ("", operator or node.op_type) or index >= len(node.input):
            return onnx.NodeProto()
        return self._makers.get(node.input[index], onnx.NodeProto())

    def _is(self, name: str, number: int) -> bool:
        tensor = self._constants.get(name)
        return (
            tensor is not None and np.prod(tensor.dims) == 1 and bool((numpy_helper.to_array(tensor) == number).all())
        )


def _widened(mask: _SquareMask, expand: onnx.NodeProto, graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a mask of s x total elements, which the Expand reads from now on."""
    prefix = f"{expand.output[0]}.widened"

    def constant(name: str, value: Array) -> str:
        graph.initializer.append(numpy_helper.from_array(value, f"{prefix}.{name}"))
        return f"{prefix}.{name}"

    def node(operator: str, operands: list[str], name: str) -> onnx.NodeProto:
        return onnx.helper.make_node(operator, operands, [f"{prefix}.{name}"], name=expand.name)

    total, past, columns, ends = (f"{prefix}.{name}" for name in ("total", "past", "columns", "ends"))
    zero, one, last = (constant(name, np.array(value, np.int64)) for name, value in (("0", 0), ("1", 1), ("-1", -1)))
    yield node("Gather", [expand.input[1], last], "total")
    yield node("Sub", [total, mask.count], "past")
    yield node("Range", [zero, total, one], "columns")
    yield node("Add", [mask.rows, past], "ends")
    yield node("Less", [columns, ends], "is_shown")
    yield node("Where", [f"{prefix}.is_shown", mask.shown, constant("hidden", mask.hidden)], "mask")
    value = f"{prefix}.mask"
    for index, move in enumerate(mask.moves):
        copy = node("Unsqueeze", [value, *move.input[1:]], f"moved_{index}")
        yield copy
        value = copy.output[0]
    expand.input[0] = value
