"""Which kind of folder a decoder is in."""

from __future__ import annotations

from pathlib import Path

from .config import FILE, DecoderConfig, read_config
from .exported import is_exported, read_exported


def read_folder(folder: Path) -> DecoderConfig:
    """Read what a folder says of its decoder: `genai_config.json`, or transformers' `config.json` where there is none.

    Raises:
        ModelError: neither is there, or as for the one that is.
    """
    if not (folder / FILE).is_file() and is_exported(folder):
        return read_exported(folder)
    return read_config(folder)
