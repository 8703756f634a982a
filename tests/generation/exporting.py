"""A process that exports models for tests: it imports PyTorch and transformers once, which takes longer than exports do."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path


def new_exporter() -> Executor:
    """What runs one export after the other; nothing of what they print is seen."""
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
