"""The strategies by operator, filled by the family modules, and the models that they are drawn into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import TensorProto

from .call import Call, Case, CaseBuilder, Known

Draw = Callable[[st.SearchStrategy[Any]], Any]
Strategy = Callable[[Draw, str], Call]


@dataclass(frozen=True)
class Property:
    """How calls of an operator are drawn.

    Attributes:
        strategy: Draws one.
        rejected: The largest share that the compiler may refuse.
    """

    strategy: Strategy
    rejected: float = 0.0


_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_SLICE_TAKES_OPERANDS = 10
OPERATORS: dict[tuple[str, str], Property] = {}
"""(domain, operator) -> how it is drawn."""


def operator(*names: str, domain: str = "", rejected: float = 0.0) -> Callable[[Strategy], Strategy]:
    """Enter the decorated strategy under every operator given."""

    def enter(strategy: Strategy) -> Strategy:
        for name in names:
            assert (domain, name) not in OPERATORS, f"two strategies for {name}"
            OPERATORS[domain, name] = Property(strategy, rejected)
        return strategy

    return enter


@st.composite
def cases(draw: Draw, domain: str, op: str) -> Case:
    """Models of one call: its operands fed, constant, transposed or sliced, something behind its first result."""
    return case_of(draw, OPERATORS[domain, op].strategy(draw, op))


def case_of(draw: Draw, call: Call) -> Case:
    """A model of the call; operands that need not be known are inputs, constants or views of inputs."""
    builder = CaseBuilder(call)
    ways = ["fed", "mixed", "mixed", "constant"] if call.opset >= _SLICE_TAKES_OPERANDS else ["fed"]
    way = draw(st.sampled_from(ways))
    for operand in call.operands:
        if operand is None:
            builder.leave_out()
        elif isinstance(operand, Known):
            builder.constant(operand.array)
        elif way == "fed":
            builder.fed(operand)
        elif way == "constant":
            builder.constant(operand)
        else:
            _present(draw, builder, operand)
    case = builder.build()
    return case if way != "mixed" else builder.build(draw(st.sampled_from(["", *_epilogues(case.model)])))


def _epilogues(model: onnx.ModelProto) -> list[str]:
    """What may follow the first result."""
    kind = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.elem_type
    return (["Neg"] if kind in _FLOATS else []) + (["Transpose"] if kind else [])


def _present(draw: Draw, builder: CaseBuilder, operand: np.ndarray) -> None:
    kinds = ["fed", "constant", *(["sliced"] if operand.ndim else []), *(["transposed"] if operand.ndim > 1 else [])]
    match draw(st.sampled_from(kinds)):
        case "fed":
            builder.fed(operand)
        case "constant":
            builder.constant(operand)
        case "sliced":
            axis = draw(st.integers(0, operand.ndim - 1))
            builder.sliced(operand, axis, draw(st.integers(0, 2)), draw(st.integers(1, 2)))
        case "transposed":
            builder.transposed(operand, draw(st.permutations(range(operand.ndim))))
