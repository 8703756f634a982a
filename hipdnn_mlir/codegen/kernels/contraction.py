"""Convolutions and matmuls seen as one thing: a table of products of rows and columns, summed over inner positions.

A convolution's rows are positions of its result, gathered from the input on the fly; its columns are output channels, its inner positions
input channels and elements of the filter, and groups are batches.
"""

from dataclasses import dataclass, replace
from math import prod

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import ConvolutionMode
from hipdnn_mlir_runtime.abi import Descriptor as D

from ...ops.graph import Graph, Node, Tensor
from ...ops.spec import Refusal
from ...ops.strides import Dims, Strides

ANCHORS = frozenset({
    D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, D.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, D.OPERATION_MATMUL_DESCRIPTOR,
})  # fmt: skip
_FLOATS = frozenset({"f32", "f16", "bf16"})


@dataclass(frozen=True)
class Dim:
    """A dim of the table: positions along it are multiples of `step` along dim `axis` of the result."""

    size: int
    axis: int
    step: int = 1


@dataclass(frozen=True)
class Window:
    """Where a factor is read along one of its dims: at `(free * step + inner * dilation + low) / divisor`, zero where there is no such.

    Attributes:
        free: number of a dim of rows or columns.
        inner: number of an inner dim, or None for a filter of one element.
        step, dilation, low, divisor: see above.
        size, stride: of the factor's dim.
    """

    free: int
    inner: int | None
    step: int
    dilation: int
    low: int
    divisor: int
    size: int
    stride: int


@dataclass(frozen=True)
class Factor:
    """One operand, with its dims of the table, rows or columns.

    Attributes:
        tensor: its index in the graph.
        free: its dims of the table, the fastest of the result last.
        batch, strides, inner: its strides along the batches, along `free` and along the inner dims; 0 where a window says more.
        windows: of a convolution's input.
    """

    tensor: int
    free: tuple[Dim, ...]
    batch: Strides
    strides: Strides
    inner: Strides
    windows: tuple[Window, ...] = ()

    @property
    def count(self) -> int:
        """Rows or columns."""
        return prod(dim.size for dim in self.free)


@dataclass(frozen=True)
class Contraction:
    """The table: its batches, sizes of the inner dims, rows and columns."""

    batch: tuple[Dim, ...]
    inner: Dims
    rows: Factor
    columns: Factor


def contraction(graph: Graph, node: Node) -> Contraction:
    """The contraction of a convolution or matmul; raises Refusal."""
    tensors = [graph.tensors[i] for i in (*node.inputs.values(), *node.outputs.values())]
    wrong = next((tensor.dtype.name for tensor in tensors if tensor.dtype.name not in _FLOATS), None)
    if wrong is not None:
        raise Refusal("dtype", f"matmul or convolution of {wrong}")
    made = _matmul(graph, node) if node.type == D.OPERATION_MATMUL_DESCRIPTOR else _convolution(graph, node)
    (result,) = (graph.tensors[i] for i in node.outputs.values())
    rows, columns = _sorted(made.rows, result.strides), _sorted(made.columns, result.strides)
    made = _inner_sorted(replace(made, rows=rows, columns=columns))
    # Threads of a wave write columns: these lie beside each other.
    return replace(made, rows=made.columns, columns=made.rows) if _is_faster(rows, columns, result.strides) else made


def _is_faster(a: Factor, b: Factor, strides: Strides) -> bool:
    """Whether the dims of `a` have the smaller stride in the result."""
    least = [min((strides[d.axis] * d.step for d in factor.free if d.size > 1), default=2**62) for factor in (a, b)]
    return least[0] < least[1]


def _sorted(factor: Factor, strides: Strides) -> Factor:
    """The factor with its free dims in the order of the result's memory, those of size 1 left out where nothing moves along them."""
    moved = {window.free for window in factor.windows}
    kept = [number for number, dim in enumerate(factor.free) if dim.size > 1 or number in moved]
    kept.sort(key=lambda number: -strides[factor.free[number].axis])
    return replace(
        factor,
        free=tuple(factor.free[number] for number in kept),
        strides=tuple(factor.strides[number] for number in kept),
        windows=tuple(replace(window, free=kept.index(window.free)) for window in factor.windows),
    )


def _inner_sorted(made: Contraction) -> Contraction:
    """The contraction with its inner dims in the order of the rows' memory, those of size 1 left out."""
    steps = list(made.rows.inner)
    for window in made.rows.windows:
        if window.inner is not None:
            steps[window.inner] = abs(window.dilation) * window.stride
    order = [number for number, size in enumerate(made.inner) if size > 1] or [0]
    order.sort(key=lambda number: -steps[number])

    def changed(factor: Factor) -> Factor:
        windows = tuple(
            window if window.inner is None else replace(window, inner=order.index(window.inner))
            for window in factor.windows
        )
        return replace(factor, inner=tuple(factor.inner[number] for number in order), windows=windows)

    inner = tuple(made.inner[number] for number in order)
    return replace(made, inner=inner, rows=changed(made.rows), columns=changed(made.columns))


