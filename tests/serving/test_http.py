"""Answers over HTTP that depend on what happens while a request is read, and on what is in it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hipdnn_mlir.serving import http
from hipdnn_mlir.serving.server import ModelServer
from hipdnn_mlir.serving.settings import Settings
from serving.digits import TOLERANCE, compiled, digits_of

INFER = "/v2/models/digits/infer"


async def nothing() -> None:
    """What happens between the parts of a request where nothing does."""


async def posted(
    server: ModelServer,
    path: str,
    parts: list[bytes],
    *,
    headers: Mapping[str, str] | None = None,
    between: Callable[[], Awaitable[None]] = nothing,
) -> tuple[int, Any]:
    """The code and the JSON of an answer to a request that comes in parts."""
    came, sent = iter(parts), list[Any]()

    async def receive() -> dict[str, Any]:
        part = next(came)
        if part is not parts[0]:
            await between()
        return {"type": "http.request", "body": part, "more_body": part is not parts[-1]}

    async def send(message: Any) -> None:
        sent.append(message)

    names = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    scope = {"type": "http", "method": "POST", "path": path, "headers": names, "query_string": b""}
    await server.__serve_build_asgi_app__()(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / "digits"
    (folder / "1").mkdir(parents=True)
    compiled().save(folder / "1/model.hipdnn")
    return folder


def answering(folder: Path, act: Callable[[ModelServer], Awaitable[None]]) -> None:
    async def run() -> None:
        server = ModelServer.__new__(ModelServer)
        await server.__init__(Settings((str(folder),)))  # type: ignore[misc] # as Ray Serve does
        await act(server)
        server._reports.cancel()

    asyncio.run(run())


def body(**changes: Any) -> bytes:
    given = {"name": "image", "datatype": "FP32", "shape": [1, 1, 8, 8], "data": [0.5] * 64} | changes
    return json.dumps({"inputs": [given]}).encode()


def test_a_model_that_is_loaded_anew_while_a_request_comes_answers_it(folder: Path) -> None:
    async def act(server: ModelServer) -> None:
        async def load() -> None:
            (folder / "2").mkdir()
            (folder / "2/model.hipdnn").write_bytes((folder / "1/model.hipdnn").read_bytes())
            await server.load("digits")
            await asyncio.gather(*server._closing)

        whole = body()
        code, answer = await posted(server, INFER, [whole[:100], whole[100:]], between=load)
        assert (code, answer["model_version"]) == (200, "2")

    answering(folder, act)


def test_long_requests_are_read_and_answered_beside_the_others(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 2000
    images = np.random.default_rng(0).uniform(0, 1, (rows, 1, 8, 8)).astype(np.float32)
    found: list[tuple[str, bool]] = []

    def seen(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any) -> Any:
            found.append((call.__name__, threading.current_thread() is threading.main_thread()))
            return call(*given)

        return called

    for call in (http.read_request, http.write_response):
        monkeypatch.setattr(http, call.__name__, seen(call))

    async def act(server: ModelServer) -> None:
        code, answer = await posted(server, INFER, [body(shape=images.shape, data=images.ravel().tolist())])
        (output,) = answer["outputs"]
        assert (code, output["shape"]) == (200, [rows, 10])
        np.testing.assert_allclose(np.reshape(output["data"], (rows, 10)), digits_of(images), **TOLERANCE)
        await posted(server, INFER, [body()])

    answering(folder, act)
    assert found == [(name, is_main) for is_main in (False, True) for name in ("read_request", "write_response")]


@pytest.mark.parametrize("change", [{"name": "\ud800"}, {"datatype": "\ud800"}, {"shape": ["\ud800"]}])
def test_what_is_no_text_comes_back_in_the_error(change: dict[str, Any], folder: Path) -> None:
    async def act(server: ModelServer) -> None:
        code, answer = await posted(server, INFER, [body(**change)])
        assert code == 400
        assert "\\ud800" in ascii(answer["error"])

    answering(folder, act)
