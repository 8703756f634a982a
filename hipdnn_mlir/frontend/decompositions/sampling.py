"""Reads of images between their pixels, at places that the run computes."""

from collections.abc import Sequence

import numpy as np

from ...ops.spec import Refusal
from .call import Call
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
