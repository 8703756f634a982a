"""Operands of convolutions, and those whose filters are constant."""

from typing import Any

from .blocks import body
from .constants import constant_values

CONV_X, CONV_W, CONV_BIAS, CONV_TRANSPOSED, CONV_GROUPS = 0, 1, 2, 6, 8


def convolutions_of_constants(function: Any) -> list[Any]:
    """The convolutions of a function whose filters are constant."""
    found = [operation for operation in body(function) if operation.name == "torch.aten.convolution"]
    constants = constant_values(function) if found else set()
    return [convolution for convolution in found if convolution.operands[CONV_W] in constants]
