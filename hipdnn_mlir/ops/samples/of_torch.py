"""What torch ops that ONNX spells otherwise do."""

from collections.abc import Iterator
from typing import Any

from .case import KERNEL, Sample, accept, bools, f16, f32, i64, reject


def operations() -> Iterator[Sample]:
    """Gathers, scatters, sorting, interpolation with PyTorch's arguments."""
    x, indices, wrong = f32(5, 4), i64(2, 3), f32(2, 3)
    yield accept("aten.index_select", KERNEL, [x, 1, i64(3)], f32(5, 3))
    yield reject("aten.index_select", "dtype", [x, 1, f32(3)], f32(5, 3))
    yield accept("aten.gather", KERNEL, [x, 1, indices, False], f32(2, 3))
    yield reject("aten.gather", "dtype", [x, 1, wrong, False], f32(2, 3))
    for name in ("aten.scatter.src", "aten.scatter_add"):
        yield accept(name, KERNEL, [x, 0, indices, f32(2, 3)], x)
        yield reject(name, "shape", [x, 0, indices, f32(3, 3)], x)
    yield accept("aten.flip", KERNEL, [x, [0, -1]], x)
    yield reject("aten.flip", "attribute", [x, [2]], x)
    for name in ("aten.cumsum", "aten.cumprod"):
        yield accept(name, KERNEL, [x, -1, None], x)
        yield reject(name, "dtype", [bools(2, 3), -1, None], bools(2, 3))
    for name in ("aten.argmax", "aten.argmin"):
        yield accept(name, KERNEL, [x, 1, True], i64(5, 1))
        yield accept(name, KERNEL, [x, None, False], i64())
        yield reject(name, "attribute", [x, 2, False], i64(5))
    yield accept("aten.topk", KERNEL, [x, 2, 1, True, True], f32(5, 2), i64(5, 2), uses_all=True)
    yield reject("aten.topk", "attribute", [x, 2, 2, True, True], f32(5, 2), i64(5, 2))
    yield Sample("torch.aten.sort", (x, 1, False), (x, i64(5, 4)), KERNEL, uses_all=True)
    yield reject("aten.sort", "dtype", [bools(2, 3), 1, False], bools(2, 3), i64(2, 3))
    more: list[Any] = [None, None, None, None]
    yield accept("aten.arange.start_step", KERNEL, [2, 8, 2, *more], i64(3))
    yield reject("aten.arange.start_step", "dtype", [2, 8, 2, *more], f16(3))
    yield from _interpolation()


def _interpolation() -> Iterator[Sample]:
    line, image, volume = f32(1, 2, 4), f32(1, 2, 4, 4), f32(1, 2, 4, 4, 4)
    for name, operand, result in (
        ("upsample_nearest1d", line, f32(1, 2, 8)),
        ("upsample_nearest2d", image, f32(1, 2, 8, 6)),
        ("upsample_nearest3d", volume, f32(1, 2, 8, 6, 5)),
        ("_upsample_nearest_exact2d", image, f32(1, 2, 8, 6)),
    ):
        yield accept(f"aten.{name}.vec", KERNEL, [operand, [*result.dims[2:]], None], result)
        yield reject(
            f"aten.{name}.vec", "dynamic-shape", [f32(None, *operand.dims[1:]), [8], None], f32(None, *result.dims[1:])
        )
    for name, operand, result in (
        ("upsample_linear1d", line, f32(1, 2, 8)),
        ("upsample_bilinear2d", image, f32(1, 2, 8, 6)),
        ("upsample_trilinear3d", volume, f32(1, 2, 8, 6, 5)),
        ("upsample_bicubic2d", image, f32(1, 2, 8, 6)),
    ):
        yield accept(f"aten.{name}.vec", KERNEL, [operand, [*result.dims[2:]], False, None], result)
        booleans = bools(*operand.static_dims())
        yield reject(f"aten.{name}.vec", "dtype", [booleans, [8], False, None], bools(*result.static_dims()))
    yield accept("aten.grid_sampler_2d", KERNEL, [image, f32(1, 3, 3, 2), 0, 0, False], f32(1, 2, 3, 3))
    yield reject("aten.grid_sampler_2d", "dtype", [image, i64(1, 3, 3, 2), 0, 0, False], f32(1, 2, 3, 3))
