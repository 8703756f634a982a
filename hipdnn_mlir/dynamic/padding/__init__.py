"""Whether a dimension may be rounded up: padding is followed through everything that a model computes."""
