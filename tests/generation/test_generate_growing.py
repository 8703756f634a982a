"""Text from decoders as Optimum and torch.onnx.export make them: caches that grow in the model, against ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import hipdnn_mlir
from generation.growing import VOCABULARY, decode, growing_model, pieces_of
from hipdnn_mlir.generate import BatchGenerator, TextGenerator
from hipdnn_mlir.generate.config import Search
from hipdnn_mlir.generate.folder import read_folder
from hipdnn_mlir_runtime.errors import ModelError

CONFIG = {"vocab_size": VOCABULARY, "max_position_embeddings": 512, "eos_token_id": 2}
PROMPTS = [pieces_of(1, (count,), seed=count)[0][0].tolist() for count in (7, 7, 3, 12)]
NEW = 64


def _folder(path: Path, model: onnx.ModelProto) -> Path:
    path.mkdir()
    onnx.save(model, path / "model.onnx")
    (path / "config.json").write_text(json.dumps(CONFIG))
    return path


@pytest.fixture(scope="module")
def placed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _folder(tmp_path_factory.mktemp("placed") / "model", growing_model(is_placed=True))


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model that counts positions by itself."""
    return _folder(tmp_path_factory.mktemp("counted") / "model", growing_model("by index"))


@pytest.fixture(scope="module")
def windowed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a model that is told positions, and sees the last rows alone."""
    model = growing_model("flags in a window", is_placed=True)
    return _folder(tmp_path_factory.mktemp("windowed") / "model", model)


@pytest.fixture(scope="module")
def generator(placed: Path) -> Iterator[TextGenerator]:
    with TextGenerator(placed, max_length=128) as made:
        yield made


def _expected(folder: Path, prompt: Sequence[int], count: int) -> list[int]:
    """The greedy tokens behind a prompt, by ONNX Runtime's CPU provider."""
    session = ort.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    found: list[int] = []
    pieces = [np.array([prompt])]
    # One piece more for each token: the loop of `decode` starts anew, which is quick for models of this size.
    while len(found) < count:
        (*_, logits), _ = decode(session, [np.concatenate(pieces, 1)])
        found.append(int(logits[0].argmax()))
        pieces.append(np.array([found[-1:]]))
    return found


def test_tokens_are_those_of_the_cpu_provider(generator: TextGenerator, placed: Path) -> None:
    for prompt in PROMPTS[1:]:
        tokens = [token.id for token in generator.stream(prompt, max_new_tokens=NEW, stop_tokens=[])]
        assert tokens == _expected(placed, prompt, NEW)


def test_texts_of_a_batch_are_as_alone_when_their_prompts_differ_in_length(
    generator: TextGenerator, placed: Path
) -> None:
    made = generator.generate(PROMPTS, max_new_tokens=NEW, stop_tokens=[])
    assert [list(one.tokens) for one in made] == [_expected(placed, prompt, NEW) for prompt in PROMPTS]


