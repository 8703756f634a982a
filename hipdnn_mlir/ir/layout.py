"""The layout that is marked for a result: channels-last or C order."""

from math import prod
from typing import Any

from torch_mlir import ir

from ..ops.strides import Dims

LAYOUTS = "hipdnn.layouts"
CHANNELS_LAST, CONTIGUOUS = "channels_last", "contiguous"
MIN_RANK = 3  # n, c and one spatial dim


def layout_of(operation: Any, index: int) -> str:
    """The layout marked for a result of an op; contiguous where nothing is marked."""
    if LAYOUTS not in operation.attributes:
        return CONTIGUOUS
    return str(ir.StringAttr(ir.ArrayAttr(operation.attributes[LAYOUTS])[index]).value)


def order_matters(dims: Dims) -> bool:
    """Whether channels-last differs from C order for these dims."""
    return len(dims) >= MIN_RANK and dims[1] > 1 and prod(dims[2:]) > 1
