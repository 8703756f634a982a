"""The windows of convolutions and pools, as ONNX places them on what they go over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx

WINDOWED = frozenset({"Conv", "ConvInteger", "MaxPool", "MaxPoolWithIndices", "AveragePool", "LpPool"})


@dataclass(frozen=True)
class Window:
    """A window along one axis.

    Attributes:
        length: its elements.
        dilation: how far they are apart.
        stride: how far one window is from the next.
        padding: before and after, together; 0 where `is_same`.
        rounds_up: whether a last window may reach over the end.
        is_same: whether the padding is what gives each stride a window (`auto_pad`).
    """

    length: int
    dilation: int
    stride: int
    padding: int
    rounds_up: bool
    is_same: bool

    @property
    def reach(self) -> int:
        """From its first element to its last."""
        return 0 if self.is_same else self.dilation * (self.length - 1) + 1


def windows(node: onnx.NodeProto, dims: Mapping[str, tuple[int, ...]]) -> list[Window]:
    """A node's windows, axis by axis behind batch and channels; none where its kernel is not known.

    Args:
        node: one of WINDOWED.
        dims: value -> its sizes.
    """
    attributes: dict[str, Any] = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    rank = len(dims[node.input[0]]) - 2
    lengths = attributes.get("kernel_shape") or (dims.get(node.input[1], ())[2:] if len(node.input) > 1 else ())
    if len(lengths) != rank:
        return []
    strides, dilations = (attributes.get(name, [1] * rank) for name in ("strides", "dilations"))
    auto = attributes.get("auto_pad", b"NOTSET")
    pads = attributes.get("pads", [0] * 2 * rank) if auto == b"NOTSET" else [0] * 2 * rank
    is_same = auto in (b"SAME_UPPER", b"SAME_LOWER")
    rounds_up = bool(attributes.get("ceil_mode", 0))
    return [
        Window(lengths[i], dilations[i], strides[i], pads[i] + pads[i + rank], rounds_up, is_same) for i in range(rank)
    ]
