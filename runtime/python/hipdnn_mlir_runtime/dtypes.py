"""Element types and their names in ONNX, NumPy, the torch dialect, MLIR, hipDNN and program files: one row each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from .abi import DataType
from .errors import ModelError

if TYPE_CHECKING:
    import numpy as np

_OF_ML_DTYPES = frozenset(
    {
        "bfloat16", "float8_e4m3fn", "float8_e5m2",
        "float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int2", "int4", "uint2", "uint4",
    }
)  # fmt: skip


@dataclass(frozen=True)
class DType:
    """One element type.

    Attributes:
        name: the name in program files and messages ("f32").
        onnx: name of onnx.TensorProto's element type ("FLOAT"); the package itself costs a session's start too much.
        numpy_name: name of the NumPy dtype.
        torch: the element type as the torch dialect prints it.
        builtin: the signless MLIR type used in memrefs.
        hipdnn: hipDNN's data type, or None where it has none.
    """

    name: str
    onnx: str
    numpy_name: str
    torch: str
    builtin: str
    hipdnn: DataType | None

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; that of the package ml_dtypes for bf16 and floats of 8 bits, and a ModelError where it is not installed."""
        return _numpy_dtype(self.numpy_name)

    @property
    def hipdnn_value(self) -> int:
        """The numeric value of hipDNN's data type; raises ValueError where it has none."""
        if self.hipdnn is None:
            raise ValueError(f"hipDNN has no data type for {self.name}")
        return int(self.hipdnn)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.is_narrow or self.name in ("f32", "f64")

    @property
    def is_narrow(self) -> bool:
        """Whether it is a float of 16 or 8 bits."""
        return self.is_float8 or self.name in ("f16", "bf16")

    @property
    def is_float8(self) -> bool:
        """Whether it is a float of 8 bits."""
        return self.name in ("f8e4m3", "f8e5m2")

    @property
    def bytes(self) -> int:
        """Bytes of one element."""
        return int(self.numpy.itemsize)

    def __str__(self) -> str:
        return self.name


@cache
def _numpy_dtype(name: str) -> np.dtype[Any]:
    import numpy as np  # commands that hand everything to the compiler's process start without it

    if name not in _OF_ML_DTYPES:
        return np.dtype(name)
    try:
        import ml_dtypes  # for those who have arrays of them alone
    except ImportError as error:
        raise ModelError(f"NumPy has no {name}", hint="pip install ml_dtypes") from error
    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return found


F32 = DType("f32", "FLOAT", "float32", "f32", "f32", DataType.FLOAT)
F64 = DType("f64", "DOUBLE", "float64", "f64", "f64", DataType.DOUBLE)
F16 = DType("f16", "FLOAT16", "float16", "f16", "f16", DataType.HALF)
BF16 = DType("bf16", "BFLOAT16", "bfloat16", "bf16", "bf16", DataType.BFLOAT16)
F8E4M3 = DType("f8e4m3", "FLOAT8E4M3FN", "float8_e4m3fn", "f8E4M3FN", "f8E4M3FN", DataType.FP8_E4M3)
F8E5M2 = DType("f8e5m2", "FLOAT8E5M2", "float8_e5m2", "f8E5M2", "f8E5M2", DataType.FP8_E5M2)
I8 = DType("i8", "INT8", "int8", "si8", "i8", DataType.INT8)
U8 = DType("u8", "UINT8", "uint8", "ui8", "i8", DataType.UINT8)
I16 = DType("i16", "INT16", "int16", "si16", "i16", None)
U16 = DType("u16", "UINT16", "uint16", "ui16", "i16", None)
I32 = DType("i32", "INT32", "int32", "si32", "i32", DataType.INT32)
U32 = DType("u32", "UINT32", "uint32", "ui32", "i32", None)
I64 = DType("i64", "INT64", "int64", "si64", "i64", DataType.INT64)
U64 = DType("u64", "UINT64", "uint64", "ui64", "i64", None)
BOOL = DType("bool", "BOOL", "bool", "i1", "i1", DataType.BOOLEAN)
I4 = DType("i4", "INT4", "int4", "si4", "i4", DataType.INT4)
"""Of tensors inside graphs alone, two to a byte and the first in its lower half; stored, they are bytes."""

ALL = (F32, F64, F16, BF16, F8E4M3, F8E5M2, I8, U8, I16, U16, I32, U32, I64, U64, BOOL)
BY_NAME = {d.name: d for d in ALL}
OF_ML_DTYPES = {d.numpy_name: d for d in ALL if d.numpy_name in _OF_ML_DTYPES}
"""By NumPy's and PyTorch's name: what NumPy has from the package ml_dtypes alone."""
BY_TORCH = {d.torch: d for d in ALL}
CODED = tuple(
    DType(name, onnx, numpy_name, U8.torch, U8.builtin, U8.hipdnn)
    for name, onnx, numpy_name in (
        ("i2", "INT2", "int2"),
        ("u2", "UINT2", "uint2"),
        ("i4", "INT4", "int4"),
        ("u4", "UINT4", "uint4"),
        ("f4e2m1", "FLOAT4E2M1", "float4_e2m1fn"),
        ("f8e4m3fnuz", "FLOAT8E4M3FNUZ", "float8_e4m3fnuz"),
        ("f8e5m2fnuz", "FLOAT8E5M2FNUZ", "float8_e5m2fnuz"),
        ("f8e8m0", "FLOAT8E8M0", "float8_e8m0fnu"),
    )
)
"""Types of inputs and outputs alone: programs have their codes, a u8 each, as arrays of ml_dtypes do."""
CODED_BY_NAME = {d.name: d for d in CODED}
_BY_NUMPY_NAME = {d.numpy_name: d for d in ALL}


@cache  # NumPy makes a dtype's name anew each time it is asked
def find_numpy(dtype: np.dtype[Any]) -> DType | None:
    """Return the element type of a NumPy dtype; None for any other, such as one of foreign byte order."""
    return _BY_NUMPY_NAME.get(dtype.name) if dtype.isnative else None


def is_foreign(dtype: np.dtype[Any]) -> bool:
    """Return whether a dtype is of ml_dtypes: other libraries take such arrays as integers of the same size."""
    return dtype.name in _OF_ML_DTYPES


def of_numpy(dtype: np.dtype[Any]) -> DType:
    """Return the element type of a NumPy dtype; raises KeyError for any other."""
    return _BY_NUMPY_NAME[dtype.name if dtype.isnative else str(dtype)]
