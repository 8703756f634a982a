"""Decoders' caches in programs for GPUs, written out but for one new token: kernels in the emulator, graphs on the host's library."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import models
from drawing import every
from gpu.programs import compile_for_emulator, run
from test_decoder_caches import ATTRIBUTES, CHANGED, RUNS, WINDOW, Run, cache_feeds, cache_model
from test_paged_caches import PAGE_ROWS, assert_equal, in_pages

CASES: dict[str, Run] = {
    **{name: RUNS[name] for name in ("a padded prompt into a buffer", "rows of different lengths", "more of a prompt in a buffer")},
    **{name: RUNS[name] for name in ("a step that grows", "a step in a buffer")},
}  # fmt: skip


@pytest.mark.parametrize(
    ("case", "attributes", "on"),
    every(
        4,
        CASES,
        ["plain", "rotary", "window"],
        [("sm_90", 32, "model", 2e-5), ("gfx942", 64, "model", 2e-5), ("sm_90", 32, "f16", 5e-3)],
    ),
)
def test_program_equals_onnx_runtime(
    case: str, attributes: str, on: tuple[str, int, str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, wave, precision, error = on
    batch, new, cache, lengths = CASES[case]
    model = cache_model(ATTRIBUTES[attributes])
    shapes = {"b": batch, "s": new, "p": cache, "t": max(lengths)}
    program, modules = compile_for_emulator(model, monkeypatch, target=target, precision=precision, shapes=shapes)
    steps = {program.model.summary(step) for step in program.model.steps}
    assert ("decode_attention" in steps) == (new == 1 and cache >= max(lengths))
    if precision == "f16" and cache % 8 == 0 and new > 1:
        assert "sdpa_fwd" in steps
    feeds = cache_feeds(model, CASES[case])
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = run(program, feeds, modules, wave=wave)
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(got[0][row, :length], want[0][row, :length], rtol=error, atol=error)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=error, atol=error)


@pytest.mark.parametrize(("target", "wave"), [("sm_90", 32), ("gfx942", 64)])
@pytest.mark.parametrize("attributes", ["plain", "rotary"])
@pytest.mark.parametrize("case", ["rows of different lengths", "more of a prompt in a buffer"])
def test_program_over_pages_equals_onnx_runtime(
    case: str, attributes: str, target: str, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, (batch, new, cache, lengths) = cache_model(ATTRIBUTES[attributes]), RUNS[case]
    feeds = cache_feeds(model, RUNS[case])
    paged = in_pages(feeds)
    shapes = {"b": batch, "s": new, "t": max(lengths), "pages": len(paged["past_k"])}
    shapes["sequence_pages"] = cache // PAGE_ROWS
    program, modules = compile_for_emulator(model, monkeypatch, target=target, shapes=shapes, page_rows=PAGE_ROWS)
    steps = {program.model.summary(step) for step in program.model.steps}
    assert ("decode_attention" if new == 1 else "cache_update") in steps
    assert_equal(run(program, paged, modules, wave=wave), paged, model, feeds, RUNS[case], 2e-5)


@pytest.mark.parametrize(("bits", "on"), every(3, [16, 4], [("sm_90", 32), ("gfx942", 64)]))
def test_a_step_of_a_decoder_equals_onnx_runtime(
    bits: int, on: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (target, wave), model, last = on, models.decoder(2, bits=bits), 17
    program, modules = compile_for_emulator(model, monkeypatch, target=target, shapes={"s": 1})
    rng = np.random.default_rng(0)
    ports = {port.name: [dim.dim_value or 1 for dim in port.type.tensor_type.shape.dim] for port in model.graph.input}
    feeds = {name: rng.standard_normal(dims).astype(np.float16) for name, dims in ports.items() if name != "last"}
    feeds["last"] = np.array([last], np.int32)
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = run(program, feeds, modules, wave=wave)
    for mine, theirs in zip(got, want, strict=True):
        valid = slice(0, last + 1)
        np.testing.assert_allclose(mine[:, :, valid], theirs[:, :, valid], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("target", "wave"), [("sm_90", 32), ("gfx942", 64)])
@pytest.mark.parametrize("changed", CHANGED)
def test_program_with_changed_scores_equals_onnx_runtime(
    changed: str, target: str, wave: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_of = RUNS["rows of different lengths"]
    batch, new, cache, lengths = run_of
    attributes, more = CHANGED[changed]
    model = cache_model(attributes, more=more)
    shapes = {"b": batch, "s": new, "p": cache, "t": max(lengths)}
    program, modules = compile_for_emulator(model, monkeypatch, target=target, shapes=shapes)
    feeds = cache_feeds(model, run_of)
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = run(program, feeds, modules, wave=wave)
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(got[0][row], want[0][row], rtol=2e-5, atol=2e-5)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=2e-5, atol=2e-5)


def test_a_cache_of_a_window_equals_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    model, shapes = cache_model(WINDOW), {"b": 1, "s": 1, "p": 5, "t": 9}
    program, modules = compile_for_emulator(model, monkeypatch, target="sm_90", shapes=shapes)
    rng = np.random.default_rng(3)
    feeds = {name: rng.standard_normal((1, 2, 5, 16), np.float32) for name in ("past_k", "past_v")}
    feeds |= {"q": rng.standard_normal((1, 1, 192), np.float32), "mask": np.ones((1, 9), np.int64)}
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for mine, theirs in zip(run(program, feeds, modules), want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)
