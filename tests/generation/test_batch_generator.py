"""Requests join and leave a running batch over a pool of pages: each gets the tokens that it gets alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hipdnn_mlir
from generation.conftest import TEXT, Exported
from hipdnn_mlir.generate import BatchGenerator, Request, TextGenerator, Token, decoder_program
from hipdnn_mlir.generate.batch import Batch
from hipdnn_mlir.generate.config import read_config
from hipdnn_mlir.generate.model_file import ModelFile
from hipdnn_mlir.generate.paged_decoder import Cached, PagedDecoder
from hipdnn_mlir.generate.pages import SPARE
from hipdnn_mlir_runtime.errors import DeviceError, ModelError

LENGTHS = [5, 17, 2, 40, 1, 33, 64, 12, 100, 7, 3, 25, 31, 32, 18, 9, 50, 4, 66, 11]
RANDOM = np.random.default_rng(0)
PROMPTS = [[int(token) for token in RANDOM.integers(3, 900, length)] for length in LENGTHS]
NEW = [int(count) for count in RANDOM.integers(5, 60, len(PROMPTS))]
PAGE_ROWS = 16
Alone = Callable[[Sequence[int], int], list[int]]


@pytest.fixture(scope="module")
def program(exported: Exported) -> hipdnn_mlir.Program:
    return hipdnn_mlir.compile(exported("llama") / "model.onnx", page_rows=PAGE_ROWS)


@pytest.fixture(scope="module")
def alone(exported: Exported, llama_program: hipdnn_mlir.Program) -> Iterator[Alone]:
    """What a text gets from a generator with a cache of its own."""
    with TextGenerator(exported("llama"), program=llama_program, max_length=256) as model:

        def generated(prompt: Sequence[int], count: int, **options: Any) -> list[int]:
            (one,) = model.generate(prompt, max_new_tokens=count, stop_tokens=(), **options)
            return list(one.tokens)

        yield generated


@pytest.fixture
def made(exported: Exported, program: hipdnn_mlir.Program) -> Iterator[Callable[..., BatchGenerator]]:
    """Make generators of the program; they are closed at the end."""
    found: list[BatchGenerator] = []

    def make(pages: int, **options: Any) -> BatchGenerator:
        options = {"program": program, "max_length": 256} | options
        found.append(BatchGenerator(exported("llama"), pages=pages, **options))
        return found[-1]

    yield make
    for one in found:
        one.close()


def _submit(
    model: BatchGenerator, prompts: Sequence[Sequence[int]], counts: Sequence[int], **options: Any
) -> list[Request]:
    options = {"stop_tokens": ()} | options
    with model._changed:  # the batch sees all of them at once
        return [
            model.submit(prompt, max_new_tokens=count, **options) for prompt, count in zip(prompts, counts, strict=True)
        ]


def _tokens(requests: Sequence[Request]) -> list[list[int]]:
    return [list(request.result().tokens) for request in requests]


def _steps_of(model: BatchGenerator, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How many texts each run from now on has, and how many tokens are new in the one with most of them."""
    runs: list[tuple[int, int]] = []
    run = PagedDecoder.run

    def recorded(self: PagedDecoder, texts: Sequence[Cached], rows: int) -> Any:
        runs.append((len(texts), max(text.pending for text in texts)))
        counts = model.counts
        assert counts.running >= len(texts)
        assert counts.pages_in_use == sum(len(request.text.pages) for request in model._batch._running) <= counts.pages
        taken = [page for request in model._batch._running for page in request.text.pages]
        assert len(set(taken)) == len(taken)
        assert SPARE not in taken
        return run(self, texts, rows)

    monkeypatch.setattr(PagedDecoder, "run", recorded)
    return runs


