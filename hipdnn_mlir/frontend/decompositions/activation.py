"""Activations, alone and with what stands before them."""

import math
from collections.abc import Sequence

from ...ops.spec import Refusal
from .call import Call
from .registry import CONTRIB, decomposes

QUICK_GELU = 1.702
"""The factor that hipdnn-fuse-activations knows, whatever a type makes of it."""


_PARAMETERS = {"HardSigmoid": 2, "Clip": 2, "LeakyRelu": 1, "Elu": 1}


def gelu(call: Call, x: str, approximate: str = "none") -> str:
    """GELU, as the operator where the model's operator set has it."""
    if call.opset >= 20:
        return call.op("Gelu", x, approximate=approximate)
    half, one = call.op("Mul", x, call.number(0.5, x)), call.number(1.0, x)
    if approximate == "none":
        inner = call.op("Erf", call.op("Mul", x, call.number(math.sqrt(0.5), x)))
    else:
        cube = call.op("Mul", call.op("Mul", x, x), call.op("Mul", x, call.number(0.044715, x)))
        inner = call.op("Tanh", call.op("Mul", call.op("Add", x, cube), call.number(math.sqrt(2 / math.pi), x)))
    return call.op("Mul", half, call.op("Add", inner, one))


def _biased(call: Call) -> str:
    x, bias = call.need(0), call.arg(1)
    return call.op("Add", x, bias) if bias else x


@decomposes("Gelu", "BiasGelu", domain=CONTRIB)
def contrib_gelu(call: Call) -> Sequence[str | None]:
    """Gelu and BiasGelu of com.microsoft: by erf.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.Gelu and BiasGelu.
    """
    return [gelu(call, _biased(call))]


@decomposes("FastGelu", domain=CONTRIB)
def fast_gelu(call: Call) -> Sequence[str | None]:
    """FastGelu: by tanh, with an optional bias.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.FastGelu.
    """
    return [gelu(call, _biased(call), "tanh")]


@decomposes("QuickGelu", domain=CONTRIB)
def quick_gelu(call: Call) -> Sequence[str | None]:
    """QuickGelu: x * sigmoid(alpha * x).

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.QuickGelu.
    """
    return [swish(call, call.need(0), call.attr("alpha", QUICK_GELU))]


def swish(call: Call, x: str, alpha: float) -> str:
    """The product x * sigmoid(alpha * x), of 16-bit types in f32 where alpha is not one of theirs."""
    is_known = alpha == 1.0 or math.isclose(alpha, QUICK_GELU, rel_tol=1e-6)
    precise = x if is_known else call.cast(x, call.precision(x))
    scaled = precise if alpha == 1.0 else call.op("Mul", precise, call.number(alpha, precise))
    return call.cast(call.op("Mul", precise, call.op("Sigmoid", scaled)), call.kind(x))


@decomposes("Swish")
def onnx_swish(call: Call) -> Sequence[str | None]:
    """Swish: x * sigmoid(alpha * x).

    Source: ONNX, Swish-24.
    """
    return [swish(call, call.need(0), call.attr("alpha", 1.0))]


@decomposes("BiasAdd", domain=CONTRIB)
def bias_add(call: Call) -> Sequence[str | None]:
    """The sum x + bias + skip.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.BiasAdd.
    """
    return [call.op("Add", _biased(call), call.need(2))]


@decomposes("BiasSplitGelu", domain=CONTRIB)
def bias_split_gelu(call: Call) -> Sequence[str | None]:
    """The first half of x + bias times GELU of the second.

    Source: ONNX Runtime, ContribOperators.md, com.microsoft.BiasSplitGelu.
    """
    x = _biased(call)
    half = call.size(x, -1) // 2
    first, second = call.split(x, call.rank(x) - 1, (half, half))
    return [call.op("Mul", first, gelu(call, second))]


def activate(call: Call, x: str, name: str, parameters: Sequence[float]) -> str:
    """A fused node's activation, with its parameters in the order of ONNX's attributes."""
    if len(parameters) < _PARAMETERS.get(name, 0):
        raise Refusal("attribute", f"{len(parameters)} parameters of {name}")
    if name == "HardSigmoid":
        return call.op(name, x, alpha=parameters[0], beta=parameters[1])
    if name == "Clip":
        return call.op(name, x, call.number(parameters[0], x), call.number(parameters[1], x))
    if name in ("LeakyRelu", "Elu"):
        return call.op(name, x, alpha=parameters[0])
    return call.op(name, x) if name else x
