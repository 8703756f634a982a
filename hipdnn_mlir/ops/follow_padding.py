"""What an op does to padded dims: of whatever its row becomes, each part in turn, by what that part's elements depend on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..errors import Reject
from .dependence import FUNCTIONS, OPERATIONS, Dependence, mixes_all
from .emitter import Operand, emit_region
from .graph import Graph, Node
from .kernels import MAP, Kernel, KernelTensor, kernel_region
from .padded_dims import Column, Dim, Factor, is_prefix, padded_by, plain, reshaped
from .registry import find
from .spec import Concat, Movement, OpView, Pad, Permute, Refusal, Reshape, Slice, TensorArg

Dims = list[Dim]


class Mixes(Exception):  # noqa: N818 - control flow, turned into an error that names the node
    """Raised where padding would change what was asked for."""

    def __init__(self, symbol: str, reason: str) -> None:
        super().__init__(reason)
        self.symbol = symbol
        self.reason = reason


class Sizes(Protocol):
    """What numbers say of the sizes that are rounded up."""

    def symbol_in(self, column: Sequence[Any]) -> str | None:
        """A symbol with buckets on which a number depends."""

    def symbol_of(self, column: Column) -> str | None:
        """The symbol with buckets that a number is."""


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
        raise Refusal("dynamic-shape", "what it becomes depends on its sizes")
    columns = [_columns(view.results[i].static_dims() for view in views) for i in range(len(views[0].results))]
    if isinstance(first, Graph):
        reads, dims = _Graphs(views, made, operands, sizes).follow([columns[i] for i in used])
        return Followed(reads, _placed(dims, used, len(columns)))
    if isinstance(first, Kernel):
        reads, dims = _kernels(views, made, operands, [columns[i] for i in used], sizes)
        return Followed(reads, _placed(dims, used, len(columns)))
    moved = _move(made, operands, columns[0], sizes)
    return Followed(list(range(len(operands))), [_view(moved, columns[0])])


def tensors_of(view: OpView) -> list[TensorArg]:
    """The tensor arguments of an op, those in lists too."""
    nested = (arg if isinstance(arg, list) else [arg] for arg in view.args)
    return [arg for args in nested for arg in args if isinstance(arg, TensorArg)]


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


def _columns(shapes: Iterable[Sequence[int]]) -> list[Column]:
    return list(zip(*shapes, strict=True))


def _view(dims: Dims, columns: Sequence[Column]) -> Dims:
    """The same elements under other dims."""
    shown = reshaped(dims, columns)
    if shown is None:
        symbol = next(filter(None, map(padded_by, dims)), "")
        raise Mixes(symbol, "a new dim has a part of a padded one")
    return shown


def _refuse_numbers(parts: Sequence[Any], sizes: Sizes) -> None:
    """Refuse a number beside the tensors that depends on a size with buckets."""
    for column in _differing(parts):
        symbol = sizes.symbol_in(column)
        if symbol is not None:
            raise Mixes(symbol, f"it computes with a number that follows from {symbol!r}")


def _differing(parts: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """What is not the same in all of several equal structures."""
    first = parts[0]
    if all(part == first for part in parts):
        return
    if isinstance(first, dict):
        for key in first:
            yield from _differing([part.get(key) for part in parts])
    elif isinstance(first, (list, tuple)) and all(
        isinstance(part, (list, tuple)) and len(part) == len(first) for part in parts
    ):
        for items in zip(*parts, strict=True):
            yield from _differing(items)
    else:
        yield tuple(parts)


def _made_dim(column: Column, sizes: Sizes) -> Dim:
    """A dim that no operand has, of elements that do not depend on its size."""
    if sizes.symbol_in(column) is None:
        return plain(column)
    symbol = sizes.symbol_of(column)
    if symbol is None:
        raise Mixes(str(sizes.symbol_in(column)), "it makes a dim of a size computed from the padded one")
    return (Factor(column, symbol),)


# -- parts ----------------------------------------------------------------------------------------------------------------


def _apply(rule: Dependence, operands: Sequence[Dims], results: Sequence[Sequence[Column]], sizes: Sizes) -> list[Dims]:
    """The dims of the results of one operation or kernel."""
    found: dict[int, Dim] = {}
    for position, (labels, dims) in enumerate(zip(rule.operands, operands, strict=True)):
        for axis, (label, dim) in enumerate(zip(labels, dims, strict=True)):
            symbol = padded_by(dim)
            if symbol is not None and (label is None or (label in rule.ordered and not is_prefix(dim))):
                raise Mixes(symbol, f"it mixes elements along dimension {axis} of operand {position}")
            if label is None or dim == ():
                continue
            before = found.setdefault(label, dim)
            padded = symbol or padded_by(before)
            if before != dim and padded is not None:
                raise Mixes(padded, f"its operands are padded in different ways along dimension {axis}")
    return [
        [_result_dim(rule, label, column, found, sizes) for label, column in zip(labels, columns, strict=True)]
        for labels, columns in zip(rule.results, results, strict=True)
    ]


def _result_dim(rule: Dependence, label: int | None, column: Column, found: Mapping[int, Dim], sizes: Sizes) -> Dim:
    if label is not None and label in found:
        return found[label]
    if label is not None and rule.spreads:
        return _made_dim(column, sizes)
    symbol = sizes.symbol_in(column)
    if symbol is not None:
        raise Mixes(symbol, f"it makes a dim of a size that follows from {symbol!r}")
    return plain(column)


class _Graphs:
    """The graph of one op at each sample point, tensor by tensor."""

    def __init__(self, views: Sequence[OpView], graphs: Sequence[Any], operands: Sequence[Dims], sizes: Sizes) -> None:
        self._graphs: Sequence[Graph] = graphs
        self._sizes = sizes
        self._positions = _positions(views[0])
        self._operands = operands
        self._dims: dict[int, Dims] = {}
        self._reads: set[int] = set()
        if any(len(graph.nodes) != len(graphs[0].nodes) for graph in graphs):
            raise Refusal("dynamic-shape", "what it becomes depends on its sizes")

    def follow(self, columns: Sequence[Sequence[Column]]) -> tuple[list[int], list[Dims]]:
        """Operands that are read and dims of the results, which have these sizes."""
        for nodes in zip(*(graph.nodes for graph in self._graphs), strict=True):
            self._node(nodes)
        bound = [(t.result, index) for index, t in enumerate(self._graphs[0].tensors) if t.result is not None]
        return sorted(self._reads), [_view(self._dims[index], columns[place]) for place, index in sorted(bound)]

    def _node(self, nodes: Sequence[Node]) -> None:
        first = nodes[0]
        if any(node.type != first.type for node in nodes):
            raise Refusal("dynamic-shape", "what it becomes depends on its sizes")
        _refuse_numbers([node.attributes for node in nodes], self._sizes)
        inputs = [self._tensor([node.inputs[key] for node in nodes]) for key in first.inputs]
        columns = [self._columns([node.outputs[key] for node in nodes]) for key in first.outputs]
        shapes = [[self._graphs[0].tensors[i].dims for i in part.values()] for part in (first.inputs, first.outputs)]
        attributes = {name: values[0] for name, _, values in first.attributes if isinstance(values, list)}
        rule = OPERATIONS.get(first.type, mixes_all)(shapes[0], shapes[1], attributes)
        made = _apply(rule, inputs, columns, self._sizes)
        self._dims.update(zip(first.outputs.values(), made, strict=True))

    def _columns(self, indices: Sequence[int]) -> list[Column]:
        return _columns(graph.tensors[i].dims for graph, i in zip(self._graphs, indices, strict=True))

    def _tensor(self, indices: Sequence[int]) -> Dims:
        """The dims of a tensor that a node reads: an operand under the dims it is seen in, a number, or another node's result."""
        tensors = [graph.tensors[i] for graph, i in zip(self._graphs, indices, strict=True)]
        first = tensors[0]
        if first.value is not None:
            _refuse_numbers(
                [np.frombuffer(tensor.value or b"", first.dtype.numpy).tolist() for tensor in tensors], self._sizes
            )
            return [() for _ in first.dims]
        if first.operand is not None:
            position = self._positions[first.operand]
            self._reads.add(position)
            return _view(self._operands[position], self._columns(indices))
        return self._dims[indices[0]]


