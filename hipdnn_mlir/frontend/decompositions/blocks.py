"""Blocks of space and parts of the channels, one for the other."""

from collections.abc import Sequence

from .call import Call
from .registry import decomposes


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
