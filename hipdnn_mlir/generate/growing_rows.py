"""Texts in caches that grow in the model, by as many rows for each text: those that exporters write by Concat (adr/0038)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hipdnn_mlir_runtime.errors import ModelError

from .decoder import Decoder
from .decoder_program import Logits
from .shared_rows import Window, Windows


class GrowingRows:
    """What the caches have of some texts. The texts' last tokens are in the same row; the mask has what each row is for.

    A row that is for no token of a text is hidden from it by the mask: padding in front of a shorter prompt, and the steps of other texts
    behind its end. The rows of a text are next to each other, since models measure windows and distances in rows. Where what is new
    cannot be, or there is no row left, the texts are computed again from their beginning.

    Args:
        decoder: the program.
        count: number of texts.

    Raises:
        ModelError: the program is for fewer texts.
    """

    def __init__(self, decoder: Decoder, count: int) -> None:
        self._decoder = decoder
        rows = decoder.rows(count)
        self._room = decoder.mask_length(1)
        self._mask = decoder.host_zeros((rows, self._room))
        self._length = decoder.host_zeros((1,))
        growing = decoder.session.growing
        more = {} if growing is None else {growing.length: self._length}
        self._windows = Windows(decoder, self._mask, decoder.caches(rows), more)
        self._rows: list[list[int]] = [[] for _ in range(count)]
        """The row of each token of each text."""
        self._logits: list[Logits | None] = [None] * count
        """Those behind the last token of each text."""

    def rewind(self, row: int, length: int) -> None:
        """Forget the tokens of a text behind so many; the last one of the rest is computed again."""
        known = self._rows[row]
        if length < len(known):
            del known[max(length - 1, 0) :]
            self._logits[row] = None

    def logits(self, texts: Sequence[Sequence[int]]) -> Logits:
        """Run the decoder on what is new in texts that have at least one token each, and return the logits behind each.

        Raises:
            ModelError: the model counts positions by itself, so that texts of a batch have to be of one length.
            DeviceError: a call into the device library failed; what is in the caches stays.
        """
        end = self._end()
        span = self._span(texts)
        if span and (end + span > self._room or not self._is_in_step(texts, end + span)):
            self._rows = [[] for _ in texts]
            end, span = 0, max(map(len, texts))
            if not self._is_in_step(texts, span):
                expected = "prompts of one length, or a model with an input position_ids"
                got = ", ".join(str(len(tokens)) for tokens in texts)
                hint = "give the prompts one after the other"
                raise ModelError("texts of different lengths in one batch", expected=expected, got=got, hint=hint)
        behind = end + span
        while end < behind:
            window = self._windows.of(self._decoder.window(behind - end, self._room - end))
            size = min(window.tokens.shape[1], behind - end)
            self._run(window, texts, end, size, behind)
            end += size
        return np.stack([logits for logits in self._logits if logits is not None])

    def _end(self) -> int:
        """The first row that is for no text."""
        return max((rows[-1] + 1 for rows in self._rows if rows), default=0)

    def _span(self, texts: Sequence[Sequence[int]]) -> int:
        return max(len(tokens) - len(rows) for tokens, rows in zip(texts, self._rows, strict=True))

    def _is_in_step(self, texts: Sequence[Sequence[int]], behind: int) -> bool:
        """Whether texts with something new have room for it in the rows next to those that they have."""
        return all(
            len(tokens) == len(rows) or self._may_begin(rows, behind - len(tokens))
            for tokens, rows in zip(texts, self._rows, strict=True)
        )

    def _may_begin(self, rows: Sequence[int], first: int) -> bool:
        """Whether a text may have its first token in a row: a new one in any, unless the model counts positions by itself."""
        if self._decoder.config.position_ids:
            return not rows or rows[0] == first
        return first == 0

    def _run(self, window: Window, texts: Sequence[Sequence[int]], start: int, size: int, behind: int) -> None:
        """Run on `size` rows from `start` on, where the last new token of each text is in the row before `behind`.

        A window that has more rows writes them, too; they are hidden, and what comes next is written over them.
        """
        self._length[0] = start
        self._mask.fill(0)
        window.tokens.fill(0)
        window.positions.fill(0)
        taken = []
        for row, (tokens, known) in enumerate(zip(texts, self._rows, strict=True)):
            self._mask[row, known] = 1
            count = max(0, min(len(tokens) - len(known), size - max(0, behind - (len(tokens) - len(known)) - start)))
            taken.append(count)
            if count:
                places = slice(size - count, size)
                window.tokens[row, places] = tokens[len(known) : len(known) + count]
                window.positions[row, places] = np.arange(len(known), len(known) + count)
                self._mask[row, start + size - count : start + size] = 1
        self._mask[len(texts) :, start] = 1  # rows of a larger batch see something
        window.run()
        for row, count in enumerate(taken):
            if count:
                self._rows[row] += range(start + size - count, start + size)
                positions = window.logits.shape[1]  # one where the program takes the last valid one itself
                self._logits[row] = window.logits[row, min(size, positions) - 1].astype(np.float32)
