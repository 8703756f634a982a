"""Processes that export models or generate text for tests: what they import takes longer than what they do."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any


def new_process() -> Executor:
    """What runs one call after the other; nothing of what they print is seen."""
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _be_quiet)


def _be_quiet() -> None:
    warnings.simplefilter("ignore")
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)


def export_of_transformers(name: str, exporter: str, path: Path) -> None:
    """As `of_transformers.export`, which imports PyTorch: not before this is called."""
    from generation.of_transformers import export

    export(name, exporter, str(path))


def generated_by_genai(folder: Path, provider: str, ways: Sequence[str]) -> dict[str, Any]:
    """As `ways.generated`, with programs kept in the folder."""
    from generation.ways import generated

    os.environ["XDG_CACHE_HOME"] = str(folder)
    return generated(str(folder), provider, ways)


def rendered_by_transformers(folder: Path, messages: Sequence[dict[str, str]]) -> str:
    """The prompt that the template of a folder makes of messages."""
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))
