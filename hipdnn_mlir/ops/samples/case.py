"""One sample call of a row, and short ways to write them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.dtypes import DType

from ..spec import OpView, TensorArg, TensorType

ONEDNN, ROWWISE, REDUCTION = "HOST_ONEDNN_ENGINE", "HOST_ROWWISE_ENGINE", "HOST_REDUCTION_ENGINE"
SDPA, BLOCK_SCALE = "HOST_SDPA_ENGINE", "HOST_BLOCK_SCALE_ENGINE"
BLOCK_MATMUL, QUANTIZED = "HOST_BLOCK_MATMUL_ENGINE", "HOST_QUANTIZED_ENGINE"
MOVEMENT = ""
KERNEL = "kernel"


@dataclass(frozen=True)
class Number:
    """A tensor of rank 0 whose number is known at compile time."""

    value: float | int
    dtype: DType = dtypes.F32


@dataclass(frozen=True)
class Sample:
    """One call of an op.

    Attributes:
        op: as in the table.
        args: a TensorType for an operand of the caller, a Number, or a Python value (None, numbers, strings, lists); for an ONNX operator
            a list stands for an operand that is known at compile time.
        results: types of the results, the first of which is used (all where `uses_all`).
        engine: of target `host` where accepted; MOVEMENT for data movement, KERNEL for a launch.
        rule: that refuses it, or None where it is accepted.
        uses_all: whether the caller takes every result.
        attributes: of an ONNX operator.
    """

    op: str
    args: tuple[Any, ...]
    results: tuple[TensorType, ...]
    engine: str = MOVEMENT
    rule: str | None = None
    uses_all: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def with_dtype(self, old: DType, new: DType) -> "Sample":
        """The same call with every tensor of dtype `old` in `new`."""

        def change(arg: Any) -> Any:
            if isinstance(arg, list):
                return [change(item) for item in arg]
            if isinstance(arg, TensorType) and arg.dtype is old:
                return TensorType(arg.dims, new)
            return Number(arg.value, new) if isinstance(arg, Number) and arg.dtype is old else arg

        return replace(
            self, args=tuple(change(arg) for arg in self.args), results=tuple(change(kind) for kind in self.results)
        )

    def view(self) -> OpView:
        """The call as the table sees it."""
        keys = count()

        def seen(arg: Any) -> Any:
            if isinstance(arg, list):
                return [seen(item) for item in arg]
            if isinstance(arg, TensorType):
                return TensorArg(next(keys), arg)
            return TensorArg(next(keys), TensorType((), arg.dtype), arg.value) if isinstance(arg, Number) else arg

        used = [index == 0 or self.uses_all for index in range(len(self.results))]
        return OpView(self.op, [seen(arg) for arg in self.args], self.results, used=used, attributes=self.attributes)

    def __str__(self) -> str:
        """A name for test reports."""
        shown = ",".join(str(a) for a in self.args if isinstance(a, TensorType))
        return f"{self.op.removeprefix('torch.').removeprefix('hipdnn.')}({shown})-{self.rule or 'accepted'}"


def kind(dtype: DType, *dims: int | None) -> TensorType:
    """A tensor type."""
    return TensorType(dims, dtype)


def f32(*dims: int | None) -> TensorType:
    """A tensor type of f32."""
    return kind(dtypes.F32, *dims)


def f16(*dims: int) -> TensorType:
    """A tensor type of f16."""
    return kind(dtypes.F16, *dims)


def f64(*dims: int) -> TensorType:
    """A tensor type of f64."""
    return kind(dtypes.F64, *dims)


def i8(*dims: int) -> TensorType:
    """A tensor type of i8."""
    return kind(dtypes.I8, *dims)


def f8e4m3(*dims: int) -> TensorType:
    """A tensor type of f8e4m3."""
    return kind(dtypes.F8E4M3, *dims)


def f8e5m2(*dims: int) -> TensorType:
    """A tensor type of f8e5m2."""
    return kind(dtypes.F8E5M2, *dims)


def u8(*dims: int) -> TensorType:
    """A tensor type of u8."""
    return kind(dtypes.U8, *dims)


def i16(*dims: int) -> TensorType:
    """A tensor type of i16, which hipDNN has not."""
    return kind(dtypes.I16, *dims)


def i64(*dims: int | None) -> TensorType:
    """A tensor type of i64."""
    return kind(dtypes.I64, *dims)


def i32(*dims: int) -> TensorType:
    """A tensor type of i32."""
    return kind(dtypes.I32, *dims)


def bools(*dims: int) -> TensorType:
    """A tensor type of bool."""
    return kind(dtypes.BOOL, *dims)


def accept(
    op: str, engine: str, args: Sequence[Any], *results: TensorType, uses_all: bool = False, **attributes: Any
) -> Sample:
    """A call that the engine takes; attributes are those of an ONNX operator."""
    return Sample(row(op), tuple(args), results, engine, uses_all=uses_all, attributes=attributes)


def reject(
    op: str, rule: str, args: Sequence[Any], *results: TensorType, uses_all: bool = False, **attributes: Any
) -> Sample:
    """A call that the rule refuses."""
    return Sample(row(op), tuple(args), results, rule=rule, uses_all=uses_all, attributes=attributes)


def row(op: str) -> str:
    """The name of a row: `aten.relu` is a torch op, `Gather` an ONNX operator."""
    return f"torch.{op}" if op[0].islower() or op[0] == "_" else f"hipdnn.onnx.{op}"
