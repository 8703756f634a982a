"""Caches that a model grows by Concat, through sessions and the provider: one buffer, written in place, against ONNX Runtime."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from generation.growing import HEAD, HEADS, MASKS, decode, first_feeds, growing_model, mask_of, pieces_of
from hipdnn_mlir.program.file import write
from hipdnn_mlir.program.schema import Cache, SizedInput
from hipdnn_mlir_runtime.errors import ModelError, ProgramError
from hipdnn_mlir_runtime.session import growing
from hipdnn_mlir_runtime.session.profiling.profile import profile
from hipdnn_mlir_runtime.session.session import Session
from ort_ep.sessions import make_session

COUNTS = (5, *[1] * 12, 4, *[1] * 50)
"""A prompt, steps, more of a prompt, steps."""


def _reference(model: onnx.ModelProto) -> Any:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


@functools.cache
def compiled_with(masks: str) -> tuple[onnx.ModelProto, hipdnn_mlir.Program]:
    grown = growing_model(masks)
    return grown, hipdnn_mlir.compile(grown)


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return compiled_with("flags")[0]


@pytest.fixture(scope="module")
def program() -> hipdnn_mlir.Program:
    return compiled_with("flags")[1]


@pytest.fixture
def session(program: hipdnn_mlir.Program) -> Session:
    return program.session()


def _assert_equal(got: tuple[Sequence[Any], dict[str, Any]], want: tuple[Sequence[Any], dict[str, Any]]) -> None:
    for mine, theirs in zip(got[0], want[0], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    for name, cache in want[1].items():
        np.testing.assert_allclose(got[1][name], cache, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("masks", MASKS)
def test_one_specialization_serves_all_lengths(masks: str, batch: int) -> None:
    grown, compiled = compiled_with(masks)
    session = compiled.session()
    pieces, padded = pieces_of(batch, COUNTS), 2 if batch > 1 and masks not in ("none", "window") else 0
    _assert_equal(decode(session, pieces, padded), decode(_reference(grown), pieces, padded))
    assert session.stats.specializations == len(set(COUNTS))


@pytest.mark.parametrize("masks", ["flags", "by index"])
def test_logits_of_the_last_valid_position_alone(masks: str) -> None:
    """Of prompts that are padded behind their end, of steps behind them, and of more than one token."""
    grown = growing_model(masks)
    compiled = hipdnn_mlir.compile(grown, last_valid={"logits": "attention_mask"})
    assert compiled.model.growing is not None
    ours, reference = compiled.session(), _reference(grown)
    caches, total = [first_feeds(session, 2) for session in (ours, reference)], 0
    mask = np.zeros((2, 0), np.int64)
    for piece, valid in zip(pieces_of(2, (5, 1, 4)), ([5, 3], [1, 1], [2, 4]), strict=True):
        total += piece.shape[1]
        mask = np.concatenate([mask, np.arange(piece.shape[1]) < np.array(valid)[:, None]], axis=1, dtype=np.int64)
        results = []
        for number, session in enumerate((ours, reference)):
            names = [port.name for port in session.get_outputs()]
            feeds = {"input_ids": piece, "attention_mask": mask, **caches[number]}
            made = dict(zip(names, session.run(None, feeds), strict=True))
            caches[number] = {name: made[name.replace("past_key_values", "present")] for name in caches[number]}
            results.append(made["logits"])
        want = results[1][np.arange(2), np.array(valid) - 1]
        np.testing.assert_allclose(results[0], want[:, None], rtol=1e-4, atol=1e-5)
    assert {cache.shape[2] for cache in caches[0].values()} == {total}


def test_queries_share_keys() -> None:
    grown = growing_model("by index", heads=2)
    compiled = hipdnn_mlir.compile(grown)
    _assert_equal(decode(compiled.session(), pieces_of(2, COUNTS)), decode(_reference(grown), pieces_of(2, COUNTS)))
    executed = [compiled.model.summary(step) for step in compiled.model.steps]
    assert executed.count("sdpa_fwd") == 2


def test_caches_are_written_in_place_and_read_by_attention_alone(program: hipdnn_mlir.Program) -> None:
    made = program.model
    summaries = [made.summary(step) for step in made.steps]
    assert summaries.count("cache_update") == 4
    assert summaries.count("sdpa_fwd") == 2
    assert made.copies == 0
    caches = {port.buffer for port in made.inputs if port.name.startswith("past_key")}
    caches |= {port.buffer for port in made.outputs if port.name.startswith("present")}
    readers = {
        made.summary(step) for step in made.steps for place in getattr(step, "operands", ()) if place.buffer in caches
    }
    assert readers == {"cache_update", "sdpa_fwd"}


def test_outputs_that_are_handed_back_are_one_buffer(session: Session) -> None:
    pieces = pieces_of(1, (4, 1, 1))
    memory = []
    decode(session, pieces, change={index: lambda cache: memory.append(cache) or cache for index in (1, 2)})
    first, second = memory[: len(memory) // 2], memory[len(memory) // 2 :]
    assert len(first) == 4
    for before, after in zip(first, second, strict=True):
        assert np.shares_memory(before, after)
        assert before.shape[2] + 1 == after.shape[2]


@pytest.mark.parametrize(
    "change",
    [
        lambda cache: cache[[1, 0, 1]],
        lambda cache: cache.copy(),
        lambda cache: cache[:, :, :-2],
        lambda cache: np.asfortranarray(cache),
    ],
    ids=["beams that change places", "a copy", "fewer rows", "another layout"],
)
def test_a_past_of_the_callers_own_is_taken_once(
    change: Callable[[np.ndarray], np.ndarray], model: onnx.ModelProto, session: Session
) -> None:
    pieces = pieces_of(3, (4, 1, 1, 1, 1))
    reference = _reference(model)
    results = []
    for each in (session, reference):
        caches, names = first_feeds(each, 3), [port.name for port in each.get_outputs()]
        found = []
        for index, piece in enumerate(pieces):
            if index == 3:
                caches = {name: change(cache) for name, cache in caches.items()}
            total = caches["past_key_values.0.key"].shape[2] + piece.shape[1]
            feeds = {"input_ids": piece, **mask_of(each, 3, piece.shape[1], total, 0), **caches}
            made = dict(zip(names, each.run(None, feeds), strict=True))
            caches = {name: made[name.replace("past_key_values", "present")] for name in caches}
            found.append(made["logits"])
        results.append((found, caches))
    _assert_equal(*results)


def test_buffers_of_pytorch_are_known_by_their_views(
    model: onnx.ModelProto, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, with tensors of the host."""
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install '.[export]'")
    monkeypatch.setattr(growing, "zeros", lambda dims, port, device: torch.zeros(dims))
    seen: list[Any] = []

    def kept(cache: Any) -> Any:
        seen.append(cache)
        return cache

    change = {1: kept, 2: kept, 4: lambda cache: cache[[1, 0]], 6: lambda cache: cache.numpy()}
    pieces = pieces_of(2, (4, *[1] * 6))
    got = decode(session, pieces, change=change)
    _assert_equal(got, decode(_reference(model), pieces, change={4: change[4]}))
    feeds = {"input_ids": np.array([[3], [5]]), **mask_of(session, 2, 1, 11, 0), **got[1]}
    out = {"present.0.key": np.empty((2, HEADS, 11, HEAD), np.float32)}
    assert session.run(["present.0.key"], feeds, out=out)[0] is out["present.0.key"]
    np.testing.assert_array_equal(out["present.0.key"][:, :, :10], got[1]["past_key_values.0.key"])
    assert {type(cache) for cache in seen} == {torch.Tensor}
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    assert [cache.data_ptr() for cache in first] == [cache.data_ptr() for cache in second]


