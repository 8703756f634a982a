"""Sizes that follow from a model's nodes: told to the solver, so that a quotient is known and not guessed."""

from collections.abc import Mapping, Sequence

import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from ...dynamic.facts import Assumption, Values
from ...dynamic.solver import Solver
from ...ops.evaluate import Array
from .cuts import Sampled, cut_counts
from .windows import WINDOWED, Window, windows

MAX_ATOMS = 8
"""Sums that become atoms: each multiplies the products that the solver tries."""


def tell_sizes(models: Sequence[onnx.ModelProto], solver: Solver) -> None:
    """Enter the sizes of a model's values, in order.

    Args:
        models: the same model with shapes inferred at each sample point.
        solver: for those sample points.
    """
    dims = [_dims(model) for model in models]
    at = sampled(models)
    atoms = len(solver.table.symbols)
    for node in models[0].graph.node:
        if node.op_type in WINDOWED and all(node.input[0] in known and node.output[0] in known for known in dims):
            _tell_window(node, dims, solver)
        else:
            solver.learn(cut_counts(node, at))
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
        DynamicDimensionError: an expression that holds at the sample points only.
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
                    raise DynamicDimensionError(
                        f"a size of {name!r} does not follow the expression found at the sample sizes", where=node.name
                    )


def sampled(models: Sequence[onnx.ModelProto]) -> Sampled:
    """The values of a model, given with shapes inferred at each sample point."""
    tensors = [{tensor.name: tensor for tensor in model.graph.initializer} for model in models]

    def arrays(name: str) -> list[Array] | None:
        return [numpy_helper.to_array(known[name]) for known in tensors] if name in tensors[0] else None

    return Sampled([_dims(model) for model in models], arrays)


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
    read, made = ([known[name] for known in dims] for name in (node.input[0], node.output[0]))
    for axis, window in enumerate(windows(node, dims[0])):
        size = solver.solve(tuple(shape[axis + 2] for shape in read))
        if size is None or isinstance(size, int):
            continue
        told = _window_size(solver.table, size, window)
        if solver.values(told) == tuple(shape[axis + 2] for shape in made):
            solver.tell(told)


def top_k_facts(models: Sequence[onnx.ModelProto]) -> list[Assumption]:
    """That as many elements as a TopK takes are there.

    Args:
        models: as for `tell_sizes`.
    """
    dims = [_dims(model) for model in models]
    facts: list[Assumption] = []
    for node in models[0].graph.node:
        if node.op_type != "TopK" or not all({node.input[0], node.output[0]} <= known.keys() for known in dims):
            continue
        axis = next((a.i for a in node.attribute if a.name == "axis"), -1)
        size, taken = (tuple(known[name][axis] for known in dims) for name in (node.input[0], node.output[0]))
        if size != taken and len(set(size)) > 1:
            facts.append(Assumption("<=", taken, size, node.name))
    return facts


def window_facts(models: Sequence[onnx.ModelProto]) -> list[Assumption]:
    """That windows fit into what they go over: ONNX rounds the count of those that do not towards zero, other expressions down.

    Args:
        models: as for `tell_sizes`.
    """
    dims = [_dims(model) for model in models]
    facts: list[Assumption] = []
    for node in models[0].graph.node:
        if node.op_type not in WINDOWED or not all(node.input[0] in known for known in dims):
            continue
        for axis, window in enumerate(windows(node, dims[0])):
            size = tuple(known[node.input[0]][axis + 2] for known in dims)
            least = window.reach - window.padding
            if len(set(size)) > 1 and 0 < least <= min(size):
                facts.append(Assumption("<=", (least,) * len(size), size, node.name))
    return facts


def _window_size(table: Expressions, size: Size, window: Window) -> Size:
    """How often a window fits: ONNX's rule for convolutions and pools."""
    if window.is_same:
        return table.make("ceildiv", size, window.stride)
    room = table.make("+", size, window.padding - window.reach)
    return table.make("+", table.make("ceildiv" if window.rounds_up else "floordiv", room, window.stride), 1)