def _stopped_after(count: int, monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Let a number of runs happen, and the others when the event is set."""
    go, left = threading.Event(), iter(range(count))
    run = PagedDecoder.run

    def waiting(self: PagedDecoder, texts: Sequence[Cached], rows: int) -> Any:
        if next(left, None) is None:
            go.wait()
        return run(self, texts, rows)

    monkeypatch.setattr(PagedDecoder, "run", waiting)
    return go


def _of_genai(folder: Path) -> list[list[int]]:
    """What onnxruntime-genai gives on ONNX Runtime's CPU provider, each prompt alone."""
    og = pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
    from generation.generate import load

    model = load(str(folder), "cpu", threads=1)
    found = []
    for prompt, count in zip(PROMPTS, NEW, strict=True):
        params = og.GeneratorParams(model)
        length = len(prompt) + count
        params.set_search_options(max_length=length, min_length=length, do_sample=False)
        generator = og.Generator(model, params)
        generator.append_tokens([prompt])
        while not generator.is_done():
            generator.generate_next_token()
        found.append(generator.get_sequence(0).tolist()[len(prompt) :])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("family", ["llama", "qwen3", pytest.param("phi3", marks=pytest.mark.nightly)])
def test_each_request_gets_the_tokens_of_genai(
    family: str, exported: Exported, program: hipdnn_mlir.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = exported(family)
    how: dict[str, Any] = {"program": program} if family == "llama" else {"page_rows": PAGE_ROWS}
    with BatchGenerator(folder, pages=20, max_running=8, max_length=256, **how) as model:
        runs = _steps_of(model, monkeypatch)
        give = Request.give

        def given(request: Request, token: Token) -> None:
            assert token.finish_reason is None or not request.text.pages, "its pages are in use behind its last token"
            give(request, token)

        monkeypatch.setattr(Request, "give", given)
        requests = _submit(model, PROMPTS, NEW)
        got = _tokens(requests)
        counts = model.counts
    assert got == _of_genai(folder)
    assert (counts.running, counts.waiting, counts.pages_in_use, counts.pages) == (0, 0, 0, 20)
    assert max(texts for texts, _ in runs) > 2
    assert len(runs) < sum(NEW) / 2


# -- pages ---------------------------------------------------------------------------------------------------------------------------


def test_requests_wait_until_there_are_pages(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(8)
    go = _stopped_after(4, monkeypatch)
    long = [3 + index % 97 for index in range(100)]  # 7 of 8 pages
    requests = _submit(model, [long, long, PROMPTS[0]], [20, 20, 20])
    tokens = iter(requests[0])
    next(tokens)
    counts = model.counts
    assert (counts.running, counts.waiting) == (1, 2)  # the short one, which would fit, overtakes nobody
    assert counts.pages_in_use >= 7
    go.set()
    assert [token.finish_reason for token in tokens][-1] == "length"
    assert _tokens(requests[1:]) == [alone(long, 20), alone(PROMPTS[0], 20)]
    assert model.counts.pages_in_use == 0


def test_a_request_that_has_no_page_left_takes_one_from_the_last(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(6)
    runs = _steps_of(model, monkeypatch)
    prompts = [PROMPTS[0], PROMPTS[7], PROMPTS[2]]
    requests = _submit(model, prompts, [80, 70, 75])  # six pages each at their end
    assert _tokens(requests) == [alone(prompt, count) for prompt, count in zip(prompts, (80, 70, 75), strict=True)]
    assert sum(1 for _, pending in runs if pending > 1) > len(prompts)  # some were computed again
    assert model.counts.pages_in_use == 0


def test_draws_are_those_alone_when_a_text_is_computed_again(
    made: Callable[..., BatchGenerator], alone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"temperature": 1.5, "top_k": 40, "seed": 3}
    model = made(6)
    runs = _steps_of(model, monkeypatch)
    requests = _submit(model, PROMPTS[:3], [60, 60, 60], **options)
    assert _tokens(requests) == [alone(prompt, 60, **options) for prompt in PROMPTS[:3]]
    assert sum(1 for _, pending in runs if pending > 1) > 3


def test_a_request_that_can_never_fit_is_refused_at_once(made: Callable[..., BatchGenerator], alone: Alone) -> None:
    model = made(3)  # 48 tokens
    assert model.max_length == 48
    message = (
        r"max_new_tokens: no room for 44 tokens behind a prompt of 5, however long it waits: "
        r"expected at most 48 tokens in all: max_length, and what 3 pages hold"
    )
    with pytest.raises(ModelError, match=message):
        model.submit(PROMPTS[0], max_new_tokens=44)
    with pytest.raises(ModelError, match="no room for one token behind a prompt of 64"):
        model.submit(PROMPTS[6])
    fits = _submit(model, PROMPTS[:1], [43])
    ends_full = model.submit(PROMPTS[1], stop_tokens=())
    assert _tokens(fits) == [alone(PROMPTS[0], 43)]
    found = ends_full.result()
    assert (list(found.tokens), found.finish_reason) == (alone(PROMPTS[1], 31), "length")


def test_a_cancelled_request_leaves_its_pages(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(8, max_running=1)
    go = _stopped_after(5, monkeypatch)
    first, second, third = _submit(model, [PROMPTS[1], PROMPTS[0], PROMPTS[2]], [100, 100, 20])
    came = iter(first)
    begun = [next(came).id for _ in range(3)]
    second.cancel()  # while it waits
    first.cancel()
    go.set()
    rest = list(came)
    assert all(token.finish_reason is None for token in rest)
    assert begun + [token.id for token in rest] == alone(PROMPTS[1], len(begun) + len(rest))
    found = second.result()
    assert (found.tokens, found.finish_reason) == ((), "cancelled")
    assert _tokens([third]) == [alone(PROMPTS[2], 20)]
    third.cancel()  # it has ended
    assert third.result().tokens == ()
    counts = model.counts
    assert (counts.running, counts.waiting, counts.pages_in_use) == (0, 0, 0)


# -- runs ----------------------------------------------------------------------------------------------------------------------------


def test_draws_with_a_seed_do_not_depend_on_what_runs_beside(made: Callable[..., BatchGenerator], alone: Any) -> None:
    model = made(40)
    options = [{"temperature": 1.2, "top_p": 0.9, "seed": seed} for seed in range(6)]
    requests = [_submit(model, [PROMPTS[1]], [30], **each)[0] for each in options]
    assert _tokens(requests) == [alone(PROMPTS[1], 30, **each) for each in options]


def test_prompts_run_in_parts_between_steps(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoder_program, "CHUNK", 8)
    model = made(40)
    runs = _steps_of(model, monkeypatch)
    requests = _submit(model, [PROMPTS[0], PROMPTS[8]], [50, 10])
    assert _tokens(requests) == [alone(PROMPTS[0], 50), alone(PROMPTS[8], 10)]
    parts = [index for index, (_, pending) in enumerate(runs) if pending > 8]
    assert parts
    assert all(runs[index + 1] == (1, 1) for index in parts[:-1])  # a token of the short one after each part


def test_a_step_allocates_nothing_when_all_sizes_have_been_met(made: Callable[..., BatchGenerator]) -> None:
    model = made(40)
    came = [iter(request) for request in _submit(model, PROMPTS[:4], [100] * 4)]
    for tokens in came:
        for _ in range(10):
            next(tokens)
    decoder = model._batch._decoder
    before = (model._session.stats.specializations, dict(decoder._steps))
    for tokens in came:
        for _ in range(40):
            next(tokens)
    assert (model._session.stats.specializations, decoder._steps) == before


def test_threads_share_a_generator(made: Callable[..., BatchGenerator], alone: Alone) -> None:
    model = made(12)
    found: dict[int, list[int]] = {}

    def client(number: int) -> None:
        for index in range(number, len(PROMPTS), 4):
            (request,) = _submit(model, [PROMPTS[index]], [15])
            found[index] = [token.id for token in request]

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[index] for index in range(len(PROMPTS))] == [alone(prompt, 15) for prompt in PROMPTS]


def test_texts_come_in_pieces_and_stop_tokens_end_them(
    llama: Path, program: hipdnn_mlir.Program, llama_program: hipdnn_mlir.Program
) -> None:
    with TextGenerator(llama, program=llama_program, max_length=64) as model:
        (want,) = model.generate(TEXT[:30], max_new_tokens=20, stop_tokens=())
        (stopped,) = model.generate(TEXT[:30], max_new_tokens=20, stop_tokens=[want.tokens[5]])
    with BatchGenerator(llama, pages=8, program=program, max_length=64) as batch:
        request = batch.submit(TEXT[:30], max_new_tokens=20, stop_tokens=())
        pieces = [token.text for token in request]
        assert "".join(pieces) == want.text
        assert batch.submit(TEXT[:30], max_new_tokens=20, stop_tokens=[want.tokens[5]]).result() == stopped


FIXED = {"batch_size": 4, "sequence_length": 8, "total_sequence_length": 112, "pages": 13, "sequence_pages": 7}


def test_programs_of_fixed_sizes_give_the_same(exported: Exported, alone: Alone) -> None:
    """As for a GPU: prompts run in padded parts, whose padding goes to the spare page, and batches have rows without a text."""
    folder = exported("llama")
    program = hipdnn_mlir.compile(folder / "model.onnx", shapes=FIXED, page_rows=PAGE_ROWS)
    with BatchGenerator(folder, pages=12, max_running=3, program=program, max_length=112) as model:
        requests = _submit(model, PROMPTS[:8], [30] * 8)
        assert _tokens(requests) == [alone(prompt, 30) for prompt in PROMPTS[:8]]
    with pytest.raises(ModelError, match="pages: bad value: expected 12, as the program was compiled for, got 20"):
        BatchGenerator(folder, pages=20, program=program, max_length=112)
    with pytest.raises(ModelError, match="the program generates 4 texts at once, not 16"):
        BatchGenerator(folder, pages=12, program=program, max_length=112)
    with pytest.raises(ModelError, match="max_length: the program is for texts of 112 tokens"):
        BatchGenerator(folder, pages=12, program=program, max_length=200)


def test_programs_for_a_gpu_have_a_size_of_batch_for_a_prompt_and_for_steps(exported: Exported) -> None:
    file = ModelFile(read_config(exported("llama")))
    shapes, buckets = file.paged_sizes("sm_90", 16, 100, 40, 32)
    assert shapes == {"total_sequence_length": 100, "pages": 41, "sequence_pages": 4}
    assert buckets == {"sequence_length": [1, 16, 64], "batch_size": [1, 8, 16]}
    assert file.paged_sizes("host", 16, 100, 40, 32) == ({}, {})


# -- failures ------------------------------------------------------------------------------------------------------------------------


def test_a_request_that_cannot_run_harms_no_other(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PagedDecoder.run

    def failing(self: PagedDecoder, texts: Sequence[Cached], rows: int) -> Any:
        if any(text.tokens[:17] == PROMPTS[1] and len(text.tokens) > 20 for text in texts):
            raise DeviceError("the device does not like it")
        return run(self, texts, rows)

    monkeypatch.setattr(PagedDecoder, "run", failing)
    model = made(40)
    requests = _submit(model, PROMPTS[:4], [30] * 4)
    with pytest.raises(DeviceError, match="the device does not like it"):
        requests[1].result()
    assert _tokens([requests[0], *requests[2:]]) == [alone(PROMPTS[index], 30) for index in (0, 2, 3)]
    assert model.counts.pages_in_use == 0


def test_logits_that_are_no_numbers_harm_no_other(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PagedDecoder.run

    def broken(self: PagedDecoder, texts: Sequence[Cached], rows: int) -> Any:
        logits = run(self, texts, rows)
        for row, text in enumerate(texts):
            if text.tokens[:17] == PROMPTS[1] and len(text.tokens) > 20:
                logits[row] = np.nan
                for cache in self._caches.values():
                    cache[text.pages] = np.nan
        return logits

    monkeypatch.setattr(PagedDecoder, "run", broken)
    model = made(40)
    requests = _submit(model, PROMPTS[:4], [30] * 4)
    with pytest.raises(ModelError, match="logits that are not finite"):
        requests[1].result()
    assert _tokens([requests[0], *requests[2:]]) == [alone(PROMPTS[index], 30) for index in (0, 2, 3)]
    assert all(np.isfinite(cache).all() for cache in model._batch._decoder._caches.values())


def test_a_defect_is_told_to_all_and_later_requests_run(
    made: Callable[..., BatchGenerator], alone: Alone, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(40)
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "_admit", lambda self: 1 // 0)
        for request in _submit(model, PROMPTS[:2], [5, 5]):
            with pytest.raises(DeviceError, match="a step failed: ZeroDivisionError"):
                request.result()
    assert _tokens(_submit(model, PROMPTS[:1], [5])) == [alone(PROMPTS[0], 5)]


def test_closing_ends_what_runs_and_what_waits(
    made: Callable[..., BatchGenerator], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(8, max_running=1)
    go = _stopped_after(3, monkeypatch)
    requests = _submit(model, PROMPTS[:2], [100, 100])
    next(iter(requests[0]))
    threading.Timer(0.1, go.set).start()
    model.close()
    for request in requests:
        with pytest.raises(ModelError, match="the generator is closed; make a new one"):
            request.result()
    with pytest.raises(ModelError, match="the generator is closed"):
        model.submit(PROMPTS[0])


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([], {}, "an empty prompt: expected at least one token; begin with the model's first token"),
        ([3, 1000], {}, "no such token: expected numbers from 0 to 999, got 1000"),
        ("text", {}, "no tokenizer|cannot read it|not installed"),
        ([3], {"max_new_tokens": 0}, "max_new_tokens: bad value: expected a whole number from 1, got 0"),
        ([3], {"temperature": -1}, "temperature: bad value"),
        ([3], {"temperature": 0, "seed": 1}, "seed: no effect"),
        (None, {}, "no prompt: expected a text, or its tokens, got None"),
        ([3], {"max_new_tokens": 2.5}, "max_new_tokens: bad value: expected a whole number from 1, got 2.5"),
        ([3], {"stop_tokens": 5}, "stop_tokens: bad value: expected whole numbers, got 5"),
    ],
)
def test_bad_requests_are_refused_at_once(
    prompt: Any, options: dict[str, Any], message: str, made: Callable[..., BatchGenerator]
) -> None:
    model = made(8)
    if prompt == "text":
        model._tokenizer, model._missing = None, ModelError("no tokenizer.json")
    with pytest.raises(ModelError, match=message):
        model.submit(prompt, **options)
    assert model.counts.waiting == 0


@pytest.mark.parametrize("name", ["pages", "max_running", "page_rows"])
def test_bad_sizes_are_refused(name: str, exported: Exported) -> None:
    with pytest.raises(ModelError, match=f"{name}: bad value: expected a whole number from 1, got 0"):
        BatchGenerator(exported("llama"), **{"pages": 4, name: 0})


def test_more_pages_than_memory_are_refused(exported: Exported) -> None:
    program = hipdnn_mlir.compile(
        exported("llama") / "model.onnx", page_rows=32, last_valid={"logits": "attention_mask"}
    )
    with pytest.raises(ModelError, match=r"no memory for caches of \d+ bytes; ask for fewer tokens, texts or pages"):
        BatchGenerator(exported("llama"), program=program, pages=10**12)


def test_pages_of_another_size_than_the_programs_are_refused(made: Callable[..., BatchGenerator]) -> None:
    with pytest.raises(
        ModelError, match=f"page_rows: bad value: expected {PAGE_ROWS}, as the program was compiled for"
    ):
        made(4, page_rows=32)
    assert made(4, page_rows=PAGE_ROWS).max_length == 4 * PAGE_ROWS


def test_programs_without_pages_are_refused(exported: Exported, llama_program: hipdnn_mlir.Program) -> None:
    with pytest.raises(ModelError, match="the caches of the program are no pages; compile it with page_rows"):
        BatchGenerator(exported("llama"), pages=4, program=llama_program)


def test_programs_with_pages_are_refused_where_each_text_has_a_cache(
    exported: Exported, program: hipdnn_mlir.Program
) -> None:
    with pytest.raises(ModelError, match="the caches of the program are pages; use BatchGenerator"):
        TextGenerator(exported("llama"), program=program)


def test_texts_are_computed_alike_up_to_a_length(
    made: Callable[..., BatchGenerator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some models compute longer texts by another table of angles."""
    monkeypatch.setattr(ModelFile, "mask_lengths", lambda self: [100])
    with pytest.raises(ModelError, match=r"max_length: the model computes otherwise.*beyond 100 tokens.*at most 100"):
        made(40, max_length=101)
    made(40, max_length=100)
