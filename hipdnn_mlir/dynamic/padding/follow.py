"""What an op does to padded dims: whatever its row becomes is asked, part by part."""

from collections.abc import Sequence
from dataclasses import dataclass

from hipdnn_mlir_runtime.errors import Reject

from ...ops.emitter import Operand
from ...ops.graph import Graph
from ...ops.kernels import Kernel
from ...ops.regions import emit_region, kernel_region
from ...ops.spec import Movement, OpView, Refusal
from ...ops.table import find
from .moves import move_dims
from .regions import Graphs, kernel_dims, tensors_of
from .rules import Dims, Sizes, columns_of, viewed


@dataclass
class Followed:
    """An op's operands that are read, by position among its tensor arguments, and the dims of its results; None for one nobody reads."""

    reads: list[int]
    results: list[Dims | None]


def follow(views: Sequence[OpView], operands: Sequence[Dims], sizes: Sizes) -> Followed:
    """The results' dims.

    Args:
        views: the op at each sample point.
        operands: dims of its tensor arguments, lists of tensors included, in order.
        sizes: about numbers.

    Raises:
        Mixes: elements that were asked for would depend on padding.
        Refusal: nothing says how the op is computed.
    """
    used = _written(views[0])
    made = [_made(view, used) for view in views]
    first = made[0]
    if any(type(part) is not type(first) for part in made):
        raise Refusal("dynamic-shape", "it compiles differently at different sizes")
    columns = [columns_of(view.results[i].static_dims() for view in views) for i in range(len(views[0].results))]
    if isinstance(first, Graph):
        reads, dims = Graphs(views, made, operands, sizes).follow([columns[i] for i in used])
        return Followed(reads, _placed(dims, used, len(columns)))
    if isinstance(first, Kernel):
        reads, dims = kernel_dims(views, made, operands, [columns[i] for i in used], sizes)
        return Followed(reads, _placed(dims, used, len(columns)))
    moved = move_dims(made, operands, columns[0], sizes)
    return Followed(list(range(len(operands))), [viewed(moved, columns[0])])


def _written(view: OpView) -> list[int]:
    """The results that are made: those somebody reads, and all where one kernel makes them."""
    row = find(view.name)
    everything = list(range(len(view.results)))
    if row is not None and row.call is not None and row.emit is None:
        return everything
    return [index for index in everything if not view.used or view.used[index]] or [0]


def _placed(dims: Sequence[Dims], used: Sequence[int], count: int) -> list[Dims | None]:
    places = dict(zip(used, dims, strict=True))
    return [places.get(index) for index in range(count)]


def _made(view: OpView, used: Sequence[int]) -> Movement | Graph | Kernel:
    """A data movement, else a graph, else a kernel, of this op alone."""
    row = find(view.name)
    if row is not None and row.move is not None:
        try:
            return row.move(view)
        except Refusal:
            pass
    # An operand that is given twice has one place.
    args = {arg.key: arg for arg in tensors_of(view) if arg.scalar is None}
    operands = {key: Operand(arg.type.static_dims(), arg.type.dtype) for key, arg in args.items()}
    keys = [("result", index) for index in range(len(view.results))]
    results = [(keys[i], view.results[i]) for i in used]
    graph = emit_region([(view, keys)], operands, results)
    if isinstance(graph, Graph):
        return graph
    kernel = kernel_region([(view, keys)], operands, results)
    if isinstance(kernel, Reject):
        raise Refusal(kernel.rule, kernel.reason)
    return kernel
