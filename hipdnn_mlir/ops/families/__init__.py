"""The rows, one module per family; importing this package fills the registry."""

from . import (
    attention,
    convolution,
    elementwise_residual,
    experts,
    indexing,
    matmul,
    movement,
    normalization,
    of_hipdnn,
    of_torch,
    pointwise,
    pooling,
    rearranging,
    reduction,
    sampling,
    sorting,
)

__all__ = [
    "attention",
    "convolution",
    "elementwise_residual",
    "experts",
    "indexing",
    "matmul",
    "movement",
    "normalization",
    "of_hipdnn",
    "of_torch",
    "pointwise",
    "pooling",
    "rearranging",
    "reduction",
    "sampling",
    "sorting",
]
