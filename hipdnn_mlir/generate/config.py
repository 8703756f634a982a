"""What a folder of onnxruntime-genai's model builder says of its model: `genai_config.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.errors import ModelError

FILE = "genai_config.json"
SUPPORTED = "a decoder alone, with a cache of keys and values for each layer"
"""What can be generated with, for messages."""

_INPUTS = frozenset({"input_ids", "attention_mask", "position_ids", "past_key_names", "past_value_names"})
_OUTPUTS = frozenset({"logits", "present_key_names", "present_value_names"})
_OTHER_PARTS = ("encoder", "vision", "speech", "embedding")
_NEUTRAL = {"num_beams": 1, "num_return_sequences": 1, "no_repeat_ngram_size": 0, "min_length": 0}
"""Settings of a search that are not supported -> the value that changes nothing."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "a text": (str,),
    "an object": (dict,),
    "a number": (int, float),
    "a whole number": (int,),
    "true or false": (bool,),
}


@dataclass(frozen=True)
class Search:
    """How the folder wants tokens to be chosen where the caller does not say.

    Attributes:
        do_sample: whether to draw them; else the most likely one is taken.
        temperature: divides logits.
        top_k: number of most likely tokens that are drawn from; 0 for all.
        top_p: probability that the tokens drawn from have together.
        repetition_penalty: lowers logits of tokens that are there already; 1 does not.
        where: what comes before the names of these in messages: the file, and a path in it.
    """

    do_sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class DecoderConfig:
    """The decoder of a folder.

    Attributes:
        folder: the folder.
        model: its ONNX file.
        context_length: tokens that the model was made for.
        vocab_size: number of tokens that there are.
        stop_tokens: tokens that end a text.
        input_ids: name of the input of tokens.
        attention_mask: name of the input that says which tokens are valid.
        position_ids: name of the input of positions; None where the model has none.
        logits: name of the output.
        caches: names of each cache as input and as output.
        search: how tokens are chosen by default.
        grows: whether the model has caches that grow by what is new.
    """

    folder: Path
    model: Path
    context_length: int
    vocab_size: int
    stop_tokens: frozenset[int]
    input_ids: str
    attention_mask: str
    position_ids: str | None
    logits: str
    caches: tuple[tuple[str, str], ...]
    search: Search
    grows: bool = False

    @property
    def last_valid(self) -> dict[str, str]:
        """Which outputs are read at the last valid position alone, as for `hipdnn_mlir.compile`."""
        return {self.logits: self.attention_mask}


def read_config(folder: Path) -> DecoderConfig:
    """Read a folder's configuration.

    Raises:
        ModelError: it is not there, is broken, names a file that is not there, or is of a model or a search that is not supported.
    """
    path = folder / FILE
    if not path.is_file():
        hint = "make one with python -m onnxruntime_genai.models.builder"
        raise ModelError(
            f"no {FILE}", where=str(folder), expected="a folder made by the model builder, or by Optimum", hint=hint
        )
    root = read_object(path)
    model = root.object("model")
    parts = [part for part in _OTHER_PARTS if part in model]
    if parts:
        got = f"type {model.get('type', 'a text', 'unknown')!r} with {', '.join(parts)}"
        raise ModelError("the model has parts beside its decoder", where=str(path), expected=SUPPORTED, got=got)
    decoder = model.object("decoder")
    file = folder / decoder.get("filename", "a text")
    if not file.is_file():
        raise ModelError(f"no such file: {file.name}", where=f"{path}: model.decoder.filename", hint="export it again")
    inputs, outputs = decoder.object("inputs"), decoder.object("outputs")
    for names, known in ((inputs, _INPUTS), (outputs, _OUTPUTS)):
        unknown = sorted(set(names) - known)
        if unknown:
            raise ModelError("unknown names", where=names.where, expected=SUPPORTED, got=", ".join(unknown))
    layers, search = decoder.positive("num_hidden_layers"), root.object("search")
    return DecoderConfig(
        folder,
        file,
        context_length=model.positive("context_length"),
        vocab_size=model.positive("vocab_size"),
        stop_tokens=frozenset(model.numbers("eos_token_id")),
        input_ids=inputs.get("input_ids", "a text"),
        attention_mask=inputs.get("attention_mask", "a text"),
        position_ids=inputs.get("position_ids", "a text", "") or None,
        logits=outputs.get("logits", "a text"),
        caches=tuple(
            (past.numbered(layer), present.numbered(layer))
            for past, present in (
                (_Pattern(inputs, f"past_{kind}_names"), _Pattern(outputs, f"present_{kind}_names"))
                for kind in ("key", "value")
            )
            for layer in range(layers)
        ),
        search=read_search(search),
        grows=not search.get("past_present_share_buffer", "true or false", default=False),
    )


