"""Rows of a batch: which dimension of a program they lie along, and how many of them it runs at once."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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


class RowRunner:
    """Runs any number of rows on a program, in runs of its sizes.

    On a CPU, rows take least time together, or each by itself on a thread of its own: then what is computed for it stays in that CPU's
    caches. It depends on the model, so both are tried with the first rows that come, and the faster way is kept.

    Args:
        session: The program; it stays the caller's.
        rows: How rows run on it.
        clock: Seconds.

    Raises:
        HipdnnMlirError: As for a session.
    """

    TRIALS = 3

    def __init__(self, session: Session, rows: Rows, clock: Callable[[], float] = time.perf_counter) -> None:
        self._session, self._rows, self._clock = session, rows, clock
        self._least = rows.sizes[0] if rows.sizes else 1
        self._times: dict[bool, list[float]] = {True: [], False: []}
        self._alone: Session | None = None
        self._threads = session.device.threads or len(os.sched_getaffinity(0))
        if session.device.port == "host" and rows.are_independent:
            self._alone = session.again(threads=1) if self._threads > 1 else session
            if list(session.symbols) == [rows.name]:
                self._alone.prewarm([{rows.name: self._least}])
        self._workers = ThreadPoolExecutor(self._threads, "hipdnn-mlir rows")

    def close(self) -> None:
        """Give the memory back."""
        self._workers.shutdown()
        if self._alone is not None and self._alone is not self._session:
            self._alone.close()

    def run(self, feeds: Mapping[str, Array]) -> list[Array]:
        """Run rows.

        Args:
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
        count = counts.pop() if counts else 0
        if self._alone is None or count < max(self._threads, 2) * self._least:
            return self._together(self._session, feeds, count)
        is_apart = self._is_next_apart()
        start = self._clock()
        outputs = self._apart(self._alone, feeds, count) if is_apart else self._together(self._session, feeds, count)
        if len(self._times[is_apart]) < self.TRIALS:
            self._times[is_apart].append((self._clock() - start) / count)
        return outputs

    def _is_next_apart(self) -> bool:
        apart, together = self._times[True], self._times[False]
        if min(len(apart), len(together)) < self.TRIALS:
            return len(apart) < len(together)
        return min(apart) < min(together)

    def _together(self, session: Session, feeds: Mapping[str, Array], count: int) -> list[Array]:
        parts = self._rows.split(count)
        if len(parts) == 1:
            return session.run(None, feeds)
        return _joined([session.run(None, _rows(feeds, *part)) for part in _ranges(parts)])

    def _apart(self, session: Session, feeds: Mapping[str, Array], count: int) -> list[Array]:
        parts = [self._least] * (count // self._least) + self._rows.split(count % self._least)
        return _joined(list(self._workers.map(lambda part: session.run(None, _rows(feeds, *part)), _ranges(parts))))


def _ranges(parts: Sequence[int]) -> list[tuple[int, int]]:
    ends = list(itertools.accumulate(parts))
    return list(zip([0, *ends], ends, strict=False))


def _rows(feeds: Mapping[str, Array], first: int, last: int) -> dict[str, Array]:
    return {name: array[first:last] for name, array in feeds.items()}


def _joined(results: Sequence[Sequence[Array]]) -> list[Array]:
    return [np.concatenate(pieces) for pieces in zip(*results, strict=True)]
