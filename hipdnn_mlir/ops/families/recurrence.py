"""Recurrence: LSTM, GRU and RNN with the loop over steps in one kernel; weights may be bytes."""

from collections.abc import Mapping, Sequence
from typing import Any

from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I8, I32, I64

from ..registry import HIPDNN_DOMAIN, ONNX, kernel
from ..spec import Call, OpView, Refusal, TensorArg, TensorType
from ..strides import Dims
from .indexing import tensors

RECURRENCE = "Recurrence"
"""The operator of ours that LSTM, GRU and RNN are written with."""
QUANTIZED_RECURRENCE = "QuantizedRecurrence"
"""The one that DynamicQuantizeLSTM is."""
GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
"""What a step computes -> its gates."""
PANEL, DEPTH_STEP = 16, 8
"""Columns of a panel of weights, and what its depth is a multiple of."""
_HELD = {"lstm": ("cell",), "gru": ("bias",)}
"""Operands behind the state: what a step keeps beside it, or adds to the product of the state."""


def depth_of(hidden: int) -> int:
    """Rows of a panel of weights for so many units."""
    return -(-hidden // DEPTH_STEP) * DEPTH_STEP


def panels_of(hidden: int) -> int:
    """Panels of weights for so many units."""
    return -(-hidden // PANEL)


def _types(operands: Sequence[TensorType | None], attributes: Mapping[str, Any]) -> list[TensorType]:
    rows, weights, state = operands[:3]
    if rows is None or weights is None or state is None or [len(t.dims) for t in (rows, weights, state)] != [3, 1, 3]:
        raise Refusal("operand", "rows of three dims, a list of weights and states of three dims are needed")
    (steps, batch, _), (directions, _, hidden) = rows.dims, state.dims
    width = None if hidden is None else panels_of(hidden) * PANEL
    last = TensorType((directions, batch, hidden), rows.dtype)
    lasts = [last, last] if attributes.get("cell") == "lstm" else [last]
    return [
        TensorType((steps, directions, batch, hidden), rows.dtype),
        *lasts,
        TensorType((attributes.get("planes", 3), directions, batch, width), I32),
    ]


def _types_of_bytes(operands: Sequence[TensorType | None], _: Mapping[str, Any]) -> list[TensorType]:
    return _types(operands, {"cell": "lstm", "planes": 4})


@kernel(
    f"{ONNX}{RECURRENCE}",
    function="recurrence",
    onnx=(f"{HIPDNN_DOMAIN}.{RECURRENCE}",),
    precision="narrow",
    results=_types,
)
def recurrence(op: OpView) -> Call:
    """(rows, weights, state, of cell, lengths; cell, reverse): the steps of a recurrence, one after the other, in each direction.

    Floats of one type but the lengths. `cell` is lstm, gru, tanh or relu, of G = 4, 3, 1 and 1 gates in ONNX's order. Rows are products
    of the inputs, and biases, (steps, batch, directions * G * hidden). Weights are the state's, a list of what in C order are
    (directions, hidden / 16 rounded up, G, hidden rounded up to 8, 16): element (d, u, g, k, j) takes unit k of the state to gate g of
    unit 16 u + j, and is 0 where there are no such units. States are (directions, 1 or batch, hidden). Behind the state, an LSTM has that
    of the cell, and a GRU the bias (directions, hidden) that is added to the third gate's product before it is reset. Lengths (i32, i64;
    batch) may be left out. The first direction goes backward with `reverse`, the second always.

    A length of 0 leaves the first state as the last one.

    Results: the states of each step (steps, directions, batch, hidden), zeros beyond a length; the last state, of an LSTM that of the cell,
    too; and numbers that only the kernel reads.
    """
    cell = op.attributes.get("cell")
    if not isinstance(cell, str) or cell not in GATES:
        raise Refusal("attribute", f"cell {cell!r}, expected one of {', '.join(GATES)}")
    operands = tensors(op, len(op.args))
    rows, weights, state, *rest = operands
    held, lengths = rest[: len(_HELD.get(cell, ()))], rest[len(_HELD.get(cell, ())) :]
    if len(held) != len(_HELD.get(cell, ())) or len(lengths) > 1:
        raise Refusal("operand", f"{len(operands)} operands of a {cell}")
    kinds = {operand.type.dtype for operand in (rows, weights, state, *held)}
    if len(kinds) != 1 or not kinds <= {F32, F16, BF16}:
        named = ", ".join(sorted(map(str, kinds)))
        raise Refusal("dtype", f"operands of {named}, expected one of f32, f16 and bf16")
    _check_dims(operands, held, lengths, cell)
    return Call("recurrence", operands, {"cell": cell, "reverse": bool(op.attributes.get("reverse", 0))})


@kernel(
    f"{ONNX}{QUANTIZED_RECURRENCE}",
    function="quantized_recurrence",
    onnx=(f"{HIPDNN_DOMAIN}.{QUANTIZED_RECURRENCE}",),
    precision="wide",
    results=_types_of_bytes,
)
def quantized_recurrence(op: OpView) -> Call:
    """(rows, weights, state, state of cell, factors, shifts, lengths; reverse): the steps of an LSTM whose weights are bytes.

    In front of each step the states of a direction are rounded to bytes, as DynamicQuantizeLinear does: all rows of the batch in one range,
    those that have ended and zero aside. Products of bytes are summed exactly.

    As Recurrence, but for the weights (i8), in pairs along the depth: in C order they are (directions, hidden / 16 rounded up, 4, half of
    hidden rounded up to 8, 16, 2), and element (d, u, g, k, j, i) takes unit 2 k + i of the state. What it stands for is itself plus shifts
    (i32; directions), times factors, a list of (directions, hidden / 16 rounded up, 4, 16). Floats are f32.

    Results: as Recurrence.
    """
    operands = tensors(op, len(op.args))
    if len(operands) not in (6, 7):
        raise Refusal("operand", f"{len(operands)} operands, expected 6, or 7 with lengths")
    state, cell, factors, shifts = operands[2:6]
    kinds = tuple(operand.type.dtype for operand in operands[:6])
    if kinds != (F32, I8, F32, F32, F32, I32):
        raise Refusal("dtype", f"operands of {', '.join(map(str, kinds))}, expected f32, i8, f32, f32, f32, i32")
    _check_dims(operands, [cell], operands[6:], "lstm")
    directions, _, hidden = state.type.static_dims()
    elements = directions * panels_of(hidden) * GATES["lstm"] * PANEL
    if factors.type.dims != (elements,) or shifts.type.dims != (directions,):
        dims = f"{factors.type.dims} and {shifts.type.dims}"
        raise Refusal("shape", f"factors and shifts of dims {dims}, expected {elements} and {directions}")
    return Call("quantized_recurrence", operands, {"reverse": bool(op.attributes.get("reverse", 0))})


def _check_dims(
    operands: Sequence[TensorArg], held: Sequence[TensorArg], lengths: Sequence[TensorArg], cell: str
) -> None:
    """Refuse rows, weights, states and lengths that do not go together."""
    rows, weights, state = operands[:3]
    if any(operand.type.dtype not in (I32, I64) for operand in lengths):
        raise Refusal("dtype", f"lengths of {lengths[0].type.dtype}")
    (_, batch, width), (directions, _, hidden) = rows.type.static_dims(), state.type.static_dims()
    gates = GATES[cell]
    if width != directions * gates * hidden:
        raise Refusal("shape", f"rows of {width} elements for {directions} directions of {gates} gates of {hidden}")
    elements = directions * panels_of(hidden) * gates * depth_of(hidden) * PANEL
    if weights.type.dims != (elements,):
        raise Refusal("shape", f"weights of dims {weights.type.dims}, expected {elements}")
    of_state: list[Dims] = [(directions, size, hidden) for size in (1, batch)]
    of_held = of_state if cell == "lstm" else [(directions, hidden)]
    if state.type.dims not in of_state or any(operand.type.dims not in of_held for operand in held):
        raise Refusal("shape", f"states of dims {', '.join(str(t.type.dims) for t in (state, *held))}")
    if any(operand.type.dims != (batch,) for operand in lengths):
        raise Refusal("shape", f"lengths of dims {lengths[0].type.dims} for a batch of {batch}")
