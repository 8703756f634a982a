"""Sizes that a model's operators fix, or relate to each other: found where they refuse others (adr/0030)."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import combinations

import onnx

from hipdnn_mlir_runtime.errors import DynamicDimensionError
from hipdnn_mlir_runtime.expressions import Expressions, Size

from ..dynamic.facts import Values
from ..dynamic.input_sizes import InputSizes
from ..dynamic.solver import Solver
from ..ops.evaluate import Array
from ..ops.strides import Dims
from .multiples import clash, with_multiples
from .shape_inference import PartialDims, SizesContradictError, attributes_of
from .sizes.samples import samples_for

logger = logging.getLogger(__name__)

Pairs = Iterator[tuple[int | None, int | None]]
"""Sizes that are to be equal, None where not known."""


def related(
    proto: onnx.ModelProto,
    sizes: InputSizes,
    promised: Collection[str],
    where: str = "model",
    external: Mapping[str, Array] | None = None,
) -> InputSizes:
    """A model's sizes where each that its operators fix is a number, or an expression of others; else with what they are multiples of.

    Before: x[n, k] times w[64, 8], mask[t] added to concat(past[p], new[s]). After: k is 64, t is p + s.

    Args:
        proto: the model; not modified.
        sizes: its inputs.
        promised: names by which a user speaks of sizes: they stay.
        where: the model's file, for messages.
        external: as for `slim_models`.
    """
    for _ in sizes.table.symbols:
        found = _relation(proto, sizes, promised, where, external)
        if found is None:
            break
        symbol, size = found
        logger.info("%r is not open: the model's operators fix it, or relate it to other dimensions", symbol)
        sizes = sizes.replaced(symbol, size)
    return with_multiples(proto, sizes, where, external)


def _relation(
    proto: onnx.ModelProto,
    sizes: InputSizes,
    promised: Collection[str],
    where: str,
    external: Mapping[str, Array] | None,
) -> tuple[str, Size] | None:
    """A symbol, and the size that it has to be for the first node that refuses its operands."""
    points = next(iter(samples_for(proto, sizes))).points
    known: list[SizesContradictError] = []
    for point in points:
        refused = clash(proto, sizes.at(point), where, external)
        if refused is None:
            return None
        known.append(refused)
    if len({(refused.node.op_type, refused.node.name) for refused in known}) > 1:
        return None
    columns = [list(differing(refused)) for refused in known]
    if len({len(column) for column in columns}) > 1:
        return None
    for pairs in zip(*columns, strict=True):
        a, b = zip(*pairs, strict=True)
        found = _solved(sizes.table, points, promised, a, b)
        if found is not None:
            return found
    return None


def _solved(
    table: Expressions, points: Sequence[Sequence[int]], promised: Collection[str], a: Values, b: Values
) -> tuple[str, Size] | None:
    """The symbol that makes two sizes equal, and what it is: one that stands alone before others, the last before those before it."""
    solver = Solver(table, points)
    candidates = []
    for position, name in enumerate(table.symbols):
        own = tuple(point[position] for point in points)
        for side, other in ((a, b), (b, a)):
            candidates.append(
                (side == own, position, name, tuple(o - s + v for o, s, v in zip(other, side, own, strict=True)))
            )
    for _, _, name, wanted in sorted(candidates, reverse=True):
        if name in promised or min(wanted) <= 0:
            continue
        try:
            size = solver.solve(wanted)
        except DynamicDimensionError:
            continue
        if size is not None and name not in table.names(size):
            return name, size
    return None


# -- which sizes an operator wants equal ----------------------------------------------------------------------------------------------


def differing(refused: SizesContradictError) -> Iterator[tuple[int, int]]:
    """The sizes of a node's operands that it needs to be equal, and that differ.

    Args:
        refused: the node that refuses its operands.
    """
    node = refused.node
    operands = [refused.dims[name] for name in node.input if name in refused.dims]
    pairs = _reshaped(operands[0], refused.shape) if node.op_type == "Reshape" else _wanted(node, operands)
    for a, b in pairs:
        if a is not None and b is not None and a != b:
            yield a, b


def _wanted(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    if node.op_type in _BROADCASTING:
        return _broadcast(operands)
    return _RULES[node.op_type](node, operands) if node.op_type in _RULES else iter(())


def _reshaped(x: PartialDims, shape: Dims) -> Pairs:
    """Reshape: sizes that stay, of which the first is a guess where others are computed."""
    if x and shape and shape[0] > 0:
        yield x[0], shape[0]


def _broadcast(operands: Sequence[PartialDims]) -> Pairs:
    for left, right in combinations(operands, 2):
        for a, b in zip(reversed(left), reversed(right), strict=False):
            if 1 not in (a, b):
                yield a, b


def _joined(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    """Concat: all sizes but that of its axis."""
    axis = attributes_of(node)["axis"] % max(len(operands[0]), 1)
    for dims in operands[1:]:
        for index, (a, b) in enumerate(zip(operands[0], dims, strict=False)):
            if index != axis:
                yield a, b


def _cached(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    """CacheUpdate: all sizes of the cache and of what is new but the number of rows, and in pages the number of these."""
    pages = 4
    is_paged = len(node.input) > pages and bool(node.input[pages])
    yield from ((operands[0][axis], operands[1][axis]) for axis in ((1, 3) if is_paged else (0, 1, 3)))


def _attended(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    """CachedAttention: batch, queries and keys of what is added to the scores."""
    bias = 5
    if len(node.input) > bias and node.input[bias] and len(operands) > bias:
        query, key, added = operands[0], operands[1], operands[bias]
        yield from _broadcast(((query[0], query[1], query[2], key[2]), added))


def _multiplied(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    """MatMul: what is summed over, and the batch."""
    del node
    if len(operands) == 2 and all(operands):
        a, b = operands
        yield a[-1], b[-2] if len(b) > 1 else b[0]
        yield from _broadcast((a[:-2], b[:-2]))


def _gemm(node: onnx.NodeProto, operands: Sequence[PartialDims]) -> Pairs:
    """Gemm: what is summed over."""
    attributes = attributes_of(node)
    if [len(dims) for dims in operands[:2]] == [2, 2]:
        a, b = operands[:2]
        yield a[0 if attributes.get("transA") else 1], b[1 if attributes.get("transB") else 0]


_RULES: Mapping[str, Callable[[onnx.NodeProto, Sequence[PartialDims]], Pairs]] = {
    "CacheUpdate": _cached,
    "CachedAttention": _attended,
    "Concat": _joined,
    "MatMul": _multiplied,
    "Gemm": _gemm,
}
_BROADCASTING = frozenset(
    {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max",
     "Mean", "Min", "Mod", "Mul", "Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor"}
)  # fmt: skip
