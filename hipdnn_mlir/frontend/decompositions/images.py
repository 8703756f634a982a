"""Images put together from their windows, grids for sampling, blocks of space in the place of channels."""

from collections.abc import Sequence

import numpy as np

from ...ops.evaluate import Array
from ...ops.spec import Refusal
from .call import INT64, Call
from .registry import decomposes


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
