"""Decoders of transformers as torch.onnx.export writes them: token after token on the provider, with caches that grow by Concat."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from generation.exporting import export_of_transformers
from gpu.test_growing import generate, texts_of
from ort_ep.sessions import make_session, partitions, reference_session

# They are imported by the process that exports, and not by this one.
if any(find_spec(package) is None for package in ("torch", "transformers")):
    pytest.skip("torch or transformers is not installed: pip install '.[export]'", allow_module_level=True)
CASES = [
    ("llama", "dynamo"),
    ("gpt2", "tracer"),
    ("t5", "tracer"),
    pytest.param("whisper", "dynamo", marks=pytest.mark.nightly),
]
"""Model and exporter; of t5 PyTorch's newer one has no view of a transposed tensor. The other three were compiled by hand. Whisper's caches
are those of t5, and its exporter that of the llama."""
BUFFERED = ("llama", "t5", "whisper")
"""Models that are compiled without ONNX Runtime too, for their caches are buffers below the frontend."""
STEPS, BATCH, PROMPT, PADDED = 64, 2, 5, 2
"""The second text of the batch begins with so many tokens of padding."""


@pytest.fixture(scope="module")
def exported(exporter: Executor, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Return the file of a model by an exporter, made once: PyTorch's newer one takes ten seconds for two layers."""

    @cache
    def made(name: str, kind: str) -> Path:
        path = tmp_path_factory.mktemp("transformers") / f"{name}.onnx"
        exporter.submit(export_of_transformers, name, kind, path).result()
        return path

    return made


def _logits(session: Any, tokens: list[np.ndarray]) -> list[np.ndarray]:
    """The last position's logits after each piece of text."""
    rng = np.random.default_rng(1)
    dims = {"batch": BATCH, "past": 0, "encoded": 9}
    sizes = {value.name: [dims.get(size, size) for size in value.shape] for value in session.get_inputs()}
    states = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in sizes.items() if name == "encoded"}
    states |= {
        n: rng.standard_normal(s).astype(np.float32) for n, s in sizes.items() if n.startswith(("past", "cross"))
    }
    names = [value.name for value in session.get_outputs()]
    seen, found = 0, []
    for piece in tokens:
        seen += piece.shape[1]
        mask = np.ones((BATCH, seen), np.int64)
        mask[1, :PADDED] = 0
        feeds = {"input_ids": piece, "attention_mask": mask, **states}
        results = dict(zip(names, session.run(None, {name: feeds[name] for name in sizes}), strict=True))
        states |= {name.replace("present", "past_key_values"): results[name] for name in names[1:]}
        found.append(results["logits"][:, -1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_logits_of_64_tokens_are_those_of_the_cpu_provider(
    name: str, kind: str, exported: Callable[[str, str], Path], tmp_path: Path
) -> None:
    path = exported(name, kind)
    rng = np.random.default_rng(0)
    tokens = [rng.integers(3, 300, (BATCH, count)) for count in (PROMPT, *[1] * STEPS)]
    session = make_session(path, tmp_path / "cache", wholly=True)
    assert len(partitions(session)) == 1
    wanted = _logits(reference_session(path), tokens)
    for got, want in zip(_logits(session, tokens), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    if name in BUFFERED:
        own = hipdnn_mlir.compile(path).session()
        for got, want in zip(_logits(own, tokens), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        assert own.stats.specializations == 2, "the prompt's length, and all steps"
    assert len(list((tmp_path / "cache").rglob("*.hipdnn"))) == 1, "one program for all lengths"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "target", "wave"),
    [
        ("llama", "dynamo", "sm_90", 32),
        pytest.param("gpt2", "tracer", "gfx942", 64, marks=pytest.mark.nightly),  # gpu/test_growing.py has the target
    ],
)
def test_logits_in_programs_for_gpus_are_those_of_the_cpu_provider(
    name: str,
    kind: str,
    target: str,
    wave: int,
    exported: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = onnx.load(exported(name, kind))
    texts, session = texts_of(model, monkeypatch, target, wave)
    generate(model, texts, [[7, 150, 33, 290, 4, 81]], 4, error=1e-4)
    assert session.sizes == [4, 4, 1, 1, 1]
    (step,) = (made.program for made in session.program.model.specializations if made.sizes[0] == 1)
    steps = [step.summary(each) for each in step.steps]
    assert steps.count("decode_attention") == 2
    assert not {"cache_update", "mul + mul + sub"} & set(steps), "rows and rotation are the kernel's"
