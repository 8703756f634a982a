"""Products of which known positions are read: columns that none of them names are not computed.

DeBERTa multiplies queries with the keys of 512 or 1024 relative positions, of which a text of 128 words has 255.
"""

from collections import Counter

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.evaluate import Array
from .shape_inference import attributes_of
from .subgraphs import all_nodes, drop_unused, reads

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
    graph = _Graph(made.graph)
    for node in list(made.graph.node):
        if node.op_type == "GatherElements":
            graph.cut(node)
    graph.finish()
    return made


class _Graph:
    """A graph in which products are cut, one after the other."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._makers = {name: node for node in graph.node for name in node.output}
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        values = (*graph.input, *graph.value_info, *graph.output)
        self._dims = {value.name: value.type.tensor_type.shape.dim for value in values}
        self._readers = Counter(name for node in all_nodes(graph) for name in reads(node))
        self._readers.update(value.name for value in graph.output)
        self._made: dict[str, onnx.NodeProto] = {}

    def finish(self) -> None:
        """Put the nodes made in front of the others, which read them, in order; drop what nothing reads any more."""
        nodes: list[onnx.NodeProto] = []
        for node in self._graph.node:
            self._place(node, nodes)
        copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
        del self._graph.node[:]
        self._graph.node.extend(copies)
        drop_unused(self._graph)

    def _place(self, node: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> None:
        for name in node.input:
            if name in self._made:
                self._place(self._made.pop(name), nodes)
        nodes.append(node)

    def cut(self, gather: onnx.NodeProto) -> None:
        """Leave out the columns that a node does not read, where what it reads is a product of its own."""
        product = self._makers.get(gather.input[0])
        if product is None or product.op_type != "MatMul" or self._readers[gather.input[0]] != 1:
            return
        dims, positions = self._dims.get(product.output[0], ()), self._positions(gather.input[1])
        is_of_columns = attributes_of(gather).get("axis", 0) in (-1, len(dims) - 1)
        if not dims or not is_of_columns or positions is None or not positions.size:
            return
        first, last = int(positions.min()), int(positions.max())
        read = range(first // _TOGETHER * _TOGETHER, min((last // _TOGETHER + 1) * _TOGETHER, dims[-1].dim_value))
        if (
            read.start < 0
            or len(read) * _SHARE > dims[-1].dim_value
            or len(self._dims.get(product.input[1], ())) < _MATRIX
        ):
            return
        product.input[1] = self._cut_value(product.input[1], -1, read)
        dims[-1].dim_value = len(read)
        gather.input[1] = self._moved(gather.input[1], positions, read.start)

    def _positions(self, name: str) -> Array | None:
        """A constant, or one that is repeated."""
        while name not in self._constants:
            maker = self._makers.get(name)
            if maker is None or maker.op_type != "Expand" or name not in self._dims:
                return None
            name = maker.input[0]
        return numpy_helper.to_array(self._constants[name])

    def _moved(self, name: str, positions: Array, first: int) -> str:
        """Positions that count from another column, repeated as they were."""
        moved = f"{name}.from.{first}"
        if moved in self._constants or moved in self._made or moved in self._makers:
            return moved
        if name in self._constants:
            self._constant(moved, positions - positions.dtype.type(first))
            return moved
        node = onnx.NodeProto.FromString(self._makers[name].SerializeToString())
        node.name, node.input[0], node.output[0] = moved, self._moved(node.input[0], positions, first), moved
        self._add(node, name)
        return moved

    def _cut_value(self, name: str, axis: int, read: range) -> str:
        """A value's elements along an axis, counted from the last one; what moves or repeats it, and nothing else reads, is cut itself."""
        maker = self._makers.get(name)
        if maker is not None and self._readers[name] == 1 and (before := self._axis_before(maker, axis)) is not None:
            maker.input[0] = self._cut_value(maker.input[0], before, read)
            self._dims[name][axis].dim_value = len(read)
            return name
        part = f"{name}.cut.{axis}.{read.start}.{read.stop}"
        if part not in self._makers:
            for suffix, number in (("starts", read.start), ("ends", read.stop), ("axes", axis)):
                self._constant(f"{part}.{suffix}", np.array([number], np.int64))
            inputs = [name, f"{part}.starts", f"{part}.ends", f"{part}.axes"]
            self._add(onnx.helper.make_node("Slice", inputs, [part], name=part), name)
            self._dims[part][axis].dim_value = len(read)
        return part

    def _axis_before(self, maker: onnx.NodeProto, axis: int) -> int | None:
        """The axis, counted from the last one, of a node's operand that is an axis of its result as it is; None where there is none."""
        rank = len(self._dims.get(maker.input[0], ()))
        if rank == 0 or rank != len(self._dims.get(maker.output[0], ())):
            return None
        if maker.op_type == "Transpose":
            order = attributes_of(maker).get("perm", list(reversed(range(rank))))
            return int(order[axis]) - rank
        if maker.op_type == "Tile" and maker.input[1] in self._constants:
            return axis if numpy_helper.to_array(self._constants[maker.input[1]])[axis] == 1 else None
        return None

    def _constant(self, name: str, array: Array) -> None:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(array, name)
            self._graph.initializer.append(self._constants[name])

    def _add(self, node: onnx.NodeProto, like: str) -> None:
        """A node whose result has the dims and type of another value."""
        name = node.output[0]
        self._made[name] = self._makers[name] = node
        values = (*self._graph.value_info, *self._graph.input, *self._graph.output)
        self._graph.value_info.add().CopyFrom(next(value for value in values if value.name == like))
        self._graph.value_info[-1].name = name
        self._dims[name] = self._graph.value_info[-1].type.tensor_type.shape.dim
