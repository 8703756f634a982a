"""What a decomposition sees: one node, the types of its operands, and nodes to write in its place."""

from collections.abc import Collection, Sequence
from typing import Any, Protocol

import numpy as np
import onnx
from onnx import TensorProto

from ...ops.evaluate import Array
from ...ops.spec import Refusal

FLOAT, FLOAT16, BFLOAT16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE
INT32, INT64, BOOL = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
INT8, UINT8 = TensorProto.INT8, TensorProto.UINT8


class Graph(Protocol):
    """The graph that is being rewritten, as far as a decomposition uses it."""

    opset: int
    has_one_size: bool

    def type(self, name: str) -> onnx.TypeProto | None:
        """Type of a value, None where unknown."""

    def kind(self, name: str) -> int:
        """ONNX element type of a value, 0 where unknown."""

    def dims(self, name: str) -> tuple[int | None, ...] | None:
        """Sizes of a value, None for open ones; None for an unknown rank."""

    def value(self, name: str) -> Array | None:
        """The array of a small constant."""

    def is_constant(self, name: str) -> bool:
        """Whether the value is a constant of any size."""

    def is_of_sizes(self, name: str) -> bool:
        """Whether the value is a constant, or computed from the sizes of others alone."""

    def is_compared(self, name: str) -> bool:
        """Whether runs compare the value, where it decides sizes, with what the model declares."""

    def constant(self, array: Array) -> str:
        """A value that holds the array."""

    def emit(self, node: onnx.NodeProto) -> None:
        """Append a node, expanded in its turn where it is a function."""

    def fresh(self, base: str) -> str:
        """A name that nothing has."""