def test_arrays_that_were_returned_stay_as_they_are(session: Session, model: onnx.ModelProto) -> None:
    """The same past goes on in two ways, one after the other."""
    prompt, one, other = pieces_of(1, (4,))[0], np.array([[7]]), np.array([[9]])
    _, caches = decode(session, [prompt])
    before = {name: cache.copy() for name, cache in caches.items()}

    def step(token: np.ndarray) -> list[np.ndarray]:
        return session.run(None, {"input_ids": token, **mask_of(session, 1, 1, 5, 0), **caches})

    first = step(one)
    kept = [array.copy() for array in first]
    second = step(other)
    for name, cache in caches.items():
        np.testing.assert_array_equal(cache, before[name])
    for array, was in zip(first, kept, strict=True):
        np.testing.assert_array_equal(array, was)
    want = decode(_reference(model), [prompt, other])[0][-1]
    np.testing.assert_allclose(second[0][:, -1], want, rtol=1e-4, atol=1e-5)


def test_threads_that_hand_back_the_same_past_do_not_meet(session: Session) -> None:
    _, caches = decode(session, pieces_of(1, (4,)))
    tokens = [np.array([[token]]) for token in range(16)]

    def step(token: np.ndarray) -> np.ndarray:
        return session.run(["logits"], {"input_ids": token, **mask_of(session, 1, 1, 5, 0), **caches})[0]

    alone = [step(token) for token in tokens]
    with ThreadPoolExecutor(4) as pool:
        for got, want in zip(pool.map(step, tokens), alone, strict=True):
            np.testing.assert_array_equal(got, want)


