"""A row of the op table."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .emitter import Emitter, Value
from .kernels import ElementwiseBuilder
from .spec import Call, Movement, OpView, Precision, Refusal, Results

Emission = Callable[[Emitter, OpView], Value | list[Value]]
ElementwiseEmission = Callable[[ElementwiseBuilder, OpView], Value | list[Value]]


@dataclass(frozen=True)
class OpRow:
    """One row of the table: what hipDNN's operations, data movement or kernels make of an op.

    At least one of `emit`, `move`, `launch` and `call` is set. hipDNN comes first, then movement, then a kernel; a movement with an
    emission can also be absorbed into a region. An emission of nothing but pointwise nodes serves as an elementwise kernel too, for dtypes
    that hipDNN lacks.

    Attributes:
        name: torch op, or `hipdnn.onnx.X` for an ONNX operator that torch-mlir's conversion is kept from.
        becomes: the hipDNN operations or data movement, for people.
        emit: builds the nodes of one op; refuses by raising Refusal.
        move: describes the op as a data movement; refuses by raising Refusal.
        launch: writes the op as instructions of an elementwise kernel; refuses by raising Refusal.
        call: describes the op as one kernel of its own; refuses by raising Refusal.
        known: operands of an ONNX operator that have to be known at compile time, by position.
        source: the document its semantics come from.
        onnx: ONNX operators that arrive as this op, for the docs.
        precision: what hipdnn-convert-precision lets it run in.
        results: types of the results of an operator of the domain `hipdnn`; ONNX knows those of its own.
        keeps: operands that stay f32 beside narrow ones, by position; a wide op with such reads the others, and writes, in either type.
    """

    name: str
    becomes: str
    emit: Emission | None = None
    move: Callable[[OpView], Movement] | None = None
    source: str = ""
    onnx: tuple[str, ...] = field(default=())
    launch: ElementwiseEmission | None = None
    call: Callable[[OpView], Call] | None = None
    known: tuple[int, ...] = ()
    precision: Precision = "follow"
    keeps: tuple[int, ...] = ()
    results: Results | None = None


def moves(row: OpRow, op: OpView) -> bool:
    """Whether the row sees the op as a data movement."""
    try:
        return row.move is not None and bool(row.move(op))
    except Refusal:
        return False
