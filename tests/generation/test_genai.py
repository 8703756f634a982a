"""onnxruntime-genai, as it is installed, generates the same tokens on the provider as on ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import hipdnn_mlir
from generation.conftest import Exported
from generation.decoders import LIMIT, VOCABULARY, WINDOW
from generation.exporting import generated_by_genai, new_process
from hipdnn_mlir.generate import TextGenerator, model_file
from hipdnn_mlir.generate.folder import read_folder
from hipdnn_mlir.targets.table import TargetName

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
Generated = Callable[[Path, str, tuple[str, ...]], dict[str, Any]]
SHORT = ("greedy", "continued", "rewound", "batch")
WAYS = {
    "llama": (*SHORT, "beams", "beams_of_a_batch", "sampled", "in_pieces", "two_at_once", "four_prompts"),
    "qwen2": ("greedy",),
    "qwen3": SHORT,
    "mistral-window": ("continued", "batch", "four_prompts"),
}
"""Family -> the ways of `generation.ways`."""
WINDOWED = [("gemma2", "fp32"), ("gemma3", "fp32"), ("gpt-oss", "fp32"), ("gpt-oss", "int4")]
"""Families and precisions whose layers see a window."""


@pytest.fixture(scope="module")
def process() -> Iterator[Executor]:
    """Where genai generates: it and a provider's library stay in a process for good."""
    with new_process() as process:
        yield process


@pytest.fixture(scope="module")
def generated(process: Executor) -> Generated:
    """What each way gives of a folder on a provider, by `generation.ways`; computed once."""

    @cache
    def made(folder: Path, provider: str, ways: tuple[str, ...]) -> dict[str, Any]:
        found: dict[str, Any] = process.submit(generated_by_genai, folder, provider, ways).result()
        return found

    return made


@pytest.mark.slow
@pytest.mark.parametrize("family", WAYS)
def test_tokens_are_those_of_the_cpu_provider_in_every_way_of_generating(
    family: str, exported: Exported, generated: Generated
) -> None:
    folder = exported(family, "fp32", "cpu", "windowed_kv_cache=false")
    ours, theirs = (generated(folder, provider, WAYS[family]) for provider in ("hipdnn", "cpu"))
    assert all(len({*row}) > 3 for rows in theirs.values() for row in rows if len(row) > 20)
    for way in WAYS[family]:
        assert ours[way] == theirs[way], way


@pytest.mark.slow
def test_tokens_are_the_same_where_caches_are_copied_to_a_device(exported: Exported, generated: Generated) -> None:
    """A GPU has memory of its own, and genai gives it its caches in the host's."""
    folder, ways = (
        exported("llama", "fp32", "cpu", "windowed_kv_cache=false"),
        ("continued", "rewound", "batch", "beams"),
    )
    with new_process() as process:  # of its own, for it has a device more
        ours = process.submit(generated_by_genai, folder, "virtual", ways).result()
    assert ours == generated(folder, "cpu", ways)


@pytest.mark.slow
def test_tokens_are_those_of_the_cpu_provider_beyond_the_length_that_changes_the_angles(
    exported: Exported, generated: Generated
) -> None:
    folder = exported("phi3-long", "fp32", "cpu")
    ours, theirs = (generated(folder, provider, ("beyond_limit",)) for provider in ("hipdnn", "cpu"))
    assert len(theirs["beyond_limit"][0]) == LIMIT + 20
    assert ours == theirs
    programs = list(folder.rglob("*.hipdnn"))
    assert len(programs) == 1, "one program for all lengths, before and behind the limit"


PRECISIONS = {
    "int4, level 0": (("llama-layer", "int4", "cpu", "block_size=32", "is_symmetric=false", "accuracy_level=0"), 1e-5),
    "int4, level 4": (("llama-layer", "int4", "cpu", "block_size=128", "is_symmetric=true", "accuracy_level=4"), 3e-2),
    "int4, embeddings shared": (("phi4", "int4", "cpu", "accuracy_level=0"), 1e-5),
    "int4 for CUDA": (("llama-layer", "int4", "cuda"), 3e-3),
    "int8": (("llama-layer", "int8", "cpu", "accuracy_level=0"), 1e-5),
    "fp16 for CUDA": (("llama-layer", "fp16", "cuda"), 3e-3),
}
"""What is built, and how large the difference of its logits may be against theirs, both as RMS. At level 4 activations are rounded to
8 bits, each by what its own sums before were."""


@pytest.mark.slow
@pytest.mark.parametrize("case", PRECISIONS)
def test_logits_are_near_those_of_the_cpu_provider(case: str, exported: Exported, generated: Generated) -> None:
    given, bound = PRECISIONS[case]
    folder = exported(*given)
    ours, theirs = (_logits(generated, folder, provider) for provider in ("hipdnn", "cpu"))
    assert _error(ours, theirs) < bound


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "precision", "provider"),
    [
        ("llama-layer", "bf16", "cuda"),
        pytest.param("llama-layer", "bf16", "cpu", marks=pytest.mark.nightly),
        pytest.param("llama-layer", "fp16", "cpu", marks=pytest.mark.nightly),  # resumed, below
        ("qwen3", "fp16", "cuda"),
    ],
)
def test_logits_of_16_bits_are_near_those_of_f32(
    family: str, precision: str, provider: str, exported: Exported, generated: Generated
) -> None:
    """ONNX Runtime's CPU provider runs none of these.

    It has no bf16, no attention with norms (Qwen 3 for CUDA), and of the builder's fp16 for it the model declares wrong shapes.
    """
    ours = _logits(generated, exported(family, precision, provider), "hipdnn")
    assert (
        _error(ours, _logits(generated, exported(family, "fp32", "cpu"), "cpu"))
        < {"bf16": 2e-2, "fp16": 3e-3}[precision]
    )


