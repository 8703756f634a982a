"""Changes of an ONNX graph whose shapes are known: nodes and constants are added, and what the graph says of shapes stays right."""

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from ..ops.evaluate import Array
from ..ops.strides import Dims
from .subgraphs import drop_unused


class GraphEdits:
    """A graph that is changed in place; `finish` ends that.

    Attributes:
        graph: the graph.
        makers: name of a value -> the node that makes it.
        constants: name -> initializer.
    """

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.makers = {name: node for node in graph.node for name in node.output}
        self.constants = {tensor.name: tensor for tensor in graph.initializer}
        self._infos = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
        self._made: dict[str, onnx.NodeProto] = {}

    def dims(self, name: str) -> Dims | None:
        """Dims of a value, or None where they are not known."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        info = self._infos.get(name)
        if info is None or not info.type.tensor_type.HasField("shape"):
            return None
        dims = info.type.tensor_type.shape.dim
        return tuple(dim.dim_value for dim in dims) if all(dim.HasField("dim_value") for dim in dims) else None

    def array(self, name: str) -> Array | None:
        """A constant's numbers, or None for any other value."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def set_size(self, name: str, axis: int, size: int) -> None:
        """Say that a value that a node makes has another size along an axis."""
        self._infos[name].type.tensor_type.shape.dim[axis].dim_value = size

    def constant(self, name: str, array: Array) -> str:
        """Add a constant where there is none of its name; returns the name."""
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(array, name)
            self.graph.initializer.append(self.constants[name])
        return name

    def add(self, node: onnx.NodeProto, like: str, dims: Sequence[int]) -> str:
        """Add a node, whose one result has the type of another value; returns the result's name."""
        name: str = node.output[0]
        self._made[name] = self.makers[name] = node
        kind = (
            self.constants[like].data_type if like in self.constants else self._infos[like].type.tensor_type.elem_type
        )
        self.graph.value_info.append(onnx.helper.make_tensor_value_info(name, kind, dims))
        self._infos[name] = self.graph.value_info[-1]
        return name

    def part(self, name: str, axis: int, read: range) -> str:
        """The elements of a value along an axis, counted from the last one where it is negative; returns the part's name."""
        part = f"{name}.part.{axis}.{read.start}.{read.stop}"
        if part not in self.makers:
            dims = list(self.dims(name) or ())
            dims[axis] = len(read)
            numbers = (("starts", read.start), ("ends", read.stop), ("axes", axis))
            where = [self.constant(f"{part}.{key}", np.array([number], np.int64)) for key, number in numbers]
            self.add(onnx.helper.make_node("Slice", [name, *where], [part], name=part), name, dims)
        return part

    def finish(self) -> None:
        """Put added nodes in front of those that read them, and drop what nothing reads any more."""
        nodes = [
            onnx.NodeProto.FromString(n.SerializeToString()) for node in self.graph.node for n in self._placed(node)
        ]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        drop_unused(self.graph)

    def _placed(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        for name in node.input:
            if name in self._made:
                yield from self._placed(self._made.pop(name))
        yield node
