"""What a replica loads: when it starts, and when it is told to load what has changed on the disk."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from hipdnn_mlir.serving.faults import UnknownModelError
from hipdnn_mlir.serving.repository import find_models
from hipdnn_mlir.serving.server import ModelServer
from hipdnn_mlir.serving.settings import Settings
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError
from serving.digits import compiled


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("program") / "digits.hipdnn"
    compiled().save(file)
    return file.read_bytes()


def written(data: bytes, *files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def served(settings: Settings, *actions: Callable[[ModelServer], Awaitable[None]]) -> dict[str, str]:
    """Versions of the models of a replica that starts, and does something."""

    async def run() -> dict[str, str]:
        server = ModelServer.__new__(ModelServer)
        await server.__init__(settings)  # type: ignore[misc] # as Ray Serve does
        for action in actions:
            await action(server)
        server._reports.cancel()
        return {entry["name"]: entry["version"] for entry in server.index()}

    return asyncio.run(run())


def test_a_replica_that_starts_leaves_out_what_came_broken(program: bytes, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    written(program, repo / "a/1/m.hipdnn", repo / "a/2/m.hipdnn", tmp_path / "gone.hipdnn")
    paths = (repo, tmp_path / "gone.hipdnn")
    settings = Settings(tuple(map(str, paths)), tuple(find_models(paths)))
    assert served(settings) == {"a": "2", "gone": "1"}
    written(b"half", repo / "a/3/m.hipdnn", repo / "b/m.hipdnn", repo / "c/1.hipdnn", repo / "c/2.hipdnn")
    written(b"", repo / "d/m.onnx")
    (tmp_path / "gone.hipdnn").unlink()
    assert served(settings) == {"a": "2"}


def test_what_was_there_when_the_server_was_started_has_to_load(program: bytes, tmp_path: Path) -> None:
    written(program, tmp_path / "a/m.hipdnn")
    written(b"half", tmp_path / "b/m.hipdnn")
    with pytest.raises(HipdnnMlirError, match=r"b/m\.hipdnn"):
        served(Settings((str(tmp_path),), tuple(find_models([tmp_path]))))
    with pytest.raises(HipdnnMlirError, match=r"b/m\.hipdnn"):
        served(Settings((str(tmp_path / "b"),)))


def test_loading_a_model_looks_at_no_other(program: bytes, tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    written(program, repo / "a/1/m.hipdnn", tmp_path / "gone.hipdnn")
    settings = Settings((str(repo), str(tmp_path / "gone.hipdnn")))

    async def load(server: ModelServer) -> None:
        written(program, repo / "a/2/m.hipdnn")
        written(b"", repo / "c/1.hipdnn", repo / "c/2.hipdnn")
        (tmp_path / "gone.hipdnn").unlink()
        await server.load("a")
        with pytest.raises(ModelError, match=r"c: several \.hipdnn files"):
            await server.load("c")
        with pytest.raises(ModelError, match="no such file"):
            await server.load("gone")
        with pytest.raises(UnknownModelError, match="no model 'd'"):
            await server.load("d")

    assert served(settings, load) == {"a": "2", "gone": "1"}


def test_a_model_that_has_changed_has_to_be_compiled_first(program: bytes, tmp_path: Path) -> None:
    written(program, tmp_path / "compiled.hipdnn")
    model = tmp_path / "m/m.onnx"
    written(b"", model)
    (file,) = find_models([tmp_path / "m"])
    settings = Settings((str(tmp_path / "m"),), (file.compiled(tmp_path / "compiled.hipdnn"),))

    async def load(server: ModelServer) -> None:
        await server.load("m")  # nothing has changed
        os.utime(model, ns=(0, 0))
        with pytest.raises(ModelError, match=r"m\.onnx: models are compiled when the server is started"):
            await server.load("m")
        written(program, tmp_path / "m/m.hipdnn")
        await server.load("m")
        assert server.file("m").path == str(tmp_path / "m/m.hipdnn")

    assert served(settings, load) == {"m": "1"}
