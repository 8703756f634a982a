"""Convolutions, matmuls, attention."""

from collections.abc import Iterator
from typing import Any

from ..spec import TensorType
from .case import KERNEL, ONEDNN, REDUCTION, SDPA, Sample, accept, bools, f16, f32, f64, i8, i32, i64, reject, u8


def convolution() -> Iterator[Sample]:
    """Forward and transposed."""

    def call(
        x: TensorType, w: TensorType, *, bias: Any = None, spatial: int = 2, transposed: bool = False, groups: int = 1
    ) -> list[Any]:
        ones, zeros = [1] * spatial, [0] * spatial
        return [x, w, bias, ones, ones, ones, transposed, zeros, groups]

    op = "aten.convolution"
    yield accept(op, ONEDNN, call(f32(1, 4, 8, 8), f32(6, 4, 3, 3), bias=f32(6)), f32(1, 6, 8, 8))
    yield accept(op, ONEDNN, call(f32(1, 4, 8), f32(6, 2, 3), spatial=1, groups=2), f32(1, 6, 8))
    yield accept(op, ONEDNN, call(f32(1, 4, 4, 4, 4), f32(6, 4, 3, 3, 3), spatial=3), f32(1, 6, 4, 4, 4))
    yield accept(op, ONEDNN, call(f32(1, 4, 8, 8), f32(4, 6, 3, 3), transposed=True), f32(1, 6, 8, 8))
    yield reject(op, "rank", call(f32(1, 1, 3, 3, 3, 3), f32(1, 1, 3, 3, 3, 3), spatial=4), f32(1, 1, 3, 3, 3, 3))
    yield reject(op, "dtype", call(f64(1, 4, 8, 8), f64(6, 4, 3, 3)), f64(1, 6, 8, 8))
    yield reject(op, "shape", call(f32(1, 4, 8, 8), f32(6, 3, 3, 3)), f32(1, 6, 8, 8))
    yield reject(op, "dynamic-shape", call(f32(None, 4, 8, 8), f32(6, 4, 3, 3)), f32(None, 6, 8, 8))


def matmul() -> Iterator[Sample]:
    """Matmuls."""
    yield accept("aten.mm", ONEDNN, [f32(2, 3), f32(3, 4)], f32(2, 4))
    yield accept("aten.mm", REDUCTION, [f64(2, 3), f64(3, 4)], f64(2, 4))
    yield reject("aten.mm", "dtype", [i8(2, 3), i8(3, 4)], i8(2, 4))
    yield reject("aten.mm", "shape", [f64(2, 3), f64(4, 3)], f64(2, 3))
    yield accept("aten.bmm", ONEDNN, [f32(5, 2, 3), f32(5, 3, 4)], f32(5, 2, 4))
    yield accept("aten.bmm", REDUCTION, [i32(5, 2, 3), i32(5, 3, 4)], i32(5, 2, 4))
    yield reject("aten.bmm", "dtype", [u8(5, 2, 3), u8(5, 3, 4)], u8(5, 2, 4))
    yield accept("aten.matmul", ONEDNN, [f32(7, 1, 2, 3), f32(5, 3, 4)], f32(7, 5, 2, 4))
    yield accept("aten.matmul", ONEDNN, [f32(3), f32(3, 4)], f32(4))
    yield accept("aten.matmul", ONEDNN, [f32(2, 3), f32(3)], f32(2))
    yield reject("aten.matmul", "shape", [f32(2, 3), f32(4, 3)], f32(2, 3))
    yield accept("aten.linear", ONEDNN, [f32(5, 2, 3), f32(4, 3), f32(4)], f32(5, 2, 4))
    yield accept("aten.linear", ONEDNN, [f32(2, 3), f32(4, 3), None], f32(2, 4))
    yield accept("aten.linear", REDUCTION, [f64(2, 3), f64(4, 3), None], f64(2, 4))
    yield reject("aten.linear", "dtype", [i8(2, 3), i8(4, 3), None], i8(2, 4))
    yield reject("aten.linear", "rank", [f32(3), f32(4, 3), None], f32(4))
    yield accept("aten.addmm", ONEDNN, [f32(4), f32(2, 3), f32(3, 4), 1, 1], f32(2, 4))
    yield accept("aten.addmm", REDUCTION, [f64(4), f64(2, 3), f64(3, 4), 1, 1], f64(2, 4))
    yield reject("aten.addmm", "dtype", [i8(4), i8(2, 3), i8(3, 4), 1, 1], i8(2, 4))


