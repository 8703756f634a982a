"""Folders of decoders that Optimum or torch.onnx.export made: `config.json` of transformers, and an ONNX file whose caches grow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from hipdnn_mlir_runtime.errors import ModelError

from .config import ConfigObject, DecoderConfig, read_object, read_search

FILE = "config.json"
_GENERATION = "generation_config.json"
_MODELS = ("model.onnx", "decoder_with_past_model.onnx", "onnx/model.onnx")
_PAST = re.compile(r"past(?:_key_values)?\.(.+)")
_CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length")
"""Names that families have for the number of tokens that they were made for."""
_DEFAULT_CONTEXT = 2048
_DEFAULT_TOP_K = 50
"""Tokens that transformers draws from where `generation_config.json` does not say."""
_IDS, _MASK, _POSITIONS, _LOGITS = "input_ids", "attention_mask", "position_ids", "logits"
_EOS = "eos_token_id"


def is_exported(folder: Path) -> bool:
    """Whether a folder is of transformers' configuration."""
    return (folder / FILE).is_file()


def read_exported(folder: Path) -> DecoderConfig:
    """Read a folder's configuration, and the names of its model's inputs and outputs.

    Raises:
        ModelError: a file is missing or broken, or the model is no decoder alone.
    """
    config = read_object(folder / FILE)
    path = folder / _GENERATION
    generation = read_object(path) if path.is_file() else ConfigObject({}, str(path))
    model = _model(folder)
    try:
        graph = onnx.load(model, load_external_data=False).graph
    except Exception as error:  # protobuf's errors have no other base class
        raise ModelError(f"cannot be read: {error}", where=str(model)) from error
    initialized = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in initialized}
    outputs = {value.name for value in graph.output}
    caches = tuple((name, f"present.{match[1]}") for name in inputs if (match := _PAST.fullmatch(name)))
    _check(model, inputs, outputs, caches)
    return DecoderConfig(
        folder,
        model,
        context_length=_context(config),
        vocab_size=config.positive("vocab_size"),
        stop_tokens=frozenset((generation if _EOS in generation else config).numbers(_EOS)),
        input_ids=_IDS,
        attention_mask=_MASK,
        position_ids=_POSITIONS if _POSITIONS in inputs else None,
        logits=_LOGITS,
        caches=caches,
        search=read_search(generation, _DEFAULT_TOP_K),
        grows=True,
    )


def _model(folder: Path) -> Path:
    found = [folder / name for name in _MODELS if (folder / name).is_file()] or sorted(folder.glob("*.onnx"))
    if len(found) == 1 or (found and found[0].name in _MODELS):
        return found[0]
    got = ", ".join(path.name for path in found) or "none"
    raise ModelError("no model", where=str(folder), expected=f"one ONNX file, as {_MODELS[0]}", got=got)


def _check(model: Path, inputs: Mapping[str, Any], outputs: set[str], caches: Sequence[tuple[str, str]]) -> None:
    expected = f"{_IDS}, {_MASK}, perhaps {_POSITIONS}, and past_key_values.0.key, ...: a decoder alone, with caches"
    unknown = sorted(set(inputs) - {_IDS, _MASK, _POSITIONS, *(past for past, _ in caches)})
    missing = sorted({_IDS, _MASK} - set(inputs)) + ([] if caches else ["past_key_values.0.key"])
    if unknown or missing:
        got = ", ".join([*(f"{name} as well" for name in unknown), *(f"no {name}" for name in missing)])
        hint = "export it for text-generation-with-past"
        raise ModelError("other inputs", where=str(model), expected=expected, got=got, hint=hint)
    for name, _ in caches:
        dims = inputs[name].type.tensor_type.shape.dim
        if len(dims) != 4:
            got, expected = f"{len(dims)} dims", "[batch, heads, rows, head size]"
            raise ModelError(f"a cache of another form: '{name}'", where=str(model), expected=expected, got=got)
    for name in (_LOGITS, *(present for _, present in caches)):
        if name not in outputs:
            raise ModelError(f"no output '{name}'", where=str(model), hint="export it for text-generation-with-past")


def _context(config: ConfigObject) -> int:
    name = next((name for name in _CONTEXTS if name in config and config[name] is not None), None)
    return _DEFAULT_CONTEXT if name is None else config.positive(name)
