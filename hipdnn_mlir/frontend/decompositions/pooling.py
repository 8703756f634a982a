"""Pooling by norms, images put together from their windows, grids for sampling, blocks of space in the place of channels."""

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from ...ops.evaluate import Array
from ...ops.registry import HIPDNN_DOMAIN
from ...ops.spec import Refusal
from .call import INT64, Call
from .registry import decomposes


def _powered(call: Call, x: str, p: int) -> str:
    if p == 1:
        return call.op("Abs", x)
    return call.op("Mul", x, x) if p == 2 else call.op("Pow", call.op("Abs", x), call.number(p, x))


def _root(call: Call, x: str, p: int) -> str:
    if p == 1:
        return x
    return call.op("Sqrt", x) if p == 2 else call.op("Pow", x, call.const(1 / p, call.precision(x)))


@decomposes("LpPool")
def lp_pool(call: Call) -> Sequence[str | None]:
    """LpPool: sums of powers are a convolution of each channel with ones.

    Source: ONNX, LpPool-22.
    """
    x, p, kernel = call.need(0), call.attr("p", 2), call.attr("kernel_shape")
    channels, spatial = call.size(x, 1), len(kernel)
    strides, dilations = call.attr("strides", [1] * spatial), call.attr("dilations", [1] * spatial)
    pads = call.attr("pads", [0] * (2 * spatial))
    if call.attr("ceil_mode", 0):
        sizes = [call.size(x, 2 + axis) for axis in range(spatial)]
        pads = _extended(sizes, kernel, strides, dilations, pads)
    padding = {"pads": pads} if call.attr("auto_pad", "NOTSET") == "NOTSET" else {"auto_pad": call.attr("auto_pad")}
    ones = call.const(np.ones((channels, 1, *kernel)), call.kind(x))
    total = call.op("Conv", _powered(call, x, p), ones, group=channels, strides=strides, dilations=dilations, **padding)
    return [_root(call, total, p)]


