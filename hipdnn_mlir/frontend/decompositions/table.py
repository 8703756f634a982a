"""Which operators are replaced by others before import, and by what."""

from importlib import import_module

import onnx

from .call import Expansion
from .schema_body import write_body

_FAMILIES = (
    "activation", "arithmetic", "attention", "blocks", "contrib_attention", "gemm", "linear_attention", "normalization", "pooling",
    "quantized", "quantized_products", "reductions", "rotary", "scan", "spectral",
)  # fmt: skip
"""Modules with a dict EXPANSIONS."""

BODIES = (
    ("", "CastLike"), ("", "CausalConvWithState"), ("", "DynamicQuantizeLinear"), ("ai.onnx.preview", "FlexAttention"), ("", "Mish"),
    ("", "NegativeLogLikelihoodLoss"), ("", "SoftmaxCrossEntropyLoss"), ("", "SwiGLU"),
)  # fmt: skip
"""Operators for which the function body in their schema is good."""

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
    "Bernoulli": "random numbers",
    "SequenceMap": "sequences",
}  # fmt: skip
"""Operators that stay although their schema has a function body, and why."""

EXPANSIONS: dict[tuple[str, str], Expansion] = {
    **dict.fromkeys(BODIES, write_body),
    **{
        key: write for family in _FAMILIES for key, write in import_module(f".{family}", __package__).EXPANSIONS.items()
    },
}
"""(domain, operator) -> what writes it by others."""


def expansion(node: onnx.NodeProto) -> Expansion | None:
    """What writes the node by others, None where it stays."""
    return EXPANSIONS.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
