"""Sizes that follow from a model's nodes: told to the solver, so that a quotient is known and not guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from ...dynamic.facts import Assumption, Values
from ...dynamic.solver import Solver
from .windows import WINDOWED, Window, windows

_FAR = 2**31 - 1
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
    tensors = [_tensors(model) for model in models]
    atoms = len(solver.table.symbols)
    for node in models[0].graph.node:
        if node.op_type in WINDOWED and all(node.input[0] in known and node.output[0] in known for known in dims):
            _tell_window(node, dims, solver)
        elif node.op_type == "Slice":
            _tell_slice(node, tensors, dims, solver)
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


@dataclass(frozen=True)
class _Cut:
    """What a Slice does to one axis, at each sample point."""

    axis: int
    start: Values
    end: Values
    step: int


def _cuts(node: onnx.NodeProto, tensors: Sequence[Mapping[str, onnx.TensorProto]]) -> list[_Cut]:
    """A Slice axis by axis; empty where an operand, or what is the same at all points, is not known."""
    names = dict(zip(("starts", "ends", "axes", "steps"), node.input[1:], strict=False))
    given = {role: name for role, name in names.items() if name}
    if node.op_type != "Slice" or not all(name in tensors[0] for name in given.values()):
        return []
    rows = {
        role: [
            tuple(column)
            for column in zip(
                *(numpy_helper.to_array(known[name]).reshape(-1).tolist() for known in tensors), strict=True
            )
        ]
        for role, name in given.items()
    }
    points = len(tensors)
    axes = rows.get("axes", [(axis,) * points for axis in range(len(rows["starts"]))])
    steps = rows.get("steps", [(1,) * points] * len(axes))
    if any(len(set(values)) > 1 for values in (*axes, *steps)):
        return []
    return [
        _Cut(axis[0], start, end, step[0])
        for axis, start, end, step in zip(axes, rows["starts"], rows["ends"], steps, strict=True)
    ]


def _tell_slice(
    node: onnx.NodeProto,
    tensors: Sequence[Mapping[str, onnx.TensorProto]],
    dims: Sequence[Mapping[str, tuple[int, ...]]],
    solver: Solver,
) -> None:
    """The sizes of a slice with steps, from its start to the end of the dim."""
    for cut in _cuts(node, tensors):
        start = cut.start[0]
        if cut.step < 2 or start < 0 or len(set(cut.start)) > 1:
            continue
        read, made = (tuple(known[name][cut.axis] for known in dims) for name in (node.input[0], node.output[0]))
        size = solver.solve(read)
        if size is None or isinstance(size, int):
            continue
        told = solver.table.make("ceildiv", solver.table.make("+", size, -start), cut.step)
        if solver.values(told) == made:
            solver.tell(told)


def slice_facts(models: Sequence[onnx.ModelProto]) -> list[Assumption]:
    """Where the ends of slices lie, inside or outside of what they cut: ONNX moves those outside to the border.

    Args:
        models: as for `tell_sizes`.
    """
    dims = [_dims(model) for model in models]
    tensors = [_tensors(model) for model in models]
    facts: list[Assumption] = []
    for node in models[0].graph.node:
        for cut in _cuts(node, tensors):
            if cut.step > 0 and all(node.input[0] in known for known in dims):
                size = tuple(known[node.input[0]][cut.axis] for known in dims)
                facts += [*_bounded(cut.start, size, node.name), *_bounded(cut.end, size, node.name)]
    return facts


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


def _tensors(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def _bounded(bound: Values, size: Values, node: str) -> list[Assumption]:
    """Where one end of a slice lies, with the numbers at the sample points."""
    if len({*bound}) == len({*size}) == 1 or min(bound) >= _FAR:
        return []
    if max(bound) < 0:
        return [Assumption("<=", tuple(-b for b in bound), size, node)]
    if all(b <= s for b, s in zip(bound, size, strict=True)):
        return [Assumption("<=", bound, size, node)] if max(bound) > 0 else []
    return [Assumption("<=", size, bound, node)]


def _window_size(table: Expressions, size: Size, window: Window) -> Size:
    """How often a window fits: ONNX's rule for convolutions and pools."""
    if window.is_same:
        return table.make("ceildiv", size, window.stride)
    room = table.make("+", size, window.padding - window.reach)
    return table.make("+", table.make("ceildiv" if window.rounds_up else "floordiv", room, window.stride), 1)
