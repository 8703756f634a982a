"""A decoder in 16 bits on the CPU, beside ONNX Runtime's CPU provider in f32."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import hipdnn_mlir
from generation.decoders import VOCABULARY

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
BOUNDS = {"f16": 1.5e-3, "bf16": 1.2e-2}
"""Root mean square of the difference of logits over that of the logits: some roundings to the type, of 2^-11 and 2^-8."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In f32."""
    folder = tmp_path_factory.mktemp("fp32")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-m", "generation.decoders", "llama", "fp32", "cpu", str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "model.onnx"


@pytest.mark.parametrize("precision", BOUNDS)
def test_logits_of_16_bits_are_near_those_of_f32(model: Path, precision: str) -> None:
    rng = np.random.default_rng(0)
    cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    program = hipdnn_mlir.compile(model, shapes={"batch_size": 1}, precision=precision)
    with program.session() as session:
        for new, past, total in ((40, 0, 40), (1, 40, 41), (1, 64, 41)):
            feeds = {
                "input_ids": rng.integers(0, VOCABULARY, (1, new)),
                "attention_mask": np.ones((1, total), np.int64),
            }
            for name in ("0.key", "0.value", "1.key", "1.value"):
                feeds[f"past_key_values.{name}"] = rng.standard_normal((1, 4, past, 32)).astype(np.float32)
            (got,), (want,) = session.run(["logits"], feeds), cpu.run(["logits"], feeds)
            assert got.dtype == np.float32
            assert np.sqrt(((got - want) ** 2).mean() / (want**2).mean()) < BOUNDS[precision]
