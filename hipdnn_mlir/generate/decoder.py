"""A decoder's program whose caches are buffers, one for each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.session.session import Session

from ..frontend.paged_caches import PAGE_TABLE
from .config import DecoderConfig, is_whole
from .decoder_program import DecoderProgram

DEFAULT_LENGTH = 2048
"""Length of caches unless told otherwise, if the model was made for as many tokens."""


class Decoder(DecoderProgram):
    """A decoder's program, loaded.

    Attributes:
        max_length: most tokens of a text.

    Args:
        session: the program.
        config: of its folder.
        max_length: length that caches are to have.
        mask_lengths: lengths of the mask beyond which the model computes otherwise.

    Raises:
        ModelError: the program's inputs and outputs are not those that the configuration names, or its sizes do not fit.
    """

    def __init__(self, session: Session, config: DecoderConfig, max_length: int, mask_lengths: Sequence[int]) -> None:
        if PAGE_TABLE in {port.name for port in session.inputs}:
            hint = "use BatchGenerator, or compile it without page_rows"
            raise ModelError("the caches of the program are pages", where=str(config.folder), hint=hint)
        if config.grows and session.growing is None:
            where, hint = str(config.model), "run with -v for what the model does with their length"
            raise ModelError("its caches are not known to grow by what is new", where=where, hint=hint)
        super().__init__(session, config)
        caches = [self._inputs[past] for past, _ in config.caches]
        self._cache_lengths = {port.name: self._size(port.shape[2], max_length) for port in caches}
        self._room = min(self._cache_lengths.values())
        self.max_length = min(max_length, self._room)
        self._mask_lengths = self._chosen_masks(max_length, mask_lengths)

    def _chosen_masks(self, max_length: int, decisions: Sequence[int]) -> list[int]:
        """The lengths that masks have: that of the caches, and those beyond which the model computes otherwise."""
        room = self._room
        wanted = [*(length for length in decisions if length < room), room]
        found = [self._size(self._mask.shape[1], length) for length in wanted]
        if room < max_length or found != wanted:
            where = str(self.config.folder)
            message = f"the program is for {room} tokens in a cache, and for masks of {', '.join(map(str, found))}"
            expected = f"at least {max_length}, and masks of {', '.join(map(str, wanted))}"
            raise ModelError(message, where=where, expected=expected, hint="ask for fewer tokens, or compile it again")
        return wanted

    def mask_length(self, tokens: int) -> int:
        """The length of the mask for texts of up to so many tokens.

        As long as it stays the same, one specialization serves a step, however long the texts are. Where it changes, what is in the caches
        is of no more use.
        """
        return min(length for length in self._mask_lengths if length >= tokens)

    def window(self, pending: int, room: int | None = None) -> int:
        """How many tokens of each text the next run takes, where at most `pending` are new and `room` rows are free, or all."""
        return self._window(pending, self._room if room is None else room)

    def windows(self) -> list[int]:
        """The numbers of tokens that a run may have, where the program fixes them, or else that of a step; the largest first."""
        return sorted((size for size in self._window_sizes if size <= self.max_length), reverse=True) or [1]

    def caches(self, rows: int) -> dict[str, Any]:
        """Empty caches, by the name of the input."""
        return self._empty_caches(rows, self._cache_lengths)


def length_of(config: DecoderConfig, max_length: int | None) -> int:
    """The length that caches are to have.

    Args:
        config: of the model's folder.
        max_length: what the user says, if anything.

    Raises:
        ModelError: it is no length, or is beyond the context.
    """
    limit = config.context_length
    if max_length is None:
        return min(limit, DEFAULT_LENGTH)
    if not is_whole(max_length) or not 1 <= max_length <= limit:
        expected = f"a number from 1 to the context length, {limit}"
        raise ModelError("bad value", where="max_length", expected=expected, got=repr(max_length))
    return int(max_length)
