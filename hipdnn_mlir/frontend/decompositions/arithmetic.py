"""Elementwise operators of several operands, and those whose constants torch-mlir rounds."""

from collections.abc import Sequence

from ...ops.spec import Refusal
from .call import Call
from .registry import decomposes

MOST_ROWS = 3
"""Of a matrix whose determinant is written out: the number of products grows as the factorial."""
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


@decomposes("Det")
def determinant(call: Call) -> Sequence[str | None]:
    """Det of matrices of up to three rows: products of their elements, from the first row on.

    Source: ONNX, Det-22.
    """
    x = call.need(0)
    rank, rows = call.rank(x), call.size(x, -2)
    if rows > MOST_ROWS:
        raise Refusal("shape", f"the determinant of a matrix of {rows} rows; at most {MOST_ROWS}")

    def element(row: int, column: int) -> str:
        return call.squeeze(call.slice(call.slice(x, rank - 2, row, row + 1), rank - 1, column, column + 1), -2, -1)

    def minor(row: int, columns: Sequence[int]) -> str:
        total = ""
        for i, column in enumerate(columns):
            others = [each for each in columns if each != column]
            term = call.op("Mul", element(row, column), minor(row + 1, others)) if others else element(row, column)
            total = call.op("Sub" if i % 2 else "Add", total, term) if total else term
        return total

    return [minor(0, range(rows))]


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