def test_logits_of_the_last_valid_token_alone_are_those_of_the_model(generator: TextGenerator, placed: Path) -> None:
    with TextGenerator(placed, program=hipdnn_mlir.compile(placed / "model.onnx"), max_length=128) as whole:
        found = []
        for one in (generator, whole):
            sequences = one.start(3)
            sequences.append(PROMPTS[1:])
            first = sequences.logits()
            sequences.append([[5], [6, 7, 8], []])
            found.append((first, sequences.logits()))
        assert [one._session.get_outputs()[0].shape[1] for one in (generator, whole)] == [1, "s"]
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("folder", ["placed", "windowed"])
def test_texts_end_one_by_one_and_go_on(folder: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(folder)
    alone = [_expected(path, prompt, 20) for prompt in PROMPTS[:3]]
    with TextGenerator(path, max_length=128) as model:
        chat = model.start(3)
        chat.append(PROMPTS[:3])
        stop = alone[1][4]
        for _ in chat.stream(max_new_tokens=20, stop_tokens=[stop]):
            pass
        ended = [tokens[: tokens.index(stop) + 1] if stop in tokens else tokens for tokens in alone]
        assert chat.tokens == [prompt + tokens for prompt, tokens in zip(PROMPTS[:3], ended, strict=True)]
        texts = chat.tokens
        chat.append([[5, 6], [], [8]])
        list(chat.stream(max_new_tokens=5, stop_tokens=[]))
        for row, more in enumerate(([5, 6], [], [8])):
            behind = texts[row] + more
            assert chat.tokens[row] == behind + _expected(path, behind, 5)


@pytest.mark.parametrize("folder", ["placed", "counted"])
def test_texts_are_rewound(folder: str, request: pytest.FixtureRequest) -> None:
    path = request.getfixturevalue(folder)
    with TextGenerator(path, max_length=64) as model:
        chat = model.start(2)
        chat.append(PROMPTS[:2])
        list(chat.stream(max_new_tokens=20, stop_tokens=[]))
        whole = chat.tokens
        for length in (20, 20, 9, 7):
            chat.rewind_to(length)
            list(chat.stream(max_new_tokens=27 - length, stop_tokens=[]))
            assert chat.tokens == whole


def test_a_text_fills_the_caches_to_the_last_row(placed: Path) -> None:
    prompts = PROMPTS[1:]
    room = max(map(len, prompts)) + 20
    with TextGenerator(placed, max_length=room) as model:
        chat = model.start(3)
        chat.append(prompts)
        for length in (None, [10, 5, 14]):  # rows that are for no text are taken back when there are no others
            if length is not None:
                chat.rewind_to(length)
            list(chat.stream(stop_tokens=[]))
            assert chat.tokens == [prompt + _expected(placed, prompt, room - len(prompt)) for prompt in prompts]


def test_a_model_that_counts_positions_takes_prompts_of_one_length(counted: Path) -> None:
    with TextGenerator(counted, max_length=128) as model:
        made = model.generate(PROMPTS[:2], max_new_tokens=NEW, stop_tokens=[])
        assert [list(one.tokens) for one in made] == [_expected(counted, prompt, NEW) for prompt in PROMPTS[:2]]
        message = "texts of different lengths in one batch: expected prompts of one length, or a model with an input position_ids, got 7, 3"
        with pytest.raises(ModelError, match=message):
            model.generate([PROMPTS[0], PROMPTS[2]], max_new_tokens=NEW)


def test_pages_are_refused(placed: Path) -> None:
    with pytest.raises(ModelError, match=r"caches that grow in the model cannot be pages.*use TextGenerator"):
        BatchGenerator(placed, pages=4)


def test_steps_of_all_lengths_are_one_specialization(generator: TextGenerator) -> None:
    list(generator.stream(PROMPTS[0], max_new_tokens=2, stop_tokens=[]))
    known = generator._session.stats.specializations
    list(generator.stream(PROMPTS[0], max_new_tokens=NEW, stop_tokens=[]))
    assert generator._session.stats.specializations == known


def _change(folder: Path, file: str, **values: Any) -> None:
    path = folder / file
    known = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({name: value for name, value in {**known, **values}.items() if value is not None}))


WRONG = [
    ("config.json", {"vocab_size": None}, "config.json: vocab_size: wrong value: expected a whole number, got nothing"),
    ("config.json", {"max_position_embeddings": "long"}, "max_position_embeddings: wrong value: expected a whole"),
    ("config.json", {"eos_token_id": "</s>"}, "config.json: eos_token_id: wrong value: expected a whole number, or a"),
    ("generation_config.json", {"num_beams": 4}, "generation_config.json: num_beams: not supported: expected 1"),
    ("generation_config.json", {"temperature": "hot"}, "generation_config.json: temperature: wrong value: expected a"),
    ("generation_config.json", {"top_k": 5.0}, "generation_config.json: top_k: wrong value: expected a whole number"),
    ("generation_config.json", {"eos_token_id": ["</s>"]}, "generation_config.json: eos_token_id: wrong value"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "values", "message"), WRONG)
def test_what_is_wrong_in_a_folder_is_said(file: str, values: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", growing_model(layers=1))
    _change(folder, file, **values)
    with pytest.raises(ModelError, match=message):
        read_folder(folder)


def test_a_model_without_caches_or_with_other_inputs_is_refused(tmp_path: Path) -> None:
    model = growing_model(layers=1)
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("encoder_hidden_states", onnx.TensorProto.FLOAT, ["b", "e", 8])
    )
    folder = _folder(tmp_path / "model", model)
    with pytest.raises(ModelError, match=r"other inputs: expected input_ids.*got encoder_hidden_states as well"):
        read_folder(folder)
    model = growing_model(layers=1)
    model.graph.input[-1].type.tensor_type.ClearField("shape")
    onnx.save(model, folder / "model.onnx")
    message = (
        r"a cache of another form: 'past_key_values.0.value': expected \[batch, heads, rows, head size\], got 0 dims"
    )
    with pytest.raises(ModelError, match=message):
        read_folder(folder)
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelError, match=r"no model: expected one ONNX file, as model.onnx, got none"):
        read_folder(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config.json: not JSON"):
        read_folder(folder)


def test_defaults_of_the_folder_are_those_of_generation_config(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model", growing_model(layers=1))
    _change(folder, "generation_config.json", do_sample=True, temperature=0.5, top_k=7, eos_token_id=[3, 4])
    config = read_folder(folder)
    assert (config.search.do_sample, config.search.temperature, config.search.top_k) == (True, 0.5, 7)
    assert config.stop_tokens == {3, 4}
    assert config.context_length == 512
    for given in ({}, {"top_k": None}):
        (folder / "generation_config.json").write_text(json.dumps({"do_sample": True, **given}))
        assert read_folder(folder).search == Search(do_sample=True, top_k=50), "as transformers draws"
