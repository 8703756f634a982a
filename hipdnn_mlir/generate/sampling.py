"""How the next token is chosen from logits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from hipdnn_mlir_runtime.errors import ModelError

from .config import Search, is_whole

Logits = npt.NDArray[np.float32]
Tokens = npt.NDArray[np.int64]


class SamplingOptions(TypedDict, total=False):
    """How tokens are chosen. Greedily, unless one of the first four is given or the folder's `do_sample` is true."""

    temperature: float | None
    """Divides the logits, before all else: above 1 unlikely tokens become likelier. 0 takes the most likely token."""
    top_k: int | None
    """Draw from so many most likely tokens; 0 for all."""
    top_p: float | None
    """Of these, draw from the fewest most likely ones that have this probability together; 1 for all."""
    seed: int | None
    """The same seed draws the same tokens."""
    repetition_penalty: float | None
    """Positive logits of tokens that are there already are divided by it, negative ones multiplied."""


class GenerationOptions(SamplingOptions, total=False):
    """What is generated."""

    max_new_tokens: int | None
    """Most tokens of each text. By default as many as there is room for."""
    stop_tokens: Collection[int] | None
    """Tokens that end a text. By default those of the folder."""


_LARGEST = float(np.finfo(np.float64).max)
_LARGEST_LOGIT = float(np.finfo(np.float32).max)
_FEW = 1024
"""Likeliest tokens among which the smallest set of a probability is looked for before all tokens are sorted."""
_BLOCK = 256
"""Weights that are added up as one before one of them is drawn."""
_SAMPLED = ("temperature", "top_k", "top_p", "seed")


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; attributes as for `SamplingOptions`.

    Raises:
        ModelError: a value is out of range.
    """

    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int | None = None
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        for name in SamplingOptions.__annotations__:
            value = getattr(self, name)
            if isinstance(value, np.generic):  # as Python has it: comparisons of NumPy's floats round the other side
                object.__setattr__(self, name, value.item())
        _check("temperature", self.temperature, "a number from 0", lambda x: 0 <= x <= _LARGEST)
        _check("top_k", self.top_k, "a whole number from 0", lambda x: is_whole(x) and x >= 0)
        _check("top_p", self.top_p, "a number above 0, up to 1", lambda x: 0 < x <= 1)
        _check("seed", 0 if self.seed is None else self.seed, "a whole number from 0", lambda x: is_whole(x) and x >= 0)
        _check("repetition_penalty", self.repetition_penalty, "a number above 0", lambda x: 0 < x <= _LARGEST)

    @classmethod
    def of(cls, search: Search, **options: Unpack[SamplingOptions]) -> Sampling:
        """What a caller's options and the folder's search come to: what the caller does not say is as the folder has it.

        Raises:
            TypeError: there is no such option.
            ModelError: a value is out of range, or has no effect.
        """
        unknown = sorted(set(options) - set(SamplingOptions.__annotations__))
        if unknown:
            raise TypeError(
                f"unknown option {unknown[0]!r}: expected one of {', '.join(GenerationOptions.__annotations__)}"
            )
        given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        sampled = [name for name in _SAMPLED if name in given]
        said = {name: getattr(search, name) for name in ("temperature", "top_k", "top_p", "repetition_penalty")}
        if given.get("temperature") == 0:
            idle = [name for name in sampled if name != "temperature"]
            if idle:
                message = "no effect, since temperature 0 takes the most likely token"
                raise ModelError(message, where=idle[0], hint="leave one of them out")
        if given.get("temperature") == 0 or not (sampled or search.do_sample):
            said = {"repetition_penalty": search.repetition_penalty}
        try:
            folder = cls(**{name: value for name, value in said.items() if name not in given})
        except ModelError as error:
            error.where = f"{search.where}{error.where}"
            raise
        if sampled and "temperature" not in given and folder.is_greedy:
            message = f"no effect, since {search.where}temperature is 0, which takes the most likely token"
            raise ModelError(message, where=sampled[0], hint="give a temperature above 0, too")
        return replace(folder, **given)

    @property
    def is_greedy(self) -> bool:
        """Whether the most likely token is taken."""
        return self.temperature == 0

    def random(self, row: int) -> np.random.Generator:
        """Random numbers of one text: those of a row do not depend on other rows."""
        return np.random.default_rng(None if self.seed is None else (self.seed, row))

    def choose(self, logits: Logits, seen: Sequence[int], random: np.random.Generator) -> int:
        """The next token.

        Args:
            logits: [vocabulary].
            seen: tokens that are there already.
            random: where numbers are drawn from.

        Raises:
            ModelError: a logit is not a number.
        """
        scores = self._penalized(logits, seen)
        if self.is_greedy:
            return int(scores.argmax())
        tokens, weights = self._candidates(scores)
        return int(tokens[_drawn(weights, random.random())])

    def distribution(self, logits: Logits, seen: Sequence[int] = ()) -> tuple[Tokens, Logits]:
        """The tokens that are drawn from, and the probability of each; arguments and errors as for `choose`."""
        tokens, weights = self._candidates(self._penalized(logits, seen))
        return tokens, weights / weights.sum(dtype=np.float64)

    def _candidates(self, scores: Logits) -> tuple[Tokens, Logits]:
        """Tokens to draw from, and their probabilities times the same number: the likeliest token's is 1."""
        tokens = _largest(scores, self.top_k) if 0 < self.top_k < len(scores) else _every(len(scores))
        # Beyond these limits a quotient of float32 is no number, and the distribution is what it is at them.
        temperature = np.float32(np.clip(self.temperature, 1e-30, 1e30))
        with np.errstate(over="ignore"):  # the largest is 0, and the others may be as far below as they like
            weights = (scores if len(tokens) == len(scores) else scores[tokens]) - scores.max()
            weights /= temperature
        np.exp(weights, out=weights)
        if self.top_p < 1:
            likeliest = _largest(weights, _count_with(weights, self.top_p))
            tokens, weights = tokens[likeliest], weights[likeliest]
        return tokens, weights

    def _penalized(self, logits: Logits, seen: Sequence[int]) -> Logits:
        if not np.isfinite(logits.max()):  # a NaN is the maximum
            hint = "look for overflow, with hipdnn-mlir verify or another precision"
            raise ModelError("the model gave logits that are not finite", hint=hint)
        if self.repetition_penalty == 1 or not seen:
            return logits
        made, tokens = logits.copy(), np.array(seen)
        scores = made[tokens].astype(np.float64)
        with np.errstate(over="ignore"):
            scores = np.where(scores > 0, scores / self.repetition_penalty, scores * self.repetition_penalty)
        made[tokens] = np.clip(scores, -_LARGEST_LOGIT, _LARGEST_LOGIT)
        return made


