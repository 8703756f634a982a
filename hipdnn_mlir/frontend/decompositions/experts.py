"""Mixtures of experts: each row goes through the few experts that a router chooses for it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import TensorProto

from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .activation import gelu, swish
from .call import FLOAT, Call
from .quantized_matmul import halves
from .registry import CONTRIB, decomposes

_NORMALIZES = "normalize_routing_weights"
_PREPACKED = "experts in the order of another provider's kernels: export them with qmoe_weights_prepacked=0"
_NO_ORDER = (
    "experts of square matrices in 16 bits, which may be in the order of CUDA's kernels: "
    "export them with qmoe_weights_prepacked=0, which says that they are not"
)


@dataclass(frozen=True)
class _Layer:
    """One matrix for each expert.

    Attributes:
        weights: [experts, n, depth], or codes of `bits` bits in bytes.
        bias: [experts, n], or None.
        scales: f32 [experts, n, blocks] of codes, None of floats.
        zeros: u8 [experts, n, blocks], or None.
        bits: of a code, 0 of floats.
        block: numbers of a scale.
    """

    weights: str
    bias: str | None
    scales: str | None = None
    zeros: str | None = None
    bits: int = 0
    block: int | None = None


@decomposes("MoE", domain=CONTRIB)
def moe(call: Call) -> Sequence[str | None]:
    """MoE: experts of floats, of which the chosen ones alone are read.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.MoE.
    """
    first, second, third = (_floats(call, index) for index in (2, 4, 6))
    return [_mixture(call, (first, second, third), _routed(call, is_normalized=bool(call.attr(_NORMALIZES, 0))))]


@decomposes("QMoE", domain=CONTRIB)
def qmoe(call: Call) -> Sequence[str | None]:
    """QMoE of codes of 4 and 8 bits, as they lie in the file; shares that come from the router sum up to 1, as on its CPU provider.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QMoE. Whether shares are normalized is an attribute there, which its CPU
    provider looks at only where they come from an operand of their own.
    """
    if call.attr("quant_type", "int") != "int" or any(call.arg(index) for index in range(15, 21)):
        raise Refusal("attribute", f"experts of {call.attr('quant_type', 'int')}, or global and activation scales")
    if call.attr("weights_prepacked", -1) == 1:
        raise Refusal("attribute", _PREPACKED)
    first, second, third = layers = tuple(_codes(call, number) for number in range(3))
    if call.attr("weights_prepacked", -1) != 0 and not _has_told_order(call, [layer for layer in layers if layer]):
        raise Refusal("attribute", _NO_ORDER)
    mixing = call.arg(14)
    return [
        _mixture(call, (first, second, third), _shared(call, mixing) if mixing else _routed(call, is_normalized=True))
    ]


def _floats(call: Call, index: int) -> _Layer | None:
    weights = call.arg(index)
    return _Layer(weights, call.arg(index + 1)) if weights else None


def _codes(call: Call, number: int) -> _Layer | None:
    weights, scales, bias = (call.arg(2 + 3 * number + part) for part in range(3))
    if weights is None or scales is None:
        return None
    bits = call.attr(f"fc{number + 1}_expert_weight_bits", 0) or call.attr("expert_weight_bits", 4)
    if bits not in (4, 8):
        raise Refusal("attribute", f"experts of {bits} bits, expected 4 or 8")
    experts, n, width = (call.size(weights, axis) for axis in range(3))
    if call.size(scales, 1) != n:  # the builder does not say it where it means -1, "as the provider likes it"
        raise Refusal("attribute", _PREPACKED)
    depth = width * 8 // bits
    block = call.attr("block_size", 0) or depth
    blocks = -(-depth // block)
    zeros = call.arg(11 + number)
    if zeros and bits == 4:  # rows of bytes: of the blocks of a column, or of the columns of an expert
        lines, length = (experts * n, blocks) if call.attr("block_size", 0) else (experts, n)
        zeros = call.cast(call.slice(halves(call, call.reshape(zeros, lines, -1)), 1, 0, length), TensorProto.UINT8)
    zeros = call.reshape(zeros, experts, n, blocks) if zeros else None
    return _Layer(weights, bias, call.reshape(call.cast(scales, FLOAT), experts, n, blocks), zeros, bits, block)


def _has_told_order(call: Call, layers: Sequence[_Layer]) -> bool:
    """Whether codes cannot be in the order of CUDA's kernels.

    Those swap depth and columns, as the scales' columns tell if the two differ, and take rows of 16 bits alone.

    Source: ONNX Runtime, contrib_ops/cuda/moe/moe_quantization.cc: the types that QMoE is registered for.
    """
    if call.kind(call.need(0)) == FLOAT:
        return True
    return any(call.size(layer.weights, 1) != call.size(layer.weights, 2) * 8 // layer.bits for layer in layers)


def _mixture(call: Call, layers: tuple[_Layer | None, _Layer | None, _Layer | None], routes: tuple[str, str]) -> str:
    (first, second, third), (shares, experts) = layers, routes
    if first is None or second is None:
        raise Refusal("operand", "weights of experts, or their scales, are missing")
    if call.attr("use_sparse_mixer", 0) or call.attr("swiglu_limit_after_activation", 0):
        raise Refusal("attribute", "use_sparse_mixer or swiglu_limit_after_activation")
    x = call.need(0)
    rows = call.op("Reshape", call.cast(x, FLOAT), call.ints(-1, 1, call.size(x, call.rank(x) - 1)))
    inner = _activated(call, rows, experts, first, third)
    each = _through(call, inner, experts, second)
    mixed = call.reduce("ReduceSum", call.op("Mul", each, call.unsqueeze(shares, 2)), (1,), keepdims=False)
    return call.cast(call.op("Reshape", mixed, call.op("Shape", x)), call.kind(x))


def _routed(call: Call, *, is_normalized: bool) -> tuple[str, str]:
    """Shares f32 [rows, k] and numbers [rows, k] of the experts of each row."""
    scores = call.cast(call.need(1), FLOAT)
    if not is_normalized:
        scores = call.op("Softmax", scores, axis=-1)
    best, experts = _best(call, scores)
    return call.op("Softmax", best, axis=-1) if is_normalized else best, experts


def _best(call: Call, scores: str) -> list[str]:
    return call.outs("TopK", scores, call.ints(call.attr("k", 1)), count=2, axis=-1)


def _shared(call: Call, mixing: str) -> tuple[str, str]:
    """The same where shares are an operand [rows, experts], and scores choose alone."""
    _, experts = _best(call, call.cast(call.need(1), FLOAT))
    shares = call.op("GatherElements", call.cast(mixing, FLOAT), experts, axis=1)
    if call.attr(_NORMALIZES, 0):
        shares = call.op("Div", shares, call.reduce("ReduceSum", shares, (1,)))
    return shares, experts


def _through(call: Call, x: str, experts: str, layer: _Layer) -> str:
    """Rows [rows, 1 or k, depth] through a matrix of each of their experts: [rows, k, n]."""
    stated = {"bits": layer.bits, "block_size": layer.block}
    operands = (x, experts, layer.weights, layer.scales, layer.zeros)
    y = call.op("ExpertMatMul", *operands, domain=HIPDNN_DOMAIN, **stated)
    if layer.bias is None:
        return y
    return call.op("Add", y, call.op("Gather", call.cast(layer.bias, FLOAT), experts, axis=0))


def _activated(call: Call, rows: str, experts: str, first: _Layer, third: _Layer | None) -> str:
    """What the activation makes of the first matrix, with the third one where that is not part of it."""
    kind, fusion = call.attr("activation_type", "relu"), call.attr("swiglu_fusion", 0)
    y = _through(call, rows, experts, first)
    if kind == "swiglu" and fusion:
        width = call.size(first.weights, 1) // 2
        pairs = (width, 2) if fusion == 1 else (2, width)
        parts = call.op("Reshape", y, call.ints(0, 0, *pairs))
        axis = 3 if fusion == 1 else 2
        gate, linear = (call.squeeze(call.slice(parts, axis, at, at + 1), axis) for at in range(2))
        return _swiglu(call, gate, linear)
    if kind == "swiglu" and third:
        return _swiglu(call, y, _through(call, rows, experts, third))
    if kind not in _ACTIVATIONS or fusion:
        raise Refusal("attribute", f"activation {kind} with swiglu_fusion {fusion}")
    activated = _ACTIVATIONS[kind](call, y)
    return call.op("Mul", activated, _through(call, rows, experts, third)) if third else activated


_ACTIVATIONS: Mapping[str, Callable[[Call, str], str]] = {
    "relu": lambda call, x: call.op("Relu", x),
    "gelu": lambda call, x: gelu(call, x, "tanh"),
    "silu": lambda call, x: swish(call, x, 1.0),
    "identity": lambda _, x: x,
}


def _swiglu(call: Call, gate: str, linear: str) -> str:
    """G * sigmoid(alpha * G) * (L + beta), with limits above G and on both sides of L."""
    limit = call.attr("swiglu_limit", math.inf)
    if limit != math.inf:
        low, high = call.const(-limit, FLOAT), call.const(limit, FLOAT)
        gate, linear = call.op("Min", gate, high), call.op("Max", call.op("Min", linear, high), low)
    alpha, beta = call.attr("activation_alpha", 1.0), call.attr("activation_beta", 0.0)
    shifted = call.op("Add", linear, call.const(beta, FLOAT)) if beta else linear
    return call.op("Mul", swish(call, gate, alpha), shifted)
