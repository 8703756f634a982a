"""Which kind of folder a decoder is in."""

from __future__ import annotations

from pathlib import Path

from hipdnn_mlir_runtime.errors import ModelError

from .config import FILE, DecoderConfig, read_config
from .exported import FILE as EXPORTED
from .exported import is_exported, read_exported


def read_folder(folder: Path) -> DecoderConfig:
    """Read what a folder says of its decoder: `genai_config.json`, or transformers' `config.json` where there is none.

    Raises:
        ModelError: neither is there, or as for the one that is.
    """
    if not (folder / FILE).is_file() and is_exported(folder):
        return read_exported(folder)
    if folder.is_dir() and not (folder / FILE).is_file():
        hint = "make one with python -m onnxruntime_genai.models.builder, or with Optimum"
        expected = f"a folder made by the model builder, or one with a decoder and its {EXPORTED}"
        raise ModelError(f"no {FILE}", where=str(folder), expected=expected, hint=hint)
    return read_config(folder)
