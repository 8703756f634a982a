"""Elements of memory as values to compute with: floats of 16 and 8 bits as f32, booleans as i1."""

from collections.abc import Sequence
from typing import Any

from hipdnn_mlir_runtime.dtypes import DType

from .builder import KernelBuilder, Value
from .float8 import f32_to_float8, float8_to_f32

_CODES_OF_WORD = 8
"""Numbers of 4 bits in one of 32."""


def memory_type(b: KernelBuilder, dtype: DType) -> Any:
    """MLIR's type of an element in memory."""
    if dtype.name == "bool":
        return b.i8
    return {"f16": b.f16, "bf16": b.bf16, "f32": b.f32, "f64": b.f64}.get(dtype.name) or bits_type(b, dtype.bytes)


def bits_type(b: KernelBuilder, size_bytes: int) -> Any:
    """The integer type of a size, as which elements move unchanged."""
    return {1: b.i8, 2: b.i16, 4: b.i32, 8: b.i64}[size_bytes]


def value_type(b: KernelBuilder, dtype: DType) -> Any:
    """MLIR's type of an element in arithmetic."""
    return b.i1 if dtype.name == "bool" else b.f32 if dtype.is_narrow else memory_type(b, dtype)


def is_signed(dtype: DType) -> bool:
    """Whether it is an integer type with negative values."""
    return dtype.name in ("i4", "i8", "i16", "i32", "i64")


def from_memory(b: KernelBuilder, value: Value, dtype: DType) -> Value:
    """An element that was loaded as a value."""
    if dtype.name == "bool":
        return b.compare("ne", value, b.constant(0, b.i8))
    if dtype.is_float8:
        return float8_to_f32(b, value, dtype)
    return b.op("arith.extf", [value], b.f32) if dtype.is_narrow else value


def to_memory(b: KernelBuilder, value: Value, dtype: DType) -> Value:
    """A value as an element to store."""
    if dtype.name == "bool":
        return b.op("arith.extui", [value], b.i8)
    if dtype.is_float8:
        return f32_to_float8(b, value, dtype)
    return b.op("arith.truncf", [value], memory_type(b, dtype)) if dtype.is_narrow else value


def rounded(b: KernelBuilder, value: Value, dtype: DType) -> Value:
    """A value as precise as its type keeps it."""
    return from_memory(b, to_memory(b, value, dtype), dtype) if dtype.is_narrow else value


def load_codes(b: KernelBuilder, base: Value, offset: Value, count: int) -> list[Value]:
    """Adjacent numbers of 4 bits as integers of 8; `offset` is a multiple of their number, which is 2, 4 or 8."""
    (word,) = b.load(base, b.div(offset, count), bits_type(b, count // 2))
    wide = word if count == _CODES_OF_WORD else b.op("arith.extui", [word], b.i32)
    bits = 32 // _CODES_OF_WORD
    moved = [b.same("arith.shli", wide, b.constant(32 - bits * (place + 1), b.i32)) for place in range(count)]
    signed = [b.same("arith.shrsi", value, b.constant(32 - bits, b.i32)) for value in moved]
    return [b.op("arith.trunci", [value], b.i8) for value in signed]


def load(b: KernelBuilder, base: Value, offset: Value, dtype: DType, count: int = 1) -> list[Value]:
    """Adjacent elements as values."""
    return [from_memory(b, raw, dtype) for raw in b.load(base, offset, memory_type(b, dtype), count)]


def store(b: KernelBuilder, base: Value, offset: Value, values: Sequence[Value], dtype: DType) -> None:
    """Write values to adjacent elements."""
    b.store(base, offset, [to_memory(b, value, dtype) for value in values])
