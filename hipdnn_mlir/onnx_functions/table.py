"""Which operators are replaced by others before import, and by what."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import onnx

from . import activation, attention, contrib_attention, gemm, normalization, quantized, quantized_products, rotary
from .call import Expansion
from .schema_body import write_body

CONTRIB = "com.microsoft"
_FAMILIES = (activation, attention, contrib_attention, gemm, normalization, quantized, quantized_products, rotary)

BODIES = frozenset({
    "AffineGrid", "BlackmanWindow", "CastLike", "CausalConvWithState", "CenterCropPad", "DynamicQuantizeLinear", "FlexAttention", "HammingWindow", "HannWindow",
    "Mish", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish",
})  # fmt: skip
"""Operators written as their ONNX function bodies."""

_WRITTEN: dict[tuple[str, str], Expansion] = {key: write for family in _FAMILIES for key, (write, _) in family.EXPANSIONS.items()}


def expansion(node: onnx.NodeProto, opset: int) -> Expansion | None:
    """What writes the node by others, None where it stays."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    found = _WRITTEN.get((domain, node.op_type))
    if found is None and domain in ("", "ai.onnx.preview") and node.op_type in BODIES:
        return write_body
    return found