def _last_logits(model: Path, tokens: Sequence[int]) -> np.ndarray:
    """Those behind a text, by ONNX Runtime's CPU provider."""
    feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
    cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for port in cpu.get_inputs()[2:]:
        feeds[port.name] = np.zeros((1, port.shape[1], 0, 32), np.float32)
    return np.asarray(cpu.run(["logits"], feeds)[0])[0, -1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "bound"), [("fp16", 3e-3), pytest.param("bf16", 2e-2, marks=pytest.mark.nightly)]
)
def test_texts_go_on_where_the_caches_of_16_bits_grow(
    precision: str, bound: float, exported: Exported, generated: Generated
) -> None:
    folder, wide = exported("llama", precision, "cpu"), exported("llama", "fp32", "cpu") / "model.onnx"
    for text, logits in generated(folder, "hipdnn", ("resumed",))["resumed"]:
        assert _error(np.array(logits), _last_logits(wide, text)) < bound
    with TextGenerator(folder, max_length=64) as model:
        texts = model.start(2)
        texts.append([[3, 4, 5, 6, 7], [8, 9]])
        for step in ("generated", "continued", "rewound"):
            if step == "rewound":
                texts.rewind_to([6, 4])
            if step != "generated":
                texts.append([[11, 12, 13], [14]])
            for text, logits in zip(texts.tokens, texts.logits(), strict=True):
                assert _error(logits, _last_logits(wide, text)) < bound, step
            list(texts.stream(max_new_tokens=5, stop_tokens=()))


ON_GPUS = {
    "norms of queries and keys": ("qwen3", "fp16", "cuda"),
    "windows": ("gemma3", "bf16", "cuda"),
    "experts of codes": ("gpt-oss", "int4", "cuda", "qmoe_weights_prepacked=0"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "target"),
    [
        ("norms of queries and keys", "sm_90"),
        ("windows", "gfx942"),
        ("experts of codes", "sm_90"),
        pytest.param("experts of codes", "gfx942", marks=pytest.mark.nightly),
    ],
)
def test_what_is_exported_for_gpus_compiles_for_them(
    case: str, target: TargetName, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "WINDOWS", (1, 16))
    config = read_folder(exported(*ON_GPUS[case]))
    shapes, buckets = model_file.ModelFile(config).sizes(target, 1, 256)
    program = hipdnn_mlir.compile(
        config.model, target=target, shapes=shapes, buckets=buckets, last_valid=config.last_valid
    )
    assert [each.sizes for each in program.model.specializations] == [[1], [16]]


@pytest.mark.slow
def test_several_tokens_go_on_with_a_text_where_the_model_says_only_how_one_does(exported: Exported) -> None:
    rng = np.random.default_rng(0)
    new, past = 5, 7
    feeds = {"input_ids": rng.integers(0, VOCABULARY, (1, new)), "attention_mask": np.ones((1, past + new), np.int64)}
    for name in ("0.key", "0.value", "1.key", "1.value"):
        feeds[f"past_key_values.{name}"] = rng.standard_normal((1, 4, past, 32)).astype(np.float32)
    cpu = onnxruntime.InferenceSession(
        exported("llama", "fp32", "cpu") / "model.onnx", providers=["CPUExecutionProvider"]
    )
    (want,) = cpu.run(["logits"], feeds)
    feeds = {name: value.astype(np.float16) if value.dtype == np.float32 else value for name, value in feeds.items()}
    feeds["position_ids"] = np.arange(past, past + new)[None]
    with hipdnn_mlir.compile(exported("llama", "fp16", "cpu") / "model.onnx").session() as session:
        (got,) = session.run(["logits"], feeds)
    assert _error(got, want) < 3e-3


def _logits(generated: Generated, folder: Path, provider: str) -> np.ndarray:
    return np.array(generated(folder, provider, ("logits",))["logits"])


def _error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).mean() / (want**2).mean()))


@pytest.mark.slow
@pytest.mark.parametrize(("family", "precision"), WINDOWED)
def test_tokens_are_those_of_the_cpu_provider_where_caches_keep_a_window(
    family: str, precision: str, exported: Exported, generated: Generated
) -> None:
    folder = exported(family, precision, "cpu")
    ours, theirs = (generated(folder, provider, ("beyond_window",)) for provider in ("hipdnn", "cpu"))
    assert len(theirs["beyond_window"][0]) == WINDOW + 40
    assert ours == theirs


def test_logits_of_4_bits_are_near_those_of_the_cpu_provider(exported: Exported) -> None:
    model = exported("llama", "int4", "cpu") / "model.onnx"
    cpu = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    with hipdnn_mlir.compile(model, shapes={"batch_size": 1}).session() as session:
        for new, past, total in [(7, 0, 7), (1, 40, 41), (1, 64, 41)]:
            tokens, mask = rng.integers(0, VOCABULARY, (1, new)), np.ones((1, total), np.int64)
            feeds = {"input_ids": tokens, "attention_mask": mask}
            for layer in range(2):
                for name in ("key", "value"):
                    past_rows = rng.standard_normal((1, 4, past, 32)).astype(np.float32)
                    feeds[f"past_key_values.{layer}.{name}"] = past_rows
            (got,), (want,) = session.run(["logits"], feeds), cpu.run(["logits"], feeds)
            assert _error(got, want) < 3e-2, (new, past, total)  # see PRECISIONS
