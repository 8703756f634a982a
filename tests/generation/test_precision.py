"""A decoder in 16 bits on the CPU, beside ONNX Runtime's CPU provider in f32."""

import numpy as np
import onnxruntime
import pytest

import hipdnn_mlir
from generation.conftest import Exported
from generation.decoders import VOCABULARY

BOUNDS = {"f16": 1.5e-3, "bf16": 1.2e-2}
"""Root mean square of the difference of logits over that of the logits: some roundings to the type, of 2^-11 and 2^-8."""


@pytest.mark.parametrize("precision", BOUNDS)
def test_logits_of_16_bits_are_near_those_of_f32(exported: Exported, precision: str) -> None:
    model = exported("llama") / "model.onnx"
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
