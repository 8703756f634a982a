"""Depthwise convolutions that have generated code (`codegen/kernels/depthwise.py`)."""

from hipdnn_mlir_runtime.dtypes import BF16, F16, F32

from .graph import Graph
from .one_convolution import Convolution, one_convolution
from .spec import Refusal

_TYPES = (F16, BF16, F32)
_MOST_TAPS = 13 * 13
_MOST_COLUMNS = 13
"""Taps of a row of the filter, which are written one by one."""


def depthwise(graph: Graph) -> Convolution:
    """The convolution of a graph in which each channel of the image is one of the result; raises Refusal where there is none."""
    found = one_convolution(graph)
    if found.image.dtype not in _TYPES or found.filter.dtype is not found.image.dtype:
        raise Refusal("dtype", f"has a convolution of {found.image.dtype} and {found.filter.dtype}")
    if found.image.operand is None:
        raise Refusal("graph", "computes its image")
    channels, (outputs, each, rows, columns) = found.image.dims[1], found.filter.dims
    if each != 1 or outputs != channels or channels == 1:
        raise Refusal("shape", "is no depthwise convolution")
    if columns > _MOST_COLUMNS or rows * columns > _MOST_TAPS:
        raise Refusal("shape", f"has a filter of {rows} x {columns}")
    return found
