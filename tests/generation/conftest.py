"""Folders of small decoders that several test files generate with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

import hipdnn_mlir
from generation.decoders import VOCABULARY, export
from generation.exporting import new_process

TEXT = "the quick brown fox jumps over the lazy dog, naïve café; 日本語のテキスト 🙂👍 Привет"
Exported = Callable[..., Path]
Changed = Callable[..., Path]


@pytest.fixture(scope="session")
def exporter() -> Iterator[Executor]:
    """The process that exports models for this one."""
    with new_process() as process:
        yield process


@pytest.fixture(scope="session")
def exported(exporter: Executor, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return the folder of a model, made once in a process; not to be written to.

    Arguments are the family, precision and provider, f32 for the CPU if left out, and the builder's options.
    """
    pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
    made: dict[tuple[str, ...], Path] = {}

    def folder(family: str, precision: str = "fp32", provider: str = "cpu", *options: str) -> Path:
        given = (family, precision, provider, *options)
        if given not in made:
            to = tmp_path_factory.mktemp("-".join(given[:3]))
            exporter.submit(export, family, precision, provider, to, options).result()
            made[given] = to
        return made[given]

    return folder


@pytest.fixture(scope="session")
def llama_program(exported: Exported) -> hipdnn_mlir.Program:
    """The program of the Llama, with logits of all tokens; compiled once, which takes seconds."""
    return hipdnn_mlir.compile(exported("llama") / "model.onnx")


@pytest.fixture
def llama(exported: Exported, tmp_path: Path) -> Path:
    """A folder of a test's own: a Llama, with a tokenizer of bytes and pairs of them."""
    return copy_of(exported("llama"), tmp_path / "llama")


def copy_of(folder: Path, to: Path) -> Path:
    """Copy a folder, without what it was exported from; its tokenizer takes any text."""
    to.mkdir()
    for file in folder.iterdir():
        if file.is_file():
            shutil.copy(file, to)
    write_tokenizer(to)
    return to


def write_tokenizer(folder: Path) -> None:
    """Write a tokenizer of bytes and of what is frequent in `TEXT`; tokens 0 to 2 are special."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT] * 3, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))


def change_config(folder: Path, *path: str, to: Any) -> None:
    """Set a value in `genai_config.json`, or delete it where that is None."""
    file = folder / "genai_config.json"
    data = json.loads(file.read_text())
    at = data
    for name in path[:-1]:
        at = at[name]
    if to is None:
        del at[path[-1]]
    else:
        at[path[-1]] = to
    file.write_text(json.dumps(data))
