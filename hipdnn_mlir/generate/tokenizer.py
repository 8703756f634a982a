"""Texts to tokens and back: `tokenizer.json`, through the package tokenizers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from hipdnn_mlir_runtime.errors import ModelError

FILE = "tokenizer.json"
_BEFORE = 8
"""Tokens of a prompt that what follows is decoded with."""
_BYTES = 4
"""Most bytes of a character."""
_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
"""What the bytes of a character are decoded to as long as some are missing."""


class Tokenizer:
    """The tokenizer of a folder.

    Args:
        folder: where `tokenizer.json` lies.

    Raises:
        ModelError: it is not there or cannot be read, or the package is not installed.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        if not path.is_file():
            raise ModelError(f"no {FILE}", where=str(folder), hint="give tokens in the place of texts, from Python")
        try:
            import tokenizers
        except ImportError as error:
            hint = "pip install 'hipdnn-mlir[generate]', or give tokens in the place of texts, from Python"
            raise ModelError("the package tokenizers is not installed", where=str(path), hint=hint) from error
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # what the package raises has no other base class
            raise ModelError(f"the package tokenizers cannot read it: {error}", where=str(path)) from error
        self._tokenizer.no_truncation()  # files keep both from training, where texts have one length
        self._tokenizer.no_padding()

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The tokens of a text, with those that the tokenizer puts around each if `special`.

        Raises:
            ModelError: the text is no Unicode, as Python has it of bytes that are no UTF-8, or of halves of surrogate pairs in JSON.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            got = f"{text[error.start]!a} at {error.start}"
            raise ModelError("a prompt that is no Unicode", expected="UTF-8, of whole characters", got=got) from error
        # As a batch of one: what encodes a text alone keeps all other threads waiting.
        return list(self._tokenizer.encode_batch_fast([text], add_special_tokens=special)[0].ids)

    @cached_property
    def longest(self) -> int:
        """Characters of the longest token."""
        return max(map(len, self._tokenizer.get_vocab()))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, without special ones."""
        return str(self._tokenizer.decode(list(tokens)))


def find_tokenizer(folder: Path) -> tuple[Tokenizer | None, ModelError | None]:
    """The tokenizer of a folder, or why it cannot be used."""
    try:
        return Tokenizer(folder), None
    except ModelError as error:
        return None, error


class TextStream:
    """The text of tokens that come one by one, in pieces that joined are the text of all.

    A token may be a part of a character, and its text may depend on the token before. So a piece is what one more token adds to the text
    of those since the last piece; it is held back as long as it ends in the middle of a character.

    Args:
        tokenizer: decodes; None gives no text.
        tokens: what comes before: its text is not given again.
    """

    def __init__(self, tokenizer: Tokenizer | None, tokens: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        start, end = (len(tokens), len(tokens)) if tokenizer is None else _whole(tokenizer, tokens)
        self._tokens = [*tokens[start:]]
        self._given = end - start

    def add(self, token: int) -> str:
        """The piece that a token completes, if it does."""
        self._tokens.append(token)
        return self._piece(is_last=False)

    def end(self) -> str:
        """What is held back: it is not going to be completed."""
        return self._piece(is_last=True)

    def _piece(self, *, is_last: bool) -> str:
        if self._tokenizer is None:
            return ""
        before = self._tokenizer.decode(self._tokens[: self._given])
        text = self._tokenizer.decode(self._tokens)
        if len(text) <= len(before) or (text.endswith(_INCOMPLETE) and not is_last):
            return ""
        self._tokens = self._tokens[self._given :]
        self._given = len(self._tokens)
        return text[len(before) :]


def _whole(tokenizer: Tokenizer, tokens: Sequence[int]) -> tuple[int, int]:
    """Where the last of some tokens begin and end that are whole characters.

    What is behind the end is the beginning of a character, and given when that is complete. A character that is cut in front harms those
    behind it, too, where tokens are bytes: a row of these is decoded as one.
    """
    first, last = max(len(tokens) - _BEFORE, 0), len(tokens)
    for end in range(last, max(last - _BYTES, -1), -1):
        for start in range(first, max(first - _BYTES, -1), -1):
            text = tokenizer.decode(tokens[start:end])
            if not text.startswith(_INCOMPLETE) and not text.endswith(_INCOMPLETE):
                return start, end
    return first, last
