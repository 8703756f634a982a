"""Bytes that stand for floats, convolutions and matmuls of them."""

from collections.abc import Iterator
from typing import Any

from .case import ONEDNN, QUANTIZED, ROWWISE, Sample, accept, f8e4m3, f8e5m2, f16, f32, i8, i32, reject, u8


def quantized() -> Iterator[Sample]:
    """Zero point, factors and offsets; one factor for all channels; every type of result."""
    yield accept("Quantize", ROWWISE, [f32(2, 3)], i8(2, 3), scale=0.5, zero=-3, to="i8")
    yield reject("Quantize", "dtype", [i32(2, 3)], u8(2, 3), scale=0.5, zero=0, to="u8")
    yield accept("Dequantize", ROWWISE, [u8(2, 3)], f32(2, 3), scale=0.5, zero=128)
    yield reject("Dequantize", "dtype", [i32(2, 3)], f32(2, 3), scale=0.5, zero=128)
    x, w, zero, channels = u8(1, 4, 6, 6), i8(8, 4, 3, 3), i32(1), f32(8)
    border: dict[str, Any] = {"pads": [1, 1, 1, 1]}
    yield accept("QuantizedConv", QUANTIZED, [x, w, zero, channels, channels], u8(1, 8, 6, 6), **border)
    yield accept("QuantizedConv", QUANTIZED, [x, w, zero, f32(1), channels], f32(1, 8, 4, 4), to="f32")
    yield accept(
        "QuantizedConv", QUANTIZED, [i8(1, 4, 6, 6), i8(8, 2, 3, 3), zero, channels, channels], i8(1, 8, 2, 2), to="i8",
        group=2, strides=[2, 2],
    )  # fmt: skip
    yield reject("QuantizedConv", "dtype", [f32(1, 4, 6, 6), w, zero, channels, channels], u8(1, 8, 6, 6), **border)
    yield reject("QuantizedConv", "shape", [x, w, zero, f32(4), channels], u8(1, 8, 6, 6), **border)
    yield reject("QuantizedConv", "attribute", [x, w, zero, channels, channels], u8(1, 8, 6, 6), pads=[1, 1])
    yield reject("QuantizedConv", "rank", [u8(4, 6), i8(8, 4), zero, channels, channels], u8(4, 8))
    a, b = u8(2, 5, 16), i8(16, 8)
    yield accept("QuantizedMatMul", QUANTIZED, [a, b, zero, channels, channels], u8(2, 5, 8))
    yield accept("QuantizedMatMul", QUANTIZED, [i8(5, 16), b, zero, f32(1), channels], f32(5, 8), to="f32")
    yield reject("QuantizedMatMul", "dtype", [a, u8(16, 8), zero, channels, channels], u8(2, 5, 8))
    yield reject("QuantizedMatMul", "shape", [a, i8(12, 8), zero, channels, channels], u8(2, 5, 8))


def float8() -> Iterator[Sample]:
    """To both types and back; products of one type and of two."""
    yield accept("ConvertFloat8", ROWWISE, [f32(2, 3)], f8e4m3(2, 3), to="f8e4m3")
    yield accept("ConvertFloat8", ROWWISE, [f8e5m2(2, 3)], f32(2, 3), to="f32")
    yield reject("ConvertFloat8", "dtype", [i32(2, 3)], f8e4m3(2, 3), to="f8e4m3")
    yield reject("ConvertFloat8", "dtype", [f16(2, 3)], f32(2, 3), to="f32")
    x, w = f8e4m3(2, 5, 16), f8e4m3(32, 16)
    yield accept("Float8MatMul", ONEDNN, [x, w], f32(2, 5, 32), scale=0.5)
    yield accept("Float8MatMul", ONEDNN, [f8e5m2(5, 16), w], f16(5, 32), scale=0.5, to="f16")
    yield reject("Float8MatMul", "dtype", [f32(5, 16), w], f32(5, 32), scale=0.5)
    yield reject("Float8MatMul", "shape", [x, f8e4m3(32, 12)], f32(2, 5, 32), scale=0.5)
