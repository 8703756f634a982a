"""What HTTP's answers are when they leave a replica."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp
from uvicorn.config import HTTP_PROTOCOLS, Config
from uvicorn.server import ServerState

from hipdnn_mlir.serving.whole_answers import send_whole_answers


class Transport(asyncio.Transport):
    """One that keeps what it is given to send, piece by piece."""

    def __init__(self) -> None:
        super().__init__({"socket": None})
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: Any) -> None:
        self.pieces.append(bytes(data))

    def writelines(self, parts: Iterable[Any]) -> None:
        if self.is_closed:
            raise RuntimeError("closed")  # as uvloop's
        self.pieces.append(b"".join(parts))

    def close(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed


def connected(app: ASGIApp) -> tuple[Transport, Any]:
    """A connection to an application, and what speaks HTTP there."""
    config = Config(app, http="auto", lifespan="off", log_config=None)
    config.load()
    protocol: Any = config.http_protocol_class
    transport = Transport()
    made = protocol(config=config, server_state=ServerState(), app_state={})
    made.connection_made(transport)
    return transport, made


async def sent(app: ASGIApp) -> list[bytes]:
    """What a request is answered with, up to the end of the connection."""
    transport, made = connected(app)
    made.data_received(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(60):
        while not transport.is_closed:
            await asyncio.sleep(0)
    return transport.pieces


def test_head_and_body_leave_together_and_streams_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    send_whole_answers()

    async def events() -> Any:
        for text in (b"first", b"second"):
            yield text
            await asyncio.sleep(0.01)

    async def run() -> None:
        (piece,) = await sent(Response(b"body"))
        assert piece.startswith(b"HTTP/1.1 200 OK\r\n")
        assert piece.endswith(b"\r\n\r\nbody")
        pieces = await sent(StreamingResponse(events()))
        assert [word for piece in pieces for word in (b"first", b"second") if word in piece] == [b"first", b"second"]
        assert not any(b"first" in piece and b"second" in piece for piece in pieces)

    asyncio.run(run())


def test_an_answer_for_a_client_that_has_hung_up_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HTTP_PROTOCOLS, "auto", HTTP_PROTOCOLS["auto"])
    send_whole_answers()

    async def run() -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        transport, made = connected(Response())
        made.transport.write(b"answer")
        transport.is_closed = True
        await asyncio.sleep(0.01)
        assert (transport.pieces, problems) == ([], [])

    asyncio.run(run())
