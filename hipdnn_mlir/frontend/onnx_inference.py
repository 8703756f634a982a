"""onnx's shape inference (1.23.2), kept from what it takes without end and from operands that it reads beyond."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import onnx
from onnx.shape_inference import InferenceError

_LONG_DIM = 1 << 19
"""More than a list of sizes has, or a vocabulary."""
_FOLLOWED = frozenset({"Add", "Cast", "Concat", "Identity", "Mul", "Squeeze", "Sub", "Unsqueeze"})
"""Operators whose elements onnx follows from those of their operands."""


def inferred(model: onnx.ModelProto, *, is_strict: bool = False, follows_data: bool = True) -> onnx.ModelProto:
    """The model with the types that onnx infers.

    Args:
        model: not modified.
        is_strict: whether a node that onnx cannot infer is an error.
        follows_data: whether sizes that are computed from sizes are to be followed. They are not where a dim is so long that a list of as
            many numbers may be computed, or constants are joined to as many: onnx has an object for each, made anew for every node, 0.3 us
            and 100 bytes.

    Raises:
        InferenceError: shapes do not fit.
    """
    with naming_short_operands():
        follows_data = follows_data and not _has_long_dim(model) and not _joins_many(model.graph)
        return onnx.shape_inference.infer_shapes(model, strict_mode=is_strict, data_prop=follows_data)


@contextmanager
def naming_short_operands() -> Iterator[None]:
    """Say what it means where onnx asks for a number that an operand does not have."""
    try:
        yield
    except IndexError as error:
        raise InferenceError("an operand has fewer numbers than its operator takes") from error


def _has_long_dim(model: onnx.ModelProto) -> bool:
    values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    return any(dim.dim_value > _LONG_DIM for value in values for dim in value.type.tensor_type.shape.dim)


def _joins_many(graph: onnx.GraphProto) -> bool:
    """Whether constants are joined to long lists, as a chain of Concat does that doubles one."""
    counts = {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            counts[node.output[0]] = max((math.prod(attribute.t.dims) for attribute in node.attribute), default=0)
        elif node.op_type in _FOLLOWED and all(name in counts for name in node.input):
            of_operands = [counts[name] for name in node.input]
            counts[node.output[0]] = sum(of_operands) if node.op_type == "Concat" else max(of_operands, default=0)
    return any(count > _LONG_DIM for count in counts.values())
