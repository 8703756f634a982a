"""What a row of the operation table is, and how an operation looks to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..errors import Reject
from .strides import Dims

if TYPE_CHECKING:
    from .emitter import Emitter, Value

__all__ = [
    "Concat",
    "Movement",
    "OpRow",
    "OpView",
    "Pad",
    "Permute",
    "Refusal",
    "Reject",
    "Reshape",
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

    `used` says of each result whether anything reads it.
    """

    name: str
    args: Sequence[Any]
    results: Sequence[TensorType]
    node: str = ""
    used: Sequence[bool] = ()

    def uses_only_first(self) -> bool:
        """Whether nothing reads a result but the first."""
        return not any(self.used[1:])


Emission = Callable[["Emitter", OpView], "Value | list[Value]"]


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
class OpRow:
    """One row of the table.

    Exactly one of `emit` and `move` is set, or both where a movement can also be absorbed into a region.

    Attributes:
        name: torch op.
        becomes: the hipDNN operations or data movement, for people.
        emit: builds the nodes of one op; refuses by raising Refusal.
        move: describes the op as a data movement; refuses by raising Refusal.
        source: the document its semantics come from.
        onnx: ONNX operators that arrive as this op, for the docs.
    """

    name: str
    becomes: str
    emit: Emission | None = None
    move: Callable[[OpView], Movement] | None = None
    source: str = ""
    onnx: tuple[str, ...] = field(default=())
