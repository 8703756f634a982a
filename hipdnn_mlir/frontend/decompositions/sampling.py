"""Reads of images between their pixels, at places that the run computes."""

from collections.abc import Sequence

import numpy as np

from ...ops.spec import Refusal
from .call import INT64, Call
from .registry import decomposes

_IMAGE = 4
"""Dims of images: batch, channels, height, width."""


@decomposes("DeformConv")
def deform_conv(call: Call) -> Sequence[str | None]:
    """DeformConv of two dims: samples of every group of offsets, as the columns that the filters multiply.

    Pixels outside the image are 0 as GridSample has them; corners are not aligned, so that an image may have one row.

    Source: ONNX, DeformConv-22.
    """
    x, weights, offset = (call.need(index) for index in range(3))
    bias, mask = call.arg(3), call.arg(4)
    if call.rank(x) != _IMAGE:
        raise Refusal("rank", f"an operand of rank {call.rank(x)}, expected {_IMAGE}")
    channels, *image = (call.size(x, axis) for axis in range(1, _IMAGE))
    results, inner, *kernel = (call.size(weights, axis) for axis in range(_IMAGE))
    groups, offset_groups = call.count("group", 1), call.count("offset_group", 1)
    strides, dilations, pads = call.attr("strides", [1, 1]), call.attr("dilations", [1, 1]), call.attr("pads", [0] * 4)
    is_of_image = (len(strides), len(dilations), len(pads)) == (2, 2, 4) and call.attr("kernel_shape", kernel) == kernel
    if not is_of_image or min(*kernel, *strides, *dilations, *image) < 1:
        raise Refusal(
            "shape", f"filters {kernel}, strides {strides}, dilations {dilations}, pads {pads} of an image {image}"
        )
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    free = [image[axis] + pads[axis] + pads[axis + 2] - reach[axis] for axis in range(2)]
    windows = [left // stride + 1 for left, stride in zip(free, strides, strict=True)]
    places, pixels = int(np.prod(kernel)), int(np.prod(windows))
    expected = [(offset, 2)] + ([(mask, 1)] if mask else [])
    if min(windows) < 1 or any(
        [call.size(value, axis) for axis in range(1, _IMAGE)] != [count * offset_groups * places, *windows]
        for value, count in expected
    ):
        raise Refusal("shape", f"offsets or a mask of other sizes than {windows} for {offset_groups} groups")
    if channels != inner * groups or channels % offset_groups or results % groups:
        raise Refusal("shape", f"{channels} channels and {results} filters of {inner} in {groups} and {offset_groups}")
    kind = call.precision(x)
    at = [
        np.add.outer(np.arange(kernel[axis]) * dilations[axis], np.arange(windows[axis]) * strides[axis] - pads[axis])
        for axis in range(2)
    ]
    rows = np.broadcast_to(at[0][:, None, :, None], (*kernel, *windows))
    columns = np.broadcast_to(at[1][None, :, None, :], (*kernel, *windows))
    sizes = np.array(image[::-1])
    start = (2 * np.stack([columns, rows], -1).reshape(1, places, pixels, 2) + 1) / sizes - 1
    moved = call.transpose(call.reshape(call.cast(offset, kind), -1, places, 2, pixels), 0, 1, 3, 2)
    moved = call.op("Gather", moved, call.ints(1, 0), axis=3)
    grid = call.op("Add", call.op("Mul", moved, call.const(2 / sizes, kind)), call.const(start, kind))
    samples = call.op("GridSample", call.reshape(x, -1, channels // offset_groups, *image), grid, align_corners=0)
    if mask:
        samples = call.op("Mul", samples, call.reshape(mask, -1, 1, places, pixels))
    filters = call.reshape(weights, groups, results // groups, inner * places)
    y = call.op("MatMul", filters, call.reshape(samples, -1, groups, inner * places, pixels))
    y = call.reshape(y, -1, results, *windows)
    return [call.op("Add", y, call.reshape(bias, results, 1, 1)) if bias else y]


@decomposes("RoiAlign")
def roi_align(call: Call) -> Sequence[str | None]:
    """RoiAlign of a known number of samples: rows of channels at the four pixels around each, times their weights.

    The maximum is that of the weighted pixels, not of their sums, as ONNX and ONNX Runtime have it.

    Source: ONNX, RoiAlign-22.
    """
    x, regions, batch = (call.need(index) for index in range(3))
    if call.rank(x) != _IMAGE:
        raise Refusal("rank", f"an operand of rank {call.rank(x)}, expected {_IMAGE}")
    channels, *image = (call.size(x, axis) for axis in range(1, _IMAGE))
    count = call.attr("sampling_ratio", 0)
    if count < 1:
        raise Refusal("attribute", f"sampling_ratio {count}: the sizes of regions decide how many samples there are")
    result = [call.count(name, 1) for name in ("output_height", "output_width")]
    is_mean = call.one_of(("avg", "max"), "mode", "avg") == "avg"
    modes = ("half_pixel", "output_half_pixel")
    is_shifted = call.one_of(modes, "coordinate_transformation_mode", modes[0]) == modes[0]
    kind = call.precision(x)
    corners = call.scaled(call.cast(regions, kind), call.attr("spatial_scale", 1.0))
    if is_shifted:
        corners = call.op("Sub", corners, call.number(0.5, corners))
    pixels, weights = [], []
    for axis, (size, windows) in enumerate(zip(image, result, strict=True)):
        start, end = (call.slice(corners, 1, at, at + 1) for at in (1 - axis, 3 - axis))
        length = call.op("Sub", end, start)
        if not is_shifted:
            length = call.op("Max", length, call.number(1, length))
        part = call.const((np.arange(windows * count) + 0.5).reshape(1, -1) / (windows * count), kind)
        at = call.op("Add", start, call.op("Mul", length, part))
        first, of_pair = _pairs(call, at, size)
        shape = [-1, 1, 1, 1, 1, 1, 1]
        shape[1 + axis], shape[3 + axis], shape[5 + axis] = windows, count, 2
        pixels.append(call.reshape(first, *shape))
        weights.append(call.reshape(of_pair, *shape))
    places = call.op("Add", call.op("Mul", pixels[0], call.ints(image[1])), pixels[1])
    start = call.op("Mul", call.cast(batch, INT64), call.ints(image[0] * image[1]))
    places = call.op("Add", places, call.reshape(start, -1, *[1] * 6))
    rows = call.reshape(call.transpose(x, 0, 2, 3, 1), -1, channels)
    windows, samples = result[0] * result[1], 4 * count * count
    read = call.op("Gather", rows, call.reshape(places, -1, samples), axis=0)
    weight = call.op("Mul", *weights)
    if is_mean:
        weight = call.op("Mul", weight, call.number(1 / count**2, weight))
        y = call.op("MatMul", call.reshape(weight, -1, 1, samples), call.cast(read, kind))
    else:
        y = call.reduce("ReduceMax", call.op("Mul", call.cast(read, kind), call.reshape(weight, -1, samples, 1)), [1])
    y = call.transpose(call.reshape(y, -1, windows, channels), 0, 2, 1)
    return [call.cast(call.reshape(y, -1, channels, *result), call.kind(x))]


def _pairs(call: Call, at: str, size: int) -> tuple[str, str]:
    """The two pixels of one dim around places [regions, places], and their weights: [regions, places, 2].

    Weights of what lies a pixel or more outside, or is no number, are 0.
    """
    zero, one = call.number(0, at), call.number(1, at)
    bounds = (call.op("GreaterOrEqual", at, call.number(-1, at)), call.op("LessOrEqual", at, call.number(size, at)))
    is_inside = call.op("And", *bounds)
    at = call.op("Clip", call.op("Where", is_inside, at, zero), zero, call.number(size - 1, at))
    floor = call.op("Floor", at)
    low, share = call.cast(floor, INT64), call.op("Sub", at, floor)
    high = call.op("Min", call.op("Add", low, call.ints(1)), call.ints(size - 1))
    weights = [call.op("Where", is_inside, weight, zero) for weight in (call.op("Sub", one, share), share)]
    return _stacked(call, low, high), _stacked(call, *weights)


def _stacked(call: Call, *values: str) -> str:
    return call.concat(2, *(call.unsqueeze(value, 2) for value in values))
