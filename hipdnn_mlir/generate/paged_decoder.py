"""A decoder's program whose caches are pages that all texts share, and its runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.session import Session

from ..frontend.paged_caches import PAGE_TABLE
from .config import DecoderConfig
from .decoder_program import DecoderProgram, last_logits
from .pages import SPARE, PagePool

PAGE_ROWS = 32
"""Tokens of a page unless told otherwise."""


@dataclass
class Cached:
    """A text, and what the caches have of it.

    Attributes:
        tokens: the text.
        cached: how many of its first tokens the caches have.
        pages: where.
    """

    tokens: list[int]
    cached: int = 0
    pages: list[int] = field(default_factory=list)

    @property
    def pending(self) -> int:
        """How many tokens the decoder has not seen yet."""
        return len(self.tokens) - self.cached


@dataclass(frozen=True)
class _Arrays:
    """The arrays of a run; a text is a row."""

    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    mask: npt.NDArray[np.int64]
    table: npt.NDArray[np.int32]
    logits: npt.NDArray[Any]
    run: Callable[[], None]


class PagedDecoder(DecoderProgram):
    """A decoder's program with a pool of pages. For one thread at a time.

    Attributes:
        max_length: most tokens of a text.
        pool: the pages.

    Args:
        session: the program.
        config: of its folder.
        max_length: most tokens that a text is to have.
        pages: how many pages there are to be; None for as many as the program has.
        mask_lengths: lengths beyond which the model computes otherwise.

    Raises:
        ModelError: the program's caches are no pages, or its sizes do not fit.
    """

    def __init__(
        self, session: Session, config: DecoderConfig, max_length: int, pages: int | None, mask_lengths: Collection[int]
    ) -> None:
        if PAGE_TABLE not in {port.name for port in session.inputs}:
            hint = "compile it with page_rows"
            raise ModelError("the caches of the program are no pages", where=str(config.folder), hint=hint)
        super().__init__(session, config, [PAGE_TABLE])
        first = self._inputs[config.caches[0][0]]
        page_rows = int(first.shape[2])
        size = self._size(first.shape[0], 1 + (pages or 0))
        if pages is not None and (pages < 1 or size != pages + 1):
            expected = "a whole number from 1" if pages < 1 else f"{size - 1}, as the program was compiled for"
            raise ModelError("bad value", where="pages", expected=expected, got=str(pages))
        self._caches = self._empty_caches(size, {past: page_rows for past, _ in config.caches})
        self.pool = PagePool(size - 1, page_rows)
        self._table_length = self._size(self._inputs[PAGE_TABLE].shape[1], self.pool.needed(max_length))
        self._mask_length = self._size(self._mask.shape[1], max_length)
        room = min(self._table_length * page_rows, self._mask_length)
        if room < max_length:
            hint = "ask for fewer tokens, or compile it again"
            raise ModelError(
                f"the program is for texts of {room} tokens", where="max_length", expected=f"at most {room}", hint=hint
            )
        shorter = [length for length in mask_lengths if length < self._mask_length]
        if shorter:
            message = f"the model computes otherwise for texts beyond {shorter[0]} tokens, and texts of a batch are computed alike"
            raise ModelError(message, where="max_length", expected=f"at most {shorter[0]}", got=str(self._mask_length))
        self.max_length = min(max_length, self.pool.count * page_rows)
        self._places = np.arange(self._mask_length)
        self._steps: dict[int, _Arrays] = {}

    def batch_sizes(self, most: int) -> list[int]:
        """Sizes of batches for up to so many texts: those of the program, or else powers of two."""
        sizes = [size for size in self._sizes(self._ids.shape[0]) if size < most]
        if not self._sizes(self._ids.shape[0]):
            sizes = [1 << exponent for exponent in range((most - 1).bit_length())]
        return [*sizes, self.rows(most)]

    def run(self, texts: Sequence[Cached], rows: int) -> npt.NDArray[Any]:
        """Run on what is new in some texts, or on a part of it where one has much, and return the logits behind it, [texts, vocabulary].

        Texts have the pages for it. A run that fails has changed nothing that counts.

        Args:
            texts: the texts.
            rows: size of the batch; rows without a text write to the spare page.

        Raises:
            DeviceError: a call into the device library failed.
        """
        size = self._window(max(text.pending for text in texts), self._mask_length)
        ends = [min(len(text.tokens), text.cached + size) for text in texts]
        arrays = self._arrays(rows, size)
        lengths = np.ones(rows, np.int64)
        lengths[: len(ends)] = ends
        np.less(self._places, lengths[:, None], out=arrays.mask, casting="unsafe")
        starts = np.maximum(lengths - size, 0)
        np.add(starts[:, None], self._places[:size], out=arrays.positions)
        arrays.table.fill(SPARE)
        for row, (text, end) in enumerate(zip(texts, ends, strict=True)):
            taken = text.tokens[starts[row] : end]
            arrays.tokens[row, : len(taken)] = taken
            arrays.table[row, : len(text.pages)] = text.pages
        arrays.run()
        for text, end in zip(texts, ends, strict=True):
            text.cached = end
        return last_logits(arrays.logits, (lengths - starts)[: len(ends)])

    def _arrays(self, rows: int, size: int) -> _Arrays:
        """The arrays of a run of so many tokens of each text; those of a step of one token are kept, and bound once."""
        if size == 1 and rows in self._steps:
            return self._steps[rows]
        tokens, positions = (self.host_zeros((rows, size)) for _ in range(2))
        mask = self.host_zeros((rows, self._mask_length))
        table = self.host_zeros((rows, self._table_length), np.int32)
        logits = self.logits(rows, size)
        run = self.bind(tokens, mask, positions, logits, self._caches, {PAGE_TABLE: table})
        made = _Arrays(tokens, positions, mask, table, logits, run)
        if size == 1:
            self._steps[rows] = made
        return made

    def clear(self, pages: Sequence[int]) -> None:
        """Write zeros into pages and the spare one: what is behind a text is not always left out, but multiplied by zero."""
        for cache in self._caches.values():
            cache[[SPARE, *pages]] = 0
