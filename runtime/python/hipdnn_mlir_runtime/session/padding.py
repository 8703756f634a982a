"""Arrays made longer for a program that rounds sizes up, and cut back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ModelError
from .arrays import Port

Array = npt.NDArray[Any]


def padded(value: Any, dims: Sequence[int], name: str) -> Array:
    """Return an input with its last elements repeated along the dims that are longer.

    What is repeated is as valid as what was given: zeros could be no divisor, no index or no number.

    Args:
        value: NumPy array, or an object with ``__dlpack__`` in host memory.
        dims: The dims to have, none of them shorter.
        name: Of the input, for messages.

    Raises:
        ModelError: An array that is not in host memory.
    """
    given = _in_host_memory(value, name)
    made = np.empty(tuple(dims), given.dtype)
    made[tuple(slice(size) for size in given.shape)] = given
    for axis, size in enumerate(given.shape):
        if size < dims[axis]:
            before = (slice(None),) * axis
            made[(*before, slice(size, None))] = made[(*before, slice(size - 1, size))]
    return made


def _in_host_memory(value: Any, name: str) -> Array:
    if isinstance(value, np.ndarray):
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(
            f"cannot be padded: {error}",
            where=f"'{name}'",
            expected="an array in host memory, or one whose sizes are buckets",
        ) from error


def cut(array: Array, dims: Sequence[int]) -> Array:
    """Return the first elements of an output along each dim; dense, in place where the first dim alone is shorter."""
    shown = array[tuple(slice(size) for size in dims)]
    return shown if shown.flags.c_contiguous else shown.copy()


def cut_into(
    given: Mapping[str, Any], results: Sequence[Array], dims: Sequence[Sequence[int]], outputs: Sequence[Port]
) -> list[Array]:
    """Return padded outputs without their padding, and write those that the caller has arrays for.

    Args:
        given: The caller's arrays by name.
        results: What the program gave.
        dims: What they are cut back to.
        outputs: Their names.

    Raises:
        ModelError: An array is none of NumPy's.
    """
    made = [cut(result, sizes) for result, sizes in zip(results, dims, strict=True)]
    for port, result in zip(outputs, made, strict=True):
        if port.name not in given:
            continue
        if not isinstance(given[port.name], np.ndarray):
            raise ModelError("only NumPy arrays take outputs that are cut back", where=f"'{port.name}'")
        given[port.name][...] = result
    return made
