"""Sizes that have to be multiples of a power of two: networks that halve an image, and put together what they double again (adr/0067)."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import onnx

from ..dynamic.input_sizes import InputSizes, Multiple
from ..ops.evaluate import Array
from ..ops.strides import Dims
from .prepare import slim_models
from .shape_inference import SizesContradictError, unknown_results

logger = logging.getLogger(__name__)

_POWERS = (2, 4, 8, 16, 32, 64, 128)
_ODD = tuple(range(129, 1200, 128))
"""Halved again and again and rounded up, these stay odd: what is doubled again never fits by chance."""


def clash(
    proto: onnx.ModelProto, dims: Mapping[str, Dims], where: str, external: Mapping[str, Array] | None
) -> SizesContradictError | None:
    """What the first node that refuses its operands says, where inputs have the given dims."""
    try:
        (slim,) = slim_models(proto, [dims], where, external)
        unknown_results(slim.model, where)
    except SizesContradictError as error:
        return error
    return None


def with_multiples(
    proto: onnx.ModelProto, sizes: InputSizes, where: str, external: Mapping[str, Array] | None
) -> InputSizes:
    """A model's sizes with the powers of two that some have to be multiples of; as they are where that does not help.

    Args:
        proto: the model; not modified.
        sizes: its inputs.
        where: the model's file, for messages.
        external: as for `slim_models`.
    """
    symbols = sizes.table.symbols

    def refused(units: Sequence[int]) -> SizesContradictError | None:
        point = [unit * _ODD[index % len(_ODD)] for index, unit in enumerate(units)]
        return clash(proto, sizes.at(point), where, external)

    found = refused([1] * len(symbols))
    if found is None:
        return sizes
    low, high = -1, len(_POWERS)  # of the powers the one at `low` is too small, the one at `high` is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refused([_POWERS[middle]] * len(symbols)) else (low, middle)
    if high == len(_POWERS):
        return sizes
    units = [_POWERS[high]] * len(symbols)
    for index in range(len(symbols)):
        fewer = [*units[:index], 1, *units[index + 1 :]]
        if refused(fewer) is None:
            units = fewer
    needed = {symbol: Multiple(unit, found.node.name) for symbol, unit in zip(symbols, units, strict=True) if unit > 1}
    logger.info("%s has to be a multiple of %d", ", ".join(map(repr, needed)), _POWERS[high])
    return replace(sizes, multiples=needed)
