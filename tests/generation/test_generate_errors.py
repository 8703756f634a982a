"""What is wrong with a folder, a prompt or an option is one clear error, and leaves what there is as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from generation.conftest import Exported, change_config
from hipdnn_mlir.generate import TextGenerator
from hipdnn_mlir.generate.config import read_config
from hipdnn_mlir.generate.model_file import ModelFile
from hipdnn_mlir_runtime.errors import ModelError


@pytest.fixture(scope="module")
def model(exported: Exported, llama_program: hipdnn_mlir.Program) -> Iterator[TextGenerator]:
    with TextGenerator(exported("llama"), program=llama_program, max_length=32) as made:
        yield made


def _error(call: Any) -> str:
    with pytest.raises(ModelError) as caught:
        call()
    return str(caught.value)


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    text = _error(lambda: TextGenerator(tmp_path))
    assert text == (
        f"{tmp_path}: no genai_config.json: expected a folder made by the model builder, or by Optimum; "
        "make one with python -m onnxruntime_genai.models.builder"
    )
    assert "no genai_config.json" in _error(lambda: TextGenerator(tmp_path / "nowhere"))


CONFIGS: list[tuple[tuple[str, ...], Any, str]] = [
    (("model",), [], "genai_config.json: model: wrong value: expected an object, got []"),
    (("model", "decoder"), None, "genai_config.json: model.decoder: wrong value: expected an object, got nothing"),
    (("model", "decoder", "filename"), "gone.onnx", "model.decoder.filename: no such file: gone.onnx; export it again"),
    (("model", "decoder", "filename"), 3, "model.decoder.filename: wrong value: expected a text, got 3"),
    (("model", "encoder"), {}, "the model has parts beside its decoder: expected a decoder alone"),
    (("model", "vision"), {}, "got type 'llama' with vision"),
    (("model", "decoder", "inputs", "encoder_hidden_states"), "x", "model.decoder.inputs: unknown names: expected a decoder"),
    (("model", "decoder", "outputs", "hidden_states"), "x", "model.decoder.outputs: unknown names"),
    (("model", "decoder", "inputs", "input_ids"), None, "inputs.input_ids: wrong value: expected a text, got nothing"),
    (("model", "decoder", "inputs", "past_key_names"), "past", "past_key_names: wrong value: expected a name with %d"),
    (("model", "decoder", "num_hidden_layers"), 0, "num_hidden_layers: wrong value: expected a whole number from 1, got 0"),
    (("model", "context_length"), "long", "model.context_length: wrong value: expected a whole number, got 'long'"),
    (("model", "context_length"), True, "model.context_length: wrong value: expected a whole number, got True"),
    (("model", "eos_token_id"), "</s>", "model.eos_token_id: wrong value: expected a whole number, or a list of them"),
    (("search", "num_beams"), 4, "search.num_beams: not supported: expected 1: greedy search and sampling are supported, got 4"),
    (("search", "no_repeat_ngram_size"), 3, "search.no_repeat_ngram_size: not supported: expected 0"),
    (("search", "temperature"), "hot", "search.temperature: wrong value: expected a number, got 'hot'"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), CONFIGS, ids=lambda value: str(value)[:40])
def test_a_wrong_configuration_is_refused(llama: Path, path: tuple[str, ...], value: Any, message: str) -> None:
    change_config(llama, *path, to=value)
    text = _error(lambda: read_config(llama))
    assert message in text
    assert text.startswith(str(llama))


def test_a_configuration_that_is_no_json_is_refused(llama: Path) -> None:
    for text in ("{", "[" * 100_000):
        (llama / "genai_config.json").write_text(text)
        assert "genai_config.json: not JSON" in _error(lambda: read_config(llama))


@pytest.mark.parametrize(("given", "want"), [(7, {7}), ([7, 8], {7, 8}), (None, set())])
def test_stop_tokens_are_a_number_a_list_or_missing(llama: Path, given: Any, want: set[int]) -> None:
    change_config(llama, "model", "eos_token_id", to=given)
    assert read_config(llama).stop_tokens == want


def test_values_that_are_null_are_as_if_missing(llama: Path) -> None:
    change_config(llama, "search", "top_k", to=None)
    path = llama / "genai_config.json"
    path.write_text(path.read_text().replace('"top_p": 1.0', '"top_p": null'))
    search = read_config(llama).search
    assert (search.top_k, search.top_p) == (0, 1.0)


def test_names_that_the_program_has_not_are_refused(llama: Path, llama_program: hipdnn_mlir.Program) -> None:
    change_config(llama, "model", "decoder", "outputs", "logits", to="scores")
    text = _error(lambda: TextGenerator(llama, program=llama_program))
    assert "not an output that is known 'logits': expected" in text
    change_config(llama, "model", "decoder", "outputs", "logits", to="logits")
    change_config(llama, "model", "decoder", "num_hidden_layers", to=3)
    text = _error(lambda: TextGenerator(llama, program=llama_program))
    assert "the program has no input 'past_key_values.2.key'" in text


def test_sizes_that_the_model_has_not_are_refused(llama: Path, llama_program: hipdnn_mlir.Program) -> None:
    change_config(llama, "model", "vocab_size", to=999)
    text = _error(lambda: TextGenerator(llama, program=llama_program))
    assert text == f"{llama}: the configuration has another vocab_size than the model: expected 1000, got 999"
    change_config(llama, "model", "context_length", to=4096)
    text = _error(lambda: TextGenerator(llama, program=llama_program))
    assert text == (
        f"{llama}: a context_length beyond the model's table of rotary angles: expected at most 1024, got 4096"
    )


@pytest.mark.parametrize("value", [False, None])
def test_buffers_that_are_said_to_grow_are_refused(llama: Path, value: bool | None) -> None:
    change_config(llama, "search", "past_present_share_buffer", to=value)
    text = _error(lambda: TextGenerator(llama))
    assert "caches that are said to grow: expected buffers, with GroupQueryAttention; set search.past_present" in text


def test_a_use_of_the_masks_length_that_is_not_known_is_refused(llama: Path) -> None:
    graph = onnx.load(llama / "model.onnx", load_external_data=False)
    shape = next(node for node in graph.graph.node if node.op_type == "Shape")
    graph.graph.node.append(onnx.helper.make_node("Add", [shape.output[0], shape.output[0]], ["twice"], "twice"))
    onnx.save(graph, llama / "model.onnx")
    assert "model.onnx: twice: Add uses the length of the mask" in _error(ModelFile(read_config(llama)).mask_lengths)
    (llama / "model.onnx").write_bytes(b"no model")
    assert "model.onnx: cannot be read" in _error(lambda: TextGenerator(llama))


def test_tokens_are_taken_without_a_tokenizer(
    llama: Path, llama_program: hipdnn_mlir.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TextGenerator(llama, program=llama_program) as model:
        want = model.generate("the fox", max_new_tokens=5)
        prompt = model.tokenizer.encode("the fox")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for has_file, message in (
        (True, "the package tokenizers is not installed; pip install 'hipdnn-mlir[generate]'"),
        (False, f"{llama}: no tokenizer.json; give tokens in the place of texts"),
    ):
        if not has_file:
            (llama / "tokenizer.json").unlink()
        with TextGenerator(llama, program=llama_program) as model:
            (made,) = model.generate(prompt, max_new_tokens=5)
            assert (made.tokens, made.text) == (want[0].tokens, "")
            assert message in _error(lambda: model.generate("the fox"))
            assert message in _error(lambda: model.tokenizer)


def test_a_tokenizer_that_cannot_be_read_is_an_error(llama: Path, llama_program: hipdnn_mlir.Program) -> None:
    (llama / "tokenizer.json").write_text("{}")
    with TextGenerator(llama, program=llama_program) as model:
        assert "tokenizer.json: the package tokenizers cannot read it" in _error(lambda: model.generate("the"))


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        (
            [3] * 33,
            "the prompt is too long: 33 tokens: expected at most 32; shorten it, or raise max_length (up to 1024)",
        ),
        ([[3], [3] * 40], "the prompt is too long: 40 tokens: expected at most 32"),
        ([], "prompts: no prompt: expected a text, tokens, or a list of these"),
        ([[]], "an empty prompt: expected at least one token"),
        ([[3], []], "an empty prompt"),
        ([1000], "no such token: expected numbers from 0 to 999, got 1000"),
        ([[3], [-1]], "no such token: expected numbers from 0 to 999, got -1"),
        ([[1.5]], "no such token: expected numbers from 0 to 999, got 1.5"),
        ([[True]], "no such token: expected numbers from 0 to 999, got True"),
        (None, "no prompt: expected a text, or its tokens, got None"),
        (5, "no prompt: expected a text, or its tokens, got 5"),
        ([[3], 5], "no prompt: expected a text, or its tokens, got 5"),
        (b"3", "no prompt: expected a text, or its tokens, got b'3'"),
        (np.array(3), "no prompt: expected a text, or its tokens, got array(3)"),
    ],
    ids=str,
)
def test_prompts_that_do_not_fit_are_refused(model: TextGenerator, prompts: Any, message: str) -> None:
    assert _error(lambda: list(model.stream(prompts))).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_new_tokens": 31}, "max_new_tokens: no room for 31 tokens behind 2: expected at most 30; ask for fewer, or raise max_length"),
        ({"max_new_tokens": 0}, "max_new_tokens: bad value: expected a whole number from 1, got 0"),
        ({"max_new_tokens": 2.5}, "max_new_tokens: bad value: expected a whole number from 1, got 2.5"),
        ({"max_new_tokens": "5"}, "max_new_tokens: bad value: expected a whole number from 1, got '5'"),
        ({"stop_tokens": 5}, "stop_tokens: bad value: expected whole numbers, got 5"),
        ({"stop_tokens": "5"}, "stop_tokens: bad value: expected whole numbers, got '5'"),
        ({"temperature": -1.0}, "temperature: bad value: expected a number from 0, got -1.0"),
        ({"top_p": 1.5}, "top_p: bad value: expected a number above 0, up to 1, got 1.5"),
    ],
    ids=str,
)  # fmt: skip
def test_options_that_do_not_fit_are_refused_at_once(model: TextGenerator, options: Any, message: str) -> None:
    assert _error(lambda: model.stream([3, 4], **options)).startswith(message)


@pytest.mark.parametrize("length", [0, -1, 1025, 2.5])
def test_caches_beyond_the_context_are_refused(exported: Exported, length: Any) -> None:
    text = _error(lambda: TextGenerator(exported("llama"), max_length=length))
    assert text == f"max_length: bad value: expected a number from 1 to the context length, 1024, got {length}"


def test_a_batch_of_none_is_refused(model: TextGenerator) -> None:
    assert _error(lambda: model.start(0)) == "batch_size: bad value: expected a whole number from 1, got 0"


def test_nothing_is_put_behind_a_text(model: TextGenerator) -> None:
    text = model.start()
    for nothing in ([], [[]]):
        text.append([3, 4])
        text.append(nothing)
        assert text.tokens == [[3, 4]]
        text.rewind_to(0)


def test_texts_stay_as_they_are_after_an_error(model: TextGenerator) -> None:
    sequences = model.start(2)
    sequences.append([[3, 4], [5]])
    for call, message in (
        (lambda: sequences.append([[6], [7] * 40]), "the prompt is too long: 40 tokens behind 1: expected at most 31"),
        (lambda: sequences.append([[6], [2000]]), "no such token"),
        (lambda: sequences.append([[6]]), "wrong number of prompts: expected 2, got 1"),
        (lambda: sequences.append([6]), "wrong number of prompts: expected 2, got 1"),
        (lambda: sequences.rewind_to(2), "cannot rewind: expected lengths up to [2, 1], got 2"),
        (lambda: sequences.rewind_to([1]), "cannot rewind"),
        (lambda: sequences.rewind_to(-1), "cannot rewind"),
        (lambda: sequences.rewind_to([1, 0.5]), "cannot rewind"),
        (lambda: sequences.rewind_to(0.5), "cannot rewind"),
        (lambda: sequences.stream(top_k=-1), "top_k: bad value"),
    ):
        assert _error(call).startswith(message)
        assert sequences.tokens == [[3, 4], [5]]
    made = [token.id for token in sequences.stream(max_new_tokens=5, stop_tokens=()) if token.row == 0]
    (want,) = model.generate([3, 4], max_new_tokens=5, stop_tokens=())
    assert tuple(made) == want.tokens


def test_a_closed_generator_says_so(exported: Exported, llama_program: hipdnn_mlir.Program) -> None:
    model = TextGenerator(exported("llama"), program=llama_program, max_length=32)
    stream = model.stream([3], stop_tokens=())
    next(stream)
    model.close()
    for call in (lambda: list(model.stream([3])), lambda: next(stream), model.start):
        assert "the session is closed" in _error(call)
