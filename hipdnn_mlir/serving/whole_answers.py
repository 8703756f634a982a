"""Answers over HTTP leave a replica in one piece: where it is killed, HAProxy has all of one, or nothing, and then asks another replica."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.config import HTTP_PROTOCOLS
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def send_whole_answers() -> None:
    """Have servers that uvicorn starts from now on use `WholeAnswers`; Ray Serve, which starts them, has no setting for that."""
    HTTP_PROTOCOLS["auto"] = f"{__name__}:{WholeAnswers.__name__}"


class WholeAnswers(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, which writes the head of an answer, and then the body."""

    def connection_made(self, transport: Any) -> None:
        """Begin with a connection."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type] # as above


class _Joined:
    """A transport that sends at once what is written in one turn of the event loop."""

    def __init__(self, transport: Any) -> None:
        self._transport, self._loop = transport, asyncio.get_running_loop()
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():  # else the client has hung up
            self._transport.writelines(parts)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
