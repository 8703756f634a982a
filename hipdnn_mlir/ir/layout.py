"""The layout that is marked for a result: channels-last or C order."""

from collections.abc import Sequence
from math import prod

from torch_mlir import ir

from ..ops.strides import Dims

LAYOUTS = "hipdnn.layouts"
CHANNELS_LAST, CONTIGUOUS = "channels_last", "contiguous"
MIN_RANK = 3  # n, c and one spatial dim


def mark_layouts(op: ir.OpView, layouts: Sequence[str]) -> None:
    """Say how the results of an op are stored."""
    op.attributes[LAYOUTS] = ir.ArrayAttr.get([ir.StringAttr.get(layout) for layout in layouts])


def layout_of(op: ir.OpView, index: int) -> str:
    """The layout marked for a result of an op; contiguous where nothing is marked."""
    return str(op.attributes[LAYOUTS][index].value) if LAYOUTS in op.attributes else CONTIGUOUS


def order_matters(dims: Dims) -> bool:
    """Whether channels-last differs from C order for these dims."""
    return len(dims) >= MIN_RANK and dims[1] > 1 and prod(dims[2:]) > 1
