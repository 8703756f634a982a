"""One call of an operator, and the model that is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

Array = npt.NDArray[Any]
CONTRIB = "com.microsoft"
OPSET = 21
_SHOWN = 24


@dataclass(frozen=True)
class Known:
    """An operand that has to be an initializer, such as the axes of a reduction."""

    array: Array


@dataclass(frozen=True)
class Call:
    """One node with the arrays of its operands.

    Attributes:
        op, domain: The operator.
        operands: In its order; None for one that is left out.
        attributes: Of the node.
        results: Which results the model takes.
        opset: Of the default domain.
        loose: The factor on the tolerances of dtypes: how many roundings lie one behind the other.
        atol: An error that is always allowed; 1 for integers that a quotient was rounded to.
        reference: "onnx" where ONNX Runtime is no reference for the operator, "bits" where 16-bit floats must not be widened either.
    """

    op: str
    operands: Sequence[Array | Known | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[bool] = (True,)
    opset: int = OPSET
    domain: str = ""
    loose: float = 1.0
    atol: float = 0.0
    reference: str = "onnxruntime"


class Case:
    """A model with arrays for its inputs; hypothesis prints it where it fails.

    Args:
        model: With outputs of no declared type.
        feeds: Input name -> array.
        call: That it is made of.
    """

    def __init__(self, model: onnx.ModelProto, feeds: dict[str, Array], call: Call) -> None:
        self.model, self.feeds, self.call = model, feeds, call

    def __repr__(self) -> str:
        fed = "\n".join(f"{name} = {_shown(array)}" for name, array in self.feeds.items())
        return f"\n{onnx.printer.to_text(self.model)}\n{fed}\n"


class CaseBuilder:
    """Adds operands and what follows a node to a model of one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._feeds: dict[str, Array] = {}
        self._constants: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._names: list[str] = []

    def leave_out(self) -> None:
        """Pass no operand in this place."""
        self._names.append("")

    def constant(self, array: Array) -> None:
        """Pass an initializer."""
        self._names.append(self._initialize(f"c{len(self._names)}", array))

    def fed(self, array: Array) -> None:
        """Pass an input of the model."""
        self._names.append(self._feed(array))

    def transposed(self, array: Array, order: Sequence[int]) -> None:
        """Pass an input of the model through a Transpose."""
        source = self._feed(np.ascontiguousarray(array.transpose(np.argsort(order))))
        self._names.append(self._append("Transpose", [source], f"t{len(self._names)}", perm=list(order)))

    def sliced(self, array: Array, axis: int, before: int, step: int) -> None:
        """Pass every `step`-th part of an input of the model, from `before` on."""
        size = array.shape[axis]
        whole = np.repeat(array, step, axis) if size else array
        border = np.zeros_like(array, shape=(*array.shape[:axis], before, *array.shape[axis + 1 :]))
        source = self._feed(np.concatenate([border, whole, border], axis))
        index = len(self._names)
        numbers = [
            self._initialize(f"{name}{index}", np.array([number], np.int64))
            for name, number in (("start", before), ("end", before + size * step), ("axis", axis), ("step", step))
        ]
        self._names.append(self._append("Slice", [source, *numbers], f"s{index}"))

    def build(self, epilogue: str = "") -> Case:
        """The case, with a unary operator behind the first result."""
        call = self._call
        names = [f"y{index}" if used else "" for index, used in enumerate(call.results)]
        nodes = [*self._nodes, helper.make_node(call.op, self._names, names, domain=call.domain, **call.attributes)]
        if epilogue:
            nodes.append(helper.make_node(epilogue, ["y0"], ["z0"]))
            names[0] = "z0"
        graph = helper.make_graph(
            nodes,
            "drawn",
            [_value(name, array) for name, array in self._feeds.items()],
            [onnx.ValueInfoProto(name=name) for name in names if name],
            self._constants,
        )
        opsets = [helper.make_opsetid("", call.opset)]
        if call.domain:
            opsets.append(helper.make_opsetid(call.domain, 1))
        return Case(helper.make_model(graph, opset_imports=opsets, ir_version=10), self._feeds, call)

    def _feed(self, array: Array) -> str:
        name = f"x{len(self._names)}"
        self._feeds[name] = np.asarray(array)
        return name

    def _initialize(self, name: str, array: Array) -> str:
        self._constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def _append(self, op: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        self._nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
        return output


def _shown(array: Array) -> str:
    """An array of a few numbers, the size of a larger one."""
    return f"{array.tolist()}" if array.size <= _SHOWN else f"{array.size} numbers"


def _value(name: str, array: Array) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
