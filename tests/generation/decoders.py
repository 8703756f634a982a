"""Decoder models of today's families, small and with random weights, exported by onnxruntime-genai's model builder.

``python -m generation.decoders NAME PRECISION PROVIDER FOLDER [OPTION=VALUE ...]`` exports one; options are the builder's own, as
`block_size=128`. Nothing is downloaded.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

VOCABULARY = 1000
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
LIMIT = 256
"""From this length on the model of long prompts takes its other table of angles."""
WINDOW = 64
"""What layers of some families see."""
VARIED = {"initializer_range": 0.1, "tie_word_embeddings": False}
"""For families whose random models say the same word again and again."""
LONG_ROPE = {"type": "longrope", "rope_type": "longrope", "short_factor": [1.0] * 24, "long_factor": [2.0] * 24}
FAMILIES: dict[str, tuple[str, Mapping[str, Any]]] = {
    "llama": ("Llama", {}),
    "llama-layer": ("Llama", {"num_hidden_layers": 1}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 32}),
    "mistral": ("Mistral", {"sliding_window": 512}),
    "mistral-window": ("Mistral", {"sliding_window": 32, "layer_types": ["sliding_attention"] * 2}),
    "phi3": ("Phi3", {"original_max_position_embeddings": 1024}),
    "phi3-long": (
        "Phi3",
        {
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "original_max_position_embeddings": LIMIT,
            "partial_rotary_factor": 0.75,
            "rope_scaling": LONG_ROPE,
        },
    ),
    "phi4": (
        "Phi3",
        {
            "num_hidden_layers": 1,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "original_max_position_embeddings": 1024,
            "partial_rotary_factor": 0.75,
            "tie_word_embeddings": True,
        },
    ),
    "gemma2": ("Gemma2", {**VARIED, "head_dim": 32, "sliding_window": WINDOW}),
    "gemma3": (
        "Gemma3",
        {
            **VARIED,
            "head_dim": 32,
            "query_pre_attn_scalar": 32,
            "sliding_window": WINDOW,
            "layer_types": ["sliding_attention", "full_attention"],
        },
    ),
    "gpt-oss": ("GptOss", {"head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": WINDOW}),
}
"""Name -> the family in transformers, and what its configuration has beside `SIZES`."""
_CONFIGS = {"Gemma3": "Gemma3TextConfig"}
"""Families whose configuration has another name."""
_SCALE_EXPONENT = 127 - 6
"""Of experts of 4 bits: numbers of up to 6 become up to 0.1."""
LARGE: dict[str, tuple[str, Mapping[str, Any]]] = {
    "llama-1b": (
        "Llama",
        {
            "vocab_size": 32000,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 2048,
        },
    )
}
"""The same of a size at which time is measured: 1.1 G parameters."""


def export(name: str, precision: str, provider: str, folder: Path, options: Sequence[str] = ()) -> None:
    """Write a model's folder: the ONNX file, its data, genai_config.json, the tokenizer.

    Args:
        name: of `FAMILIES` or `LARGE`.
        precision: fp32, fp16, bf16 or int4.
        provider: the builder's name of the provider to export for: cpu or cuda.
        folder: to write to.
        options: the builder's extra options, each as `option=value`.
    """
    import torch
    import transformers
    from onnxruntime_genai.models.builder import create_model, parse_extra_options

    family, more = (FAMILIES | LARGE)[name]
    torch.manual_seed(0)
    sizes = {**SIZES, **more}
    config_class = getattr(transformers, _CONFIGS.get(family, f"{family}Config"))
    config = config_class(**sizes)
    source, cache = str(folder / "source"), str(folder / "cache")
    getattr(transformers, f"{family}ForCausalLM")(config).eval().save_pretrained(source)
    if name == "gemma3":
        _name_both_bases(Path(source), config_class)
    if name == "gpt-oss" and precision == "int4":
        _pack_experts(torch, Path(source))
    _tokenizer(transformers, sizes["vocab_size"]).save_pretrained(source)
    places = (source, source, str(folder), precision, provider, cache)
    create_model(*places, **parse_extra_options(*places, list(options)))


def _name_both_bases(source: Path, config_class: Any) -> None:
    """Gemma 3's two bases of rotary angles where the builder of 0.18 looks for them: transformers 5 has them in another place."""
    file = source / "config.json"
    config = json.loads(file.read_text())
    bases = config["rope_parameters"]
    config_class.rope_local_base_freq = bases["sliding_attention"]["rope_theta"]
    bases |= bases["full_attention"]
    file.write_text(json.dumps(config))


def _pack_experts(torch: Any, source: Path) -> None:
    """Random experts of 4 bits beside those of floats, as published checkpoints have them: the builder makes int4 of nothing else."""
    from safetensors import torch as files

    file = source / "model.safetensors"
    tensors = files.load_file(file)
    for name in [name for name in tensors if name.endswith("_proj") and ".experts." in name]:
        experts, depth, width = tensors[name].shape
        blocks = (experts, width, depth // 32)
        tensors[f"{name}_blocks"] = torch.randint(0, 256, (*blocks, 16), dtype=torch.uint8)
        tensors[f"{name}_scales"] = torch.full(blocks, _SCALE_EXPONENT, dtype=torch.uint8)
    files.save_file(tensors, file, {"format": "pt"})


def _tokenizer(transformers: Any, vocabulary: int) -> Any:
    """Words w0, w1, ...: the builder wants one."""
    from tokenizers import Tokenizer, models

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(vocabulary)}, unk_token="w0"))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w1", eos_token="w2", pad_token="w0")


if __name__ == "__main__":
    name, precision, provider, folder, *options = sys.argv[1:]
    export(name, precision, provider, Path(folder), options)
