"""Texts that are generated side by side: their tokens, and the caches of what the decoder has seen of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from hipdnn_mlir_runtime.errors import ModelError

from .config import DecoderConfig, is_whole
from .decoder import Decoder
from .growing_rows import GrowingRows
from .sampling import Sampling, SamplingOptions
from .shared_rows import SharedRows
from .tokenizer import TextStream, Tokenizer

Prompt = str | Sequence[int]
"""A text, or its tokens."""
Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class Token:
    """A token that was generated.

    Attributes:
        row: number of the text that it continues.
        id: its number in the vocabulary.
        text: what it adds to the text. Empty as long as it completes no character, and without a tokenizer.
        finish_reason: set where it is the last one of its text: `stop` for a stop token, which has no text of its own, `length` where no
            more were asked for or there is room for none.
    """

    row: int
    id: int
    text: str
    finish_reason: Finish | None = None


class Sequences:
    """One text or several side by side, which can be continued and rewound. For one thread at a time.

    The tokens are what counts: the decoder runs on those that its caches do not have yet when the next token is asked for. So an error in
    a run changes nothing, and the same call can be tried again.

    Args:
        decoder: the program.
        tokenizer: for prompts that are texts, and texts of tokens; None where there is none.
        missing: what is raised for a prompt that is a text if there is no tokenizer.
        count: number of texts.

    Raises:
        ModelError: the program is for fewer texts.
    """

    def __init__(self, decoder: Decoder, tokenizer: Tokenizer | None, missing: ModelError | None, count: int) -> None:
        self._decoder, self._tokenizer, self._missing = decoder, tokenizer, missing
        self._tokens: list[list[int]] = [[] for _ in range(count)]
        self._cached = (GrowingRows if decoder.config.grows else SharedRows)(decoder, count)

    @property
    def tokens(self) -> list[list[int]]:
        """The tokens of each text."""
        return [list(tokens) for tokens in self._tokens]

    def append(self, prompts: Prompt | Sequence[Prompt]) -> None:
        """Put prompts behind the texts; nothing runs yet.

        Args:
            prompts: one for each text, which may be empty; for a single text also its prompt alone. Tokens that the tokenizer puts around a
                text, such as the one that begins it, are not put around what continues one.

        Raises:
            ModelError: their number is wrong, a token is unknown, a text has no room for its prompt, or there is no tokenizer. No text
                has changed then.
        """
        size = self._decoder.config.vocab_size
        given = listed(prompts)
        if not given and len(self._tokens) == 1:
            given = [[]]
        if len(given) != len(self._tokens):
            raise ModelError("wrong number of prompts", expected=str(len(self._tokens)), got=str(len(given)))
        new = [
            encoded(prompt, self._tokenizer, self._missing, size, special=not old)
            for prompt, old in zip(given, self._tokens, strict=True)
        ]
        limit = self._decoder.max_length
        for old, tokens in zip(self._tokens, new, strict=True):
            if len(old) + len(tokens) > limit:
                before = f" behind {len(old)}" if old else ""
                message = f"the prompt is too long: {len(tokens)} tokens{before}"
                context = self._decoder.config.context_length
                hint = "shorten it" if limit == context else f"shorten it, or raise max_length (up to {context})"
                raise ModelError(message, expected=f"at most {limit - len(old)}", hint=hint)
        for row, tokens in enumerate(new):
            self._tokens[row] += tokens

    def rewind_to(self, lengths: int | Sequence[int]) -> None:
        """Forget the last tokens.

        Args:
            lengths: how many tokens stay: of all texts, or one number for each.

        Raises:
            ModelError: a text does not have as many.
        """
        wanted: list[Any] = [*lengths] if _is_list(lengths) else [lengths] * len(self._tokens)  # type: ignore[misc]
        have = [len(tokens) for tokens in self._tokens]
        if len(wanted) != len(have) or not all(
            is_whole(new) and 0 <= new <= old for new, old in zip(wanted, have, strict=True)
        ):
            raise ModelError("cannot rewind", expected=f"lengths up to {have}", got=repr(lengths))
        for row, length in enumerate(wanted):
            del self._tokens[row][length:]
            self._cached.rewind(row, length)

    def logits(self) -> npt.NDArray[np.float32]:
        """Run the decoder on what is new, and return the logits for the next token of each text, [texts, vocabulary].

        Raises:
            ModelError: a text is empty, or the generator is closed.
            DeviceError: a call into the device library failed.
        """
        self._decoder.session.check_open()
        check_begun(self._tokens)
        return self._cached.logits(self._tokens)

    def stream(
        self,
        *,
        max_new_tokens: int | None = None,
        stop_tokens: Collection[int] | None = None,
        **options: Unpack[SamplingOptions],
    ) -> Iterator[Token]:
        """Generate, and give each token as it comes. Texts end one by one; a token is a part of its text before it is given.

        Args:
            max_new_tokens: as of `GenerationOptions`.
            stop_tokens: as of `GenerationOptions`.
            options: the keywords of `SamplingOptions`.

        Raises:
            ModelError: an option is out of range or has no effect, a text has no room for as many tokens, or is empty.
            TypeError: there is no such option.
            DeviceError: a call into the device library failed.
        """
        check_begun(self._tokens)
        sampling = Sampling.of(self._decoder.config.search, **options)
        if max_new_tokens is not None:
            check_count("max_new_tokens", max_new_tokens)
            self._check_room(max_new_tokens)
        stops = stops_of(self._decoder.config, stop_tokens)
        return self._stream(sampling, max_new_tokens, stops)

    def _check_room(self, max_new_tokens: int) -> None:
        longest, limit = max(map(len, self._tokens)), self._decoder.max_length
        if longest + max_new_tokens > limit:
            message = f"no room for {max_new_tokens} tokens behind {longest}"
            context = self._decoder.config.context_length
            hint = "ask for fewer" if limit == context else f"ask for fewer, or raise max_length (up to {context})"
            raise ModelError(message, where="max_new_tokens", expected=f"at most {limit - longest}", hint=hint)

    def _stream(self, sampling: Sampling, max_new_tokens: int | None, stops: Collection[int]) -> Iterator[Token]:
        texts = [TextStream(self._tokenizer, tokens) for tokens in self._tokens]
        randoms = [sampling.random(row) for row in range(len(self._tokens))]
        limit = self._decoder.max_length
        ends = [limit if max_new_tokens is None else len(tokens) + max_new_tokens for tokens in self._tokens]
        active = [row for row, tokens in enumerate(self._tokens) if len(tokens) < ends[row]]
        while active:
            logits = self.logits()
            chosen = [sampling.choose(logits[row], self._tokens[row], randoms[row]) for row in active]
            made = []
            for row, token in zip(active, chosen, strict=True):
                self._tokens[row].append(token)
                is_stop = token in stops
                is_last = is_stop or len(self._tokens[row]) >= ends[row]
                text = "" if is_stop else texts[row].add(token)
                if is_last:
                    text += texts[row].end()
                made.append(Token(row, token, text, ("stop" if is_stop else "length") if is_last else None))
            active = [token.row for token in made if token.finish_reason is None]
            yield from made


def check_begun(texts: Iterable[Sequence[int]]) -> None:
    """Refuse texts without a token; raises ModelError."""
    if not all(texts):
        hint = "begin with the model's first token"
        raise ModelError("an empty prompt", expected="at least one token", hint=hint)


def check_count(name: str, value: Any) -> None:
    """Refuse what is no number of things; raises ModelError."""
    if not is_whole(value) or value < 1:
        raise ModelError("bad value", where=name, expected="a whole number from 1", got=repr(value))


def stops_of(config: DecoderConfig, tokens: Collection[int] | None) -> frozenset[int]:
    """Tokens that end a text: those that the caller gives, or else the folder's.

    Raises:
        ModelError: they are no tokens.
    """
    if tokens is None:
        return config.stop_tokens
    if not isinstance(tokens, Collection) or not all(map(is_whole, tokens)):
        raise ModelError("bad value", where="stop_tokens", expected="whole numbers", got=repr(tokens))
    return frozenset(map(int, tokens))


def encoded(
    prompt: Prompt, tokenizer: Tokenizer | None, missing: ModelError | None, vocab_size: int, *, special: bool = True
) -> list[int]:
    """The tokens of a prompt.

    Args:
        prompt: a text, or its tokens.
        tokenizer: for a text; None where there is none.
        missing: what is raised for a text then.
        vocab_size: number of tokens that there are.
        special: as for `Tokenizer.encode`.

    Raises:
        ModelError: it is neither, a token is unknown, or there is no tokenizer.
    """
    if not isinstance(prompt, str) and not _is_list(prompt):
        raise ModelError("no prompt", expected="a text, or its tokens", got=repr(prompt))
    if isinstance(prompt, str):
        if tokenizer is None:
            raise missing or ModelError("no tokenizer")
        prompt = tokenizer.encode(prompt, special=special)
    for token in prompt:
        if not is_whole(token) or not 0 <= token < vocab_size:
            raise ModelError("no such token", expected=f"numbers from 0 to {vocab_size - 1}", got=repr(token))
    return [int(token) for token in prompt]


def listed(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    """Prompts as a list, a single one as a list of one; what is neither is a prompt for `encoded` to refuse."""
    if isinstance(prompts, str) or not _is_list(prompts):
        return [prompts]  # type: ignore[list-item]
    is_single = len(prompts) > 0 and all(isinstance(one, (int, np.integer)) for one in prompts)
    return [prompts] if is_single else [*prompts]  # type: ignore[list-item]


def _is_list(value: Any) -> bool:
    return (
        value.ndim > 0
        if isinstance(value, np.ndarray)
        else isinstance(value, Sequence) and not isinstance(value, bytes)
    )