def test_a_text_outgrows_its_buffers(session: Session, model: onnx.ModelProto) -> None:
    pieces = pieces_of(1, (300, 600, 1, 200, 1, 1))
    _assert_equal(decode(session, pieces), decode(_reference(model), pieces))


def test_arrays_of_the_callers_get_the_outputs(session: Session) -> None:
    _, caches = decode(session, pieces_of(1, (4,)))
    feeds = {"input_ids": np.array([[3]]), **mask_of(session, 1, 1, 5, 0), **caches}
    out = {"present.0.key": np.empty((1, HEADS, 5, HEAD), np.float32), "logits": np.empty((1, 1, 60), np.float32)}
    want = session.run(None, feeds)
    got = session.run(["present.0.key", "logits"], feeds, out=out)
    assert got[0] is out["present.0.key"]
    np.testing.assert_array_equal(got[0], want[1])
    np.testing.assert_array_equal(out["logits"], want[0])


def test_sizes_are_those_of_the_model(session: Session) -> None:
    shapes = {port.name: str(port) for port in (*session.inputs, *session.outputs)}
    assert shapes["attention_mask"] == "i64[b,p + s]"
    assert shapes["past_key_values.1.value"] == f"f32[b,{HEADS},p,{HEAD}]"
    assert shapes["present.1.value"] == f"f32[b,{HEADS},p + s,{HEAD}]"
    dims = {port.name: [2, HEADS, 6, HEAD] for port in session.inputs if port.name.startswith("past")}
    found = session.output_shapes({"input_ids": [2, 3], "attention_mask": [2, 9], **dims})
    assert found["present.0.key"] == (2, HEADS, 9, HEAD)


def test_steps_are_measured_on_buffers(session: Session) -> None:
    _, caches = decode(session, pieces_of(1, (4,)))
    found = profile(
        session, {"input_ids": np.array([[3]]), **mask_of(session, 1, 1, 5, 0), **caches}, warmup=0, repeat=1
    )
    assert found.inputs["past_length"] == "i64[1]"
    assert found.inputs["past_key_values.0.key"] == f"f32[1,{HEADS},1024,{HEAD}]"


