"""A program that answers requests."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.arrays import Array, Port, check_names, to_input
from hipdnn_mlir_runtime.session.session import Session

from .batcher import Batcher
from .metrics import Metrics
from .repository import ModelFile
from .rows import RowRunner, rows_of
from .settings import Settings
from .tensors import DATATYPES, InferRequest

PLATFORM = "hipdnn"


class ServedModel:
    """A program, loaded, whose requests run together where it is proved, or said, that rows are independent.

    Attributes:
        file: What is loaded.

    Args:
        file: The program.
        session: It, loaded.
        settings: Of the server.
        metrics: Where runs are counted.

    Raises:
        HipdnnMlirError: The session cannot load it for its buckets.
    """

    def __init__(self, file: ModelFile, session: Session, settings: Settings, metrics: Metrics) -> None:
        self.file, self._session = file, session
        self._prewarm()
        self._rows = rows = rows_of(self._session)
        most = 1
        if rows is not None and (rows.are_independent or settings.max_batch_size) and rows.name:
            most = settings.max_batch_size or rows.sizes[-1]
        self._runner = RowRunner(self._session, rows) if rows else None
        run = functools.partial(self._session.run, None) if self._runner is None else self._runner.run
        on_run = functools.partial(metrics.ran, file.name, file.version)
        # A CPU takes as long for padding as for rows; a GPU takes hardly longer for more of either.
        sizes = rows.sizes if rows is not None and session.device.port == "host" else ()
        self._batcher = Batcher(run, most=most, sizes=sizes, wait_s=settings.batch_wait_ms / 1e3, on_run=on_run)

    def _prewarm(self) -> None:
        """Load the program for its buckets; where those are more than a session keeps, the first requests do."""
        if len(self._session.buckets) == len(self._session.symbols) and self._session.symbols:
            try:
                self._session.prewarm()
            except ModelError:
                self._session.prewarm([{name: sizes[-1] for name, sizes in self._session.buckets.items()}])

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return self._batcher.queued

    async def close(self) -> None:
        """Answer what waits, and give the memory back."""
        await self._batcher.close()
        if self._runner is not None:
            self._runner.close()
        self._session.close()

    async def infer(self, request: InferRequest) -> dict[str, Array]:
        """Return the outputs that a request asks for.

        Raises:
            ModelError: A name, datatype or shape does not fit.
            DeviceError: A call into the device library failed.
        """
        wanted = [port.name for port in self._session.outputs] if request.outputs is None else list(request.outputs)
        unknown = [name for name in wanted if name not in {port.name for port in self._session.outputs}]
        if unknown:
            expected = ", ".join(port.name for port in self._session.outputs)
            raise ModelError(f"no output '{unknown[0]}'", where=self.file.name, expected=expected)
        check_names(request.inputs, self._session.inputs)
        inputs = self._session.inputs
        feeds = {port.name: to_input(request.inputs[port.name], port, self._session.device) for port in inputs}
        rows = {len(array) for array in feeds.values()} if self._rows else {1}
        if len(rows) > 1:
            raise ModelError("inputs of different numbers of rows", got=", ".join(map(str, sorted(rows))))
        if rows == {0}:
            raise ModelError("no rows", where=self.file.name, expected="at least one")
        key = tuple(array.shape[1:] for array in feeds.values())
        outputs = await self._batcher.submit(feeds, rows.pop() if rows else 1, key)
        by_name = {port.name: array for port, array in zip(self._session.outputs, outputs, strict=True)}
        return {name: by_name[name] for name in wanted}

    def metadata(self) -> dict[str, Any]:
        """Return what the protocol tells of a model."""
        inputs, outputs = self._session.inputs, self._session.outputs
        return {
            "name": self.file.name,
            "versions": [self.file.version],
            "platform": PLATFORM,
            "inputs": _described(inputs),
            "outputs": _described(outputs),
        }

    def statistics(self) -> dict[str, Any]:
        """Return what the statistics extension tells of a model."""
        totals = self._batcher.totals

        def entry(count: int, elapsed_s: float) -> dict[str, int]:
            return {"count": count, "ns": int(elapsed_s * 1e9)}

        good = totals.requests - totals.failed
        return {
            "name": self.file.name,
            "version": self.file.version,
            "inference_count": totals.rows,
            "execution_count": totals.runs,
            "inference_stats": {
                "success": entry(good, totals.queue_s + totals.run_s),
                "fail": entry(totals.failed, totals.fail_s),
                "queue": entry(good, totals.queue_s),
                "compute_infer": entry(good, totals.run_s),
            },
        }


def _described(ports: Iterable[Port]) -> list[dict[str, Any]]:
    return [
        {
            "name": port.name,
            "datatype": DATATYPES[port.coded or port.dtype],
            "shape": [dim if isinstance(dim, int) else -1 for dim in port.shape],
        }
        for port in ports
    ]
