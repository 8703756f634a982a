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

    Where only the run knows the block, each element is added at the place that is computed for it.

    Source: ONNX, Col2Im-18.
    """
    x, count = call.need(0), call.rank(call.node.output[0]) - 2
    strides, dilations = call.attr("strides", [1] * count), call.attr("dilations", [1] * count)
    pads = call.attr("pads", [0] * (2 * count))
    if not call.is_of_sizes(call.need(2)):
        call.sizing(call.need(1))
        return [_scattered(call, strides, dilations, pads)]
    image, block = (call.known(call.need(index)).tolist() for index in (1, 2))
    places = int(np.prod(block))
    if min(*block, *strides, *dilations) < 1 or len(image) != count or len(block) != count or call.size(x, 1) % places:
        raise Refusal(
            "shape", f"blocks {block}, strides {strides}, dilations {dilations} of {call.size(x, 1)} channels"
        )
    channels = call.size(x, 1) // places
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


def _scattered(call: Call, strides: Sequence[int], dilations: Sequence[int], pads: Sequence[int]) -> str:
    """Sums at places that follow from the block's sizes at run time; one place more takes what lies in the padding."""
    x, block, result = call.need(0), call.need(2), call.node.output[0]
    batch, channels, *image = (call.size(result, axis) for axis in range(call.rank(result)))
    count, total = len(image), int(np.prod(image))
    within = call.const(np.arange(call.size(x, 1) // channels).reshape(-1, 1))
    window = call.const(np.arange(call.size(x, 2)).reshape(1, -1))
    place, is_outside = call.ints(0), call.const(np.array([False]))
    for axis in reversed(range(count)):
        size = call.slice(block, 0, axis, axis + 1)
        room = call.ints(image[axis] + pads[axis] + pads[axis + count] - 1 + dilations[axis])
        free = call.op("Sub", room, call.op("Mul", size, call.ints(dilations[axis])))
        windows = call.op("Add", call.op("Div", free, call.ints(strides[axis])), call.ints(1))
        start = call.op("Mul", call.op("Mod", window, windows), call.ints(strides[axis]))
        apart = call.op("Mul", call.op("Mod", within, size), call.ints(dilations[axis]))
        at = call.op("Sub", call.op("Add", start, apart), call.ints(pads[axis]))
        bounds = (call.op("Less", at, call.ints(0)), call.op("GreaterOrEqual", at, call.ints(image[axis])))
        is_outside = call.op("Or", is_outside, call.op("Or", *bounds))
        place = call.op("Add", place, call.op("Mul", at, call.ints(int(np.prod(image[axis + 1 :])))))
        within, window = call.op("Div", within, size), call.op("Div", window, windows)
    places = call.reshape(call.op("Where", is_outside, call.ints(total), place), 1, 1, -1)
    updates = call.reshape(x, batch, channels, -1)
    empty = call.const(np.zeros((batch, channels, total + 1)), call.kind(x))
    indices = call.op("Expand", places, call.op("Shape", updates))
    sums = call.op("ScatterElements", empty, indices, updates, axis=2, reduction="add")
    return call.reshape(call.slice(sums, 2, 0, total), batch, channels, *image)


@decomposes("AffineGrid")
def affine_grid(call: Call) -> Sequence[str | None]:
    """AffineGrid: a constant grid times the matrices theta; at open sizes each run computes the grid.

    Source: ONNX, AffineGrid-20.
    """
    theta, size = call.need(0), call.need(1)
    count, is_aligned = call.size(theta, 1), bool(call.attr("align_corners", 0))
    known = call.value(size)
    declared = call.dims(call.node.output[0])
    lengths = [int(n) for n in known[2:]] if known is not None else [n for n in declared[1:-1] if n is not None]
    if not call.has_one_size and call.is_of_sizes(size) and (known is None or not call.is_constant(size)):
        sizes = [call.slice(size, 0, axis + 2, axis + 3) for axis in range(count)]
        grid = _computed_grid(call, sizes, call.kind(theta), is_aligned)
        shape = call.concat(0, call.length(theta, 0), *sizes, call.ints(count))
    elif len(lengths) == count and min(lengths) >= 0 and (known is not None or call.sizing(size) is None):
        grid = call.const(_grid(lengths, is_aligned), call.kind(theta))
        shape = call.ints(0, *lengths, count)
    else:
        raise Refusal("operand", f"{size!r} is not known at compile time")
    return [call.op("Reshape", call.op("MatMul", grid, call.transpose(theta, 0, 2, 1)), shape)]


def _computed_grid(call: Call, sizes: Sequence[str], kind: int, is_aligned: bool) -> str:
    """As `_grid`, of sizes that are lists of one number."""
    shape, axes = call.concat(0, *sizes), []
    for axis, size in enumerate(sizes):
        index, count = call.cast(call.range(size), kind), call.cast(size, kind)
        if is_aligned:
            steps = call.op("Max", call.op("Sub", count, call.const([1], kind)), call.const([1], kind))
            doubled = call.op("Add", index, index)
        else:
            steps, doubled = count, call.op("Add", call.op("Add", index, index), call.const([1], kind))
        at = call.op("Sub", call.op("Div", doubled, steps), call.const([1], kind))
        axes.append(call.op("Expand", call.reshape(at, -1, *[1] * (len(sizes) - 1 - axis)), shape))
    ones = call.op("Expand", call.const([1], kind), shape)
    columns = [call.unsqueeze(value, len(sizes)) for value in (*axes[::-1], ones)]
    return call.reshape(call.concat(len(sizes), *columns), -1, len(sizes) + 1)


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
    x, target = call.need(0), call.sizing(call.need(1))
    axes = [call.axis(x, axis) for axis in call.attr("axes", [*range(call.rank(x))])]
    if target is None and call.rank(call.node.output[0]) != call.rank(x):
        raise Refusal("rank", "its result is declared with another rank than its operand")
    wanted = [int(n) for n in target] if target is not None else [call.size(call.node.output[0], axis) for axis in axes]
    if len(wanted) != len(axes) or min(wanted, default=0) < 0:
        raise Refusal("operand", f"sizes {wanted} for axes {axes}")
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
    x, block = call.need(0), call.count("blocksize")
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
    x, block = call.need(0), call.count("blocksize")
    n, c, h, w = (call.size(x, axis) for axis in range(4))
    order = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    parts = call.reshape(x, n, c, h // block, block, w // block, block)
    return [call.reshape(call.transpose(parts, *order), n, c * block * block, h // block, w // block)]
