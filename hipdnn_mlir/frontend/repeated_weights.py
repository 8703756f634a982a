"""What is made of weights alone is computed once, and repeated for each image behind that."""

from collections import Counter
from collections.abc import Collection

import numpy as np
import onnx

from .graph_edits import GraphEdits
from .kept_axes import axes_read, is_elementwise
from .subgraphs import reads, subgraphs

_PRODUCTS = frozenset({"MatMul", "Gemm"})


def without_repeated_weights(model: onnx.ModelProto, weights: Collection[str]) -> onnx.ModelProto:
    """The model that repeats products of weights, where it multiplied repeated weights.

    Before: `MatMul(Expand(p[1, 196, 3], [32, 196, 3]), w)`, with weights p and w. After: `Expand(MatMul(p, w), [32, 196, 4])`, and no
    Expand where an elementwise operator reads it beside a value of that size.

    Args:
        model: with static dims and inferred shapes, which are those of the result, too; not modified.
        weights: inputs that are constants.
    """
    if all(node.op_type != "Expand" for node in model.graph.node):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    repeated = _Repeated(made.graph, weights)
    if not any(node.op_type in _PRODUCTS for node, _ in repeated.smaller):
        return model
    repeated.rewrite()
    return made


class _Repeated:
    """Which values of a graph are the same along an axis.

    Attributes:
        smaller: the nodes that need not compute all of it, with that axis of their results, in order.
    """

    def __init__(self, graph: onnx.GraphProto, weights: Collection[str]) -> None:
        self._graph, self._edits = graph, GraphEdits(graph)
        self._known = {*weights, *self._edits.constants}
        self._once: dict[str, tuple[str, int]] = {}
        """Name of such a value -> that of one of them, which has one element along an axis, and the axis."""
        kept = Counter(name for node in graph.node if any(subgraphs(node)) for name in reads(node))
        kept.update(value.name for value in graph.output)
        self.smaller: list[tuple[onnx.NodeProto, int]] = []
        for node in graph.node:
            if any(subgraphs(node)) or len(node.output) != 1:
                continue
            name = node.output[0]
            if all(operand in self._known for operand in node.input if operand):
                self._known.add(name)
            if name not in kept and (axis := self._repeated_axis(node)) is not None:
                self._once[name] = (node.input[0] if node.op_type == "Expand" else name), axis

    def _repeated_axis(self, node: onnx.NodeProto) -> int | None:
        """The axis along which a node's result repeats one element."""
        dims = self._edits.dims(node.output[0])
        if not dims:
            return None
        if node.op_type == "Expand":
            before = self._edits.dims(node.input[0]) or ()
            other = [axis for axis in range(len(dims)) if len(before) == len(dims) and before[axis] != dims[axis]]
            return other[0] if node.input[0] in self._known and len(other) == 1 else None
        if not any(name in self._once for name in node.input):
            return None
        for axis, size in enumerate(dims):
            axes = axes_read(node, self._edits, axis) if size > 1 else None
            if axes is None or all(place is None for place in axes):
                continue
            found = zip(node.input, axes, strict=True)
            if all(place is None or self._once.get(name, ("", None))[1] == place for name, place in found):
                self.smaller.append((node, axis))
                return axis
        return None

    def rewrite(self) -> None:
        """Let the nodes compute one of what is the same."""
        edits, places = self._edits, {node.output[0]: axis for node, axis in self.smaller}
        sizes = {name: edits.dims(name) or () for name in places}
        axes = {name: axes_read(edits.makers[name], edits, axis) or () for name, axis in places.items()}
        for node in list(self._graph.node):
            name = node.output[0] if node.output else ""
            if name not in places:
                self._read_whole(node, sizes)
                continue
            for index, (operand, axis) in enumerate(zip(node.input, axes[name], strict=True)):
                if axis is not None:
                    node.input[index] = self._once[operand][0]
            edits.set_size(name, places[name], 1)
            if node.op_type == "Reshape":
                node.input[1] = edits.constant(f"{name}.dims", np.array(edits.dims(name), np.int64))
                del node.attribute[:]
        edits.finish()

    def _read_whole(self, node: onnx.NodeProto, sizes: dict[str, tuple[int, ...]]) -> None:
        """Repeat what a node reads that is computed once, but for an elementwise one that has another operand of that size."""
        for index, operand in enumerate(node.input):
            if operand in sizes and not (is_elementwise(node) and self._has_another(node, operand, sizes[operand])):
                node.input[index] = self._repeated(operand, sizes[operand])

    def _has_another(self, node: onnx.NodeProto, operand: str, size: tuple[int, ...]) -> bool:
        axis = self._once[operand][1] - len(size)
        others = [self._edits.dims(name) or () for name in node.input if name not in self._once]
        return any(len(dims) >= -axis and dims[axis] == size[axis] for dims in others)

    def _repeated(self, operand: str, size: tuple[int, ...]) -> str:
        name = f"{operand}.repeated"
        if name not in self._edits.makers:
            dims = self._edits.constant(f"{name}.dims", np.array(size, np.int64))
            self._edits.add(onnx.helper.make_node("Expand", [operand, dims], [name], name=name), operand, size)
        return name
