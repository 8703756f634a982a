"""Generates text with onnxruntime-genai in the ways that its users have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnxruntime_genai as og

from generation.decoders import LIMIT, WINDOW
from generation.generate import load

PAD = 0
Rows = list[list[int]]
"""The tokens of each text."""


def prompt(length: int, seed: int = 0) -> list[int]:
    """Tokens that are neither padding nor the end of a text."""
    return [3 + (7 * seed + (seed + 3) * index) % 97 for index in range(length)]


def greedy(model: og.Model) -> Rows:
    """The tokens most likely, 40 of them."""
    return _generated(_generator(model, 45), prompt(5))


def beyond_limit(model: og.Model) -> Rows:
    """The tokens most likely, beyond the length from which angles are others."""
    return _generated(_generator(model, LIMIT + 20), prompt(5))


def beyond_window(model: og.Model) -> Rows:
    """The tokens most likely, until caches of windows are full."""
    return _generated(_generator(model, WINDOW + 40), prompt(5))


def four_prompts(model: og.Model) -> Rows:
    """100 tokens for each of 4 prompts."""
    return [_generated(_generator(model, 100 + length), prompt(length, length))[0] for length in range(4, 14, 3)]


def continued(model: og.Model) -> Rows:
    """A conversation: of one word, several, and again one."""
    generator = _generator(model, 60)
    for turn, words in enumerate((9, 1, 6, 1)):
        generator.append_tokens([prompt(words, turn)])
        for _ in range(5):
            generator.generate_next_token()
    return _rows(generator, 1)


def resumed(model: og.Model) -> list[tuple[list[int], list[float]]]:
    """No rows: what was said after each turn of a conversation, and the logits behind it.

    The last two tokens are given again, since genai does not give a model the last one.
    """
    generator, found = _generator(model, 60), []
    generator.append_tokens([prompt(9)])
    for turn, words in enumerate((1, 6)):
        for _ in range(5):
            generator.generate_next_token()
        (said,) = _rows(generator, 1)
        generator.rewind_to(len(said) - 2)
        generator.append_tokens([said[-2:] + prompt(words, turn)])
        found.append((*_rows(generator, 1), generator.get_logits()[0, -1].tolist()))
    return found


def rewound(model: og.Model) -> Rows:
    """A text taken back to its middle, to its beginning, and to nothing, with other words each time."""
    generator, found = _generator(model, 60), []
    generator.append_tokens([prompt(12)])
    for length in (15, 3, 0):
        for _ in range(8):
            generator.generate_next_token()
        found += _rows(generator, 1)
        generator.rewind_to(length)
        generator.append_tokens([prompt(4, length)])
    generator.generate_next_token()
    return found + _rows(generator, 1)


def batch(model: og.Model) -> Rows:
    """Three texts whose prompts are of different lengths."""
    generator, longest = _generator(model, 40, batch_size=3), 11
    texts = [prompt(length, length) for length in (5, longest, 1)]
    generator.append_tokens([text + [PAD] * (longest - len(text)) for text in texts])
    while not generator.is_done():
        generator.generate_next_token()
    return _rows(generator, 3)


def beams(model: og.Model) -> Rows:
    """The best of three."""
    generator = _generator(model, 30, num_beams=3)
    return _generated(generator, prompt(5))


def beams_of_a_batch(model: og.Model) -> Rows:
    """The best two of three for each of two prompts."""
    generator = _generator(model, 25, num_beams=3, batch_size=2, num_return_sequences=2)
    generator.append_tokens([prompt(6), prompt(6, 1)])
    while not generator.is_done():
        generator.generate_next_token()
    return _rows(generator, 4)


def sampled(model: og.Model) -> Rows:
    """Tokens drawn with a seed, from the likeliest ones."""
    chances: list[dict[str, Any]] = [{"top_k": 20}, {"top_p": 0.8}, {"top_k": 50, "top_p": 0.9, "temperature": 0.7}]
    made = []
    for seed, chance in enumerate(chances):
        made += _generated(_generator(model, 40, do_sample=True, random_seed=seed, **chance), prompt(5))
    return made


def in_pieces(model: og.Model) -> Rows:
    """A prompt that is read 16 tokens at a time."""
    return _generated(_generator(model, 90, chunk_size=16), prompt(70))


def two_at_once(model: og.Model) -> Rows:
    """Two texts, of which one and the other go on by turns."""
    generators = [_generator(model, 60) for _ in range(2)]
    for seed, generator in enumerate(generators):
        generator.append_tokens([prompt(9 - 4 * seed, seed)])
    for _ in range(10):
        for generator in generators:
            generator.generate_next_token()
    return [row for generator in generators for row in _rows(generator, 1)]


def logits(model: og.Model) -> list[list[float]]:
    """No tokens: the logits at each step of a text that is given."""
    text = prompt(48)
    generator = _generator(model, 64)
    found = []
    for words in (text[:16], *([word] for word in text[16:])):
        generator.append_tokens([words])
        found.append(generator.get_logits()[0, -1].tolist())
    return found


WAYS: dict[str, Callable[[og.Model], Any]] = {
    way.__name__: way
    for way in (
        greedy,
        beyond_limit,
        beyond_window,
        four_prompts,
        continued,
        resumed,
        rewound,
        batch,
        beams,
        beams_of_a_batch,
        sampled,
        in_pieces,
        two_at_once,
        logits,
    )
}
"""Name -> what generates that way."""


def _generator(model: og.Model, length: int, **options: Any) -> og.Generator:
    params = og.GeneratorParams(model)
    params.set_search_options(**{"max_length": length, "min_length": length, "do_sample": False, **options})
    return og.Generator(model, params)


def _generated(generator: og.Generator, words: Sequence[int]) -> Rows:
    generator.append_tokens([words])
    while not generator.is_done():
        generator.generate_next_token()
    return _rows(generator, 1)


def _rows(generator: og.Generator, count: int) -> Rows:
    return [generator.get_sequence(index).tolist() for index in range(count)]


def generated(folder: str, provider: str, ways: Sequence[str]) -> dict[str, Any]:
    """What each of the `WAYS` gives; the provider is as for `generation.generate`."""
    # Of models this small, more threads mostly wait for each other, and keep the CPUs busy with that.
    model = load(folder, provider, threads=1)
    return {way: WAYS[way](model) for way in ways}