def attention() -> Iterator[Sample]:
    """Scaled dot-product attention."""
    op, q, kv = "aten.scaled_dot_product_attention", f32(2, 4, 5, 8), f32(2, 2, 7, 8)
    plain = [0.0, False, None, False]
    yield accept(op, SDPA, [q, q, q, None, 0.0, True, 0.5, False], q)
    yield accept(op, SDPA, [q, kv, kv, f32(5, 7), 0.0, False, None, True], q)
    yield accept(op, SDPA, [q, q, q, bools(2, 1, 1, 5), *plain], q)
    yield accept(op, SDPA, [f32(2, 5, 8), f32(2, 7, 8), f32(2, 7, 6), f32(2, 5, 7), *plain], f32(2, 5, 6))
    yield reject(op, "shape", [q, kv, kv, None, *plain], q)
    yield reject(op, "mask", [q, q, q, f32(4, 5), *plain], q)
    yield reject(op, "mask", [q, q, q, i32(5, 5), *plain], q)
    yield reject(op, "attribute", [q, q, q, None, 0.5, False, None, False], q)
    yield reject(op, "rank", [f32(5, 8), f32(5, 8), f32(5, 8), None, *plain], f32(5, 8))
    yield reject(op, "dtype", [f64(2, 4, 5, 8)] * 3 + [None, *plain], f64(2, 4, 5, 8))