def _extended(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]
) -> list[int]:
    """Padding with which windows that reach over the end have their place too, if they start before it."""
    count, result = len(sizes), [*pads]
    for axis in range(count):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        whole = sizes[axis] + pads[axis] + pads[axis + count]
        places = -(-(whole - reach) // strides[axis])
        if places * strides[axis] < sizes[axis] + pads[axis]:
            result[axis + count] += max(places * strides[axis] + reach - whole, 0)
    return result


@decomposes("GlobalLpPool")
def global_lp_pool(call: Call) -> Sequence[str | None]:
    """GlobalLpPool.

    Source: ONNX, GlobalLpPool-22.
    """
    x, p = call.need(0), call.attr("p", 2)
    total = call.reduce("ReduceSum", _powered(call, x, p), [*range(2, call.rank(x))])
    return [_root(call, total, p)]


@decomposes("MaxPool")
def max_pool(call: Call) -> Sequence[str | None] | None:
    """MaxPool with Indices: hipDNN's operator, which counts in each image; ONNX counts in the whole tensor. Without Indices it stays.

    Source: ONNX, MaxPool-22.
    """
    if not call.wants(1):
        return None
    x, spatial = call.need(0), call.rank(call.need(0)) - 2
    column_major = bool(call.attr("storage_order", 0))
    if set(call.attr("dilations", [1])) != {1}:
        raise Refusal("attribute", f"dilations {call.attr('dilations')}: hipDNN's resample has none")
    if call.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or (column_major and spatial > 2):
        raise Refusal("attribute", "indices with auto_pad, or in column-major order of three dims")
    stated = {name: call.attr(name) for name in ("kernel_shape", "strides", "pads", "ceil_mode")}
    maxima, indices = call.outs("MaxPoolWithIndices", x, count=2, domain=HIPDNN_DOMAIN, **stated)
    batch, channels, *sizes = (call.length(x, axis) for axis in range(spatial + 2))
    if column_major and spatial == 2:
        height, width = sizes
        indices = call.op("Add", call.op("Mul", call.op("Mod", indices, width), height), call.op("Div", indices, width))
    shape = call.concat(0, batch, channels, call.ints(*[1] * spatial))
    images = call.op("Reshape", call.range(call.op("Mul", batch, channels)), shape)
    return [maxima, call.op("Add", indices, call.op("Mul", images, reduce(partial(call.op, "Mul"), sizes)))]


@decomposes("Col2Im")
def col2im(call: Call) -> Sequence[str | None]:
    """Col2Im: a transposed convolution of each channel, whose filters put every element of a window in its place.

    Source: ONNX, Col2Im-18.
    """
    x, image, block = call.need(0), *(call.known(call.need(index)).tolist() for index in (1, 2))
    count, places = len(image), int(np.prod(block))
    channels = call.size(x, 1) // places
    strides, dilations = call.attr("strides", [1] * count), call.attr("dilations", [1] * count)
    pads = call.attr("pads", [0] * (2 * count))
    reach = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, block, strict=True)]
    free = [image[axis] + pads[axis] + pads[axis + count] - reach[axis] for axis in range(count)]
    windows = [left // stride + 1 for left, stride in zip(free, strides, strict=True)]
    filters = np.tile(np.eye(places).reshape(places, 1, *block), (channels, *[1] * (count + 1)))
    return [
        call.op(
            "ConvTranspose", call.reshape(x, 0, 0, *windows), call.const(filters, call.kind(x)), group=channels, strides=strides,
            dilations=dilations, pads=pads, output_padding=[left % stride for left, stride in zip(free, strides, strict=True)],
        )
    ]  # fmt: skip


@decomposes("AffineGrid")
def affine_grid(call: Call) -> Sequence[str | None]:
    """AffineGrid: a constant grid times the matrices theta.

    Source: ONNX, AffineGrid-20.
    """
    theta, size = call.need(0), call.need(1)
    known = call.value(size)
    declared = call.dims(call.node.output[0])
    lengths = [int(n) for n in known[2:]] if known is not None else [n for n in declared[1:-1] if n is not None]
    if len(lengths) != call.size(theta, 1):
        raise Refusal("operand", f"{size!r} is not known at compile time")
    grid = call.op(
        "MatMul",
        call.const(_grid(lengths, bool(call.attr("align_corners", 0))), call.kind(theta)),
        call.transpose(theta, 0, 2, 1),
    )
    return [call.reshape(grid, 0, *lengths, len(lengths))]


def _grid(lengths: Sequence[int], is_aligned: bool) -> Array:
    """[product of lengths, dims + 1]: coordinates from -1 to 1, the last axis first, then 1."""
    steps = [np.linspace(-1, 1, n) if is_aligned else (2 * np.arange(n) + 1) / n - 1 for n in lengths]
    axes = np.meshgrid(*steps, indexing="ij")
    return np.stack([*axes[::-1], np.ones(lengths)], -1).reshape(-1, len(lengths) + 1)


@decomposes("CenterCropPad")
def center_crop_pad(call: Call) -> Sequence[str | None]:
    """CenterCropPad with the target sizes, or with the result's where those are not known.

    Source: ONNX, CenterCropPad-18.
    """
    x, target = call.need(0), call.value(call.need(1))
    axes = [axis % call.rank(x) for axis in call.attr("axes", [*range(call.rank(x))])]
    wanted = [int(n) for n in target] if target is not None else [call.size(call.node.output[0], axis) for axis in axes]
    lower, upper = [0] * call.rank(x), [0] * call.rank(x)
    for axis, want in zip(axes, wanted, strict=True):
        have = call.size(x, axis)
        if have > want:
            start = (have - want) // 2
            x = call.slice(x, axis, start, start + want)
        else:
            lower[axis] = (want - have) // 2
            upper[axis] = want - have - lower[axis]
    return [call.op("Pad", x, call.const([*lower, *upper], INT64)) if any(lower + upper) else call.op("Identity", x)]


@decomposes("DepthToSpace")
def depth_to_space(call: Call) -> Sequence[str | None]:
    """DepthToSpace in both modes: where the block lies among the channels.

    Source: ONNX, DepthToSpace-13.
    """
    x, block = call.need(0), call.attr("blocksize")
    n, c, h, w = (call.size(x, axis) for axis in range(4))
    outer = c // (block * block)
    if call.attr("mode", "DCR") == "DCR":
        parts, order = (n, block, block, outer, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, outer, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return [call.reshape(call.transpose(call.reshape(x, *parts), *order), n, outer, h * block, w * block)]


@decomposes("SpaceToDepth")
def space_to_depth(call: Call) -> Sequence[str | None]:
    """SpaceToDepth in both modes.

    Source: ONNX, SpaceToDepth-13; its mode is that of DepthToSpace.
    """
    x, block = call.need(0), call.attr("blocksize")
    n, c, h, w = (call.size(x, axis) for axis in range(4))
    order = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = call.reshape(x, n, c, h // block, block, w // block, block)
    return [call.reshape(call.transpose(parts, *order), n, c * block * block, h // block, w // block)]
