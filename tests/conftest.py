"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import onnx
import pytest
from hypothesis import settings

import hipdnn_mlir
from commands import PATIENCE_S, run_in_fork
from drawing import draws
from models import resnet

settings.register_profile("here", draws(50))
settings.load_profile("here")

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: at the end one file of them would keep one process while the others have nothing left."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """Have Python look for cycles less often, and not among what was imported and collected, which stays."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.fixture(scope="session", autouse=True)
def _cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests leave in the user's cache folder, such as plans, out of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ONNX file that compiles whole: a small ResNet with input ``image`` f32[1,3,32,32]."""
    path = tmp_path_factory.mktemp("models") / "small.onnx"
    onnx.save(resnet(), path)
    return path


@pytest.fixture(scope="session")
def small_program(small_model: Path) -> Path:
    """The program file of ``small_model``; not to be written to."""
    path = small_model.with_suffix(".hipdnn")
    hipdnn_mlir.compile(small_model).save(path)
    return path


@pytest.fixture
def program(small_program: Path, tmp_path: Path) -> Path:
    """A copy of the program file of ``small_model``, named ``small.hipdnn``."""
    return Path(shutil.copy(small_program, tmp_path / "small.hipdnn"))


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run ``hipdnn-mlir`` with arguments in an empty directory; its scratch files go to ``scratch`` beside it.

    A process of its own, with a child to compile in, is asked for by ``env``, which may be empty: other commands are forks.
    """
    work, scratch = tmp_path / "work", tmp_path / "scratch"
    work.mkdir()
    scratch.mkdir()

    def run(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        words = [*map(str, arguments)]
        environment = {**os.environ, "TMPDIR": str(scratch), "COLUMNS": "200", **(env or {})}
        if env is None:
            return run_in_fork(words, work, environment)
        return subprocess.run(
            [sys.executable, "-P", "-m", "hipdnn_mlir", *words],
            capture_output=True,
            text=True,
            cwd=work,
            env=environment,
            check=False,
            timeout=PATIENCE_S,
        )

    return run
