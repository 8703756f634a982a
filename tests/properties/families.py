"""All strategies: importing a family enters its operators."""

from . import elementwise, movement, products, reductions
from .operators import OPERATORS

__all__ = ["OPERATORS", "elementwise", "movement", "products", "reductions"]
