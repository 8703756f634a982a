"""Operations of hipDNN with operators of their own."""

from collections.abc import Iterator
from typing import Any

from .case import (
    BLOCK_MATMUL,
    BLOCK_SCALE,
    ONEDNN,
    REDUCTION,
    ROWWISE,
    Sample,
    accept,
    bools,
    f16,
    f32,
    f64,
    i8,
    i64,
    reject,
    u8,
)

_MAX_POOL = "HOST_MAX_POOL_ENGINE"


def operations() -> Iterator[Sample]:
    """Block scales, batch norm by deviation, and modes that no operator of ONNX has."""
    x, channels = f32(2, 4, 6), [f32(4)] * 4
    quantized = (i8(2, 64), f32(2, 2))
    yield accept("BlockScaleQuantize", BLOCK_SCALE, [f16(2, 64)], *quantized, uses_all=True, block_size=32)
    yield accept(
        "BlockScaleQuantize", BLOCK_SCALE, [f32(5, 3)], i8(5, 3), f32(2, 3), uses_all=True, block_size=4, axis=0
    )
    yield reject("BlockScaleQuantize", "attribute", [f32(2, 64)], *quantized, uses_all=True)
    yield reject("BlockScaleQuantize", "dtype", [f64(2, 64)], *quantized, uses_all=True, block_size=32)
    yield accept("DequantizeLinear", BLOCK_SCALE, [*quantized], f32(2, 64), block_size=32, axis=1)
    yield accept("DequantizeLinear", BLOCK_SCALE, [i8(6, 3), f32(3, 3)], f32(6, 3), block_size=2, axis=0)
    yield reject("DequantizeLinear", "attribute", [*quantized], f32(2, 64), axis=1)
    yield reject("DequantizeLinear", "shape", [*quantized], f32(2, 64), block_size=16, axis=1)
    yield from _block_scale_dequantize()
    yield from _block_scale_matmul()
    yield accept("BatchNormalizationInference", ONEDNN, [x, *channels], x)
    yield reject("BatchNormalizationInference", "rank", [f32(4), *channels], f32(4))
    pooled = (f32(1, 2, 3, 3), i64(1, 2, 3, 3))
    window: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield accept("MaxPoolWithIndices", _MAX_POOL, [f32(1, 2, 6, 6)], *pooled, uses_all=True, **window)
    yield reject("MaxPoolWithIndices", "dtype", [i64(1, 2, 6, 6)], pooled[1], pooled[1], uses_all=True, **window)
    yield accept("AddSquare", ROWWISE, [x, x], x)
    yield reject("AddSquare", "shape", [x, f32(6)], x)
    yield accept("GenIndex", ROWWISE, [x], x, axis=-1)
    yield accept("GenIndex", ROWWISE, [i64(3, 2)], i64(3, 2))
    yield reject("GenIndex", "dtype", [bools(2, 3)], bools(2, 3))
    yield accept("ReduceProdNoZeros", REDUCTION, [x], f32(2, 4), axes=[-1], keepdims=0)
    yield accept("ReduceProdNoZeros", REDUCTION, [x], f32(1, 4, 1), axes=[0, 2])
    yield reject("ReduceProdNoZeros", "dtype", [bools(2, 3)], bools(2, 1), axes=[1])


def _block_scale_dequantize() -> Iterator[Sample]:
    """Whole blocks alone."""
    name = "BlockScaleDequantize"
    stated: dict[str, Any] = {"block_size": 16}
    yield accept(name, BLOCK_SCALE, [i8(7, 64), f32(7, 4)], f32(7, 64), **stated, bits=8)
    yield accept(name, BLOCK_SCALE, [u8(7, 32), f32(7, 4)], f32(7, 64), **stated)
    yield reject(name, "shape", [i8(7, 40), f32(7, 3)], f32(7, 40), **stated, bits=8)
    yield reject(name, "dtype", [i8(7, 64), f32(7, 4)], f32(7, 64), **stated)
    yield reject(name, "attribute", [i8(7, 64), f32(7, 4)], f32(7, 64), bits=8)


def _block_scale_matmul() -> Iterator[Sample]:
    """Blocks of 16 along k = 40: three scales for a row."""
    a, y, scales = f32(2, 3, 40), f32(2, 3, 7), f32(7, 3)
    stated: dict[str, Any] = {"block_size": 16, "bits": 4}
    yield accept("BlockScaleMatMul", BLOCK_MATMUL, [a, u8(7, 20), scales], y, **stated)
    yield accept("BlockScaleMatMul", BLOCK_MATMUL, [a, u8(7, 24), scales], y, rounds=1, **stated)
    yield accept("BlockScaleMatMul", BLOCK_MATMUL, [f16(3, 40), u8(7, 24), scales], f16(3, 7), **stated)
    yield accept("BlockScaleMatMul", BLOCK_MATMUL, [f16(3, 40), u8(7, 24), f16(7, 3)], f16(3, 7), rounds=1, **stated)
    yield accept("BlockScaleMatMul", BLOCK_MATMUL, [a, i8(7, 40), scales], y, block_size=16, bits=8, rounds=1)
    yield reject("BlockScaleMatMul", "attribute", [a, u8(7, 20), scales], y, bits=4)
    yield reject("BlockScaleMatMul", "dtype", [a, i8(7, 20), scales], y, **stated)
    yield reject("BlockScaleMatMul", "dtype", [f64(3, 40), u8(7, 20), scales], f64(3, 7), **stated)
    yield reject("BlockScaleMatMul", "shape", [a, u8(7, 20), f32(7, 2)], y, **stated)
    yield reject("BlockScaleMatMul", "shape", [a, u8(7, 19), scales], y, **stated)
    yield reject("BlockScaleMatMul", "engine", [a, u8(7, 20), f32(7, 4)], y, block_size=12, bits=4)
