"""The next token is drawn from what temperature, top-k, top-p and the penalty leave: against transformers, and against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hipdnn_mlir.generate.config import Search
from hipdnn_mlir.generate.sampling import Sampling
from hipdnn_mlir_runtime.errors import ModelError

VOCABULARY = 200
SETTINGS = [
    {"temperature": 1.0},
    {"temperature": 0.3},
    {"temperature": 2.5, "top_k": 7},
    {"temperature": 1.0, "top_p": 0.6},
    {"temperature": 0.8, "top_k": 20, "top_p": 0.9},
    {"temperature": 1.0, "top_k": 1000, "top_p": 0.05},
    {"temperature": 1.3, "top_p": 0.95, "repetition_penalty": 1.7},
    {"temperature": 1.0, "top_k": 3, "repetition_penalty": 0.5},
]


def _logits(seed: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).normal(0, 3, VOCABULARY).astype(np.float32)


def _whole(sampling: Sampling, logits: np.ndarray[Any, Any], seen: list[int]) -> np.ndarray[Any, Any]:
    tokens, probabilities = sampling.distribution(logits, seen)
    assert len(set(tokens.tolist())) == len(tokens)
    whole = np.zeros(len(logits))
    whole[tokens] = probabilities
    return whole


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_probabilities_are_those_of_transformers(settings: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install '.[export]'")
    seen = [3, 3, 9, 100]
    steps: list[Any] = []
    if "repetition_penalty" in settings:
        steps.append(transformers.RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"]))
    steps.append(transformers.TemperatureLogitsWarper(settings["temperature"]))
    if "top_k" in settings:
        steps.append(transformers.TopKLogitsWarper(settings["top_k"]))
    if "top_p" in settings:
        steps.append(transformers.TopPLogitsWarper(settings["top_p"]))
    for seed in range(20):
        logits = _logits(seed)
        scores = torch.tensor(logits).double()[None]
        for step in steps:
            scores = step(torch.tensor([seen]), scores)
        want = scores.softmax(-1)[0].numpy()
        np.testing.assert_allclose(_whole(Sampling(**settings), logits, seen), want, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("top_p", [0.01, 0.3, 0.9, 0.999, 1.0])
def test_nucleus_is_the_smallest_set_with_the_mass(top_p: float) -> None:
    for seed in range(20):
        logits = _logits(seed).astype(np.float64)
        chances = np.exp(logits) / np.exp(logits).sum()
        got = _whole(Sampling(temperature=1.0, top_p=top_p), logits, [])
        kept = got > 0
        assert chances[kept].sum() >= top_p * (1 - 1e-12)
        assert chances[kept].sum() - chances[kept].min() < top_p
        assert chances[kept].min() >= chances[~kept].max(initial=0)
        np.testing.assert_allclose(got[kept], chances[kept] / chances[kept].sum(), rtol=1e-10)


def test_draws_have_the_frequencies_of_the_probabilities() -> None:
    sampling = Sampling(temperature=1.2, top_k=12, seed=5)
    logits = np.linspace(0, 3, 50, dtype=np.float32)
    random, count = sampling.random(0), 20000
    drawn = np.bincount([sampling.choose(logits, [], random) for _ in range(count)], minlength=50)
    chances = _whole(sampling, logits, [])
    assert (drawn[chances == 0] == 0).all()
    sigma = np.sqrt(count * chances * (1 - chances))
    assert (np.abs(drawn - count * chances) <= 5 * sigma).all()


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_top_1_is_greedy_when_logits_are_equal_too(temperature: float) -> None:
    for seed in range(20):
        logits = np.round(_logits(seed))
        sampling = Sampling(temperature=temperature, top_k=1)
        want = Sampling().choose(logits, [], sampling.random(0))
        assert want == int(np.flatnonzero(logits == logits.max())[0])
        assert sampling.choose(logits, [], sampling.random(0)) == want


@pytest.mark.parametrize(
    ("sampling", "want"),
    [
        (Sampling(temperature=1e-310), 1),
        (Sampling(temperature=1e-310, top_p=0.5), 1),
        (Sampling(temperature=1.0, repetition_penalty=1e-45), 3),
        (Sampling(temperature=1.0, repetition_penalty=1e-320), 3),
        (Sampling(temperature=1e-310, repetition_penalty=1e300), 1),
        (Sampling(repetition_penalty=1e-45), 3),
    ],
    ids=str,
)
def test_extreme_values_choose_what_they_are_the_limit_of(sampling: Sampling, want: int) -> None:
    logits = np.array([-1, 5, -2, 0.5, -np.inf], np.float32)
    assert {sampling.choose(logits, [2, 3], sampling.random(row)) for row in range(5)} == {want}


def test_seeds_repeat_and_rows_have_numbers_of_their_own() -> None:
    logits = _logits(0)

    def drawn(seed: int | None, row: int) -> list[int]:
        sampling = Sampling(temperature=3.0, seed=seed)
        random = sampling.random(row)
        return [sampling.choose(logits, [], random) for _ in range(20)]

    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(1, 1)
    assert drawn(1, 0) != drawn(2, 0)
    assert drawn(None, 0) != drawn(None, 0)


FOLDER = Search(do_sample=True, temperature=0.7, top_k=50, top_p=0.9, repetition_penalty=1.1)


@pytest.mark.parametrize(
    ("search", "given", "want"),
    [
        (Search(), {}, Sampling()),
        (Search(temperature=0.7, top_k=50), {}, Sampling()),
        (Search(temperature=0.7, top_k=50), {"seed": 3}, Sampling(0.7, 50, 1.0, 3)),
        (Search(top_k=50), {"top_p": 0.5}, Sampling(1.0, 50, 0.5)),
        (Search(top_k=50), {"top_k": 0}, Sampling(1.0, 0)),
        (FOLDER, {}, Sampling(0.7, 50, 0.9, None, 1.1)),
        (FOLDER, {"temperature": 0}, Sampling(repetition_penalty=1.1)),
        (FOLDER, {"temperature": 0.0, "repetition_penalty": 1.0}, Sampling()),
        (Search(repetition_penalty=1.1), {"temperature": None}, Sampling(repetition_penalty=1.1)),
    ],
    ids=str,
)
def test_what_is_not_said_is_as_in_the_folder(search: Search, given: dict[str, Any], want: Sampling) -> None:
    assert Sampling.of(search, **given) == want


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"temperature": -0.1}, "temperature: bad value: expected a number from 0, got -0.1"),
        ({"temperature": float("nan")}, "temperature: bad value: expected a number from 0, got nan"),
        ({"temperature": 10**400}, "temperature: bad value: expected a number from 0, got 1000"),
        ({"temperature": "hot"}, "temperature: bad value: expected a number from 0, got 'hot'"),
        ({"top_p": 0}, "top_p: bad value: expected a number above 0, up to 1, got 0"),
        ({"top_p": 1.01}, "top_p: bad value: expected a number above 0, up to 1, got 1.01"),
        ({"top_k": -1}, "top_k: bad value: expected a whole number from 0, got -1"),
        ({"top_k": 2.5}, "top_k: bad value: expected a whole number from 0, got 2.5"),
        ({"seed": -1}, "seed: bad value: expected a whole number from 0, got -1"),
        ({"seed": ""}, "seed: bad value: expected a whole number from 0, got ''"),
        ({"repetition_penalty": 10**400}, "repetition_penalty: bad value: expected a number above 0, got 1000"),
        ({"repetition_penalty": 0}, "repetition_penalty: bad value: expected a number above 0, got 0"),
        ({"temperature": np.float32("inf")}, "temperature: bad value: expected a number from 0, got inf"),
        ({"temperature": np.complex64(1)}, "temperature: bad value: expected a number from 0, got (1+0j)"),
        (
            {"repetition_penalty": np.float16("inf")},
            "repetition_penalty: bad value: expected a number above 0, got inf",
        ),
        ({"temperature": 0, "top_p": 0.5}, "top_p: no effect, since temperature 0 takes the most likely token"),
    ],
    ids=str,
)
def test_values_out_of_range_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError) as caught:
        Sampling.of(Search(), **given)
    assert str(caught.value).startswith(message)


def test_a_value_of_the_folder_is_refused_where_it_counts_and_by_its_place() -> None:
    search = Search(temperature=-1, repetition_penalty=0, where="genai_config.json: search.")
    with pytest.raises(
        ModelError, match=r"^genai_config.json: search.temperature: bad value: expected a number from 0"
    ):
        Sampling.of(search, seed=1)
    with pytest.raises(ModelError, match=r"^genai_config.json: search.repetition_penalty: bad value"):
        Sampling.of(search)
    assert Sampling.of(search, repetition_penalty=1) == Sampling()
    with pytest.raises(ModelError, match=r"^temperature: bad value"):
        Sampling.of(search, temperature=-2, repetition_penalty=1)


@pytest.mark.parametrize("given", [{"top_k": 50}, {"seed": 1}, {"top_p": 0.9, "top_k": 3}])
def test_drawing_from_a_folder_whose_temperature_is_0_is_refused(given: dict[str, Any]) -> None:
    search = Search(temperature=0, where="genai_config.json: search.")
    with pytest.raises(ModelError, match=r"no effect, since genai_config.json: search.temperature is 0, which takes"):
        Sampling.of(search, **given)
    assert Sampling.of(search, **given, temperature=0.5).temperature == 0.5
    assert Sampling.of(search) == Sampling()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_numbers_of_numpy_are_as_those_of_python(kind: Any) -> None:
    given = {"temperature": 0.5, "top_p": 0.75, "repetition_penalty": 1.5}
    want = Sampling(**given, top_k=5, seed=1)
    assert Sampling(**{name: kind(value) for name, value in given.items()}, top_k=np.int32(5), seed=np.int64(1)) == want  # type: ignore[arg-type]


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'temprature': expected one of .*temperature, top_k"):
        Sampling.of(Search(), temprature=0.5)  # type: ignore[call-arg]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=1.0)], ids=["greedy", "drawn"])
def test_logits_that_are_not_finite_are_an_error(sampling: Sampling, bad: float) -> None:
    logits = _logits(0)
    logits[17] = bad
    with pytest.raises(ModelError, match="the model gave logits that are not finite"):
        sampling.choose(logits, [], sampling.random(0))
