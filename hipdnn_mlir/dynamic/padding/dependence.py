"""Which elements of its operands an element of a result depends on, dim by dim, for whatever rows become: hipDNN operations and kernels.

A row says nothing here: what it becomes does. So an operation new to the table is covered as soon as it can be run, and there is one entry
per operation of hipDNN and per kernel function. What has no entry mixes everything.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor

from ...ops.kernels import ELEMENTWISE
from ...ops.strides import Dims

Labels = tuple[int | None, ...]
"""Per dim the number of an independent dim, or None where its elements are mixed."""


@dataclass(frozen=True)
class Dependence:
    """Element i along an independent dim of the results comes from elements i along that dim of the operands, and from no others.

    Attributes:
        operands: labels of each operand.
        results: labels of each result; None for a dim that no operand has.
        ordered: labels along which the position matters, or elements of the operands before i too: what follows is still no part of it.
        spreads: whether an operand that is one element along an independent dim may be repeated along it.
    """

    operands: Sequence[Labels]
    results: Sequence[Labels]
    ordered: frozenset[int] = frozenset()
    spreads: bool = False


Shapes = Sequence[Dims]
Rule = Callable[[Shapes, Shapes, Mapping[Any, Any]], Dependence]
"""Dims of the operands and of the results, attributes by name."""


def mixes_all(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """Any element may depend on any other."""
    return Dependence([(None,) * len(dims) for dims in operands], [(None,) * len(dims) for dims in results])


def _labels(rank: int, *mixed: int) -> Labels:
    return tuple(None if axis in mixed else axis for axis in range(rank))


def _elementwise(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """All of one rank."""
    return Dependence([_labels(len(dims)) for dims in operands], [_labels(len(dims)) for dims in results], spreads=True)


def _of_equal_size(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """Reductions: what they leave as it is."""
    pairs = enumerate(zip(operands[0], results[0], strict=True))
    labels = tuple(axis if before == after else None for axis, (before, after) in pairs)
    return Dependence([labels], [labels])


def _of_first(count: int) -> Rule:
    """The first dims of the first operand and of the results."""

    def rule(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
        return _leading(count, operands, results)

    return rule


def _leading(count: int, operands: Shapes, results: Shapes) -> Dependence:
    first = _labels(len(operands[0]), *range(count, len(operands[0])))
    rest = [(None,) * len(dims) for dims in operands[1:]]
    return Dependence([first, *rest], [_labels(len(dims), *range(count, len(dims))) for dims in results])


def _layer_norm(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    normalized = attributes[A.OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT]
    return _leading(len(operands[0]) - normalized, operands, results)


def _rms_norm(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """The scale has the dims of x that are normalized, behind ones."""
    scale = operands[1]
    return _leading(next((axis for axis, size in enumerate(scale) if size != 1), len(scale)), operands, results)


def _batch_norm(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """In training: statistics over everything but channels."""
    return Dependence([_channels(dims) for dims in operands], [_channels(dims) for dims in results])


def _channels(dims: Dims) -> Labels:
    return tuple(axis if axis == 1 else None for axis in range(len(dims)))


def _matmul(operands: Shapes, _: Shapes, __: Mapping[Any, Any]) -> Dependence:
    """(..., m, k) times (..., k, n)."""
    rank = len(operands[0])
    batch = tuple(range(rank - 2))
    return Dependence([(*batch, rank - 2, None), (*batch, None, rank - 1)], [_labels(rank)])


def _attention(operands: Shapes, _: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    """Query, key, value, mask; a causal query looks at no key behind it. Counts of valid ones are for one of the batch, pages for any."""
    if A.SDPA_FWD_MAX_SEQ_LEN_KV_EXT in attributes:
        return mixes_all(operands, [operands[0]], attributes)
    query, key = operands[:2]
    causal = bool(attributes.get(A.SDPA_FWD_CAUSAL_MASK_EXT))
    head = 1 if key[1] == query[1] else None
    keys = 2 if causal else None
    labels = [(0, 1, 2, None), (0, head, keys, None), (0, head, keys, 3)]
    masks = 0 if attributes.get(A.SDPA_FWD_PADDING_MASK_EXT) else 1  # counts are there otherwise
    labels += [(0, 1, 2, keys)] * len(operands[3 : 3 + masks])
    rest = [
        (0 if tuple(dims) == (query[0], 1, 1, 1) else None, *(None,) * (len(dims) - 1))
        for dims in operands[3 + masks :]
    ]
    return Dependence([*labels, *rest], [_labels(4)], frozenset({2}) if causal else frozenset())


def _whole_of_blocks(x: Dims, scale: Dims) -> Labels:
    """Dims along which every element has a scale of its own."""
    return tuple(axis if size == scales else None for axis, (size, scales) in enumerate(zip(x, scale, strict=True)))


def _quantize(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """X to y and scales: blocks mix the axis that they lie along."""
    labels = _whole_of_blocks(operands[0], results[1])
    return Dependence([labels], [labels, labels])


def _dequantize(operands: Shapes, _: Shapes, __: Mapping[Any, Any]) -> Dependence:
    """X and scales to y."""
    labels = _whole_of_blocks(*operands)
    return Dependence([labels, labels], [labels])


OPERATIONS: dict[Descriptor, Rule] = {
    Descriptor.OPERATION_POINTWISE_DESCRIPTOR: _elementwise,
    Descriptor.OPERATION_REDUCTION_DESCRIPTOR: _of_equal_size,
    Descriptor.OPERATION_MATMUL_DESCRIPTOR: _matmul,
    Descriptor.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR: _of_first(1),
    Descriptor.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR: _of_first(1),
    Descriptor.OPERATION_RESAMPLE_FWD_DESCRIPTOR: _of_first(2),
    Descriptor.OPERATION_LAYERNORM_DESCRIPTOR_EXT: _layer_norm,
    Descriptor.OPERATION_RMSNORM_DESCRIPTOR_EXT: _rms_norm,
    Descriptor.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT: _elementwise,
    Descriptor.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT: _elementwise,
    Descriptor.OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR: _quantize,
    Descriptor.OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR: _dequantize,
    Descriptor.OPERATION_BATCHNORM_DESCRIPTOR_EXT: _batch_norm,
    Descriptor.OPERATION_SDPA_FWD_DESCRIPTOR: _attention,
    Descriptor.OPERATION_CUSTOM_OP_DESCRIPTOR_EXT: mixes_all,
}
"""Of hipDNN's operations; operands and results in the order in which rows name them."""