def _positions(view: OpView) -> list[int]:
    """The position among the tensor arguments of each operand of what is made of an op."""
    keys = [arg.key for arg in tensors_of(view)]
    known = dict.fromkeys(arg.key for arg in tensors_of(view) if arg.scalar is None)
    return [keys.index(key) for key in known]


def _kernels(
    views: Sequence[OpView],
    kernels: Sequence[Any],
    operands: Sequence[Dims],
    columns: Sequence[Sequence[Column]],
    sizes: Sizes,
) -> tuple[list[int], list[Dims]]:
    first: Kernel = kernels[0]
    if any(len(kernel.tensors) != len(first.tensors) or kernel.function != first.function for kernel in kernels):
        raise Refusal("dynamic-shape", "what it becomes depends on its sizes")
    _refuse_numbers([kernel.attributes for kernel in kernels], sizes)
    positions = _positions(views[0])
    tensors: list[tuple[KernelTensor, ...]] = list(zip(*(kernel.tensors for kernel in kernels), strict=True))
    ins = [each for each in tensors if each[0].role == "in"]
    outs = [each for each in tensors if each[0].role == "out"]
    seen = [_seen(each, operands[positions[each[0].index]], first.function == MAP) for each in ins]
    rule = FUNCTIONS.get(first.function, mixes_all)(
        [t[0].dims for t in ins], [t[0].dims for t in outs], first.attributes
    )
    made = _apply(rule, seen, [_columns(t.dims for t in each) for each in outs], sizes)
    results = [_view(dims, columns[each[0].index]) for each, dims in zip(outs, made, strict=True)]
    return sorted({positions[each[0].index] for each in ins}), results


