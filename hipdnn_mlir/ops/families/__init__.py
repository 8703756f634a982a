"""The rows, one module per family; importing this package fills the registry."""

from . import convolution, matmul, movement, normalization, pointwise, pooling, reduction

__all__ = ["convolution", "matmul", "movement", "normalization", "pointwise", "pooling", "reduction"]
