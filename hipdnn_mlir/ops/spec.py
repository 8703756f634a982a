"""What a row of the operation table is, and how an operation looks to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from hipdnn_mlir_runtime.dtypes import DType

from .strides import Dims


class Refusal(Exception):  # noqa: N818 - control flow inside one emission, turned into a Reject at its border
    """Raised by a row's emission to stop; `Emitter` callers turn it into a Reject."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule
        self.reason = reason


@dataclass(frozen=True)
class TensorType:
    """Dims (None for a dynamic size) and element type of a tensor value."""

    dims: tuple[int | None, ...]
    dtype: DType

    @property
    def is_static(self) -> bool:
        """Whether every size is known."""
        return None not in self.dims

    def static_dims(self) -> Dims:
        """The dims as ints; refuses dynamic ones."""
        if not self.is_static:
            raise Refusal("dynamic-shape", f"shape {self} is not known at compile time")
        return cast("Dims", self.dims)

    def __str__(self) -> str:
        return f"{self.dtype}[{'x'.join('?' if d is None else str(d) for d in self.dims)}]"


@dataclass(frozen=True)
class TensorArg:
    """A tensor operand of an op: `key` identifies the SSA value; `scalar` is set where it is a known rank-0 constant."""

    key: Any
    type: TensorType
    scalar: float | int | bool | None = None


@dataclass(frozen=True)
class OpView:
    """One torch op seen without MLIR: name, arguments (TensorArg, numbers, strings, lists, None), results, ONNX node name.

    `used` says of each result whether anything reads it. Attributes are those of an ONNX operator with a row of its own; an operand that
    such a row wants to know at compile time arrives in `args` as a flat list of numbers.
    """

    name: str
    args: Sequence[Any]
    results: Sequence[TensorType]
    node: str = ""
    used: Sequence[bool] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The op as users know it: an ONNX operator without the prefix of its row."""
        return self.name.removeprefix("hipdnn.onnx.")

    def uses_only_first(self) -> bool:
        """Whether nothing reads a result but the first."""
        return not any(self.used[1:])


Precision = Literal["narrow", "wide", "follow"]
"""What an f32 op of a model that is compiled for a 16-bit type runs in: that type, f32, or what its operands have."""
Results = Callable[[Sequence[TensorType | None], Mapping[str, Any]], Sequence[TensorType]]
"""Types of an operator's results, from its operands' (None for one that is left out) and its attributes; refuses by raising Refusal."""


@dataclass(frozen=True)
class Reshape:
    """Same elements in C order under other dims."""

    dims: Dims


@dataclass(frozen=True)
class Permute:
    """Result dimension i is operand dimension order[i]."""

    order: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    """result[i] = operand[offsets + i * steps], steps positive."""

    offsets: Dims
    sizes: Dims
    steps: Dims


@dataclass(frozen=True)
class Concat:
    """Operands joined along one dimension."""

    axis: int


@dataclass(frozen=True)
class Pad:
    """A constant border of low/high elements per dimension, all non-negative."""

    low: Dims
    high: Dims
    value: float | int | bool


Movement = Reshape | Permute | Slice | Concat | Pad


@dataclass(frozen=True)
class Call:
    """One whole kernel.

    Attributes:
        function: of docs/program-format.md.
        operands: tensors in the function's order, each seen under other dims where a pair states them: of as many elements, or those
            that it broadcasts to.
        results: dims under which the function sees the results, where they differ from the op's.
        attributes: of the function, as JSON values.
        dtype: that the operands' elements are read as, of their size; their own where it is None.
    """

    function: str
    operands: Sequence[TensorArg | tuple[TensorArg, Dims]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Dims] | None = None
    dtype: DType | None = None
