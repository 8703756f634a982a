"""Axes that operators keep apart: which elements of the operands make those of an axis of the result."""

from collections.abc import Callable, Sequence
from math import prod

import onnx

from ..ops.strides import Dims
from .graph_edits import GraphEdits
from .shape_inference import attributes_of

_MATRIX = 2
"""Dims."""
Axes = Sequence[int | None] | None
"""Per operand of a node the axis whose elements make those of an axis of the result, None for one that is read whole; None: all are."""


def axes_read(node: onnx.NodeProto, edits: GraphEdits, axis: int) -> Axes:
    """The axes whose elements make those of an axis of a node's first result; None, too, where dims are not known."""
    rule = _RULES.get(node.op_type) if not node.domain else None
    found = [edits.dims(name) if name else () for name in node.input]
    result = edits.dims(node.output[0])
    if rule is None or result is None:
        return None
    dims = [each for each in found if each is not None]
    return rule(node, dims, result, axis) if len(dims) == len(found) else None


def is_elementwise(node: onnx.NodeProto) -> bool:
    """Whether a node computes each element from those at its place, of operands that are repeated to the result's dims."""
    return not node.domain and node.op_type in _ELEMENTWISE


def _elementwise(_: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    places = [axis - len(result) + len(dims) for dims in operands]
    return [
        place if place >= 0 and dims[place] == result[axis] else None
        for place, dims in zip(places, operands, strict=True)
    ]


def _norm(node: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    first = attributes_of(node).get("axis", -1) % len(result)
    return [axis, *[None] * (len(operands) - 1)] if axis < first else None


def _quantize(node: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    scale = operands[1]
    is_apart = prod(scale) == 1 or (len(scale) == 1 and attributes_of(node).get("axis", 1) % len(result) != axis)
    return [axis, *[None] * (len(operands) - 1)] if is_apart else None


def _softmax(node: onnx.NodeProto, _: Sequence[Dims], result: Dims, axis: int) -> Axes:
    return [axis] if axis != attributes_of(node).get("axis", -1) % len(result) else None


def _matmul(node: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    left, right = operands
    if min(len(left), len(right)) < _MATRIX or axis == len(result) - 1:
        return None
    return [len(left) - 2, None] if axis == len(result) - 2 else _elementwise(node, operands, result, axis)


def _gemm(node: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    if axis != 0 or attributes_of(node).get("transA", 0):
        return None
    return [0, None, *(_elementwise(node, operands[2:], result, axis) or ())]


def _transpose(node: onnx.NodeProto, _: Sequence[Dims], result: Dims, axis: int) -> Axes:
    return [int(attributes_of(node).get("perm", list(reversed(range(len(result)))))[axis])]


def _reshape(node: onnx.NodeProto, operands: Sequence[Dims], result: Dims, axis: int) -> Axes:
    dims, *more = operands
    if 0 in result or (node.op_type == "Squeeze" and not more):  # that would take the axis away
        return None
    before = prod(result[:axis])
    for place, size in enumerate(dims):
        if size == result[axis] and prod(dims[:place]) == before:
            return [place, *[None] * len(more)]
    return None


_ELEMENTWISE = (
    "Abs", "Add", "Cast", "Clip", "Div", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Log", "Max",
    "Min", "Mish", "Mul", "Neg", "Not", "Pow", "Reciprocal", "Relu", "Sigmoid", "Softplus", "Sqrt", "Sub", "Swish", "Tanh", "Where",
)  # fmt: skip
_RULES: dict[str, Callable[[onnx.NodeProto, Sequence[Dims], Dims, int], Axes]] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _norm),
    **dict.fromkeys(("QuantizeLinear", "DequantizeLinear"), _quantize),
    "Softmax": _softmax,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Transpose": _transpose,
    **dict.fromkeys(("Reshape", "Squeeze", "Unsqueeze"), _reshape),
}
