"""A text that is generated in a running batch, as its caller sees it and as the batch does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np

from hipdnn_mlir_runtime.errors import HipdnnMlirError

from .generator import Completion, completion
from .paged_decoder import Cached
from .sampling import Logits, Sampling
from .sequences import Finish, Token
from .tokenizer import TextStream


@dataclass(frozen=True)
class Limits:
    """Where a text ends.

    Attributes:
        tokens: most tokens of it, with its prompt.
        stops: tokens that end it.
    """

    tokens: int
    stops: Collection[int]


class Request:
    """A text that is being generated. Iterate over it for its tokens, from one thread at a time.

    Attributes:
        prompt_tokens: number of tokens of its prompt.

    Args:
        tokens: of the prompt.
        sampling: how tokens are chosen.
        limits: where it ends.
        stream: makes texts of tokens.
        wake: called when the batch has to look at the request.
    """

    def __init__(
        self, tokens: list[int], sampling: Sampling, limits: Limits, stream: TextStream, wake: Callable[[], None]
    ) -> None:
        self.prompt_tokens = len(tokens)
        self.text = Cached(tokens)
        self._sampling, self._limits, self._stream, self._wake = sampling, limits, stream, wake
        self._random: np.random.Generator = sampling.random(0)
        self._came: SimpleQueue[Token | HipdnnMlirError | None] = SimpleQueue()
        self._is_read = False
        self.is_cancelled = False

    # -- for the caller ----------------------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Token]:
        """Give each token as it comes, and wait for it; those that were given before are not given again.

        The last one has a `finish_reason`, unless the request was cancelled.

        Raises:
            HipdnnMlirError: the request failed; others are generated on.
        """
        while not self._is_read:
            came = self._came.get()
            self._is_read = not isinstance(came, Token) or came.finish_reason is not None
            if isinstance(came, HipdnnMlirError):
                raise came
            if came is not None:
                yield came

    def result(self) -> Completion:
        """Wait for the rest, and return the tokens that iterating has not given yet; errors as for iterating."""
        tokens = list(self)
        found = completion(self.prompt_tokens, tokens)
        is_whole = bool(tokens) and tokens[-1].finish_reason is not None
        return found if is_whole or not self.is_cancelled else replace(found, finish_reason="cancelled")

    def cancel(self) -> None:
        """Ask for no more tokens: the request leaves the batch before its next step, and its pages are free. From any thread."""
        self.is_cancelled = True
        self._wake()

    # -- for the batch -----------------------------------------------------------------------------------------------------------------

    def choose(self, logits: Logits) -> Token:
        """Choose the next token; it has the reason if the text ends with it. `give` gives it to the caller.

        Args:
            logits: [vocabulary].

        Raises:
            ModelError: a logit is not a number.
        """
        tokens = self.text.tokens
        token = self._sampling.choose(logits, tokens, self._random)
        tokens.append(token)
        is_stop = token in self._limits.stops
        reason: Finish | None = "stop" if is_stop else "length" if len(tokens) >= self._limits.tokens else None
        text = "" if is_stop else self._stream.add(token)
        if reason:
            text += self._stream.end()
        return Token(0, token, text, reason)

    def give(self, token: Token) -> None:
        """Give a token to the caller."""
        self._came.put(token)

    def end(self, error: HipdnnMlirError | None = None) -> None:
        """Tell the caller that no token comes any more, and of an error if that is why."""
        self._came.put(error)
