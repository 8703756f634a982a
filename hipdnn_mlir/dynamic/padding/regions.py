"""Padded dims through the graph or the kernel that an op becomes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ops.graph import Graph, Node
from ...ops.kernels import Kernel, KernelTensor
from ...ops.spec import OpView, Refusal, TensorArg
from ...ops.strides import packed
from .dependence import FUNCTIONS, OPERATIONS, mixes_all
from .dims import Column, padded_by, plain
from .rules import Dims, Mixes, Sizes, apply, columns_of, refuse_numbers, viewed


def tensors_of(view: OpView) -> list[TensorArg]:
    """The tensor arguments of an op, those in lists too."""
    nested = (arg if isinstance(arg, list) else [arg] for arg in view.args)
    return [arg for args in nested for arg in args if isinstance(arg, TensorArg)]


class Graphs:
    """The graph of one op at each sample point, tensor by tensor."""

    def __init__(self, views: Sequence[OpView], graphs: Sequence[Any], operands: Sequence[Dims], sizes: Sizes) -> None:
        self._graphs: Sequence[Graph] = graphs
        self._sizes = sizes
        self._positions = _positions(views[0])
        self._operands = operands
        self._dims: dict[int, Dims] = {}
        self._reads: set[int] = set()
        if any(len(graph.nodes) != len(graphs[0].nodes) for graph in graphs):
            raise Refusal("dynamic-shape", "it compiles differently at different sizes")

    def follow(self, columns: Sequence[Sequence[Column]]) -> tuple[list[int], list[Dims]]:
        """Operands that are read and dims of the results, which have these sizes."""
        for nodes in zip(*(graph.nodes for graph in self._graphs), strict=True):
            self._node(nodes)
        bound = [(t.result, index) for index, t in enumerate(self._graphs[0].tensors) if t.result is not None]
        return sorted(self._reads), [viewed(self._dims[index], columns[place]) for place, index in sorted(bound)]

    def _node(self, nodes: Sequence[Node]) -> None:
        first = nodes[0]
        if any(node.type != first.type for node in nodes):
            raise Refusal("dynamic-shape", "it compiles differently at different sizes")
        refuse_numbers([node.attributes for node in nodes], self._sizes)
        inputs = [self._tensor([node.inputs[key] for node in nodes]) for key in first.inputs]
        columns = [self._columns([node.outputs[key] for node in nodes]) for key in first.outputs]
        shapes = [[self._graphs[0].tensors[i].dims for i in part.values()] for part in (first.inputs, first.outputs)]
        attributes = {name: values[0] for name, _, values in first.attributes if isinstance(values, list)}
        rule = OPERATIONS.get(first.type, mixes_all)(shapes[0], shapes[1], attributes)
        made = apply(rule, inputs, columns, self._sizes)
        self._dims.update(zip(first.outputs.values(), made, strict=True))

    def _columns(self, indices: Sequence[int]) -> list[Column]:
        return columns_of(graph.tensors[i].dims for graph, i in zip(self._graphs, indices, strict=True))

    def _tensor(self, indices: Sequence[int]) -> Dims:
        """The dims of a tensor that a node reads: an operand under the dims it is seen in, a number, or another node's result."""
        tensors = [graph.tensors[i] for graph, i in zip(self._graphs, indices, strict=True)]
        first = tensors[0]
        if first.value is not None:
            refuse_numbers(
                [np.frombuffer(tensor.value or b"", first.dtype.numpy).tolist() for tensor in tensors], self._sizes
            )
            return [() for _ in first.dims]
        if first.operand is not None:
            position = self._positions[first.operand]
            self._reads.add(position)
            symbol = next(filter(None, map(padded_by, self._operands[position])), None)
            in_order = zip(first.dims, first.strides, packed(first.dims), strict=True)
            if symbol is not None and any(size > 1 and step != in_memory for size, step, in_memory in in_order):
                raise Mixes(symbol, "it reads a padded operand in another order")
            return viewed(self._operands[position], self._columns(indices))
        return self._dims[indices[0]]


def _positions(view: OpView) -> list[int]:
    """The position among the tensor arguments of each operand of what is made of an op."""
    keys = [arg.key for arg in tensors_of(view)]
    known = dict.fromkeys(arg.key for arg in tensors_of(view) if arg.scalar is None)
    return [keys.index(key) for key in known]


def kernel_dims(
    views: Sequence[OpView],
    kernels: Sequence[Any],
    operands: Sequence[Dims],
    columns: Sequence[Sequence[Column]],
    sizes: Sizes,
) -> tuple[list[int], list[Dims]]:
    """Operands that a kernel reads and the dims of its results.

    Args:
        views: the op at each sample point.
        kernels: what becomes of it there.
        operands: dims of its tensor arguments.
        columns: sizes of its results.
        sizes: about numbers.
    """
    first: Kernel = kernels[0]
    if any(len(kernel.tensors) != len(first.tensors) or kernel.function != first.function for kernel in kernels):
        raise Refusal("dynamic-shape", "it compiles differently at different sizes")
    refuse_numbers([kernel.attributes for kernel in kernels], sizes)
    positions = _positions(views[0])
    tensors: list[tuple[KernelTensor, ...]] = list(zip(*(kernel.tensors for kernel in kernels), strict=True))
    ins = [each for each in tensors if each[0].role == "in"]
    outs = [each for each in tensors if each[0].role == "out"]
    seen = [_seen(each, operands[positions[each[0].index]]) for each in ins]
    rule = FUNCTIONS.get(first.function, mixes_all)(
        [t[0].dims for t in ins], [t[0].dims for t in outs], first.attributes
    )
    made = apply(rule, seen, [columns_of(t.dims for t in each) for each in outs], sizes)
    results = [viewed(dims, columns[each[0].index]) for each, dims in zip(outs, made, strict=True)]
    return sorted({positions[each[0].index] for each in ins}), results


def _seen(tensors: Sequence[KernelTensor], dims: Dims) -> Dims:
    """An operand under the dims in which a kernel sees it; it may repeat along dims of stride 0."""
    symbol = next(filter(None, map(padded_by, dims)), None)
    if symbol is not None and any(tensor.offset for tensor in tensors):
        raise Mixes(symbol, "it reads one element of a padded operand")
    columns = columns_of(tensor.dims for tensor in tensors)
    strides = columns_of(tensor.strides for tensor in tensors)
    columns = [
        tuple(1 if step == 0 else size for size, step in zip(column, steps, strict=True))
        for column, steps in zip(columns, strides, strict=True)
    ]
    if symbol is None:
        return [plain(column) for column in columns]
    return viewed(dims, columns)
