"""Placement: which nodes of a model become hipDNN programs."""

from .place import MODES, Partition, Placement, place

__all__ = ["MODES", "Partition", "Placement", "place"]
