"""Activation functions of hipDNN's pointwise modes, written in an elementwise kernel's instructions."""

import math
from collections.abc import Callable

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Pointwise as P

from ...ops.graph import Node
from .body import Body


def _number(p: Body, like: int, value: float) -> int:
    return p.constant(value, p.code[like].dtype)


def _sigmoid(p: Body, x: int) -> int:
    return p.apply("sigmoid", x)


def _scaled(p: Body, x: int, factor: float) -> int:
    return x if factor == 1 else p.apply("mul", x, _number(p, x, factor))


def _relu(p: Body, node: Node, x: int) -> int:
    """A line of the given slope below the lower clip; a NaN stays."""
    lower = node.get(A.POINTWISE_RELU_LOWER_CLIP, 0.0)
    upper = node.get(A.POINTWISE_RELU_UPPER_CLIP, math.inf)
    slope = node.get(A.POINTWISE_RELU_LOWER_CLIP_SLOPE, 0.0)
    high = x if upper == math.inf else p.apply("min", x, _number(p, x, upper))
    if slope == 0:
        return p.apply("max", high, _number(p, x, lower))
    low = p.apply("add", _scaled(p, p.apply("sub", x, _number(p, x, lower)), slope), _number(p, x, lower))
    return p.apply("where", p.apply("le", x, _number(p, x, lower)), low, high)


def _gelu(p: Body, node: Node, x: int) -> int:
    del node
    return p.apply("gelu", x)


def _gelu_tanh(p: Body, node: Node, x: int) -> int:
    """0.5 x (1 + tanh(u)) is x sigmoid(2 u), which loses nothing for negative x."""
    del node
    cubed = p.apply("mul", p.apply("mul", x, x), _scaled(p, x, 0.044715))
    return p.apply("mul", x, _sigmoid(p, _scaled(p, p.apply("add", x, cubed), 2 * math.sqrt(2 / math.pi))))


def _swish(p: Body, node: Node, x: int) -> int:
    return p.apply("mul", x, _sigmoid(p, _scaled(p, x, node.get(A.POINTWISE_SWISH_BETA, 1.0))))


def _elu(p: Body, node: Node, x: int) -> int:
    """exp(x) - 1 is 2 t / (1 - t) with t = tanh(x / 2), which loses nothing near 0."""
    t = p.apply("tanh", _scaled(p, x, 0.5))
    lower = p.apply("div", _scaled(p, t, 2), p.apply("sub", _number(p, x, 1), t))
    lower = _scaled(p, lower, node.get(A.POINTWISE_ELU_ALPHA, 1.0))
    return p.apply("where", p.apply("gt", x, _number(p, x, 0)), x, lower)


def _softplus(p: Body, node: Node, x: int) -> int:
    """log(1 + exp(x)) is max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    beta = node.get(A.POINTWISE_SOFTPLUS_BETA, 1.0)
    y = _scaled(p, x, beta)
    rest = p.apply("log1p", p.apply("exp", p.apply("neg", p.apply("abs", y))))
    return _scaled(p, p.apply("add", p.apply("max", y, _number(p, y, 0)), rest), 1 / beta)


def _add_square(p: Body, node: Node, x: int, y: int) -> int:
    del node
    return p.apply("add", x, p.apply("mul", y, y))


ACTIVATIONS: dict[P, Callable[..., int]] = {
    P.RELU_FWD: _relu,
    P.SIGMOID_FWD: lambda p, _, x: _sigmoid(p, x),
    P.GELU_FWD: _gelu,
    P.GELU_APPROX_TANH_FWD: _gelu_tanh,
    P.SWISH_FWD: _swish,
    P.ELU_FWD: _elu,
    P.SOFTPLUS_FWD: _softplus,
    P.ADD_SQUARE: _add_square,
}
"""By mode: writes the instructions for operands of one type; options are the node's."""
