"""Sizes that a model leaves open: symbols, expressions over them, and programs that hold for all of their values."""
