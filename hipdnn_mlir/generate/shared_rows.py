"""Texts in caches whose rows each text fills by itself: those of models with `GroupQueryAttention` (adr/0033)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .decoder import Decoder
from .decoder_program import Logits, last_logits


@dataclass(frozen=True)
class Window:
    """The arrays of one run."""

    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    logits: npt.NDArray[Any]
    run: Callable[[], None]


class Windows:
    """Arrays for runs of some tokens of each text; those of the step of one token are kept, and bound once.

    Args:
        decoder: the program.
        mask: bound as the mask.
        caches: bound as past and present.
        more: other inputs by name.
    """

    def __init__(
        self, decoder: Decoder, mask: npt.NDArray[np.int64], caches: dict[str, Any], more: dict[str, Any]
    ) -> None:
        self._decoder, self._mask, self._caches, self._more = decoder, mask, caches, more
        self._step: Window | None = None

    def of(self, size: int) -> Window:
        """Arrays for so many tokens of each text. The step's are made with the first of a prompt, so that no token waits for them."""
        if self._step is None and self._decoder.window(1) == 1:
            self._step = self._made(1)
        return self._step if size == 1 and self._step is not None else self._made(size)

    def _made(self, size: int) -> Window:
        rows = len(self._mask)
        tokens, positions = (self._decoder.host_zeros((rows, size)) for _ in range(2))
        logits = self._decoder.logits(rows, size)
        run = self._decoder.bind(tokens, self._mask, positions, logits, self._caches, self._more)
        return Window(tokens, positions, logits, run)


class SharedRows:
    """What the caches have of some texts. A text's own tokens are in its rows from the first on.

    Args:
        decoder: the program.
        count: number of texts.

    Raises:
        ModelError: the program is for fewer texts.
    """

    def __init__(self, decoder: Decoder, count: int) -> None:
        self._decoder = decoder
        self._cached = [0] * count
        rows = decoder.rows(count)
        self._caches = decoder.caches(rows)
        self._lengths = np.ones(rows, np.int64)
        """Tokens of each text behind a run, and 1 for rows that have no text."""
        self._use_mask(decoder.mask_length(1))

    def _use_mask(self, length: int) -> None:
        self._mask = self._decoder.host_zeros((len(self._lengths), length))
        self._places = np.arange(length)
        self._windows = Windows(self._decoder, self._mask, self._caches, {})

    def rewind(self, row: int, length: int) -> None:
        """Forget the tokens of a text behind so many."""
        self._cached[row] = min(self._cached[row], length)

    def logits(self, texts: Sequence[Sequence[int]]) -> Logits:
        """Run the decoder on what is new in texts that have at least one token each, and return the logits behind each.

        Raises:
            DeviceError: a call into the device library failed; nothing has changed then.
        """
        self._choose_mask(max(map(len, texts)))
        while True:
            pending = max(len(tokens) - cached for tokens, cached in zip(texts, self._cached, strict=True))
            size = self._decoder.window(max(pending, 1))
            ends = [min(len(tokens), old + size) for tokens, old in zip(texts, self._cached, strict=True)]
            found = self._run(texts, size, ends)
            self._cached = ends
            if pending <= size:
                return found

    def _choose_mask(self, longest: int) -> None:
        length = self._decoder.mask_length(longest)
        if length != self._mask.shape[1]:
            self._use_mask(length)
            self._cached = [0] * len(self._cached)

    def _run(self, texts: Sequence[Sequence[int]], size: int, ends: Sequence[int]) -> Logits:
        """Run on the last tokens of each text up to its end, and return the logits behind it.

        Rows differ in what is new. A row with less of it than others takes tokens again that are in its cache, which computes the same
        keys and values; one that is shorter as a whole is padded on the right, where the mask says that nothing is.
        """
        window = self._windows.of(size)
        self._lengths[: len(ends)] = ends
        np.less(self._places, self._lengths[:, None], out=self._mask, casting="unsafe")
        starts = np.maximum(self._lengths - size, 0)
        np.add(starts[:, None], np.arange(size), out=window.positions)  # a run may have more tokens than the mask
        for row, (tokens, end) in enumerate(zip(texts, ends, strict=True)):
            taken = tokens[starts[row] : end]
            window.tokens[row, : len(taken)] = taken
        window.run()
        return last_logits(window.logits, (self._lengths - starts)[: len(ends)])
