"""Sizes that follow from a model's nodes: told to the solver, so that a quotient is known and not guessed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from ..errors import OpenSizeError
from .assumptions import Assumption, Values
from .expressions import Expressions, Size
from .solver import Solver

WINDOWED = frozenset({"Conv", "ConvInteger", "MaxPool", "AveragePool", "LpPool"})
_STEPS = 4
"""The input of a Slice that has its steps."""
FAR = 2**31 - 1
"""From this number on a bound of a slice means the end, however long the dim."""
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
        if node.op_type in WINDOWED and all(node.input[0] in known and node.output[0] in known for known in dims):
            _tell_window(node, dims, solver)
        elif node.op_type == "Slice" and len(node.input) > _STEPS:
            _tell_slice(node, models[0], dims, solver)
        for name in node.output:
            for values in _varying(name, dims):
                size = solver.solve(values)
                if isinstance(size, int) or size is None or atoms >= MAX_ATOMS:
                    continue
                if solver.table.entries[size.index][0] == "+":
                    solver.tell(size)
                    atoms += 1


def check_sizes(
    models: Sequence[onnx.ModelProto], held_out: onnx.ModelProto, point: Sequence[int], solver: Solver
) -> None:
    """The sizes of a model's values at one more point are those that the expressions found give.

    Args:
        models: as for `tell_sizes`.
        held_out: the model at the other point.
        point: that point.
        solver: after `tell_sizes`.

    Raises:
        OpenSizeError: an expression that holds at the sample points only.
    """
    dims, other = [_dims(model) for model in models], _dims(held_out)
    for node in models[0].graph.node:
        for name in node.output:
            shapes = [known.get(name, ()) for known in (*dims, other)]
            if len({len(shape) for shape in shapes}) > 1:
                continue
            for *values, actual in zip(*shapes, strict=True):
                size = solver.solve(tuple(values))
                if size is not None and solver.table.value(size, point) != actual:
                    raise OpenSizeError(f"a size of {name!r} is not what it seems at the sample sizes", where=node.name)


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


def _tell_slice(
    node: onnx.NodeProto, model: onnx.ModelProto, dims: Sequence[Mapping[str, tuple[int, ...]]], solver: Solver
) -> None:
    """The sizes of a slice with steps, from its start to the end of the dim."""
    numbers = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer if t.name in node.input[1:]}
    if not all(name in numbers for name in node.input[1:]):
        return
    starts, _, axes, steps = (numbers[name].tolist() for name in node.input[1:])
    for start, axis, step in zip(starts, axes, steps, strict=True):
        read, made = (tuple(known[name][axis] for known in dims) for name in (node.input[0], node.output[0]))
        size = solver.solve(read)
        if step < 2 or start < 0 or size is None or isinstance(size, int):
            continue
        told = solver.table.make("ceildiv", solver.table.make("+", size, -start), step)
        if solver.values(told) == made:
            solver.tell(told)


def slice_facts(models: Sequence[onnx.ModelProto]) -> list[Assumption]:
    """Where the ends of slices lie, inside or outside of what they cut: ONNX moves those outside to the border.

    Args:
        models: as for `tell_sizes`.
    """
    dims = [_dims(model) for model in models]
    numbers = [{t.name: t for t in model.graph.initializer} for model in models]
    facts: list[Assumption] = []
    for node in models[0].graph.node:
        if node.op_type != "Slice" or not all(name in numbers[0] for name in node.input[1:]):
            continue
        starts, ends, axes, *steps = (
            np.stack([numpy_helper.to_array(known[name]) for known in numbers], 1).tolist() for name in node.input[1:]
        )
        for start, end, axis, step in zip(starts, ends, axes, *(steps or [[[1]] * len(axes)]), strict=True):
            if step[0] > 0 and all(node.input[0] in known for known in dims):
                size = tuple(known[node.input[0]][axis[0]] for known in dims)
                facts += [*_bounded(tuple(start), size, node.name), *_bounded(tuple(end), size, node.name)]
    return facts


def _bounded(bound: Values, size: Values, node: str) -> list[Assumption]:
    if len({*bound}) == len({*size}) == 1 or min(bound) >= FAR:
        return []
    if max(bound) < 0:
        return [Assumption("<=", tuple(-b for b in bound), size, node)]
    if all(b <= s for b, s in zip(bound, size, strict=True)):
        return [Assumption("<=", bound, size, node)] if max(bound) > 0 else []
    return [Assumption("<=", size, bound, node)]


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