def _seen(tensors: Sequence[KernelTensor], dims: Dims, may_repeat: bool) -> Dims:
    """An operand under the dims in which a kernel sees it; a map repeats it along dims of stride 0."""
    symbol = next(filter(None, map(padded_by, dims)), None)
    if symbol is not None and any(tensor.offset for tensor in tensors):
        raise Mixes(symbol, "it reads one element of a padded operand")
    columns = _columns(tensor.dims for tensor in tensors)
    if may_repeat:
        strides = _columns(tensor.strides for tensor in tensors)
        columns = [
            tuple(1 if step == 0 else size for size, step in zip(column, steps, strict=True))
            for column, steps in zip(columns, strides, strict=True)
        ]
    if symbol is None:
        return [plain(column) for column in columns]
    return _view(dims, columns)


# -- data movement ----------------------------------------------------------------------------------------------------------


def _move(moves: Sequence[Any], operands: Sequence[Dims], columns: Sequence[Column], sizes: Sizes) -> Dims:
    """The dims of what a movement makes, before dims of one come or go."""
    _refuse_numbers([_numbers(move) for move in moves], sizes)
    first: Movement = moves[0]
    x = operands[0]
    match first:
        case Reshape():
            return x
        case Permute(order):
            return [x[axis] for axis in order]
        case Slice():
            return _sliced(moves, x, sizes)
        case Concat(axis):
            return _concatenated(axis, operands, columns, sizes)
        case Pad(low, high):
            for dim, before, after in zip(x, low, high, strict=True):
                symbol = padded_by(dim)
                if symbol is not None and (before or after):
                    raise Mixes(symbol, "it puts a border around a padded dim")
            pairs = zip(x, low, high, columns, strict=True)
            return [plain(column) if before or after else dim for dim, before, after, column in pairs]


def _numbers(move: Movement) -> Any:
    """The numbers of a movement that are no sizes."""
    match move:
        case Slice(offsets, _, steps):
            return offsets, steps
        case Pad(low, high, value):
            return low, high, value
    return None


def _sliced(moves: Sequence[Slice], x: Dims, sizes: Sizes) -> Dims:
    made = []
    parts = zip(*([*zip(m.offsets, m.sizes, m.steps, strict=True)] for m in moves), strict=True)
    for axis, (dim, cuts) in enumerate(zip(x, parts, strict=True)):
        column = tuple(size for _, size, _ in cuts)
        is_whole = all(offset == 0 and step == 1 for offset, _, step in cuts) and _size_of(dim, len(cuts)) == column
        symbol = padded_by(dim)
        if symbol is not None and not is_whole:
            raise Mixes(symbol, f"it takes a part of dimension {axis}, which is padded")
        made.append(dim if is_whole else _made_dim(column, sizes))
    return made


def _size_of(dim: Dim, points: int) -> Column:
    size = (1,) * points
    for factor in dim:
        size = tuple(a * b for a, b in zip(size, factor.sizes, strict=True))
    return size


def _concatenated(axis: int, operands: Sequence[Dims], columns: Sequence[Column], sizes: Sizes) -> Dims:
    for position, dims in enumerate(operands):
        symbol = padded_by(dims[axis])
        if symbol is not None and len(operands) > 1:
            raise Mixes(symbol, f"it joins dimension {axis} of operand {position}, which is padded, with others")
    rank = len(columns)
    labels = tuple(None if i == axis else i for i in range(rank))
    if len(operands) == 1:
        return list(operands[0])
    rule = Dependence([labels for _ in operands], [labels])
    return _apply(rule, operands, [columns], sizes)[0]