def read_search(search: ConfigObject, top_k: int = Search.top_k) -> Search:
    """Return what is said of the search.

    Args:
        search: what says it.
        top_k: number of tokens that are drawn from where that is not said.

    Raises:
        ModelError: a value is of another kind, or asks for what is not supported.
    """
    for name, neutral in _NEUTRAL.items():
        value = search.get(name, "a number", neutral)
        if value != neutral:
            expected, hint = f"{neutral}: greedy search and sampling are supported", f"set it to {neutral}"
            raise ModelError("not supported", where=search.at(name), expected=expected, got=str(value), hint=hint)
    return Search(
        search.get("do_sample", "true or false", Search.do_sample),
        search.get("temperature", "a number", Search.temperature),
        search.get("top_k", "a whole number", top_k),
        search.get("top_p", "a number", Search.top_p),
        search.get("repetition_penalty", "a number", Search.repetition_penalty),
        search.at(""),
    )


def read_object(path: Path) -> ConfigObject:
    """Read a file of one object.

    Raises:
        ModelError: it is not JSON, or of something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"not JSON: {error}", where=str(path)) from error
    return ConfigObject(data, str(path))


class ConfigObject(dict[str, Any]):
    """An object of a file, read with errors that say where it is wrong."""

    def __init__(self, data: Any, where: str, path: str = "") -> None:
        self._file, self._path = where, path
        if not isinstance(data, dict):
            raise ModelError("wrong value", where=self.where, expected="an object", got=repr(data))
        super().__init__(data)

    @property
    def where(self) -> str:
        """The file and the path in it."""
        return f"{self._file}: {self._path}" if self._path else self._file

    def at(self, name: str) -> str:
        """The file and the path of a value."""
        return f"{self._file}: {self._below(name)}"

    def _below(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def get(self, name: str, kind: str, default: Any = None) -> Any:  # type: ignore[override]
        """Return a value of a kind in `_KINDS`; without a default it has to be there."""
        value = super().get(name, default)
        if value is None and name in self:
            value = default
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "true or false"):
            got = repr(value) if name in self else "nothing"
            raise ModelError("wrong value", where=self.at(name), expected=kind, got=got)
        return value

    def object(self, name: str) -> ConfigObject:
        """Return an object in this one."""
        return ConfigObject(self.get(name, "an object"), self._file, self._below(name))

    def positive(self, name: str) -> int:
        """Return a whole number from 1."""
        value: int = self.get(name, "a whole number")
        if value < 1:
            raise ModelError("wrong value", where=self.at(name), expected="a whole number from 1", got=str(value))
        return value

    def numbers(self, name: str) -> list[int]:
        """Return a whole number or a list of them as a list; none where it is not there."""
        value = super().get(name)
        found = [] if value is None else value if isinstance(value, list) else [value]
        if not all(map(is_whole, found)):
            expected = "a whole number, or a list of them"
            raise ModelError("wrong value", where=self.at(name), expected=expected, got=repr(value))
        return found


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, Python's or NumPy's."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


class _Pattern:
    """Names of one thing of each layer, such as `present.%d.key`."""

    def __init__(self, names: ConfigObject, name: str) -> None:
        self._text: str = names.get(name, "a text")
        if self._text.count("%d") != 1:
            where = f"{names.where}.{name}"
            raise ModelError("wrong value", where=where, expected="a name with %d for the layer", got=repr(self._text))

    def numbered(self, layer: int) -> str:
        return self._text.replace("%d", str(layer))
