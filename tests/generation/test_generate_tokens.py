"""Tokens are those of onnxruntime-genai on ONNX Runtime's CPU provider, alone and in batches; texts are continued and rewound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import hipdnn_mlir
from generation.conftest import Exported
from generation.decoders import LIMIT
from hipdnn_mlir.generate import Sequences, TextGenerator, decoder_program
from hipdnn_mlir.generate.decoder import Decoder
from hipdnn_mlir_runtime.errors import DeviceError, ModelError
from hipdnn_mlir_runtime.session.session import Session

PROMPTS = [[3 + index for index in range(5)], [50 + 3 * index % 90 for index in range(17)], [7, 9]]
NEW = 60


@pytest.fixture(scope="module")
def model(exported: Exported) -> Iterator[TextGenerator]:
    with TextGenerator(exported("llama"), max_length=128) as made:
        yield made


def _reference(folder: Path, prompts: list[list[int]], count: int) -> list[list[int]]:
    """What onnxruntime-genai generates greedily: prompts of a batch are padded on the right."""
    og = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
    from generation.generate import load

    model = load(str(folder), "cpu", threads=1)
    params = og.GeneratorParams(model)
    width = max(map(len, prompts))
    params.set_search_options(max_length=width + count, do_sample=False, batch_size=len(prompts))
    generator = og.Generator(model, params)
    generator.append_tokens([prompt + [0] * (width - len(prompt)) for prompt in prompts])
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(row).tolist()[width:] for row in range(len(prompts))]


def _generated(sequences: Sequences, count: int, **options: Any) -> list[list[int]]:
    made: list[list[int]] = [[] for _ in sequences.tokens]
    for token in sequences.stream(max_new_tokens=count, stop_tokens=(), **options):
        made[token.row].append(token.id)
    return made


@pytest.mark.parametrize(("said", "is_recorded"), [({}, True), ({"graph_capture": False}, False)])
def test_a_gpu_replays_steps_as_graphs_unless_told_otherwise(
    model: TextGenerator, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], is_recorded: bool
) -> None:
    opened = []

    def open_it(program: Any, **options: Any) -> Session:
        opened.append(options["graph_capture"])
        raise DeviceError("no GPU")

    monkeypatch.setattr(decoder_program, "Session", open_it)
    with pytest.raises(DeviceError, match="no GPU"):
        TextGenerator(model.config.folder, program="any.hipdnn", **said)
    assert opened == [is_recorded]


def _anew(model: TextGenerator, prompt: list[int], count: int) -> list[int]:
    (one,) = model.generate(prompt, max_new_tokens=count, stop_tokens=())
    return list(one.tokens)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "qwen3", "phi3-long"])
def test_tokens_are_those_of_genai(family: str, exported: Exported) -> None:
    folder = exported(family)
    with TextGenerator(folder) as model:
        made = model.generate(PROMPTS, max_new_tokens=NEW)
    batch = _reference(folder, PROMPTS, NEW)
    for prompt, one, other in zip(PROMPTS, made, batch, strict=True):
        (alone,) = _reference(folder, [prompt], NEW)
        count = len(one.tokens)
        assert one.prompt_tokens == len(prompt)
        assert list(one.tokens) == alone[:count] == other[:count]
        assert count == NEW or one.finish_reason == "stop"


def test_texts_of_a_batch_are_those_alone(model: TextGenerator) -> None:
    made = model.generate(PROMPTS, max_new_tokens=40, stop_tokens=())
    assert [list(one.tokens) for one in made] == [_anew(model, prompt, 40) for prompt in PROMPTS]


def test_prompts_are_the_same_in_parts(model: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [_anew(model, prompt, 10) for prompt in PROMPTS]
    monkeypatch.setattr(decoder_program, "CHUNK", 4)
    made = model.generate(PROMPTS, max_new_tokens=10, stop_tokens=())
    assert [list(one.tokens) for one in made] == want


def test_logits_of_the_last_valid_token_alone_are_those_of_the_model(
    model: TextGenerator, llama_program: hipdnn_mlir.Program
) -> None:
    with TextGenerator(model.config.folder, program=llama_program, max_length=128) as other:
        found = []
        for one in (model, other):
            sequences = one.start(3)
            sequences.append(PROMPTS)
            first = sequences.logits()
            sequences.append([[5], [6, 7, 8], []])
            found.append((first, sequences.logits()))
        assert model._session.outputs[0].shape[1] == 1
        assert other._session.outputs[0].shape[1] == "sequence_length"
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_a_step_is_one_specialization_whatever_the_length(model: TextGenerator) -> None:
    sequences = model.start()
    sequences.append(PROMPTS[0])
    _generated(sequences, 2)
    loaded = model._session.stats.specializations
    _generated(sequences, 50)
    assert model._session.stats.specializations == loaded


def test_a_continued_text_is_as_one_begun_anew(model: TextGenerator) -> None:
    sequences = model.start()
    text: list[int] = []
    for prompt in (PROMPTS[0], [20, 21, 22], [30]):
        sequences.append(prompt)
        text += prompt
        (made,) = _generated(sequences, 10)
        assert made == _anew(model, text, 10)
        text += made
        assert sequences.tokens == [text]


def test_rows_are_continued_by_prompts_of_different_lengths(model: TextGenerator) -> None:
    sequences = model.start(3)
    sequences.append(PROMPTS)
    first = _generated(sequences, 5)
    more = [[11], [], [40, 41, 42, 43, 44, 45]]
    sequences.append(more)
    second = _generated(sequences, 10)
    for prompt, made, added, found in zip(PROMPTS, first, more, second, strict=True):
        assert found == _anew(model, prompt + made + added, 10)


def test_a_rewound_text_is_as_one_begun_anew(model: TextGenerator) -> None:
    sequences = model.start()
    sequences.append(PROMPTS[1])
    (first,) = _generated(sequences, 20)
    sequences.rewind_to(len(PROMPTS[1]) + 4)
    assert _generated(sequences, 16) == [first[4:]]
    sequences.rewind_to(6)
    sequences.append([99, 98])
    assert _generated(sequences, 10) == [_anew(model, [*PROMPTS[1][:6], 99, 98], 10)]
    sequences.rewind_to(0)
    sequences.append(PROMPTS[0])
    assert _generated(sequences, 10) == [_anew(model, PROMPTS[0], 10)]


def test_rows_are_rewound_to_different_lengths(model: TextGenerator) -> None:
    sequences = model.start(3)
    sequences.append(PROMPTS)
    _generated(sequences, 8)
    kept = [tokens[:length] for tokens, length in zip(sequences.tokens, (3, 20, 10), strict=True)]
    sequences.rewind_to([3, 20, 10])
    assert sequences.tokens == kept
    assert _generated(sequences, 10) == [_anew(model, tokens, 10) for tokens in kept]


def test_texts_are_generated_in_turns(model: TextGenerator) -> None:
    sequences = [model.start(), model.start()]
    streams = []
    for one, prompt in zip(sequences, PROMPTS, strict=False):
        one.append(prompt)
        streams.append(one.stream(max_new_tokens=15, stop_tokens=()))
    made = [(a.id, b.id) for a, b in zip(*streams, strict=True)]
    assert [list(one) for one in zip(*made, strict=True)] == [_anew(model, prompt, 15) for prompt in PROMPTS[:2]]


@pytest.mark.slow
def test_a_text_beyond_the_shorter_table_of_angles_is_as_one_begun_anew(exported: Exported) -> None:
    """The model takes another table for a longer text: keys in the cache were turned by the angles of the first."""
    with TextGenerator(exported("phi3-long"), max_length=LIMIT + 60) as model:
        sequences = model.start()
        sequences.append([3 + index % 97 for index in range(LIMIT - 10)])
        _generated(sequences, 20)
        beyond = sequences.tokens[0]
        assert _generated(sequences, 20) == [_anew(model, beyond, 20)]
        sequences.rewind_to(50)
        assert _generated(sequences, 20) == [_anew(model, beyond[:50], 20)]
    with TextGenerator(exported("phi3-long"), max_length=LIMIT) as short:
        assert _anew(short, beyond[:50], 20) == _reference(exported("phi3-long"), [beyond[:50]], 20)[0]


CACHES = {"past_sequence_length": 64, "total_sequence_length": 64}


@pytest.fixture(scope="module", params=[1, 4])
def fixed(exported: Exported, request: pytest.FixtureRequest) -> Iterator[TextGenerator]:
    """A program as for a GPU: all sizes are numbers, the tokens of a run are 1 or 4."""
    folder = exported("llama")
    shapes = {"batch_size": 2, "sequence_length": request.param, **CACHES}
    program = hipdnn_mlir.compile(folder / "model.onnx", shapes=shapes)
    with TextGenerator(folder, program=program, max_length=64) as made:
        yield made


@pytest.mark.parametrize("count", [1, 2])
def test_programs_of_fixed_sizes_generate_the_same(model: TextGenerator, fixed: TextGenerator, count: int) -> None:
    made = fixed.generate(PROMPTS[:count], max_new_tokens=20, stop_tokens=())
    assert [list(one.tokens) for one in made] == [_anew(model, prompt, 20) for prompt in PROMPTS[:count]]
    sequences = fixed.start(count)
    sequences.append(PROMPTS[:count])
    _generated(sequences, 5)
    sequences.append([[5, 6, 7, 8, 9, 10, 11]] * count)
    text = sequences.tokens
    assert _generated(sequences, 20) == [_anew(model, tokens, 20) for tokens in text]


@pytest.mark.parametrize(("pending", "window"), [(1, 1), (2, 4), (4, 4), (5, 16), (40, 16)])
def test_windows_are_the_least_bucket_with_room(fixed: TextGenerator, pending: int, window: int) -> None:
    session = SimpleNamespace(
        inputs=[replace(port, shape=(2, "s")) if port.name == "input_ids" else port for port in fixed._session.inputs],
        outputs=fixed._session.outputs,
        buckets={"s": [1, 4, 16, 100]},
    )
    decoder = Decoder(cast("Session", session), fixed.config, 64, [])
    assert decoder.window(pending) == window
    assert decoder.windows() == [16, 4, 1]


def test_running_all_windows_leaves_nothing_behind(fixed: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    want = [completion.tokens for completion in fixed.generate(PROMPTS[:2], max_new_tokens=8)]
    sizes = []
    bind = fixed._decoder.bind
    monkeypatch.setattr(
        fixed._decoder, "bind", lambda tokens, *more: sizes.append(tokens.shape[1]) or bind(tokens, *more)
    )
    fixed._run_windows()  # as it is loaded for a GPU
    assert set(sizes) == set(fixed._decoder.windows())
    assert [completion.tokens for completion in fixed.generate(PROMPTS[:2], max_new_tokens=8)] == want


def test_programs_of_fixed_sizes_refuse_what_is_larger(exported: Exported, fixed: TextGenerator) -> None:
    with pytest.raises(ModelError, match="batch_size: the program generates 2 texts at once, not 3"):
        fixed.generate(PROMPTS, max_new_tokens=4)
    with pytest.raises(ModelError, match=r"the program is for 64 tokens in a cache.*expected at least 100"):
        Decoder(fixed._session, fixed.config, 100, [])
    with pytest.raises(ModelError, match="masks of 64, 64: expected at least 64, and masks of 32, 64"):
        Decoder(fixed._session, fixed.config, 64, [32])


def test_an_error_of_a_run_leaves_texts_as_they_are(model: TextGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = {3, 4, 9}
    runs = iter(range(100))
    bind = Decoder.bind

    def bound(self: Decoder, *arrays: Any) -> Any:
        run = bind(self, *arrays)

        def tried() -> None:
            if next(runs) in failing:
                arrays[3].fill(7)  # logits, and a part of what the run would have written
                raise DeviceError("the device is gone")
            run()

        return tried

    monkeypatch.setattr(Decoder, "bind", bound)
    sequences = model.start(2)
    sequences.append(PROMPTS[:2])
    length = [len(prompt) for prompt in PROMPTS[:2]]
    errors = 0
    while min(map(len, sequences.tokens)) < max(length) + 15:
        try:
            _generated(sequences, 4)
        except DeviceError:
            errors += 1
    assert errors == len(failing)
    monkeypatch.setattr(Decoder, "bind", bind)
    for prompt, tokens in zip(PROMPTS, sequences.tokens, strict=False):
        assert tokens[len(prompt) :] == _anew(model, prompt, len(tokens) - len(prompt))


def test_no_token_behind_the_first_waits_for_arrays_or_sizes(
    model: TextGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = model.stream(PROMPTS[0], max_new_tokens=4)
    next(tokens)

    def unexpected(*_: object) -> None:
        raise AssertionError("arrays are bound behind the first token")

    monkeypatch.setattr(Decoder, "bind", unexpected)
    assert len(list(tokens)) == 3


def test_draws_repeat_with_a_seed_and_do_not_depend_on_other_rows(model: TextGenerator) -> None:
    def drawn(prompts: list[list[int]], seed: int | None) -> list[tuple[int, ...]]:
        made = model.generate(prompts, max_new_tokens=20, stop_tokens=(), temperature=1.5, top_k=40, seed=seed)
        return [one.tokens for one in made]

    assert drawn(PROMPTS, 1) == drawn(PROMPTS, 1)
    assert drawn(PROMPTS, 1) != drawn(PROMPTS, 2)
    assert drawn(PROMPTS[:1], 1) == drawn(PROMPTS, 1)[:1]
    assert drawn([PROMPTS[0]], None) != drawn([PROMPTS[0]], None)


def test_one_candidate_is_greedy(model: TextGenerator) -> None:
    made = model.generate(PROMPTS, max_new_tokens=20, stop_tokens=(), top_k=1, temperature=2.0)
    assert [list(one.tokens) for one in made] == [_anew(model, prompt, 20) for prompt in PROMPTS]


def test_a_stop_token_ends_its_text_alone(model: TextGenerator) -> None:
    want = [_anew(model, prompt, 20) for prompt in PROMPTS]
    stop = want[0][7]
    made = model.generate(PROMPTS, max_new_tokens=20, stop_tokens=[stop])
    for tokens, one in zip(want, made, strict=True):
        end = tokens.index(stop) + 1 if stop in tokens else len(tokens)
        assert list(one.tokens) == tokens[:end]
        assert one.finish_reason == ("stop" if stop in tokens else "length")


def test_a_text_ends_where_the_caches_are_full(model: TextGenerator) -> None:
    sequences = model.start(2)
    sequences.append([PROMPTS[0], [3 + index % 97 for index in range(120)]])
    made = list(sequences.stream(stop_tokens=()))
    assert [len(tokens) for tokens in sequences.tokens] == [128, 128]
    assert [token.finish_reason for token in made if token.row == 1] == [None] * 7 + ["length"]
    assert list(sequences.stream()) == []
    assert [token.id for token in made if token.row == 0] == _anew(model, PROMPTS[0], 123)
