"""Sizes that follow from a model's nodes: told to the solver, so that a quotient is known and not guessed."""

from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from .expressions import Expressions, Size
from .solver import Solver, Values

_WINDOWED = frozenset({"Conv", "ConvInteger", "MaxPool", "AveragePool", "LpPool"})
MAX_ATOMS = 8
"""Sums that become atoms: each multiplies the products that the solver tries."""


def tell_sizes(models: Sequence[onnx.ModelProto], solver: Solver) -> None:
    """Enter the sizes of a model's values, in order.

    Args:
        models: the same model with shapes inferred at each sample point.
        solver: for those sample points.
    """
    dims = [_dims(model) for model in models]
    atoms = len(solver.table.symbols)
    for node in models[0].graph.node:
        if node.op_type in _WINDOWED and all(node.input[0] in known and node.output[0] in known for known in dims):
            _tell_window(node, dims, solver)
        for name in node.output:
            for values in _varying(name, dims):
                size = solver.solve(values)
                if isinstance(size, int) or size is None or atoms >= MAX_ATOMS:
                    continue
                if solver.table.entries[size.index][0] == "+":
                    solver.tell(size)
                    atoms += 1


def _dims(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    graph = model.graph
    return {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
        for value in (*graph.input, *graph.output, *graph.value_info)
    } | {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}


def _varying(name: str, dims: Sequence[Mapping[str, tuple[int, ...]]]) -> list[Values]:
    shapes = [known.get(name, ()) for known in dims]
    if len({len(shape) for shape in shapes}) > 1:
        return []
    return [values for values in zip(*shapes, strict=True) if len(set(values)) > 1]


def _tell_window(node: onnx.NodeProto, dims: Sequence[Mapping[str, tuple[int, ...]]], solver: Solver) -> None:
    attributes: dict[str, Any] = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    read, made = ([known[name] for known in dims] for name in (node.input[0], node.output[0]))
    rank = len(read[0]) - 2
    window = attributes.get("kernel_shape") or dims[0].get(node.input[1], ())[2:]
    for axis in range(rank):
        size = solver.solve(tuple(shape[axis + 2] for shape in read))
        if size is None or isinstance(size, int) or len(window) != rank:
            continue
        told = _window_size(solver.table, size, attributes, axis, rank, window[axis])
        if solver.values(told) == tuple(shape[axis + 2] for shape in made):
            solver.tell(told)


def _window_size(
    table: Expressions, size: Size, attributes: Mapping[str, Any], axis: int, rank: int, window: int
) -> Size:
    """How often a window fits: ONNX's rule for convolutions and pools."""
    step = attributes.get("strides", [1] * rank)[axis]
    padding = attributes.get("auto_pad", b"NOTSET")
    if padding in (b"SAME_UPPER", b"SAME_LOWER"):
        return table.make("ceildiv", size, step)
    pads = attributes.get("pads", [0] * 2 * rank) if padding == b"NOTSET" else [0] * 2 * rank
    extent = attributes.get("dilations", [1] * rank)[axis] * (window - 1) + 1
    room = table.make("+", size, pads[axis] + pads[axis + rank] - extent)
    fits = table.make("ceildiv" if attributes.get("ceil_mode", 0) else "floordiv", room, step)
    return table.make("+", fits, 1)
