"""Decoders' caches in programs for GPUs, which have no kernel for them: kernels in the emulator, graphs on the host's library."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from gpu.programs import compile_for_emulator, run
from test_decoder_caches import ATTRIBUTES, RUNS, Run, cache_feeds, cache_model

CASES: dict[str, Run] = {
    **{name: RUNS[name] for name in ("a padded prompt into a buffer", "rows of different lengths", "more of a prompt in a buffer")},
    "a step that grows": RUNS["a step that grows"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "wave", "precision", "error"),
    [("sm_90", 32, "model", 2e-5), ("gfx942", 64, "model", 2e-5), ("sm_90", 32, "f16", 5e-3)],
)
@pytest.mark.parametrize("attributes", ["plain", "rotary", "window"])
@pytest.mark.parametrize("case", CASES)
def test_program_equals_onnx_runtime(
    case: str, attributes: str, target: str, wave: int, precision: str, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch, new, cache, lengths = CASES[case]
    model = cache_model(ATTRIBUTES[attributes])
    shapes = {"b": batch, "s": new, "p": cache, "t": max(lengths)}
    program, modules = compile_for_emulator(model, monkeypatch, target=target, precision=precision, shapes=shapes)
    if precision == "f16" and cache % 8 == 0:
        assert "sdpa_fwd" in {program.model.summary(step) for step in program.model.steps}
    feeds = cache_feeds(model, CASES[case])
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    got = run(program, feeds, modules, wave=wave)
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(got[0][row, :length], want[0][row, :length], rtol=error, atol=error)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            np.testing.assert_allclose(mine[row, :, :length], theirs[row, :, :length], rtol=error, atol=error)
