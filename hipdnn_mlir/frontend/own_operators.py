"""Operators that only the op table, an extension, or a rewriting before import knows, and the types of their results."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from hipdnn_mlir_runtime.dtypes import BOOL, I64
from hipdnn_mlir_runtime.errors import NO_ROW, Reject

from ..ops.registry import HIPDNN_DOMAIN, ONNX
from ..ops.spec import Refusal, Results, TensorType
from ..ops.table import rows
from .onnx_types import BY_ONNX, CODED_BY_ONNX

RESULTS: dict[tuple[str, str], Results] = {
    (HIPDNN_DOMAIN, name.removeprefix(ONNX)): row.results for name, row in rows().items() if row.results
}
"""(domain, operator) -> the types of its results."""
KINDS = BY_ONNX | CODED_BY_ONNX
"""Element types of their operands and results, by ONNX's numbers."""


def _retyped(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    """The first operand in the type `to`, u8 without."""
    if len(operands) != 1 or operands[0] is None:
        raise Refusal("operand", f"{len(operands)} operands, expected one")
    kind = KINDS.get(attributes.get("to", onnx.TensorProto.UINT8))
    if kind is None:
        raise Refusal("attribute", "an unknown element type")
    return [TensorType(operands[0].dims, kind)]


CODES, OF_CODES = "Codes", "OfCodes"
"""Operators of ours that exist before import alone: the codes of values of few bits, and back."""
BITS = "Bits"
"""BitCast for models of versions that lack it; of the same name as ONNX's, it would keep onnx's reference implementation from loading."""
RESULTS.update(dict.fromkeys(((HIPDNN_DOMAIN, name) for name in (CODES, OF_CODES, BITS)), _retyped))
POSITIONS, SELECTED, CHOSEN, DISTINCT = "Positions", "Selected", "Chosen", "Distinct"
"""NonZero, Compress, NonMaxSuppression and Unique at the largest size that their results can have, with the number of rows as i64[1]."""
VALID, MASKED, REPEATED, JOINED, NUMBER, INDICES, SCATTERED = (
    "Valid",
    "Masked",
    "Repeated",
    "Joined",
    "Number",
    "Indices",
    "Scattered",
)
"""What forms of other operators are made of that know how many rows of a list count."""  # fmt: skip
_ONE = TensorType((1,), I64)


def _positions(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    if x is None or not x.dims:
        raise Refusal("operand", "NonZero of a scalar")
    return [TensorType((len(x.dims), _product(x.dims)), I64), _ONE]


def _selected(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    x, condition = operands
    axis = attributes.get("axis")
    if x is None or condition is None or len(condition.dims) != 1:
        raise Refusal("operand", "expected a list of conditions")
    dims = list(x.dims) if axis is not None else [_product(x.dims)]
    axis = axis or 0
    (bound,) = condition.dims
    if not -len(dims) <= axis < len(dims) or (bound or 0) > (dims[axis] or math.inf):
        raise Refusal("shape", f"{bound} conditions along axis {axis} of {dims}")
    dims[axis] = bound
    return [TensorType(tuple(dims), x.dtype), _ONE]


def _chosen(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    scores = operands[1] if len(operands) > 1 else None
    if scores is None or len(scores.dims) != 3:
        raise Refusal("operand", "expected scores of three dims")
    return [TensorType((_product((*scores.dims[:2], attributes.get("most", 0))), 3), I64), _ONE]


def _distinct(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    (x,) = operands
    if x is None:
        raise Refusal("operand", "an operand is missing")
    size = _product(x.dims)
    numbers = TensorType((size,), I64)
    return [TensorType((size,), x.dtype), numbers, numbers, numbers, _ONE]


def _valid(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    x = _needed(operands)
    return [TensorType((x.dims[attributes.get("axis", 0)],), BOOL)]


def _like_first(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    return [_needed(operands)]


def _number(_: Sequence[TensorType | None], __: Mapping[str, Any]) -> list[TensorType]:
    return [_ONE]


def _needed(operands: Sequence[TensorType | None]) -> TensorType:
    if not operands or operands[0] is None:
        raise Refusal("operand", "an operand is missing")
    return operands[0]


def _product(dims: Sequence[int | None]) -> int | None:
    """How many elements dims have, where all are known."""
    known = [size for size in dims if size is not None]
    return math.prod(known) if len(known) == len(dims) else None


_COUNTED: dict[str, Results] = {
    POSITIONS: _positions,
    SELECTED: _selected,
    CHOSEN: _chosen,
    DISTINCT: _distinct,
    VALID: _valid,
    NUMBER: _number,
    **dict.fromkeys((MASKED, REPEATED, JOINED, INDICES, SCATTERED), _like_first),
}
RESULTS.update({(HIPDNN_DOMAIN, name): results for name, results in _COUNTED.items()})


def unknown_operators(model: onnx.ModelProto) -> list[Reject]:
    """The nodes of other domains that nothing has replaced: in front of the import operators are known by name alone."""
    return [
        Reject(node.op_type, NO_ROW, "the op table has no row for it", node.name)
        for node in model.graph.node
        if node.domain and (node.domain, node.op_type) not in RESULTS
    ]
