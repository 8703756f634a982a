"""Pieces of text, joined, are the text of all tokens; none ends in the middle of a character."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from generation.conftest import TEXT, write_tokenizer
from generation.decoders import VOCABULARY
from hipdnn_mlir.generate import Sequences
from hipdnn_mlir.generate.tokenizer import TextStream, Tokenizer
from hipdnn_mlir_runtime.errors import ModelError

pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
TEXTS = [
    TEXT,
    "naïve",
    "🙂👍🏽 family: 👨‍👩‍👧",
    "ﬀ ligature, Ωmega, ½",
    "日本",
    " leading and  double  spaces ",
    "line\nline\n\n",
    "",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    return Tokenizer(folder)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("before", ["", "a prompt", "日本"])
def test_pieces_of_a_text_are_whole_characters(tokenizer: Tokenizer, text: str, before: str) -> None:
    stream = TextStream(tokenizer, tokenizer.encode(before))
    pieces = [stream.add(token) for token in tokenizer.encode(text)]
    assert "".join(pieces) == text
    assert not any("\N{REPLACEMENT CHARACTER}" in piece for piece in pieces)
    assert stream.end() == ""


def test_a_piece_is_given_with_the_token_that_completes_it(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode(
        "x🐙y"
    )  # not in the text that the tokenizer knows, which has another character of these first bytes
    stream = TextStream(tokenizer)
    assert [stream.add(token) for token in tokens] == ["x", "", "", "🐙", "y"]


def test_a_character_that_is_not_completed_is_given_at_the_end(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("x🐙")[:-1]
    stream = TextStream(tokenizer)
    assert "".join([stream.add(token) for token in tokens] + [stream.end()]) == tokenizer.decode(tokens)


def test_a_character_that_a_prompt_begins_is_completed(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("x🐙y")
    stream = TextStream(tokenizer, tokens[:3])
    assert [stream.add(token) for token in tokens[3:]] == ["🐙", "y"]


def test_pieces_of_random_tokens_are_their_text(tokenizer: Tokenizer) -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        tokens = rng.integers(0, VOCABULARY, rng.integers(1, 40)).tolist()
        stream = TextStream(tokenizer)
        assert "".join([stream.add(token) for token in tokens] + [stream.end()]) == tokenizer.decode(tokens)


def test_what_is_no_unicode_is_refused(tokenizer: Tokenizer) -> None:
    for text in ("ab\ud800", b"ab\xff".decode(errors="surrogateescape")):
        with pytest.raises(ModelError, match=r"no Unicode: .* at 2"):
            tokenizer.encode(text)


def test_words_with_a_mark_for_spaces_keep_them(tmp_path: Path) -> None:
    """A space belongs to the token behind it, and is dropped at the beginning of a text: a word has another text alone."""
    from tokenizers import Tokenizer as Words
    from tokenizers import decoders, models, pre_tokenizers

    words = Words(models.WordLevel({"▁the": 0, "▁fox": 1, "▁jumps": 2, "?": 3}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Metaspace()
    words.decoder = decoders.Metaspace()
    words.save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer(tmp_path)
    stream = TextStream(tokenizer, tokenizer.encode("the"))
    assert [stream.add(token) for token in tokenizer.encode("fox jumps")] == [" fox", " jumps"]


@pytest.fixture(scope="module")
def bytewise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a tokenizer as Llama's: characters that it does not know are bytes; a text begins with a token of its own."""
    from tokenizers import Tokenizer as Words
    from tokenizers import decoders, models, processors

    folder = tmp_path_factory.mktemp("bytewise")
    names = ["<unk>", "<s>", *(f"<0x{byte:02X}>" for byte in range(256)), "a"]
    vocabulary = {name: index for index, name in enumerate(names)}
    words = Words(models.BPE(vocabulary, [], unk_token="<unk>", byte_fallback=True))
    words.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    words.add_special_tokens(["<s>"])
    words.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    words.save(str(folder / "tokenizer.json"))
    return folder


@pytest.mark.parametrize("before", ["", "日", "日本", "日本語", "a日本語🙂", "🙂👍🙂"])
def test_characters_of_bytes_follow_a_prompt_of_bytes(before: str, bytewise: Path) -> None:
    tokenizer = Tokenizer(bytewise)
    prompt = tokenizer.encode(before)
    for cut in range(1, 4):  # a character of the prompt may be completed, too
        tokens = [*prompt, *tokenizer.encode("🙂日a", special=False)]
        stream = TextStream(tokenizer, tokens[: len(prompt) + cut])
        pieces = [stream.add(token) for token in tokens[len(prompt) + cut :]]
        assert [piece for piece in pieces if piece] == ["🙂", "日", "a"]


def test_prompts_are_neither_cut_nor_filled(bytewise: Path, tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Words

    words = Words.from_file(str(bytewise / "tokenizer.json"))
    words.enable_truncation(4)
    words.enable_padding(length=16)
    words.save(str(tmp_path / "tokenizer.json"))
    for text in ("a", "aaaaaaaa"):
        assert Tokenizer(tmp_path).encode(text) == Tokenizer(bytewise).encode(text)


def test_what_continues_a_text_does_not_begin_one(bytewise: Path) -> None:
    tokenizer = Tokenizer(bytewise)
    config = SimpleNamespace(grows=False, vocab_size=300, context_length=64)
    decoder: Any = SimpleNamespace(
        config=config, max_length=64, rows=int, caches=lambda _: {}, mask_length=int, host_zeros=np.zeros
    )
    text = Sequences(decoder, tokenizer, None, 1)
    for length in (2, 3):
        text.append("a")
        assert len(text.tokens[0]) == length
    text.rewind_to(0)
    text.append("a")
    assert text.tokens == [tokenizer.encode("a")]
