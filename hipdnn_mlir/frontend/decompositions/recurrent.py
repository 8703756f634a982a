"""LSTM, GRU and RNN: one kernel with the loop over steps inside, or written out step by step (adr/0041, adr/0063)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...ops.families.recurrence import PANEL, RECURRENCE, depth_of, panels_of
from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .activation import activate
from .call import BFLOAT16, FLOAT, FLOAT16, INT64, Call
from .registry import decomposes
from .steps import MAX_STEPS, looped_cell

_PARAMETERS: dict[str, tuple[float | None, float | None]] = {
    "Affine": (1.0, 0.0), "LeakyRelu": (0.01, None), "ThresholdedRelu": (1.0, None), "ScaledTanh": (1.0, 1.0),
    "HardSigmoid": (0.2, 0.5), "Elu": (1.0, None),
}  # fmt: skip
"""Alpha and beta of the activations that have them, where a node does not state them."""
_OF_CELL = 2
_PLAIN = frozenset({"Relu", "Tanh", "Sigmoid", "Softsign", "Softplus"})
Activation = Callable[[str], str]
States = tuple[str | None, ...]
"""What one step hands to the next; None for zeros."""


@dataclass(frozen=True)
class _Direction:
    """The parts of a node that belong to one of its directions.

    Attributes:
        call: the node.
        index: its number.
        is_backward: whether it begins at the end.
        hidden: the size of a state.
        rows: [steps, batch, gates * hidden], the inputs times their weights, plus biases.
        weights: [hidden, gates * hidden] for the state, by columns.
        bias: [1, gates * hidden] of the state, None where there is none or where `rows` has it.
        peepholes: [1, hidden] each.
        activations: f, g, h.
    """

    call: Call
    index: int
    is_backward: bool
    hidden: int
    rows: str
    weights: str
    bias: str | None
    peepholes: list[str]
    activations: list[Activation]

    def gates(self, rows: str) -> list[str]:
        """The parts of rows that belong to one gate each."""
        count = self.call.size(rows, -1) // self.hidden
        return self.call.split(rows, self.call.rank(rows) - 1, [self.hidden] * count)

    def plus_state(self, rows: str, state: str | None) -> str:
        """Rows plus the state times its weights."""
        return rows if state is None else self.call.op("Add", self.call.op("MatMul", state, self.weights), rows)


Step = Callable[[_Direction, str, States], States]


@decomposes("LSTM")
def lstm(call: Call) -> Sequence[str | None]:
    """LSTM: the inputs' products for all steps at once, then a product and the gates for each step.

    Source: ONNX, LSTM-22.
    """
    return _recurrent(call, _lstm_step, gates=4, states=2, defaults=("Sigmoid", "Tanh", "Tanh"))


@decomposes("GRU")
def gru(call: Call) -> Sequence[str | None]:
    """GRU, as LSTM.

    Source: ONNX, GRU-22.
    """
    return _recurrent(call, _gru_step, gates=3, states=1, defaults=("Sigmoid", "Tanh"))


@decomposes("RNN")
def rnn(call: Call) -> Sequence[str | None]:
    """RNN, as LSTM.

    Source: ONNX, RNN-22.
    """
    return _recurrent(call, _rnn_step, gates=1, states=1, defaults=("Tanh",))


def _lstm_step(part: _Direction, rows: str, states: States) -> States:
    call, (state, cell), (f, g, h) = part.call, states, part.activations
    enter, leave, forget, candidate = part.gates(part.plus_state(rows, state))
    peepholes: list[str | None] = [*part.peepholes] or [None] * 3
    enter_peephole, leave_peephole, forget_peephole = peepholes
    enter = f(_peeped(call, enter, enter_peephole, cell))
    new = call.op("Mul", enter, g(candidate))
    if cell is not None:
        if call.attr("input_forget", 0):
            kept = call.op("Sub", call.number(1, enter), enter)
        else:
            kept = f(_peeped(call, forget, forget_peephole, cell))
        new = call.op("Add", call.op("Mul", kept, cell), new)
    leave = f(_peeped(call, leave, leave_peephole, new))
    return call.op("Mul", leave, h(new)), new


def _peeped(call: Call, gate: str, peephole: str | None, cell: str | None) -> str:
    return gate if peephole is None or cell is None else call.op("Add", gate, call.op("Mul", peephole, cell))


def _gru_step(part: _Direction, rows: str, states: States) -> States:
    call, (state,), (f, g) = part.call, states, part.activations
    hidden = part.hidden
    both, candidate = call.split(rows, call.rank(rows) - 1, [2 * hidden, hidden])
    weights = call.split(part.weights, 1, [2 * hidden, hidden])
    bias = None if part.bias is None else call.slice(part.bias, 1, 2 * hidden, 3 * hidden)
    if state is not None:
        both = call.op("Add", call.op("MatMul", state, weights[0]), both)
    update, reset = map(f, part.gates(both))
    if call.attr("linear_before_reset", 0):
        product = None if state is None else call.op("MatMul", state, weights[1])
        inner = call.op("Add", product, bias) if product and bias else product or bias
        added = None if inner is None else call.op("Mul", reset, inner)
    else:
        added = None if state is None else call.op("MatMul", call.op("Mul", reset, state), weights[1])
    candidate = g(candidate if added is None else call.op("Add", added, candidate))
    new = call.op("Mul", call.op("Sub", call.number(1, update), update), candidate)
    return (new if state is None else call.op("Add", new, call.op("Mul", update, state)),)


def _rnn_step(part: _Direction, rows: str, states: States) -> States:
    return (part.activations[0](part.plus_state(rows, states[0])),)


def _recurrent(call: Call, step: Step, gates: int, states: int, defaults: Sequence[str]) -> Sequence[str | None]:
    cell = looped_cell(call.node)
    if cell is not None and call.kind(call.need(0)) in (FLOAT, FLOAT16, BFLOAT16):
        return _looped(call, cell, gates, states)
    return _written_out(call, step, gates, states, defaults)


def _looped(call: Call, cell: str, gates: int, states: int) -> Sequence[str | None]:
    """One kernel for all steps behind the inputs' product."""
    x, is_batch_first = call.need(0), bool(call.attr("layout", 0))
    kind = call.kind(x)
    x = call.transpose(x, 1, 0, 2) if is_batch_first else x
    weights, recurrence, bias = call.need(1), call.need(2), call.arg(3)
    directions, hidden, width = sizes_of(call, weights, recurrence, gates)
    rows = call.op("MatMul", x, call.transpose(call.reshape(weights, directions * width, -1), 1, 0))
    held = [first_state(call, 5 + index, directions, hidden, kind) for index in range(states)]
    of_state = call.const(np.zeros((directions, hidden)), kind)
    if bias is not None:
        of_inputs, own = call.split(bias, 1, [width, width])
        if cell == "gru":
            of_state = call.slice(own, 1, 2 * hidden, 3 * hidden)
            own = call.op("Mul", own, call.const(np.repeat([1, 1, 0], hidden).reshape(1, width), kind))
        rows = call.op("Add", rows, call.reshape(call.op("Add", of_inputs, own), -1))
    if cell == "gru":
        held.append(of_state)
    made = call.outs(
        RECURRENCE,
        rows,
        panels(call, recurrence, gates),
        *held,
        call.arg(4),
        count=states + 2,
        domain=HIPDNN_DOMAIN,
        cell=cell,
        reverse=int(call.attr("direction", "forward") == "reverse"),
    )
    y, *last = made[: states + 1]
    if is_batch_first:
        return [call.transpose(y, 2, 0, 1, 3), *(call.transpose(each, 1, 0, 2) for each in last)]
    return [y, *last]


