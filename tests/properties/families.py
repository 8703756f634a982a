"""All strategies: importing a family enters its operators."""

from . import elementwise, movement, products, quantized, recurrence, reductions, sampling, transformers
from .operators import OPERATORS

__all__ = [
    "OPERATORS",
    "elementwise",
    "movement",
    "products",
    "quantized",
    "recurrence",
    "reductions",
    "sampling",
    "transformers",
]