class Call:
    """A node to expand; values are names.

    Args:
        graph: what the new nodes go into.
        node: the node.
    """

    def __init__(self, graph: Graph, node: onnx.NodeProto) -> None:
        self._graph = graph
        self.node = node
        self._attributes = {a.name: a for a in node.attribute}
        self._base = next((name for name in node.output if name), node.name)

    @property
    def opset(self) -> int:
        """Version of the model's default operator set."""
        return self._graph.opset

    @property
    def has_one_size(self) -> bool:
        """Whether every run has these sizes; else nodes are to be the same at all of them."""
        return self._graph.has_one_size

    def arg(self, index: int) -> str | None:
        """The operand, None where it is left out."""
        return (self.node.input[index] or None) if index < len(self.node.input) else None

    def need(self, index: int) -> str:
        """The operand; refuses a node without it."""
        found = self.arg(index)
        if found is None:
            raise Refusal("operand", f"input {index} is missing")
        return found

    def attr(self, name: str, default: Any = None) -> Any:
        """The attribute's value; texts as str; refuses another type than the default's."""
        if name not in self._attributes:
            return default
        value = onnx.helper.get_attribute_value(self._attributes[name])
        value = value.decode(errors="replace") if isinstance(value, bytes) else value
        if default is not None and not isinstance(value, type(default)):
            raise Refusal("attribute", f"{name} {value!r}, expected a value of type {type(default).__name__}")
        return value

    def one_of(self, choices: Collection[Any], name: str, default: Any = None) -> Any:
        """The attribute's value; refuses any but the choices."""
        value = self.attr(name, default)
        if value not in choices:
            raise Refusal("attribute", f"{name} {value}, expected one of {', '.join(map(str, choices))}")
        return value

    def count(self, name: str, default: int | None = None) -> int:
        """An attribute that is a number from 1 on; refuses others."""
        value = self.attr(name, default)
        if not isinstance(value, int) or value < 1:
            raise Refusal("attribute", f"{name} {value}, expected at least 1")
        return value

    def float_kind(self, name: str) -> int:
        """An attribute that is an ONNX element type, f32 where it is left out; refuses other than floats."""
        return int(self.one_of((FLOAT, DOUBLE, FLOAT16, BFLOAT16), name, FLOAT))

    def wants(self, index: int) -> bool:
        """Whether the result is used by name."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def type(self, value: str) -> onnx.TypeProto | None:
        """The type, None where unknown."""
        return self._graph.type(value)

    def kind(self, value: str) -> int:
        """ONNX element type; refuses an unknown one."""
        found = self._graph.kind(value)
        if not found:
            raise Refusal("type", f"the element type of {value!r} is not known")
        return found

    def dims(self, value: str) -> tuple[int | None, ...]:
        """Sizes, None for open ones; refuses an unknown rank."""
        found = self._graph.dims(value)
        if found is None:
            raise Refusal("rank", f"the rank of {value!r} is not known at compile time")
        return found

    def rank(self, value: str) -> int:
        """Number of dims; refuses an unknown one."""
        return len(self.dims(value))

    def size(self, value: str, axis: int) -> int:
        """One size; refuses an open one, and a dim that there is not."""
        found = self.dims(value)[self.axis(value, axis)]
        if found is None:
            raise Refusal("dynamic-shape", f"dim {axis} of {value!r} is not known at compile time")
        return found

    def size_if_known(self, value: str, axis: int) -> int | None:
        """One size, None for an open one or an unknown rank; refuses a dim that there is not."""
        found = self._graph.dims(value)
        return None if found is None else found[self.axis(value, axis)]

    def axis(self, value: str, axis: int) -> int:
        """A dim counted from the first; refuses one that there is not."""
        rank = self.rank(value)
        if not -rank <= axis < rank:
            raise Refusal("rank", f"{value!r} is of rank {rank}, without dim {axis}")
        return axis % rank

    def value(self, value: str) -> Array | None:
        """The array of a small constant, else None."""
        return self._graph.value(value)

    def is_constant(self, value: str) -> bool:
        """Whether it is a constant of any size."""
        return self._graph.is_constant(value)

    def is_of_sizes(self, value: str) -> bool:
        """Whether a value is a constant, or computed from the sizes of others alone."""
        return self._graph.is_of_sizes(value)

    def known(self, value: str) -> Array:
        """The array of a small constant; refuses anything else."""
        found = self._graph.value(value)
        if found is None:
            raise Refusal("operand", f"{value!r} is not known at compile time")
        return found

    def sizing(self, value: str) -> Array | None:
        """The array of what decides the sizes of a result; None where that is an input that every run looks at; refuses anything else."""
        found = self._graph.value(value)
        if found is None and not self._graph.is_compared(value):
            raise Refusal("operand", f"{value!r} is not known at compile time")
        return found

    def known_number(self, value: str) -> int:
        """The number that a small constant is; refuses anything else."""
        found = self.known(value)
        if found.size != 1:
            raise Refusal("operand", f"{value!r} has {found.size} elements, expected one")
        return int(found.item())

    def fresh(self) -> str:
        """A name that nothing has."""
        return self._graph.fresh(self._base)

    def emit(self, node: onnx.NodeProto) -> None:
        """Append a node as it is."""
        self._graph.emit(node)

    def outs(self, op: str, *inputs: str | None, count: int, domain: str = "", **attributes: Any) -> list[str]:
        """Write a node with several results."""
        outputs = [self.fresh() for _ in range(count)]
        given = {name: value for name, value in attributes.items() if value is not None and value != []}
        operands = [name or "" for name in inputs]
        while operands and not operands[-1]:
            operands.pop()
        self._graph.emit(onnx.helper.make_node(op, operands, outputs, self.node.name, domain=domain, **given))
        return outputs

    def op(self, op: str, *inputs: str | None, domain: str = "", **attributes: Any) -> str:
        """Write a node with one result; attributes that are None are left out."""
        return self.outs(op, *inputs, count=1, domain=domain, **attributes)[0]

    def const(self, array: Any, kind: int = 0) -> str:
        """A constant of the array's dtype, or of an ONNX element type; refuses numbers that this type does not have."""
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind) if kind else None
        try:
            made = np.asarray(array, dtype)
        except OverflowError as error:
            raise Refusal("dtype", f"{array} is no number of type {dtype}") from error
        return self._graph.constant(made)

    def number(self, number: float, like: str) -> str:
        """A scalar of the element type of a value."""
        return self.const(number, self.kind(like))

    def precision(self, like: str) -> int:
        """The element type to compute in: that of a value, f32 for those of 16 bits."""
        return FLOAT if self.kind(like) in (FLOAT16, BFLOAT16) else self.kind(like)

    def scaled(self, value: str, factor: float) -> str:
        """The value times a number, of 16-bit types in f32 where the number is not one of theirs."""
        kind = self.kind(value)
        is_exact = factor == float(np.asarray(factor, onnx.helper.tensor_dtype_to_np_dtype(kind)))
        precise = value if is_exact else self.cast(value, self.precision(value))
        return self.cast(self.op("Mul", precise, self.number(factor, precise)), kind)

    def ints(self, *numbers: int) -> str:
        """A list of int64, such as axes."""
        return self.const(np.array(numbers, np.int64))

    def is_zero(self, value: str) -> bool:
        """Whether a small constant is 0 everywhere."""
        known = self.value(value)
        return known is not None and not known.astype(np.float32).any()

    def cast(self, value: str, kind: int) -> str:
        """The value in another element type."""
        return value if self._graph.kind(value) == kind else self.op("Cast", value, to=kind)

    def reshape(self, value: str, *dims: int) -> str:
        """0 keeps a size, -1 takes what is left."""
        return self.op("Reshape", value, self.ints(*dims))

    def transpose(self, value: str, *order: int) -> str:
        """The value with its dims in another order."""
        return value if order == tuple(range(len(order))) else self.op("Transpose", value, perm=list(order))

    def unsqueeze(self, value: str, *axes: int) -> str:
        """Add dims of size 1."""
        return self.op("Unsqueeze", value, self.ints(*axes))

    def squeeze(self, value: str, *axes: int) -> str:
        """Drop dims of size 1."""
        return self.op("Squeeze", value, self.ints(*axes))

    def slice(self, value: str, axis: int, start: int | str, end: int | str, step: int = 1) -> str:
        """Part of one axis; start and end are numbers or lists of one."""
        first, last = (self.ints(bound) if isinstance(bound, int) else bound for bound in (start, end))
        steps = self.ints(step) if step != 1 else None
        return self.op("Slice", value, first, last, self.ints(axis), steps)

    def split(self, value: str, axis: int, sizes: Sequence[int]) -> list[str]:
        """Neighbouring parts of one axis."""
        ends = np.cumsum(sizes).tolist()
        return [self.slice(value, axis, end - size, end) for size, end in zip(sizes, ends, strict=True)]

    def length(self, value: str, axis: int) -> str:
        """One size as a list of one int64; computed, for the same nodes are to be written whatever the size."""
        first = self.axis(value, axis)
        return self.op("Shape", value, start=first, end=first + 1)

    def concat(self, axis: int, *values: str) -> str:
        """Join along an axis."""
        return self.op("Concat", *values, axis=axis) if len(values) > 1 else values[0]

    def reduce(self, op: str, value: str, axes: Sequence[int], keepdims: bool = True) -> str:
        """ReduceMean, ReduceMax, ...: axes moved from an attribute to an operand in opset 18."""
        keep = None if keepdims else 0
        if self.opset >= 18 or op == "ReduceSum":
            return self.op(op, value, self.ints(*axes), keepdims=keep)
        return self.op(op, value, axes=list(axes), keepdims=keep)

    def range(self, length: str) -> str:
        """0, 1, ... as a list of int64; length is a list of one int64."""
        return self.op("Range", self.const(np.int64(0)), self.squeeze(length, 0), self.const(np.int64(1)))