def first_state(call: Call, index: int, directions: int, hidden: int, kind: int) -> str:
    """What an operand says that steps begin with, [directions, batch, hidden]; zeros where there is none."""
    initial = call.arg(index)
    if initial is None:
        return call.const(np.zeros((directions, 1, hidden)), kind)
    return call.transpose(initial, 1, 0, 2) if call.attr("layout", 0) else initial


def panels(call: Call, recurrence: str, gates: int, together: int = 1) -> str:
    """[directions, gates * hidden, hidden] as the kernel reads them, a list of [directions, panels, gates, depth, columns of a panel].

    Args:
        call: the call.
        recurrence: the weights of the state.
        gates: of a unit.
        together: rows of the depth whose elements in a column lie beside each other.
    """
    directions, hidden, kind = call.size(recurrence, 0), call.size(recurrence, 2), call.kind(recurrence)
    columns, depth = panels_of(hidden) * PANEL, depth_of(hidden)
    made = call.reshape(recurrence, directions, gates, hidden, hidden)
    for axis, more in ((2, columns - hidden), (3, depth - hidden)):
        if more:
            dims = [directions, gates, columns if axis == 3 else more, more if axis == 3 else hidden]
            made = call.concat(axis, made, call.const(np.zeros(dims), kind))
    made = call.reshape(made, directions, gates, -1, PANEL, depth // together, together)
    return call.reshape(call.transpose(made, 0, 2, 1, 4, 3, 5), -1)


def sizes_of(call: Call, weights: str, recurrence: str, gates: int) -> tuple[int, int, int]:
    """Directions, units, and the gates of all units; refuses weights and biases of other sizes."""
    direction = call.one_of(("forward", "reverse", "bidirectional"), "direction", "forward")
    directions, hidden = 2 if direction == "bidirectional" else 1, call.size(recurrence, 2)
    width, bias = gates * hidden, call.arg(3)
    if hidden < 1 or call.size(weights, 1) != width:
        raise Refusal("shape", f"{call.size(weights, 1)} rows of weights for {gates} gates of {hidden}")
    expected: dict[str, tuple[int, ...]] = {
        recurrence: (directions, width, hidden),
        weights: (directions, width, call.size(weights, 2)),
    }
    if bias is not None:
        expected[bias] = (directions, 2 * width)
    for value, dims in expected.items():
        if call.dims(value) != dims:
            raise Refusal("shape", f"{value!r} of dims {list(call.dims(value))}, expected {list(dims)}")
    return directions, hidden, width


def _written_out(call: Call, step: Step, gates: int, states: int, defaults: Sequence[str]) -> Sequence[str | None]:
    x, is_batch_first = call.need(0), bool(call.attr("layout", 0))
    if is_batch_first:
        x = call.transpose(x, 1, 0, 2)
    steps, directions = call.size(x, 0), call.size(call.need(1), 0)
    if not 0 < steps * directions <= MAX_STEPS:
        raise Refusal("shape", f"{steps} steps in {directions} directions, expected 1 to {MAX_STEPS} in all")
    lengths = call.arg(4)
    valid = None if lengths is None else _valid(call, lengths, steps)
    outputs, finals = [], []
    for part in _parts(call, x, gates, defaults):
        initial = [call.arg(5 + index) if index < states else None for index in range(states)]
        start = tuple(None if name is None else _state(call, name, part.index, is_batch_first) for name in initial)
        made, last = _walk(part, step, steps, start, valid)
        outputs.append(made)
        finals.append(last)
    axis = 2 if is_batch_first else 1
    y = call.concat(axis, *(_stacked(call, made, is_batch_first) for made in outputs))
    stacked = [
        call.concat(axis - 1, *(call.unsqueeze(last[index], axis - 1) for last in finals)) for index in range(states)
    ]
    return [y, *stacked]


def _walk(
    part: _Direction, step: Step, steps: int, states: States, valid: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """Each step's output, in the order of the inputs, and the last states."""
    call, made = part.call, [""] * steps
    for place in reversed(range(steps)) if part.is_backward else range(steps):
        rows = call.squeeze(call.slice(part.rows, 0, place, place + 1), 0)
        new = step(part, rows, states)
        made[place], held = str(new[0]), new
        if valid is not None:
            zero = call.number(0, made[place])
            held = tuple(
                call.op("Where", valid[place], after, zero if before is None else before)
                for after, before in zip(new, states, strict=True)
            )
            made[place] = call.op("Where", valid[place], made[place], zero)
        states = held
    return made, [str(state) for state in states]


def _valid(call: Call, lengths: str, steps: int) -> list[str]:
    """For each step, [batch, 1]: whether a sequence is that long."""
    column = call.unsqueeze(call.cast(lengths, INT64), 1)
    return [call.op("Less", call.ints(place), column) for place in range(steps)]


def _state(call: Call, name: str, index: int, is_batch_first: bool) -> str:
    """The state [batch, hidden] that a direction begins with."""
    axis = 1 if is_batch_first else 0
    return call.squeeze(call.slice(name, axis, index, index + 1), axis)


def _stacked(call: Call, made: Sequence[str], is_batch_first: bool) -> str:
    """[steps, 1, batch, hidden], or [batch, steps, 1, hidden]."""
    axes = (1, 2) if is_batch_first else (0, 1)
    return call.concat(axes[0], *(call.unsqueeze(value, *axes) for value in made))


def _parts(call: Call, x: str, gates: int, defaults: Sequence[str]) -> Iterator[_Direction]:
    """The directions, with the inputs of each times their weights."""
    weights, recurrence, bias, peepholes = call.need(1), call.need(2), call.arg(3), call.arg(7)
    directions, hidden, width = sizes_of(call, weights, recurrence, gates)
    activations = list(_activations(call, directions, defaults))
    for index in range(directions):
        own, own_recurrence = (
            call.transpose(call.squeeze(call.slice(w, 0, index, index + 1), 0), 1, 0) for w in (weights, recurrence)
        )
        rows, of_state = call.op("MatMul", x, own), None
        if bias is not None:
            of_inputs, of_state = call.split(call.slice(bias, 0, index, index + 1), 1, [width, width])
            if gates == 3 and call.attr("linear_before_reset", 0):
                apart = np.repeat([1, 1, 0], hidden).reshape(1, width)
                added = call.op("Mul", of_state, call.const(apart, call.kind(bias)))
            else:
                added, of_state = of_state, None
            rows = call.op("Add", rows, call.op("Add", of_inputs, added))
        peeps = [] if peepholes is None else call.split(call.slice(peepholes, 0, index, index + 1), 1, [hidden] * 3)
        is_backward = index == 1 or call.attr("direction", "forward") == "reverse"
        yield _Direction(call, index, is_backward, hidden, rows, own_recurrence, of_state, peeps, activations[index])


def _activations(call: Call, directions: int, defaults: Sequence[str]) -> Iterator[list[Activation]]:
    """The activations of each direction, which take the parameters that are stated one after the other."""
    named = call.attr("activations", list(defaults) * directions)
    names = [name.decode() if isinstance(name, bytes) else name for name in named]
    if len(names) < directions * len(defaults):  # RNN's schema has those of two directions for one, too
        raise Refusal("attribute", f"{len(names)} activations, expected {directions * len(defaults)}")
    alphas, betas = (iter(call.attr(f"activation_{name}", [])) for name in ("alpha", "beta"))
    clip = call.attr("clip", 0.0)
    found: list[Activation] = []
    for index, name in enumerate(names):
        if name not in _PARAMETERS and name not in _PLAIN:
            raise Refusal(
                "attribute", f"activation {name!r}: expected one of {', '.join(sorted({*_PARAMETERS, *_PLAIN}))}"
            )
        alpha, beta = _PARAMETERS.get(name, (None, None))
        own = [next(alphas, alpha) if alpha is not None else 0.0, next(betas, beta) if beta is not None else 0.0]
        # ONNX Runtime does not clip what the third activation is given, the new cell of an LSTM.
        limit = 0.0 if index % len(defaults) == _OF_CELL else clip
        found.append(partial(_activated, call, name, own, limit))
    for index in range(directions):
        yield found[index * len(defaults) : (index + 1) * len(defaults)]


def _activated(call: Call, name: str, parameters: Sequence[float], clip: float, x: str) -> str:
    if clip:
        x = call.op("Clip", x, call.number(-clip, x), call.number(clip, x))
    alpha, beta = parameters
    if name == "Affine":
        return call.op("Add", call.op("Mul", x, call.number(alpha, x)), call.number(beta, x))
    if name == "ScaledTanh":
        return call.op("Mul", call.op("Tanh", call.op("Mul", x, call.number(beta, x))), call.number(alpha, x))
    if name == "ThresholdedRelu":
        return call.op(name, x, alpha=alpha)
    return activate(call, x, name, parameters)
