"""Elementwise operators of several operands, and those whose constants torch-mlir rounds."""

from collections.abc import Sequence

from .call import Call
from .registry import decomposes

SELU_ALPHA, SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
"""Defaults of the schema."""


@decomposes("Sum")
def onnx_sum(call: Call) -> Sequence[str | None]:
    """Sum: each partial sum has the dims that its operands broadcast to, not those of the result.

    Source: ONNX, Sum-13.
    """
    return [_total(call)]


@decomposes("Mean")
def mean(call: Call) -> Sequence[str | None]:
    """Mean: the sum over the number of operands.

    Source: ONNX, Mean-13.
    """
    total = _total(call)
    return [call.op("Div", total, call.number(len(call.node.input), total))]


@decomposes("Max", "Min")
def extreme(call: Call) -> Sequence[str | None] | None:
    """Max and Min of other than two operands: as for Sum.

    Source: ONNX, Max-13 and Min-13.
    """
    most, *others = call.node.input
    if len(others) == 1:
        return None
    for operand in others:
        most = call.op(call.node.op_type, most, operand)
    return [most]


def _total(call: Call) -> str:
    total, *others = call.node.input
    for operand in others:
        total = call.op("Add", total, operand)
    return str(total)


@decomposes("Selu")
def selu(call: Call) -> Sequence[str | None] | None:
    """Selu with both coefficients: torch-mlir's default of gamma has five digits.

    Source: ONNX, Selu-22.
    """
    alpha, gamma = call.attr("alpha"), call.attr("gamma")
    if alpha is not None and gamma is not None:
        return None
    alpha, gamma = SELU_ALPHA if alpha is None else alpha, SELU_GAMMA if gamma is None else gamma
    return [call.op("Selu", call.need(0), alpha=alpha, gamma=gamma)]


@decomposes("Softsign")
def softsign(call: Call) -> Sequence[str | None]:
    """Softsign: x / (1 + |x|); torch-mlir converts it from operator set 22 on only.

    Source: ONNX, Softsign-22.
    """
    x = call.need(0)
    return [call.op("Div", x, call.op("Add", call.op("Abs", x), call.number(1.0, x)))]
