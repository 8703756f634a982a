"""Products of which known positions are read: columns that none of them names are not computed.

DeBERTa multiplies queries with the keys of 512 or 1024 relative positions, of which a text of 128 words has 255.
"""

from collections import Counter

import numpy as np
import onnx

from ..ops.evaluate import Array
from .graph_edits import GraphEdits
from .shape_inference import attributes_of
from .subgraphs import all_nodes, reads

_SHARE = 2
"""At least one column in so many is left out, or nothing changes."""
_TOGETHER = 8
"""Columns that matrix units read at once."""
_MATRIX = 2
"""Dims."""


def without_unread_columns(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model whose products have the columns alone that GatherElements reads.

    Before: `y = GatherElements<axis = -1>(MatMul(x, w[64, 1024]), at)` with known positions from 385 to 639.
    After: `y = GatherElements<axis = -1>(MatMul(x, w[:, 384:640]), at - 384)`; w is cut in front of transposes and repetitions.

    Args:
        model: with static dims and inferred shapes, which are those of the result, too; not modified.
    """
    if all(node.op_type != "GatherElements" for node in model.graph.node):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    products = _Products(made.graph)
    for node in list(made.graph.node):
        if node.op_type == "GatherElements":
            products.cut(node)
    products.edits.finish()
    return made


class _Products:
    """The products of a graph, which are cut one after the other."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.edits = GraphEdits(graph)
        self._readers = Counter(name for node in all_nodes(graph) for name in reads(node))
        self._readers.update(value.name for value in graph.output)

    def cut(self, gather: onnx.NodeProto) -> None:
        """Leave out the columns that a node does not read, where what it reads is a product of its own."""
        product = self.edits.makers.get(gather.input[0])
        if product is None or product.op_type != "MatMul" or self._readers[gather.input[0]] != 1:
            return
        dims, positions = self.edits.dims(product.output[0]), self._positions(gather.input[1])
        if not dims or attributes_of(gather).get("axis", 0) not in (-1, len(dims) - 1):
            return
        if positions is None or not positions.size or len(self.edits.dims(product.input[1]) or ()) < _MATRIX:
            return
        first, last = int(positions.min()), int(positions.max())
        read = range(first // _TOGETHER * _TOGETHER, min((last // _TOGETHER + 1) * _TOGETHER, dims[-1]))
        if first < 0 or last >= dims[-1] or len(read) * _SHARE > dims[-1]:
            return
        product.input[1] = self._cut_value(product.input[1], -1, read)
        self.edits.set_size(product.output[0], -1, len(read))
        gather.input[1] = self._moved(gather.input[1], positions, read.start)

    def _positions(self, name: str) -> Array | None:
        """A constant, or one that is repeated."""
        while name not in self.edits.constants:
            maker = self.edits.makers.get(name)
            if maker is None or maker.op_type != "Expand" or self.edits.dims(name) is None:
                return None
            name = maker.input[0]
        return self.edits.array(name)

    def _moved(self, name: str, positions: Array, first: int) -> str:
        """Positions that count from another column, repeated as they were."""
        moved = f"{name}.from.{first}"
        if name in self.edits.constants:
            return self.edits.constant(moved, positions - positions.dtype.type(first))
        if moved not in self.edits.makers:
            node = onnx.NodeProto.FromString(self.edits.makers[name].SerializeToString())
            node.name, node.input[0], node.output[0] = moved, self._moved(node.input[0], positions, first), moved
            self.edits.add(node, name, self.edits.dims(name) or ())
        return moved

    def _cut_value(self, name: str, axis: int, read: range) -> str:
        """A value's elements along an axis, counted from the last one; what moves or repeats it, and nothing else reads, is cut itself."""
        maker = self.edits.makers.get(name)
        before = None if maker is None or self._readers[name] != 1 else self._axis_before(maker, axis)
        if maker is None or before is None:
            return self.edits.part(name, axis, read)
        maker.input[0] = self._cut_value(maker.input[0], before, read)
        self.edits.set_size(name, axis, len(read))
        return name

    def _axis_before(self, maker: onnx.NodeProto, axis: int) -> int | None:
        """The axis, counted from the last one, of a node's operand that is an axis of its result as it is; None where there is none."""
        dims = self.edits.dims(maker.input[0])
        if not dims or len(dims) != len(self.edits.dims(maker.output[0]) or ()):
            return None
        if maker.op_type == "Transpose":
            order = attributes_of(maker).get("perm", list(reversed(range(len(dims)))))
            return int(order[axis]) - len(dims)
        repeats = self.edits.array(maker.input[1]) if maker.op_type == "Tile" else None
        return axis if repeats is not None and np.asarray(repeats)[axis] == 1 else None
