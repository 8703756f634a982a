"""onnxruntime-genai, as it is installed, generates the same tokens on the provider as on ONNX Runtime's CPU provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from generation.decoders import LIMIT

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