@cache
def _every(count: int) -> Tokens:
    return np.arange(count)


def _largest(values: Logits, count: int) -> Tokens:
    """Where the largest values are; of equal ones the first, as argmax has it."""
    least = np.partition(values, -count)[-count]
    found = np.flatnonzero(values >= least)
    return found if len(found) == count else found[np.argsort(-values[found], kind="stable")[:count]]


def _count_with(weights: Logits, share: float) -> int:
    """How many of the largest weights have at least this share of the sum together; the fewest."""
    wanted = share * weights.sum(dtype=np.float64)
    for count in (_FEW, len(weights)):
        largest = -np.sort(-weights if count >= len(weights) else np.partition(-weights, count)[:count])
        sums = largest.cumsum(dtype=np.float64)
        if sums[-1] >= wanted:
            break
    return min(int(sums.searchsorted(wanted)) + 1, len(sums))


def _drawn(weights: Logits, share: float) -> int:
    """Where this share of the weights' sum, in [0, 1), is reached; never at a weight of 0. Blocks of weights, then those of one block."""
    sums = np.add.reduceat(weights, np.arange(0, len(weights), _BLOCK)).cumsum(dtype=np.float64)
    wanted = share * sums[-1]
    block = int(sums.searchsorted(wanted, side="right"))
    before = sums[block - 1] if block else 0.0
    inside = weights[block * _BLOCK : (block + 1) * _BLOCK].cumsum(dtype=np.float64)
    part = (wanted - before) / (sums[block] - before) * inside[-1]
    return block * _BLOCK + int(inside.searchsorted(min(part, np.nextafter(inside[-1], 0)), side="right"))


def _check(name: str, value: Any, expected: str, is_valid: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not is_valid(value):
        raise ModelError("bad value", where=name, expected=expected, got=repr(value))