def _matmul(graph: Graph, node: Node) -> Contraction:
    """A batched matmul; a batch that one operand does not have is more rows, or columns, of the other."""
    left, right = node.inputs[A.OPERATION_MATMUL_ADESC], node.inputs[A.OPERATION_MATMUL_BDESC]
    a, b = graph.tensors[left], graph.tensors[right]
    dims = graph.tensors[node.outputs[A.OPERATION_MATMUL_CDESC]].dims
    rank = len(dims)
    if not len(a.dims) == len(b.dims) == rank:
        raise Refusal("rank", f"matmul of {a.dims} and {b.dims}")
    shared = [axis for axis in range(rank - 2) if a.dims[axis] > 1 and b.dims[axis] > 1]
    of_rows = [axis for axis in range(rank - 2) if axis not in shared and a.dims[axis] > 1]
    of_columns = [axis for axis in range(rank - 2) if axis not in shared and b.dims[axis] > 1]
    rows, columns = [*of_rows, rank - 2], [*of_columns, rank - 1]
    return Contraction(
        tuple(Dim(dims[axis], axis) for axis in shared),
        (a.dims[-1],),
        _factor(left, a, dims, rows, shared, (a.strides[-1],)),
        _factor(right, b, dims, columns, shared, (b.strides[-2],)),
    )


def _factor(index: int, tensor: Tensor, dims: Dims, free: list[int], batch: list[int], inner: Strides) -> Factor:
    at = tensor.strides
    return Factor(
        index,
        tuple(Dim(dims[axis], axis) for axis in free),
        tuple(at[axis] for axis in batch),
        tuple(at[axis] for axis in free),
        inner,
    )


def _convolution(graph: Graph, node: Node) -> Contraction:
    """A convolution, or its backward pass towards the input; both have cross-correlations only."""
    values = {name: values for name, _, values in node.attributes}
    if values[A.CONVOLUTION_CONV_MODE] != [int(ConvolutionMode.CROSS_CORRELATION)]:
        raise Refusal("mode", "convolutions with flipped filters")
    forward = node.type == D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
    names = (
        (A.OPERATION_CONVOLUTION_FORWARD_X, A.OPERATION_CONVOLUTION_FORWARD_W)
        if forward
        else (A.OPERATION_CONVOLUTION_BWD_DATA_DY, A.OPERATION_CONVOLUTION_BWD_DATA_W)
    )
    source, filter_ = (node.inputs[name] for name in names)
    x, w = graph.tensors[source], graph.tensors[filter_]
    (result,) = (graph.tensors[i] for i in node.outputs.values())
    own, other = (0, 1) if forward else (1, 0)  # dims of the filter: the result's channels, the source's
    groups = x.dims[1] // w.dims[1] if forward else result.dims[1] // w.dims[1]
    made, summed = result.dims[1] // groups, x.dims[1] // groups
    spatial = range(2, len(x.dims))
    taps = [axis for axis in spatial if w.dims[axis] > 1]
    batch = (Dim(groups, 1, made),) if groups > 1 else ()
    of_filter = w.strides[0] * w.dims[0] // groups  # groups are parts of its first dim
    columns = Factor(
        filter_,
        (Dim(made, 1),),
        (of_filter,) * len(batch),
        (w.strides[own],),
        (w.strides[other], *(w.strides[axis] for axis in taps)),
    )
    strides, inner, windows = [x.strides[0]], [x.strides[1]] + [0] * len(taps), []
    for number, axis in enumerate(spatial):
        step, dilation, low = (
            values[name][number]
            for name in (A.CONVOLUTION_FILTER_STRIDES, A.CONVOLUTION_DILATIONS, A.CONVOLUTION_PRE_PADDINGS)
        )
        place = 1 + taps.index(axis) if axis in taps else None
        window = (
            Window(1 + number, place, step, dilation, -low, 1, x.dims[axis], x.strides[axis])
            if forward
            else Window(1 + number, place, 1, -dilation, low, step, x.dims[axis], x.strides[axis])
        )
        last = (result.dims[axis] - 1) * window.step + (w.dims[axis] - 1) * max(window.dilation, 0) + window.low
        least = (w.dims[axis] - 1) * min(window.dilation, 0) + window.low
        if window.divisor == 1 and least == 0 and last < x.dims[axis] and (forward or place is None):
            strides.append(window.step * window.stride)
            if place is not None:
                inner[place] = window.dilation * window.stride
        else:
            strides.append(0)
            windows.append(window)
    free = (Dim(x.dims[0], 0), *(Dim(result.dims[axis], axis) for axis in spatial))
    of_source = (x.strides[1] * summed,) * len(batch)
    rows = Factor(source, free, of_source, tuple(strides), tuple(inner), tuple(windows))
    return Contraction(batch, (summed, *(w.dims[axis] for axis in taps)), rows, columns)
