"""Which operators are replaced by others before import, and by what."""

import onnx

from . import (  # noqa: F401 - a family enters its operators when it is imported
    activation,
    arithmetic,
    attention,
    branches,
    classical,
    contrib_attention,
    counted,
    experts,
    features,
    float8,
    forests,
    gemm,
    images,
    linear_attention,
    normalization,
    pooling,
    quantized,
    quantized_matmul,
    quantized_recurrent,
    random_numbers,
    recurrent,
    reductions,
    rotary,
    sampling,
    scan,
    schema_body,
    spectral,
)
from .registry import DECOMPOSITIONS, Decomposition

__all__ = ["DECOMPOSITIONS", "KEPT", "decomposition"]


KEPT = {
    **dict.fromkeys(
        (
            "Celu", "Clip", "Elu", "Gelu", "GreaterOrEqual", "HardSigmoid", "HardSwish", "LeakyRelu",
            "LessOrEqual", "LogSoftmax", "PRelu", "Relu",
            "Shrink", "Softmax", "Softplus", "ThresholdedRelu",
        ),
        "the compiler has it, or what torch-mlir makes of it",
    ),
    "Range": "its body is a loop; the compiler has it",
    "SequenceMap": "sequences",
}  # fmt: skip
"""Operators that stay although their schema has a function body, and why."""


def decomposition(node: onnx.NodeProto) -> Decomposition | None:
    """What writes the node by others, None where it stays."""
    return DECOMPOSITIONS.get((node.domain, node.op_type))
