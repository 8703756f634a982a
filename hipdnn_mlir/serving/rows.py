"""Rows of a batch: which dimension of a program they lie along, and how many of them it runs at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Array
from hipdnn_mlir_runtime.session.session import Session

WASTE = 2
"""A rest is padded to a bucket of less than as many times its rows; else smaller buckets run."""


@dataclass(frozen=True)
class Rows:
    """How rows run on a program that has them along the first dimension of each input and output.

    Attributes:
        name: Of the dimension; empty where its size is fixed.
        sizes: How many rows a run has, rising; empty where it may have any number.
        is_padded: Whether fewer rows may run in the place of a size: padding them is proved to be harmless.
    """

    name: str
    sizes: tuple[int, ...]
    is_padded: bool

    @property
    def are_independent(self) -> bool:
        """Whether it is proved that no row changes the results of another."""
        return self.is_padded

    def split(self, count: int) -> list[int]:
        """Return the rows of each run for a number of rows, the largest runs first.

        Raises:
            ModelError: The program's sizes do not add up to the number, and nothing says that rows may be padded.
        """
        if not self.sizes:
            return [count] if count else []
        parts, left = [], count
        while left:
            larger = next((size for size in self.sizes if size >= left), None)
            smaller = next((size for size in reversed(self.sizes) if size <= left), None)
            if larger == left or (self.is_padded and larger is not None and (smaller is None or larger < WASTE * left)):
                smaller = left
            if smaller is None:
                sizes = " and ".join(map(str, self.sizes))
                hint = "compile with an open batch, or with a bucket of 1"
                raise ModelError(f"{count} rows", expected=f"a sum of {sizes}", hint=hint)
            parts.append(smaller)
            left -= smaller
        return parts


def rows_of(session: Session) -> Rows | None:
    """Return how rows run on a program; None where its inputs and outputs have no first dimension in common."""
    ports = [*session.inputs, *session.outputs]
    firsts = {port.shape[0] if port.shape else None for port in ports}
    if len(firsts) != 1:
        return None
    (first,) = firsts
    if isinstance(first, int):
        return Rows("", (first,), is_padded=False) if first else None
    if first is None or first not in session.symbols:
        return None
    sizes = tuple(session.buckets.get(first, ()))
    return Rows(first, sizes, is_padded=bool(sizes) and first not in session.exact)


def run_rows(session: Session, rows: Rows, feeds: Mapping[str, Array]) -> list[Array]:
    """Run any number of rows, in runs of the program's sizes.

    Args:
        session: The program.
        rows: How rows run on it.
        feeds: Every input by name, rows first.

    Returns:
        Each output, rows first.

    Raises:
        ModelError: As for `Rows.split` and `Session.run`.
        DeviceError: As for `Session.run`.
    """
    counts = {len(array) for array in feeds.values()}
    if len(counts) > 1:
        raise ModelError("inputs of different numbers of rows", got=", ".join(map(str, sorted(counts))))
    parts = rows.split(counts.pop() if counts else 0)
    if len(parts) == 1:
        return session.run(None, feeds)
    results, start = [], 0
    for part in parts:
        results.append(session.run(None, {name: array[start : start + part] for name, array in feeds.items()}))
        start += part
    return [np.concatenate(pieces) for pieces in zip(*results, strict=True)]
