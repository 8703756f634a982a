"""Rows that nothing reads are not computed: of the last layers of a classifier, those of all tokens but one."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx

from ..ops.evaluate import Array
from .graph_edits import GraphEdits
from .kept_axes import Axes, axes_read
from .shape_inference import attributes_of
from .subgraphs import reads, subgraphs

_SHARE = 2
"""At least one row in so many is left out, or nothing changes."""
_WITH_AXES = 3
"""Operands of Slice behind its data: starts, ends, axes."""


class Rows(NamedTuple):
    """Elements of a value along an axis."""

    axis: int
    read: range


def without_unread_rows(model: onnx.ModelProto, *, has_fixed_sizes: bool) -> onnx.ModelProto:
    """The model in which what one Gather or Slice alone takes a part of is computed for that part.

    That part is followed from its reader to where something reads all rows: through elementwise operators, norms, softmax, products and
    what moves elements, up to the keys and values of attention.

    Before: `h = MatMul(x[1, 197, 192], w)`, `c = Gather<axis = 1>(h, 0)`. After: `h = MatMul(x[:, 0:1], w)`, `c = Gather<axis = 1>(h, 0)`.

    Args:
        model: with static dims and inferred shapes, which are those of the result, too; not modified.
        has_fixed_sizes: they are the model's. Else it is looked at for some sizes of many, of which all have to change alike: what is
            taken is one row, counted from the first one.
    """
    if not any(node.op_type in ("MatMul", "Gemm") for node in _Rows(model.graph, has_fixed_sizes).cut):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _Rows(made.graph, has_fixed_sizes).rewrite()
    return made


class _Rows:
    """What a graph's nodes read of each other.

    Attributes:
        cut: the nodes that need not compute all rows.
    """

    def __init__(self, graph: onnx.GraphProto, has_fixed_sizes: bool) -> None:
        self._edits = GraphEdits(graph)
        self._has_fixed_sizes = has_fixed_sizes
        self._wanted: dict[str, Rows | None] = {value.name: None for value in graph.output}
        self._takes: list[onnx.NodeProto] = []
        self.cut: list[onnx.NodeProto] = []
        for node in reversed(graph.node):
            self._look_at(node)

    def _look_at(self, node: onnx.NodeProto) -> None:
        taken = self._taken(node)
        wanted = self._wanted.get(node.output[0]) if len(node.output) == 1 else None
        axes = None if wanted is None or any(subgraphs(node)) else self._axes(node, wanted.axis)
        asked: list[Rows | None] = [None] * len(node.input)
        if taken is not None:
            asked[0] = taken
            self._takes.append(node)
        elif wanted is not None and axes is not None:
            asked = [None if axis is None else Rows(axis, wanted.read) for axis in axes]
            self.cut.append(node)
        else:
            self._wanted.update(dict.fromkeys(reads(node)))
        for name, rows in zip(node.input, asked, strict=True):
            self._wanted[name] = rows if self._wanted.get(name, rows) == rows else None

    def _taken(self, node: onnx.NodeProto) -> Rows | None:
        """The rows that a node takes of its first operand."""
        dims = self._edits.dims(node.input[0]) if node.input else None
        if not dims or node.op_type not in ("Gather", "Slice"):
            return None
        constants = [self._edits.array(name) for name in node.input[1:]]
        numbers = [array for array in constants if array is not None and array.size]
        if len(numbers) < len(constants) or not (self._has_fixed_sizes or _is_one_row(node, numbers)):
            return None
        if node.op_type == "Gather":
            axis = attributes_of(node).get("axis", 0) % len(dims)
            places = _from_the_first(numbers[0], dims[axis])
            first, end = int(places.min()), int(places.max()) + 1
        elif len(numbers) >= _WITH_AXES and all(array.size == 1 for array in numbers) and numbers[3:] in ([], [1]):
            axis = int(numbers[2].item()) % len(dims)
            first, end = (min(int(_from_the_first(array, dims[axis]).item()), dims[axis]) for array in numbers[:2])
        else:
            return None
        is_inside = 0 <= first < end <= dims[axis]
        return Rows(axis, range(first, end)) if is_inside and (end - first) * _SHARE <= dims[axis] else None

    def _axes(self, node: onnx.NodeProto, axis: int) -> Axes:
        return axes_read(node, self._edits, axis)

    def rewrite(self) -> None:
        """Let the nodes compute what is read."""
        is_cut = {node.output[0] for node in self.cut}
        for node in self._takes:
            wanted = self._wanted[node.input[0]]
            if node.input[0] in is_cut and wanted is not None:
                self._take_from(node, wanted)
        for node in reversed(self.cut):
            name = node.output[0]
            wanted = self._wanted[name]
            assert wanted is not None
            axes = self._axes(node, wanted.axis) or ()
            for index, axis in enumerate(axes):
                if axis is not None and node.input[index] not in is_cut:
                    node.input[index] = self._edits.part(node.input[index], axis, wanted.read)
            self._edits.set_size(name, wanted.axis, len(wanted.read))
            if node.op_type == "Reshape":
                dims = np.array(self._edits.dims(name), np.int64)
                node.input[1] = self._edits.constant(f"{name}.dims", dims)
                del node.attribute[:]
        self._edits.finish()

    def _take_from(self, node: onnx.NodeProto, rows: Rows) -> None:
        """Have a node take what it takes from an operand that is going to have some rows alone."""
        name = node.output[0]
        if node.op_type == "Slice":
            numbers = (0, len(rows.read), rows.axis)
            node.input[1:] = [
                self._edits.constant(f"{name}.slice.{index}", np.array([number], np.int64))
                for index, number in enumerate(numbers)
            ]
            return
        places, dims = self._edits.array(node.input[1]), self._edits.dims(node.input[0])
        assert places is not None
        assert dims is not None
        places = _from_the_first(places, dims[rows.axis]) - rows.read.start
        node.input[1] = self._edits.constant(f"{name}.places", places)


def _is_one_row(node: onnx.NodeProto, numbers: Sequence[Array]) -> bool:
    """Whether it is one row that a Gather or Slice takes, and the same whatever the size."""
    first = numbers[0].reshape(-1)[0]
    last = numbers[0].max() if node.op_type == "Gather" else int(numbers[1].reshape(-1)[0]) - 1
    return bool(numbers[0].min() == first == last >= 0)


def _from_the_first(places: Array, size: int) -> Array:
    """Places along an axis, of which negative ones count from its end."""
    return np.where(places < 0, places + size, places)