def _elementwise_kernel(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    """All tensors have the dims of the space."""
    made = _elementwise(operands, results, attributes)
    ordered = frozenset(step[1] for step in attributes["code"] if step[0] == "index")
    return Dependence(made.operands, made.results, ordered, spreads=True)


def _gather(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    axis, count = attributes["axis"], len(operands[1])
    data = [i if i < axis else i + count - 1 for i in range(len(operands[0]))]
    labels = tuple(None if i == axis else label for i, label in enumerate(data))
    return Dependence([labels, tuple(range(axis, axis + count))], [_labels(len(results[0]))])


def _at_own_positions(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    """Gather and scatter of elements: along other dims than the axis at their own positions, where all have that size."""
    rank, axis = len(operands[0]), attributes["axis"]
    shapes = [*operands, *results]
    free = [i for i in range(rank) if i != axis and len({dims[i] for dims in shapes}) == 1]
    labels = tuple(i if i in free else None for i in range(rank))
    return Dependence([labels for _ in operands], [labels for _ in results])


def _gather_elements(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    made = _at_own_positions(operands, results, attributes)
    axis = attributes["axis"]
    with_axis = [tuple(axis if i == axis else label for i, label in enumerate(made.operands[0]))]
    return Dependence([made.operands[0], *with_axis], with_axis)


def _gather_nd(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    data, indices = operands
    batch, rows = attributes["batch_dims"], len(indices) - 1
    behind = batch + indices[-1]
    labels = [i if i < batch else i - behind + rows if i >= behind else None for i in range(len(data))]
    return Dependence([tuple(labels), (*range(rows), None)], [_labels(len(results[0]))])


def _scatter_nd(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    data, indices, updates = operands
    replaced = indices[-1]
    labels = _labels(len(data), *range(replaced))
    rows = len(indices) - 1
    shown = [None if i < rows else i - rows + replaced for i in range(len(updates))]
    return Dependence([labels, (None,) * len(indices), tuple(shown)], [labels for _ in results])


def _pad(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    pairs = enumerate(zip(operands[0], results[0], attributes["low"], strict=True))
    labels = tuple(axis if before == after and low == 0 else None for axis, (before, after, low) in pairs)
    return Dependence([labels], [labels])


def _slice(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    whole = zip(operands[0], results[0], attributes["starts"], attributes["steps"], strict=True)
    labels = tuple(i if a == b and start == 0 and step == 1 else None for i, (a, b, start, step) in enumerate(whole))
    return Dependence([labels], [labels])


def _resize(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    (x,), (y,) = operands, results
    rank = len(x)
    region = attributes.get("roi", [0.0] * rank + [1.0] * rank)
    labels = tuple(
        i if x[i] == y[i] and attributes["scales"][i] == 1 and (region[i], region[rank + i]) == (0, 1) else None
        for i in range(rank)
    )
    return Dependence([labels], [labels])


def _grid_sample(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """Points (n, ..., d) on images (n, c, ...)."""
    x, grid = operands
    points = (0, *range(2, len(grid)), None)
    return Dependence([_labels(len(x), *range(2, len(x))), points], [_labels(len(results[0]))])


def _along_axis(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    labels = [_labels(len(dims), attributes["axis"]) for dims in (*operands, *results)]
    return Dependence(labels[: len(operands)], labels[len(operands) :])


def _scan(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    if attributes["reverse"]:
        return _along_axis(operands, results, attributes)
    labels = _labels(len(operands[0]))
    return Dependence([labels], [labels], frozenset({attributes["axis"]}))


def _reverse_sequence(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    labels = _labels(len(operands[0]), attributes["time_axis"])
    return Dependence([labels, (attributes["batch_axis"],)], [labels for _ in results])


def _suppress_boxes(_: Shapes, __: Shapes, ___: Mapping[Any, Any]) -> Dependence:
    """Batches and classes; the boxes are those of all classes."""
    of_class = (0, 1, None)
    return Dependence([(0, None, None), of_class, (None,), (None,)], [of_class, (0, 1), of_class])


def _recurrence(operands: Shapes, results: Shapes, _: Mapping[Any, Any]) -> Dependence:
    """Rows of the batch are apart; steps are not, for the last states come from all of them."""
    batch = results[0][2]
    states: list[Labels] = [
        (None, 0, None) if len(dims) == 3 and dims[1] == batch else (0,) if len(dims) == 1 else (None,) * len(dims)
        for dims in operands[2:]
    ]
    return Dependence(
        [(None, 0, None), (None,), *states],
        [(None, None, 0, None), *((None, 0, None) for _ in results[1:-1]), (None, None, 0, None)],
    )


def _cache_update(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    """Rows of the cache and new ones lie anywhere; a start is for one of the batch, or for all. Pages are of any batch."""
    if len(operands) > 3:
        return mixes_all(operands, results, attributes)
    labels = _labels(len(results[0]), 2)
    return Dependence([labels, labels, (0 if operands[2] == results[0][:1] else None,)], [labels])


def _decode_attention(operands: Shapes, results: Shapes, attributes: Mapping[Any, Any]) -> Dependence:
    """Heads and rows of caches depend on each other; counts and angles are for one of the batch, or for all. Pages are of any batch."""
    if len(operands) in (8, 10):
        return mixes_all(operands, results, attributes)
    batch = results[0][:1]
    kept = _labels(4, 1, 2, 3)
    labels = [kept if len(dims) == 4 else (0 if dims == batch else None,) for dims in operands]
    for place in range(7, len(operands)):
        labels[place] = _labels(4, 1, 2, 3) if operands[place][:1] == batch else (None,) * 4
    return Dependence(labels, [kept for _ in results])


def _expert_matmul(operands: Shapes, _: Shapes, __: Mapping[Any, Any]) -> Dependence:
    """Rows are apart from each other, and so are choices where each has a row of its own."""
    choices = 1 if operands[0][1] == operands[1][1] else None
    rest = [(None,) * len(dims) for dims in operands[2:]]
    return Dependence([(0, choices, None), (0, 1), *rest], [(0, 1, None)])


FUNCTIONS: dict[str, Rule] = {
    ELEMENTWISE: _elementwise_kernel,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _at_own_positions,
    "scatter_nd": _scatter_nd,
    "slice": _slice,
    "pad": _pad,
    "reduce": _of_equal_size,
    "resize": _resize,
    "grid_sample": _grid_sample,
    "top_k": _along_axis,
    "arg_reduce": _along_axis,
    "scan": _scan,
    "suppress_boxes": _suppress_boxes,
    "recurrence": _recurrence,
    "quantized_recurrence": mixes_all,  # states of all rows have one range
    "reverse_sequence": _reverse_sequence,
    "cache_update": _cache_update,
    "decode_attention": _decode_attention,
    "expert_matmul": _expert_matmul,
}
"""Of the functions of docs/host-library.md."""
