"""Requests that run together: what waits while a run is going on is the next run."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from hipdnn_mlir_runtime.errors import HipdnnMlirError
from hipdnn_mlir_runtime.session.arrays import Array

Feeds = Mapping[str, Array]


@dataclass(eq=False)
class _Waiting:
    """A request that waits.

    Attributes:
        feeds: Every input by name, rows first.
        rows: How many.
        key: Equal where requests may run together.
        future: What comes of it.
        since: When it came, as of ``time.perf_counter``.
    """

    feeds: Feeds
    rows: int
    key: Hashable
    future: asyncio.Future[list[Array]]
    since: float = field(default_factory=time.perf_counter)


@dataclass
class Totals:
    """What has run so far.

    Attributes:
        requests: That have run, or failed.
        failed: Those of them that failed.
        runs: Of the program.
        rows: Of all requests.
        queue_s: Time that requests have waited.
        run_s: Time of the runs that requests were in, summed over the requests.
        fail_s: Time of the requests that failed.
    """

    requests: int = 0
    failed: int = 0
    runs: int = 0
    rows: int = 0
    queue_s: float = 0.0
    run_s: float = 0.0
    fail_s: float = 0.0


class Batcher:
    """Runs requests of an event loop, in a thread of its own, one run after the other.

    Args:
        run: Runs rows, and returns each output, rows first.
        most: Most rows of a run of several requests.
        sizes: Rows that a run of several is to have, rising, where others would be padded at a cost; empty for any number.
        wait_s: How long a request waits for others while nothing runs.
        on_run: Called after each run with the rows in it and its seconds.
    """

    def __init__(
        self,
        run: Callable[[Feeds], list[Array]],
        *,
        most: int = 1,
        sizes: Sequence[int] = (),
        wait_s: float = 0.0,
        on_run: Callable[[int, float], None] = lambda *_: None,
    ) -> None:
        self._run_rows, self._most, self._sizes, self._wait_s, self._on_run = run, most, sizes, wait_s, on_run
        self._waiting: deque[_Waiting] = deque()
        self._came = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "hipdnn-mlir batch")
        self._task: asyncio.Task[None] | None = None
        self.totals = Totals()

    @property
    def queued(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    async def submit(self, feeds: Feeds, rows: int, key: Hashable) -> list[Array]:
        """Run a request, with others whose key is equal where there are any.

        A request whose task is cancelled leaves the queue at once; what runs already runs on without it.

        Raises:
            HipdnnMlirError: The run failed, and not by another request in it.
        """
        waiting = _Waiting(feeds, rows, key, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._came.set()
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        try:
            return await waiting.future
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            raise

    async def close(self) -> None:
        """Wait until all requests have run."""
        if self._task is not None:
            await asyncio.wait([self._task])
        self._thread.shutdown()

    async def _work(self) -> None:
        """Run what waits, until nothing does."""
        try:
            while self._waiting:
                batch = self._chosen()
                left_s = batch[0].since + self._wait_s - time.perf_counter()
                if left_s > 0 and sum(one.rows for one in batch) < self._most:
                    self._came.clear()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._came.wait(), left_s)
                    continue
                for one in batch:
                    self._waiting.remove(one)
                await self._run(batch)
        finally:
            self._task = None

    def _chosen(self) -> list[_Waiting]:
        """The request that waits longest, and those behind it that may run with it."""
        first = self._waiting[0]
        chosen, rows = [first], first.rows
        for other in list(self._waiting)[1:] if first.rows < self._most else ():
            if other.key == first.key and rows + other.rows <= self._most:
                chosen.append(other)
                rows += other.rows
        full = max((size for size in self._sizes if size <= rows), default=rows)
        while rows > full and len(chosen) > 1:
            rows -= chosen.pop().rows
        return chosen

    async def _run(self, batch: Sequence[_Waiting]) -> None:
        """Run requests together; where that fails each alone, so that one that cannot run harms no other."""
        start = time.perf_counter()
        try:
            outputs = await asyncio.get_running_loop().run_in_executor(self._thread, self._run_all, batch)
        except HipdnnMlirError as error:
            if len(batch) > 1:
                for one in batch:
                    await self._run([one])
            else:
                self._fail(batch[0], error, time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - whoever waits has to hear of it, and nobody else would
            for one in batch:
                self._fail(one, error, time.perf_counter() - start)
        else:
            self._deliver(batch, outputs, start)

    def _run_all(self, batch: Sequence[_Waiting]) -> list[Array]:
        if len(batch) == 1:
            return self._run_rows(batch[0].feeds)
        return self._run_rows({name: np.concatenate([one.feeds[name] for one in batch]) for name in batch[0].feeds})

    def _deliver(self, batch: Sequence[_Waiting], outputs: list[Array], start: float) -> None:
        elapsed_s = time.perf_counter() - start
        self.totals.runs += 1
        self._on_run(sum(one.rows for one in batch), elapsed_s)
        at = 0
        for one in batch:
            own = outputs if len(batch) == 1 else [output[at : at + one.rows] for output in outputs]
            at += one.rows
            self.totals.requests += 1
            self.totals.rows += one.rows
            self.totals.queue_s += start - one.since
            self.totals.run_s += elapsed_s
            if not one.future.done():
                one.future.set_result(own)

    def _fail(self, one: _Waiting, error: Exception, elapsed_s: float) -> None:
        self.totals.requests += 1
        self.totals.failed += 1
        self.totals.fail_s += elapsed_s
        if not one.future.done():
            one.future.set_exception(error)
