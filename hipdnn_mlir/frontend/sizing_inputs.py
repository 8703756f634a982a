"""Inputs that sizes of results follow from: what they have to hold for the sizes that a model declares, which a program takes."""

from collections.abc import Iterator, Sequence
from math import prod

import onnx
from onnx import TensorProto, numpy_helper

from hipdnn_mlir_runtime.errors import Reject

from ..ir.view import KNOWN
from .operands import sizing_operands
from .shape_inference import attributes_of, static_dims
from .sizing_rules import LEAST, MOST, RULES, Numbers, Span

MOST_NUMBERS = 64
"""Elements of an input that is looked at: more than a tensor has dims."""
_WHOLE = (TensorProto.INT32, TensorProto.INT64)
_MOVED = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators whose result has the elements of their first operand, in order."""


def sizing_inputs(graph: onnx.GraphProto) -> tuple[dict[str, Numbers], list[Reject]]:
    """What inputs of the graph have to hold that decide sizes, where these are declared; and the nodes of which that cannot be told.

    Args:
        graph: its values have their inferred types.
    """
    found: dict[str, Numbers] = {}
    rejects = []
    trace = _Trace(graph)
    for node in graph.node:
        for name, numbers in trace.wanted(node):
            if numbers is None:
                reason = f"{name!r} decides its sizes, and no run can compare it with those that the model declares"
                rejects.append(Reject(node.op_type, "operand", reason, node.name))
                break
            found[name] = _both(found.get(name, numbers), numbers)
    return found, rejects


class _Trace:
    """Follows what decides sizes back to the inputs of a graph."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        values = (*graph.input, *graph.value_info, *graph.output)
        self._dims = {value.name: known for value in values if (known := static_dims(value)) is not None}
        self._dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self._kinds = {value.name: value.type.tensor_type.elem_type for value in values}
        self._constants = {
            tensor.name: numpy_helper.to_array(tensor).reshape(-1).tolist()
            for tensor in graph.initializer
            if tensor.data_type in _WHOLE and prod(tensor.dims) <= MOST_NUMBERS
        }
        self._inputs = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
        self._makers = {name: node for node in graph.node for name in node.output}

    def wanted(self, node: onnx.NodeProto) -> Iterator[tuple[str, Numbers | None]]:
        """What inputs have to hold for the sizes that a node's results have: nothing where none decides, None where that cannot be told."""
        names = [name for name in sizing_operands(node) if self._is_of_data(name)]
        if not names or not {*names, *filter(None, node.output)} <= set(self._dims):
            return
        kind = "Reduce" if node.op_type.startswith("Reduce") else node.op_type
        results = [self._dims[result] for result in node.output if result]
        count = prod(self._dims[names[0]])
        operands = {
            f"{KNOWN}{i}": self._constants[each] for i, each in enumerate(node.input) if each in self._constants
        }
        data = self._dims.get(node.input[0], ())
        has_rule = count <= MOST_NUMBERS and (kind != "Range" or self._kinds.get(names[0]) in _WHOLE)
        try:
            numbers = RULES[kind](attributes_of(node) | operands, data, results, count) if has_rule else None
        except IndexError:  # an axis that there is not
            numbers = None
        yield from self._before(names[0], numbers if numbers is not None and len(numbers) == count else None)

    def _is_of_data(self, name: str) -> bool:
        """Whether a value follows from what inputs hold, and not from their sizes alone."""
        left, seen = [name], {name}
        while left:
            value = left.pop()
            if value in self._inputs:
                return True
            maker = self._makers.get(value)
            if maker is not None and maker.op_type not in ("Shape", "Size"):
                more = set(filter(None, maker.input)) - seen
                seen |= more
                left += more
        return False

    def _before(self, name: str, numbers: Numbers | None) -> Iterator[tuple[str, Numbers | None]]:
        """What inputs have to hold for a value to have such numbers."""
        constant = self._constants.get(name)
        if constant is not None and numbers is not None:
            if not _holds(constant, numbers):
                yield name, None
        elif numbers is None:
            yield name, None
        elif name in self._inputs:
            yield name, numbers
        else:
            yield from self._through(name, self._makers.get(name), numbers)

    def _through(
        self, name: str, maker: onnx.NodeProto | None, numbers: Numbers
    ) -> Iterator[tuple[str, Numbers | None]]:
        """What inputs have to hold for the result of a node to have such numbers."""
        operands = [operand for operand in maker.input if operand] if maker is not None else []
        counts = [prod(self._dims[operand]) for operand in operands if operand in self._dims]
        if maker is None or maker.domain or len(counts) < len(operands):
            yield name, None
            return
        kind, constants = maker.op_type, [self._constants.get(operand) for operand in operands]
        if kind in _MOVED and (kind != "Cast" or self._kinds.get(operands[0]) in _WHOLE):
            yield from self._before(operands[0], numbers)
        elif kind == "Concat" and len(self._dims[name]) == 1:
            for operand, count in zip(operands, counts, strict=True):
                yield from self._before(operand, numbers[:count])
                numbers = numbers[count:]
        elif kind == "Gather" and constants[1] and len(self._dims[operands[0]]) == 1:
            yield from self._before(operands[0], _spread(constants[1], numbers, counts[0]))
        elif kind in ("Add", "Sub") and constants[1] and counts[0] == len(numbers):
            yield from self._before(operands[0], _moved(numbers, constants[1], -1 if kind == "Add" else 1))
        elif kind == "Add" and constants[0] and counts[1] == len(numbers):
            yield from self._before(operands[1], _moved(numbers, constants[0], -1))
        else:
            yield name, None


def _holds(values: list[int], numbers: Numbers) -> bool:
    pairs = zip(values, numbers, strict=True)
    return all(any(least <= value <= most for least, most in spans) for value, spans in pairs)


def _spread(places: Sequence[int], numbers: Numbers, count: int) -> Numbers | None:
    """What a list has to hold for some of its elements to be such numbers."""
    spread: Numbers = [[(LEAST, MOST)]] * count
    for place, wanted in zip(places, numbers, strict=True):
        if not -count <= place < count:
            return None
        spread[place] = _common(spread[place], wanted)
    return spread


def _moved(numbers: Numbers, by: Sequence[int], sign: int) -> Numbers | None:
    """Numbers that are so much more, by one number or by one for each; what has no end stays without one."""
    if len(by) not in (1, len(numbers)):
        return None
    moves = [sign * move for move in by] * (len(numbers) // len(by))
    return [
        [(a if a == LEAST else a + move, b if b == MOST else b + move) for a, b in spans]
        for spans, move in zip(numbers, moves, strict=True)
    ]


def _both(one: Numbers, other: Numbers) -> Numbers:
    return [_common(a, b) for a, b in zip(one, other, strict=True)]


def _common(one: list[Span], other: list[Span]) -> list[Span]:
    pairs = [(max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other]
    return [(least, most) for least, most in pairs if least <= most]
