"""The rows, one module per family; importing this package fills the registry."""

from . import attention, convolution, matmul, movement, normalization, pointwise, pooling, reduction

__all__ = ["attention", "convolution", "matmul", "movement", "normalization", "pointwise", "pooling", "reduction"]
