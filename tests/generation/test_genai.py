"""onnxruntime-genai, as it is installed, generates the same tokens on the provider as on ONNX Runtime's CPU provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hipdnn_mlir
from generation.decoders import LIMIT, VOCABULARY

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
TESTS = Path(__file__).parents[1]
LENGTHS = {"llama": 60, "phi3-long": LIMIT + 20}
"""Family -> how far its text goes: over the length at which another branch is taken, if there is one. All others: bench/decoders.py."""


def _run(module: str, *arguments: str, cache: Path) -> str:
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    environment = os.environ | {"PYTHONPATH": str(TESTS), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def _generated(folder: Path, provider: str, length: int, cache: Path) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(_run("generation.generate", str(folder), provider, str(length), cache=cache))
    return made


@pytest.mark.parametrize("family", LENGTHS)
def test_tokens_are_those_of_the_cpu_provider(family: str, tmp_path: Path) -> None:
    _run("generation.decoders", family, "fp32", "cpu", str(tmp_path), cache=tmp_path)
    length = LENGTHS[family]
    ours, theirs = (_generated(tmp_path, provider, length, tmp_path) for provider in ("hipdnn", "cpu"))
    assert len(theirs["tokens"]) == length
    assert ours["tokens"] == theirs["tokens"]


@pytest.mark.parametrize(("new", "past", "total"), [(7, 0, 7), (1, 40, 41), (1, 64, 41)])
def test_logits_of_4_bits_are_near_those_of_the_cpu_provider(int4_model: Path, new: int, past: int, total: int) -> None:
    rng = np.random.default_rng(0)
    feeds = {"input_ids": rng.integers(0, VOCABULARY, (1, new)), "attention_mask": np.ones((1, total), np.int64)}
    for layer in range(2):
        for name in ("key", "value"):
            cache = rng.standard_normal((1, 4, past, 32)).astype(np.float32)
            feeds[f"past_key_values.{layer}.{name}"] = cache
    with hipdnn_mlir.compile(int4_model, shapes={"batch_size": 1}).session() as session:
        (got,) = session.run(["logits"], feeds)
    cpu = onnxruntime.InferenceSession(int4_model, providers=["CPUExecutionProvider"])
    (want,) = cpu.run(["logits"], feeds)
    # Activations are rounded to 8 bits in both, each by what its own sums before were.
    assert np.sqrt(((got - want) ** 2).mean() / (want**2).mean()) < 3e-2


@pytest.fixture(scope="module")
def int4_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("int4")
    _run("generation.decoders", "llama", "int4", "cpu", str(folder), cache=folder)
    return folder / "model.onnx"
