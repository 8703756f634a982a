"""Which requests run, and which wait: texts join a running batch and leave it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from hipdnn_mlir_runtime.errors import HipdnnMlirError

from .paged_decoder import PagedDecoder
from .request import Request
from .sampling import Logits


@dataclass(frozen=True)
class Counts:
    """What a batch is doing.

    Attributes:
        running: requests in the batch.
        waiting: requests that wait for a place in it, or for pages.
        pages_in_use: pages that running requests have.
        pages: pages that there are.
    """

    running: int
    waiting: int
    pages_in_use: int
    pages: int


class Batch:
    """The running batch. `add` and `counts` are for any thread, the rest for one.

    Requests come in the order in which they were added, and none overtakes another. One that has no page for its next token takes those of
    the request that came last: that waits again, in front of all others, keeps its tokens, and is computed again from these. So the oldest
    request always runs on, and every one has its turn, as long as each alone fits.

    Args:
        decoder: the program and its pages.
        most: how many requests run at once.
    """

    def __init__(self, decoder: PagedDecoder, most: int) -> None:
        self._decoder, self._most = decoder, most
        self._sizes = decoder.batch_sizes(most)
        self._running: list[Request] = []
        self._waiting: deque[Request] = deque()

    def add(self, request: Request) -> None:
        """Let a request wait for its turn. It fits into the pages when it is alone."""
        self._waiting.append(request)

    @property
    def counts(self) -> Counts:
        """What it is doing now."""
        pool = self._decoder.pool
        return Counts(len(self._running), len(self._waiting), pool.in_use, pool.count)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._running and not self._waiting

    def step(self) -> None:
        """Compute a part of one prompt, and a token of each text whose prompt is computed."""
        self._drop_cancelled()
        self._admit()
        prompt = next((request for request in self._running if request.text.pending > 1), None)
        if prompt is not None:
            self._run([prompt])
        self._run(self._with_pages([request for request in self._running if request.text.pending == 1]))

    def end_all(self, error: HipdnnMlirError) -> None:
        """End all requests with an error."""
        while self._waiting:
            self._waiting.popleft().end(error)
        for request in list(self._running):
            self._leave(request)
            request.end(error)

    # -- joining and leaving -----------------------------------------------------------------------------------------------------------

    def _drop_cancelled(self) -> None:
        for request in [request for request in self._running if request.is_cancelled]:
            self._leave(request)
            request.end()
        for request in [request for request in list(self._waiting) if request.is_cancelled]:
            self._waiting.remove(request)
            request.end()

    def _admit(self) -> None:
        """Let those that wait join, in their order, while there are places, and pages beyond the next one of each that runs."""
        pool = self._decoder.pool
        while self._waiting and len(self._running) < self._most:
            text = self._waiting[0].text
            if self._running and pool.needed(len(text.tokens)) + len(self._running) > pool.free:
                return
            if not pool.extend(text.pages, len(text.tokens)):
                return
            self._running.append(self._waiting.popleft())

    def _leave(self, request: Request) -> None:
        self._running.remove(request)
        self._decoder.pool.give_back(request.text.pages)
        request.text.pages, request.text.cached = [], 0

    def _with_pages(self, requests: Sequence[Request]) -> list[Request]:
        """Those requests that have pages for the next run, of which the last ones may have to wait again."""
        for request in requests:
            while request in self._running and not self._decoder.pool.extend(
                request.text.pages, len(request.text.tokens)
            ):
                last = self._running[-1]
                self._leave(last)
                self._waiting.appendleft(last)
        return [request for request in requests if request in self._running]

    # -- running -----------------------------------------------------------------------------------------------------------------------

    def _run(self, requests: Sequence[Request]) -> None:
        """Run some requests together; where that fails each alone, so that one that cannot run harms no other."""
        if not requests:
            return
        rows = next(size for size in self._sizes if size >= len(requests))
        try:
            logits = self._decoder.run([request.text for request in requests], rows)
        except HipdnnMlirError as error:
            if len(requests) == 1:
                self._fail(requests[0], error)
                return
            for request in requests:
                self._run([request])
            return
        for request, own in zip(requests, logits, strict=True):
            if request.text.pending == 0:
                self._take(request, own)

    def _take(self, request: Request, logits: Logits) -> None:
        try:
            token = request.choose(logits)
        except HipdnnMlirError as error:
            self._decoder.clear(request.text.pages)
            self._fail(request, error)
            return
        if token.finish_reason is not None:
            self._leave(request)  # first: whoever has the last token finds the pages free
        request.give(token)

    def _fail(self, request: Request, error: HipdnnMlirError) -> None:
        self._leave(request)
        request.end(error)
