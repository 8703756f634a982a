"""Folders of decoders that Optimum or torch.onnx.export made: `config.json` of transformers, and an ONNX file whose caches grow."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from hipdnn_mlir_runtime.errors import ModelError

from .config import NEUTRAL, DecoderConfig, Search

FILE = "config.json"
_GENERATION = "generation_config.json"
_MODELS = ("model.onnx", "decoder_with_past_model.onnx", "onnx/model.onnx")
_PAST = re.compile(r"past(?:_key_values)?\.(.+)")
_CONTEXTS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length")
"""Names that families have for the number of tokens that they were made for."""
_DEFAULT_CONTEXT = 2048
_IDS, _MASK, _POSITIONS, _LOGITS = "input_ids", "attention_mask", "position_ids", "logits"


def is_exported(folder: Path) -> bool:
    """Whether a folder is of transformers' configuration."""
    return (folder / FILE).is_file()


def read_exported(folder: Path) -> DecoderConfig:
    """Read a folder's configuration, and the names of its model's inputs and outputs.

    Raises:
        ModelError: a file is missing or broken, or the model is no decoder alone.
    """
    config = _json(folder / FILE)
    generation = _json(folder / _GENERATION) if (folder / _GENERATION).is_file() else {}
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
        context_length=_number(config, _CONTEXTS, folder, _DEFAULT_CONTEXT),
        vocab_size=_number(config, ("vocab_size",), folder),
        head_size=inputs[caches[0][0]].type.tensor_type.shape.dim[-1].dim_value,
        stop_tokens=frozenset(_tokens(generation.get("eos_token_id", config.get("eos_token_id")))),
        input_ids=_IDS,
        attention_mask=_MASK,
        position_ids=_POSITIONS if _POSITIONS in inputs else None,
        logits=_LOGITS,
        caches=caches,
        search=_search(generation, folder / _GENERATION),
        grows=True,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise ModelError("wrong value", where=str(path), expected="an object", got=type(data).__name__)
    return data


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
    for name in (_LOGITS, *(present for _, present in caches)):
        if name not in outputs:
            raise ModelError(f"no output '{name}'", where=str(model), hint="export it for text-generation-with-past")


def _number(config: Mapping[str, Any], names: Sequence[str], folder: Path, default: int | None = None) -> int:
    for name in names:
        value = config.get(name, default if name == names[-1] else None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        if value is not None:
            where = f"{folder / FILE}: {name}"
            raise ModelError("wrong value", where=where, expected="a whole number from 1", got=repr(value))
    raise ModelError(f"no {names[0]}", where=str(folder / FILE), expected="a whole number from 1")


def _tokens(value: Any) -> list[int]:
    found = [] if value is None else value if isinstance(value, list) else [value]
    return [token for token in found if isinstance(token, int)]


def _search(generation: Mapping[str, Any], path: Path) -> Search:
    for name, neutral in NEUTRAL.items():
        value = generation.get(name, neutral)
        if value not in (None, neutral):
            expected, hint = f"{neutral}: greedy search and sampling are supported", f"set it to {neutral}"
            raise ModelError("not supported", where=f"{path}: {name}", expected=expected, got=str(value), hint=hint)
    known: dict[str, Any] = {name: generation.get(name) for name in Search.__dataclass_fields__}
    known = {name: value for name, value in known.items() if isinstance(value, (bool, int, float))}
    return Search(**known)
