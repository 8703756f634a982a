"""What a row of the operation table is, and how an operation looks to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..dtypes import DType
from ..errors import Reject
from .strides import Dims

if TYPE_CHECKING:
    from .emitter import Emitter, Value
    from .kernels import MapBuilder

__all__ = [
    "Call",
    "Concat",
    "Movement",
    "OpRow",
    "OpView",
    "Pad",
    "Permute",
    "Precision",
    "Refusal",
    "Reject",
    "Reshape",
    "Results",
    "Slice",
    "TensorArg",
    "TensorType",
]


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
        return tuple(d for d in self.dims if d is not None)

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
Emission = Callable[["Emitter", OpView], "Value | list[Value]"]
MapEmission = Callable[["MapBuilder", OpView], "Value | list[Value]"]


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
        operands: tensors in the function's order, each seen under other dims of as many elements where a pair states them.
        results: dims under which the function sees the results, where they differ from the op's.
        attributes: of the function, as JSON values.
        dtype: that the operands' elements are read as, of their size; their own where it is None.
    """

    function: str
    operands: Sequence[TensorArg | tuple[TensorArg, Dims]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    results: Sequence[Dims] | None = None
    dtype: DType | None = None


def moves(row: "OpRow", op: OpView) -> bool:
    """Whether the row sees the op as a data movement."""
    try:
        return row.move is not None and bool(row.move(op))
    except Refusal:
        return False


@dataclass(frozen=True)
class OpRow:
    """One row of the table: what hipDNN's operations, data movement or kernels make of an op.

    At least one of `emit`, `move`, `launch` and `call` is set. hipDNN comes first, then movement, then a kernel; a movement with an
    emission can also be absorbed into a region. An emission of nothing but pointwise nodes serves as a map too, for dtypes that hipDNN
    lacks.

    Attributes:
        name: torch op, or `hipdnn.onnx.X` for an ONNX operator that torch-mlir's conversion is kept from.
        becomes: the hipDNN operations or data movement, for people.
        emit: builds the nodes of one op; refuses by raising Refusal.
        move: describes the op as a data movement; refuses by raising Refusal.
        launch: writes the op as instructions of a map kernel; refuses by raising Refusal.
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
    launch: "MapEmission | None" = None
    call: Callable[[OpView], Call] | None = None
    known: tuple[int, ...] = ()
    precision: Precision = "follow"
    keeps: tuple[int, ...] = ()
    results: Results | None = None
