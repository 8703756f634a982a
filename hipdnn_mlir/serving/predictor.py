"""Batches of a data set through a program: what ``Dataset.map_batches`` of Ray Data calls."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, cast

import numpy as np

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.session.arrays import Array, Port
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.session import Session
from hipdnn_mlir_runtime.session.source import Source

from .resources import own_threads
from .rows import RowRunner, rows_of

Batch = Mapping[str, Array]


class Predictor:
    """Runs batches of a data set on a program, for ``Dataset.map_batches``.

    A batch is a dict of columns. Columns with the names of the program's inputs go in, columns with the names of its outputs come out, and
    all others are passed on. A row of a column is an input without its first dimension, which the program's batch is then; or an input as
    the program takes it. Rows of one shape run together, in runs of the program's buckets. What is left is padded where the program says
    that this is harmless, and else runs at its size.

    Args:
        program: Path of a ``.hipdnn`` file that each node of the cluster can read, or what ``hipdnn_mlir.compile`` returned.
        errors: ``raise`` ends the job at the first row that cannot run, and names it. ``keep`` passes such rows on, with zeros as outputs
            and the reason in the column `error_column`.
        error_column: Name of the column of reasons; the reason of a row that has run is empty.
        keep: Columns of inputs that are passed on, too.
        options: Of the session. By default a run has as many threads as the actor has CPUs.

    Raises:
        ModelError: A value does not fit, or an error of `hipdnn_mlir.load`, as all others of these.
    """

    def __init__(
        self,
        program: Source,
        *,
        errors: Literal["raise", "keep"] = "raise",
        error_column: str = "error",
        keep: Iterable[str] = (),
        **options: Unpack[SessionOptions],
    ) -> None:
        if errors not in ("raise", "keep"):
            raise ModelError("bad value", where="errors", expected="'raise' or 'keep'", got=repr(errors))
        self._session = Session(program, **cast("SessionOptions", {"threads": own_threads(), **options}))
        self._name = Path(program).name if isinstance(program, str | os.PathLike) else "the program"
        rows = rows_of(self._session)
        self._runner = None if rows is None else RowRunner(self._session, rows)
        self._keep = frozenset(keep)
        self._error_column = error_column if errors == "keep" else ""
        unknown = self._keep - {port.name for port in self._session.inputs}
        if unknown:
            expected = ", ".join(port.name for port in self._session.inputs)
            raise ModelError("no such input", where="keep", expected=expected, got=", ".join(sorted(unknown)))

    def __call__(self, batch: Batch) -> dict[str, Array]:
        """Return a batch with outputs in the place of inputs.

        Raises:
            ModelError: A column is missing, or a row does not fit; it is named by its number in the batch.
            DeviceError: A call into the device library failed.
        """
        missing = [port.name for port in self._session.inputs if port.name not in batch]
        if missing:
            raise ModelError(
                f"no column for the inputs {', '.join(missing)}", where=self._name, expected=", ".join(sorted(batch))
            )
        columns = {port.name: batch[port.name] for port in self._session.inputs}
        count = len(next(iter(columns.values()))) if columns else 0
        results: list[list[Array] | None] = [None] * count
        reasons = [""] * count
        for group in _groups(columns, count):
            self._run_group(columns, group, results, reasons)
        made = {name: column for name, column in batch.items() if name not in columns or name in self._keep}
        for index, port in enumerate(self._session.outputs):
            made[port.name] = _column([None if row is None else row[index] for row in results], port)
        if self._error_column:
            made[self._error_column] = np.array(reasons, object)
        return made

    def _run_group(
        self, columns: Batch, group: Sequence[int], results: list[list[Array] | None], reasons: list[str]
    ) -> None:
        """Run rows of one shape together; where that fails each alone, to know which one it is."""
        try:
            for row, outputs in zip(group, self._run(columns, group), strict=True):
                results[row] = outputs
        except HipdnnMlirError as error:
            if len(group) > 1:
                for row in group:
                    self._run_group(columns, [row], results, reasons)
            elif self._error_column:
                reasons[group[0]] = str(error)
            else:
                raise _of_row(error, group[0], self._name) from error

    def _run(self, columns: Batch, group: Sequence[int]) -> Iterable[list[Array]]:
        """Return the outputs of each of some rows of one shape."""
        firsts = {name: np.asarray(column[group[0]]) for name, column in columns.items()}
        is_whole = all(firsts[port.name].ndim == len(port.shape) for port in self._session.inputs)
        if is_whole:
            return [
                self._session.run(None, {name: np.asarray(columns[name][row]) for name in columns}) for row in group
            ]
        if self._runner is None:
            expected = ", ".join(f"'{port.name}' {port}" for port in self._session.inputs)
            raise ModelError("rows of other dimensions than the inputs", expected=expected)
        feeds = {name: _stacked(column, group) for name, column in columns.items()}
        return [list(outputs) for outputs in zip(*self._runner.run(feeds), strict=True)]


def _groups(columns: Batch, count: int) -> list[list[int]]:
    """Return the numbers of rows that have one shape in all columns; columns of objects hold an array a row."""
    ragged = [column for column in columns.values() if column.dtype == object]
    if not ragged:
        return [list(range(count))] if count else []
    groups: dict[Any, list[int]] = {}
    for row in range(count):
        groups.setdefault(tuple(np.shape(column[row]) for column in ragged), []).append(row)
    return list(groups.values())


def _stacked(column: Array, group: Sequence[int]) -> Array:
    if column.dtype == object:
        return np.stack([np.asarray(column[row]) for row in group])
    return np.ascontiguousarray(column if len(group) == len(column) else column[group])


def _column(rows: Sequence[Array | None], port: Port) -> Array:
    """Return an output of all rows as a column; rows that have failed are zeros of the shape of the others."""
    shape = next((row.shape for row in rows if row is not None), None)
    if shape is None:
        shape = tuple(dim if isinstance(dim, int) else 0 for dim in port.shape[1:])
    made = [np.zeros(shape, port.numpy_dtype) if row is None else row for row in rows]
    if all(row.shape == shape for row in made):
        return np.stack(made) if made else np.zeros((0, *shape), port.numpy_dtype)
    column = np.empty(len(made), object)
    column[:] = made
    return column


def _of_row(error: HipdnnMlirError, row: int, program: str) -> HipdnnMlirError:
    """Return an error that names the row, of the same kind where that is possible."""
    return ModelError(f"row {row} of the batch: {error}", where=program, hint="errors='keep' passes such rows on")
