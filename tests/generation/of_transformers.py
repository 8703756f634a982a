"""Decoders of transformers, small and with random weights, exported by torch.onnx.export with their caches as inputs and outputs.

``python -m generation.of_transformers NAME EXPORTER FILE``: NAME is one of `MODELS`, EXPORTER `dynamo` or `tracer`. Optimum's exporter
writes models of the same form: inputs `past_key_values.0.key`, outputs `present.0.key` that are longer by the new tokens.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers
from transformers.cache_utils import DynamicCache, EncoderDecoderCache

LAYERS, HEADS, HEAD, VOCABULARY, ENCODED = 2, 4, 16, 300, 9
"""`ENCODED` is how many steps the encoder's result has where it has a fixed number."""
WIDTH = HEADS * HEAD
Tensors = tuple[torch.Tensor, ...]


def _llama() -> Any:
    sizes = {"hidden_size": WIDTH, "intermediate_size": 128, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
    config = transformers.LlamaConfig(**sizes, vocab_size=VOCABULARY, num_key_value_heads=HEADS // 2)
    return transformers.LlamaForCausalLM(config)


def _llama_8() -> Any:
    sizes = {"hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8}
    config = transformers.LlamaConfig(**sizes, vocab_size=4000, num_key_value_heads=4)
    return transformers.LlamaForCausalLM(config)


def _gpt2() -> Any:
    config = transformers.GPT2Config(n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, vocab_size=VOCABULARY)
    return transformers.GPT2LMHeadModel(config)


def _t5() -> Any:
    sizes = {"d_model": WIDTH, "d_kv": HEAD, "d_ff": 128, "num_layers": LAYERS, "num_heads": HEADS}
    config = transformers.T5Config(**sizes, vocab_size=VOCABULARY, decoder_start_token_id=0)
    return transformers.T5ForConditionalGeneration(config)


def _whisper() -> Any:
    sides = {f"{side}_{what}": size for side in ("encoder", "decoder") for what, size in
             (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", 128))}  # fmt: skip
    tokens = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3}
    config = transformers.WhisperConfig(**sides, **tokens, d_model=WIDTH, vocab_size=VOCABULARY)
    return transformers.WhisperForConditionalGeneration(config)


class Decoder(torch.nn.Module):
    """A decoder-only model: tokens, the mask of all keys, past keys and values -> logits, keys and values."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, past: list[torch.Tensor]) -> Tensors:
        cache = DynamicCache(_pairs(past))
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return out.logits, *_flat(cache)


class PlacedDecoder(torch.nn.Module):
    """As `Decoder`, with the position of each token as an input, as Optimum exports models that take it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        position_ids: torch.Tensor,
        past: list[torch.Tensor],
    ) -> Tensors:
        cache = DynamicCache(_pairs(past))
        out = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            position_ids=position_ids,
            past_key_values=cache,
            use_cache=True,
        )
        return out.logits, *_flat(cache)


class CrossDecoder(torch.nn.Module):
    """The decoder of an encoder-decoder after its first step: tokens, what was encoded, past and cross keys and values -> as `Decoder`."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, encoded: torch.Tensor, past: list[torch.Tensor]) -> Tensors:
        own, cross = (DynamicCache(_pairs(part)) for part in (past[: 2 * LAYERS], past[2 * LAYERS :]))
        cache = EncoderDecoderCache(own, cross)
        out = self.model(decoder_input_ids=input_ids, encoder_outputs=(encoded,), past_key_values=cache, use_cache=True)
        return out.logits, *_flat(cache.self_attention_cache)


def _pairs(tensors: list[torch.Tensor]) -> list[Tensors]:
    return list(zip(tensors[::2], tensors[1::2], strict=True))


def _flat(cache: DynamicCache) -> Iterator[torch.Tensor]:
    for layer in cache.layers:
        yield from (layer.keys, layer.values)


MODELS: dict[str, tuple[Callable[[], Any], type[torch.nn.Module]]] = {
    "llama": (_llama, Decoder),
    "llama-placed": (_llama, PlacedDecoder),
    "llama-8": (_llama_8, Decoder),
    "gpt2": (_gpt2, Decoder),
    "gpt2-placed": (_gpt2, PlacedDecoder),
    "t5": (_t5, CrossDecoder),
    "whisper": (_whisper, CrossDecoder),
}
"""Name -> what makes the model, and how it is called."""


def export(name: str, exporter: str, path: str) -> None:
    """Write the decoder of a model as an ONNX file."""
    make, called = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    sizes = model.config
    heads = getattr(sizes, "num_key_value_heads", HEADS)
    has_encoder = called is CrossDecoder
    layers, head = (
        (LAYERS, HEAD) if has_encoder else (sizes.num_hidden_layers, sizes.hidden_size // sizes.num_attention_heads)
    )
    past = [torch.randn(2, heads, 5, head) for _ in range(2 * layers)]
    names = [f"past_key_values.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
    shapes = [{0: "batch", 2: "past"} for _ in past]
    ids = torch.randint(3, VOCABULARY, (2, 3))
    if has_encoder:
        more, keys = [torch.randn(2, ENCODED, WIDTH)], {"encoded": {0: "batch", 1: "encoded"}}
        past += [torch.randn(2, heads, ENCODED, HEAD) for _ in range(2 * LAYERS)]
        names += [n.replace("past_key_values", "cross") for n in names]
        shapes += [{0: "batch", 2: "encoded"} for _ in shapes]
    else:
        more, keys = [torch.ones(2, 8, dtype=torch.int64)], {"attention_mask": {0: "batch", 1: "total"}}
    if called is PlacedDecoder:
        more.append(torch.arange(5, 8).expand(2, 3))
        keys["position_ids"] = {0: "batch", 1: "new"}
    presents = [n.replace("past_key_values", "present") for n in names if n.startswith("past")]
    dynamic: dict[str, Any] = {"input_ids": {0: "batch", 1: "new"}, **keys}
    if exporter == "dynamo":
        options = {"dynamo": True, "dynamic_shapes": {**dynamic, "past": shapes}, "external_data": False}
    else:
        options = {
            "dynamo": False,
            "dynamic_axes": dynamic | dict(zip(names, shapes, strict=True)),
            "opset_version": 18,
        }
    torch.onnx.export(
        called(model),
        (ids, *more, past),
        path,
        input_names=["input_ids", *keys, *names],
        output_names=["logits", *presents],
        **options,
    )


if __name__ == "__main__":
    export(*sys.argv[1:])