def caches() -> Iterator[Sample]:
    """Attention over a cache, and what is new in one."""
    op, q, cache, counts = "CachedAttention", f32(2, 4, 3, 8), f32(2, 2, 16, 8), i32(2)
    yield accept(op, SDPA, [q, cache, cache, counts, counts], q)
    yield accept(op, SDPA, [q, cache, f32(2, 4, 16, 6), counts, counts], f32(2, 4, 3, 6), scale=0.5, left=4)
    half = [f16(2, 4, 1, 8), *[f16(2, 1, 16, 8)] * 2]
    yield accept(op, SDPA, [*half, counts, counts], half[0])
    yield accept(op, SDPA, [q, cache, cache, counts, counts, f32(1, 4, 3, 16)], q, softcap=2.0)
    yield accept(op, SDPA, [*half, counts, counts, f16(2, 1, 1, 16), f32(4)], half[0], left=4)
    yield accept(op, SDPA, [q, cache, cache, counts, counts, None, f32(4)], q)
    pool, table = f32(6, 2, 4, 8), i32(2, 3)
    yield accept(op, SDPA, [q, pool, pool, counts, counts, None, None, table], q, left=4)
    yield reject(op, "dtype", [q, pool, pool, counts, counts, None, None, i64(2, 3)], q)
    yield reject(op, "dtype", [q, pool, pool, counts, counts, None, None, i32(3, 3)], q)
    yield reject(op, "mask", [q, pool, pool, counts, counts, f32(1, 4, 3, 12), None, table], q)
    yield reject(op, "shape", [q, pool, f32(6, 2, 5, 8), counts, counts, None, None, table], q)
    yield accept(op, SDPA, [q, cache, cache, counts, counts, f32(2, 1, 3, 16)], q, causal=0)
    yield reject(op, "mask", [q, cache, cache, counts, counts, f32(1, 4, 3, 15)], q)
    yield reject(op, "dtype", [*half, counts, counts, None, f16(4)], half[0])
    yield reject(op, "dtype", [q, cache, cache, counts, counts, None, f32(2)], q)
    yield reject(op, "dtype", [q, cache, cache, i64(2), i64(2)], q)
    yield reject(op, "dtype", [q, cache, cache, counts, i32(1)], q)
    yield reject(op, "dtype", [f64(2, 4, 3, 8), *[f64(2, 2, 16, 8)] * 2, counts, counts], f64(2, 4, 3, 8))
    yield reject(op, "rank", [f32(4, 3, 8), *[f32(2, 16, 8)] * 2, i32(4), i32(4)], f32(4, 3, 8))
    yield reject(op, "shape", [q, f32(2, 3, 16, 8), f32(2, 3, 16, 8), counts, counts], q)
    op, one, fresh, cache = "DecodeAttention", f16(2, 4, 1, 8), f16(2, 2, 1, 8), f16(2, 2, 16, 8)
    given, angles = [one, fresh, fresh, cache, cache, i64(2), counts], [f16(1, 1, 1, 3)] * 2
    yield accept(op, KERNEL, [*given, *angles], one, cache, cache, uses_all=True, left=4, scale=0.5)
    yield accept(op, KERNEL, given, one, cache, cache, uses_all=True)
    pool, paged = f16(6, 2, 4, 8), [*given[:3], *[f16(6, 2, 4, 8)] * 2, *given[5:]]
    yield accept(op, KERNEL, [*paged, *angles, table], one, pool, pool, uses_all=True)
    yield accept(op, KERNEL, [*paged, None, None, table], one, pool, pool, uses_all=True)
    nothing = [None] * 3
    yield accept(op, KERNEL, [*given, *nothing, f32(1, 4, 1, 16)], one, cache, cache, uses_all=True)
    yield accept(op, KERNEL, [*given, *angles, None, f16(2, 1, 1, 16)], one, cache, cache, uses_all=True)
    yield reject(op, "mask", [*paged, *angles, table, f32(1, 1, 1, 12)], one, pool, pool)
    yield reject(op, "shape", [*given, *nothing, f32(1, 1, 1, 15)], one, cache, cache)
    yield reject(op, "dtype", [*given, *nothing, i32(1, 1, 1, 16)], one, cache, cache)
    yield reject(op, "dtype", [*paged, *angles, i64(2, 3)], one, pool, pool)
    yield reject(op, "dtype", [*paged, *angles, i32(3, 3)], one, pool, pool)
    yield reject(op, "shape", [*paged[:4], f16(5, 2, 4, 8), *given[5:], *angles, table], one, pool, pool)
    yield reject(op, "dtype", [f32(2, 4, 1, 8), *given[1:]], f32(2, 4, 1, 8), cache, cache)
    yield reject(op, "dtype", [*given[:5], f32(2), counts], one, cache, cache)
    yield reject(op, "dtype", [f64(2, 4, 1, 8), *given[1:]], f64(2, 4, 1, 8), cache, cache)
    yield reject(op, "shape", [f16(2, 4, 3, 8), *given[1:]], f16(2, 4, 3, 8), cache, cache)
    yield reject(op, "shape", [one, f16(2, 2, 1, 6), *given[2:]], one, cache, cache)
    yield reject(op, "shape", [*given[:5], i64(3), counts], one, cache, cache)
    yield reject(op, "shape", [*given, *[f16(1, 1, 1, 5)] * 2], one, cache, cache)
    cache = f32(2, 2, 16, 8)
    op, new, longer = "CacheUpdate", f32(2, 2, 3, 8), f32(2, 2, 20, 8)
    yield accept(op, KERNEL, [cache, new, i64(2), i64(16)], cache)
    yield accept(op, KERNEL, [cache, new, i32(1), i64(20)], longer)
    pool = f32(6, 2, 4, 8)
    yield accept(op, KERNEL, [pool, new, i64(2), None, table], pool)
    yield reject(op, "dtype", [pool, new, i64(2), None, i64(2, 3)], pool)
    yield reject(op, "dtype", [pool, new, i64(2), None, i32(3, 3)], pool)
    yield reject(op, "shape", [pool, f32(2, 3, 3, 8), i64(2), None, table], pool)
    yield reject(op, "shape", [pool, new, i64(6), None, table], pool)
    yield reject(op, "dtype", [cache, new, f32(2), i64(16)], cache)
    yield reject(op, "dtype", [cache, f16(2, 2, 3, 8), i64(2), i64(16)], cache)
    yield reject(op, "shape", [cache, f32(2, 2, 3, 4), i64(2), i64(16)], cache)
    yield reject(op, "shape", [cache, new, i64(3), i64(16)], cache)
    yield reject(op, "shape", [cache, new, i64(2), i64(12)], f32(2, 2, 12, 8))
