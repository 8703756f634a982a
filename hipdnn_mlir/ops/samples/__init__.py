"""Sample cases per row of the table: calls that a target must take, and calls that a row must refuse, with the rule that does.

The tests turn each into torch IR and ask the offload pass; a row without both kinds fails them.
"""

from collections.abc import Callable, Iterator

from . import elementwise, kernels, matmul, movement, norms, of_hipdnn, of_torch, quantized
from .case import KERNEL, MOVEMENT, Number, Sample, f32, i32

__all__ = ["KERNEL", "MOVEMENT", "Number", "Sample", "f32", "i32", "samples"]

_FAMILIES: tuple[Callable[[], Iterator[Sample]], ...] = (
    matmul.convolution, matmul.matmul, matmul.attention, matmul.caches,
    movement.reshapes, movement.views, movement.joins,
    norms.normalization, norms.pooling, norms.reductions, norms.softmaxes,
    elementwise.unary, elementwise.binary, elementwise.compositions, elementwise.fills, elementwise.casts,
    kernels.elementwise, kernels.indexing, kernels.sorting, kernels.rearranging, kernels.experts, kernels.detection, kernels.recurrence,
    of_hipdnn.operations, quantized.quantized, quantized.float8,
    of_torch.operations,
)  # fmt: skip


def samples() -> list[Sample]:
    """Every sample, in the order of the families."""
    return [sample for family in _FAMILIES for sample in family()]
