"""The Open Inference Protocol over HTTP: version 2, with the extensions for binary tensors, statistics and the model repository."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError

from .faults import TooLargeError, status_of
from .tensors import HEADER_LENGTH, read_request, text_bytes, write_response

if TYPE_CHECKING:
    from .server import ModelServer

Handler = Callable[[Request], Awaitable[Response]]
SERVER_NAME = "hipdnn-mlir"
EXTENSIONS = ("binary_tensor_data", "statistics", "model_repository")
_DISCONNECTED = 499
_PLAIN = "identity"
_SHORT = 1 << 16
"""Bytes of JSON that take a millisecond or two."""
_T = TypeVar("_T")


def http_app(server: ModelServer) -> Starlette:
    """Return the application that answers for a server."""
    made = _Answers(server)
    of_model = "/v2/models/{name}"
    of_version = f"{of_model}/versions/{{version}}"
    routes = [
        Route("/v2", made.metadata),
        Route("/v2/health/live", made.live),
        Route("/v2/health/ready", made.ready),
        Route("/v2/models/stats", made.statistics),
        *(Route(f"{path}/infer", made.infer, methods=["POST"]) for path in (of_model, of_version)),
        *(Route(f"{path}/ready", made.model_ready) for path in (of_model, of_version)),
        *(Route(f"{path}/stats", made.statistics) for path in (of_model, of_version)),
        *(Route(path, made.model_metadata) for path in (of_model, of_version)),
        Route("/v2/repository/index", made.index, methods=["POST"]),
        Route("/v2/repository/models/{name}/load", made.load, methods=["POST"]),
    ]
    handlers: dict[Any, Any] = {HipdnnMlirError: failed, ClientDisconnect: disconnected, HTTPException: not_routed}
    return Starlette(routes=routes, exception_handlers=handlers)


async def failed(_: Request, error: Exception) -> Response:
    """Answer with an error."""
    return _error(str(error), status_of(error))


async def not_routed(_: Request, error: HTTPException) -> Response:
    """Answer a request that no route takes."""
    return _error(error.detail, error.status_code, error.headers)


def _error(text: str, code: int, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer that may repeat what a client sent, even what is no text of Unicode."""
    return Response(json.dumps({"error": text}), code, headers, media_type="application/json")


async def disconnected(_: Request, __: Exception) -> Response:
    """Answer nobody."""
    return Response(status_code=_DISCONNECTED)


async def read_body(request: Request, most: int) -> list[bytes]:
    """Return the body of a request, in the parts that it came in.

    Raises:
        ModelError: It is compressed.
        TooLargeError: It has more bytes than are taken. They are read and forgotten, so that the client gets to reading the answer.
    """
    encoding = request.headers.get("content-encoding", _PLAIN)
    if encoding != _PLAIN:
        raise ModelError("compressed bodies are not supported", where="content-encoding", expected=_PLAIN, got=encoding)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
        else:
            chunks.clear()
    if size > most:
        raise TooLargeError("the body is too large", expected=f"at most {most} bytes", got=str(size))
    return chunks


class _Answers:
    """The answers of a server."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(server_metadata())

    async def live(self, _: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(self, _: Request) -> Response:
        return JSONResponse({"ready": True})  # a replica whose models are not loaded gets no requests

    async def model_ready(self, request: Request) -> Response:
        self._server.file(**request.path_params)
        return JSONResponse({"ready": True})

    async def model_metadata(self, request: Request) -> Response:
        return JSONResponse(self._server.metadata(**request.path_params))

    async def statistics(self, request: Request) -> Response:
        return JSONResponse({"model_stats": self._server.statistics(**request.path_params)})

    async def index(self, _: Request) -> Response:
        return JSONResponse(self._server.index())

    async def load(self, request: Request) -> Response:
        await self._server.reload(request.path_params["name"])
        return JSONResponse({})

    async def infer(self, request: Request) -> Response:
        start = time.perf_counter()
        code = 500
        name, model_version = request.path_params["name"], request.path_params.get("version", "")
        try:
            self._server.model(name, model_version)
            body = await read_body(request, self._server.settings.max_body_bytes)
            given = request.headers.get(HEADER_LENGTH)
            asked = await _beside(text_bytes(body, given), read_request, body, given)
            model = self._server.model(name, model_version)  # the one before may have been closed meanwhile
            outputs = await model.infer(asked)
            count = sum(array.nbytes for output, array in outputs.items() if not asked.is_in_binary(output))
            parts, length = await _beside(count, write_response, asked, model.file.name, model.file.version, outputs)
            code = 200
        except ClientDisconnect:
            code = _DISCONNECTED
            raise
        except HipdnnMlirError as error:
            code = status_of(error)
            raise
        finally:
            self._server.answered(name, code, time.perf_counter() - start)
        headers: dict[str, Any] = {"content-type": "application/json"}
        if length is not None:
            headers = {"content-type": "application/octet-stream", HEADER_LENGTH: str(length)}
        return Response(b"".join(parts), headers=headers)


async def _beside(size: int, call: Callable[..., _T], *given: Any) -> _T:
    """Call a function that reads or writes as many bytes of JSON: in a thread where that would keep other requests waiting."""
    return call(*given) if size <= _SHORT else await asyncio.to_thread(call, *given)


def server_metadata() -> dict[str, Any]:
    """Return what the protocol tells of a server."""
    return {"name": SERVER_NAME, "version": version("hipdnn-mlir"), "extensions": list(EXTENSIONS)}