WRONG = {
    "of a type": ({"past_key_values.0.key": np.zeros((1, HEADS, 4, HEAD), np.float16)}, "wrong array for a cache.*float16"),
    "of other heads": ({"past_key_values.1.value": np.zeros((1, 2, 4, HEAD), np.float32)}, "array for a cache.*1.value"),
    "of three dims": ({"past_key_values.0.key": np.zeros((HEADS, 4, HEAD), np.float32)}, "wrong array for a cache"),
    "of fewer rows": ({"past_key_values.1.key": np.zeros((1, HEADS, 3, HEAD), np.float32)}, "caches of different batch or length.*1 x 3"),
    "of a larger batch": ({"past_key_values.1.key": np.zeros((2, HEADS, 4, HEAD), np.float32)}, "caches of different batch or length"),
    "with a mask that is too short": ({"attention_mask": np.ones((1, 4), np.int64)}, "expected 5 in dim 1: 4 rows .* 1 new, got 1x4"),
    "with a mask that is too long": ({"attention_mask": np.ones((1, 6), np.int64)}, "the length does not fit the caches"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_past_that_does_not_fit_is_refused_and_the_state_stays(
    case: str, session: Session, model: onnx.ModelProto
) -> None:
    changed, message = WRONG[case]
    pieces = pieces_of(1, (4, 1))
    _, caches = decode(session, pieces[:1])
    feeds = {"input_ids": pieces[1], **mask_of(session, 1, 1, 5, 0), **caches}
    with pytest.raises(ModelError, match=message):
        session.run(None, {**feeds, **changed})
    got = session.run(None, feeds)
    want = decode(_reference(model), pieces)[0][-1]
    np.testing.assert_allclose(got[0][:, -1], want, rtol=1e-4, atol=1e-5)
    assert np.shares_memory(got[1], caches["past_key_values.0.key"])


def test_a_run_that_fails_gives_its_rows_back(session: Session) -> None:
    _, caches = decode(session, pieces_of(1, (4,)))
    feeds = {"input_ids": np.array([[3]]), **mask_of(session, 1, 1, 5, 0), **caches}
    with pytest.raises(ModelError, match="input_ids"):
        session.run(None, {**feeds, "input_ids": np.array([[3.0]])})
    assert np.shares_memory(session.run(None, feeds)[1], caches["past_key_values.0.key"])


MORE = {
    "a sum over keys": lambda g, cache: g("ReduceSum", cache, [2]),
    "the whole cache": lambda g, cache: g("Neg", cache),
    "keys in another order": lambda g, cache: g("Slice", cache, [-1], [-100000], [2], [-1]),
}
"""What a model does with a cache beside attention."""


@pytest.mark.parametrize("case", MORE)
def test_a_model_that_does_more_with_its_caches_is_compiled_as_it_is(case: str) -> None:
    grown = growing_model(layers=1, more=MORE[case])
    compiled = hipdnn_mlir.compile(grown)
    assert compiled.model.growing is None
    pieces = pieces_of(1, (4, 1, 1))
    _assert_equal(decode(compiled.session(), pieces), decode(_reference(grown), pieces))


def test_a_length_that_the_user_names_stays_a_size(model: onnx.ModelProto) -> None:
    compiled = hipdnn_mlir.compile(model, shapes={"p": 4, "s": 1, "b": 1})
    assert compiled.model.growing is None


@pytest.mark.parametrize("masks", ["by index", "added", "none"])
def test_the_provider_gives_what_the_cpu_provider_gives(masks: str, tmp_path: Path) -> None:
    grown = growing_model(masks)
    session = make_session(grown, tmp_path, wholly=True)
    padded = 0 if masks in ("none", "window") else 2
    _assert_equal(
        decode(session, pieces_of(2, COUNTS), padded), decode(_reference(grown), pieces_of(2, COUNTS), padded)
    )


def test_the_provider_writes_into_buffers_that_are_bound_as_past_and_present(
    model: onnx.ModelProto, tmp_path: Path
) -> None:
    session, rows = make_session(model, tmp_path, wholly=True), 80
    pieces = pieces_of(2, COUNTS)
    want, caches = decode(_reference(model), pieces, 2)
    unknown = np.full((2, HEADS, rows, HEAD), np.nan, np.float32)
    buffers = {name: ort.OrtValue.ortvalue_from_numpy(unknown.copy()) for name in caches}
    total = 0
    for piece, logits in zip(pieces, want, strict=True):
        total += piece.shape[1]
        binding = session.io_binding()
        for name, array in {"input_ids": piece, **mask_of(session, 2, piece.shape[1], total, 2)}.items():
            binding.bind_cpu_input(name, array)
        for name, buffer in buffers.items():
            binding.bind_ortvalue_input(name, buffer)
            binding.bind_ortvalue_output(name.replace("past_key_values", "present"), buffer)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        (got,) = (value.numpy() for value in binding.get_outputs() if len(value.shape()) == 3)
        np.testing.assert_allclose(got[:, -1], logits, rtol=1e-4, atol=1e-5)
    for name, buffer in buffers.items():
        np.testing.assert_allclose(buffer.numpy()[:, :, :total], caches[name], rtol=1e-4, atol=1e-5)
        assert np.isnan(buffer.numpy()[:, :, total:]).all()


def test_the_provider_says_what_length_a_mask_may_have(model: onnx.ModelProto, tmp_path: Path) -> None:
    session = make_session(model, tmp_path, wholly=True)
    feeds = {"input_ids": np.array([[3]]), "attention_mask": np.ones((1, 9), np.int64)}
    feeds |= {port.name: np.zeros((1, HEADS, 4, HEAD), np.float32) for port in session.get_inputs()[2:]}
    with pytest.raises(
        Exception,
        match="'attention_mask' is 9: expected 5 for caches of 4 rows and 1 new, or at most 4 where they are buffers",
    ):
        session.run(None, feeds)


BROKEN: dict[str, dict[str, Any]] = {
    "an input that is no length": {"length": 0},
    "an input that is not there": {"length": 99},
    "a symbol that is not there": {"rows": 7},
    "no caches": {"caches": []},
    "a cache of other dims": {"caches": [Cache(0, 1)]},
    "an output that is not there": {"caches": [Cache(2, 42)]},
    "a mask without such a dim": {"sized": [SizedInput(1, 5)]},
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_program_that_says_wrong_things_of_its_caches_is_refused(
    case: str, program: hipdnn_mlir.Program, tmp_path: Path
) -> None:
    assert program.model.growing is not None
    broken = replace(program.model, growing=replace(program.model.growing, **BROKEN[case]))
    write(tmp_path / "broken.hipdnn", broken, program.weights)
    with pytest.raises(ProgramError, match="growing"):
        hipdnn_mlir.load(tmp_path / "broken.hipdnn")
