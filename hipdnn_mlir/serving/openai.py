"""Texts over HTTP, in the form that OpenAI's clients speak: completions and chat completions, whole or as server-sent events."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError

from ..generate import Request
from .faults import QueueFullError, UnknownModelError, status_of
from .http import read_body
from .text_request import TextRequest, read_text_request
from .texts import Piece, ServedTexts

if TYPE_CHECKING:
    from .server import ModelServer


def text_routes(server: ModelServer) -> list[Route]:
    """Return the routes for texts."""

    async def completions(request: HttpRequest) -> Response:
        return await _answered(server, request, is_chat=False)

    async def chat(request: HttpRequest) -> Response:
        return await _answered(server, request, is_chat=True)

    async def models(_: HttpRequest) -> Response:
        return JSONResponse({"object": "list", "data": [_model(name) for name in server.text_models()]})

    async def model(request: HttpRequest) -> Response:
        try:
            return JSONResponse(_model(server.text_model(request.path_params["name"]).file.name))
        except UnknownModelError as error:
            return _failed(error)

    return [
        Route("/v1/completions", completions, methods=["POST"]),
        Route("/v1/chat/completions", chat, methods=["POST"]),
        Route("/v1/models", models),
        Route("/v1/models/{name}", model),
    ]


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "owned_by": "hipdnn-mlir"}


async def _answered(server: ModelServer, request: HttpRequest, *, is_chat: bool) -> Response:
    start, code, name = time.perf_counter(), 500, ""
    try:
        body = b"".join(await read_body(request, server.settings.max_body_bytes))
        asked = await asyncio.to_thread(read_text_request, body, is_chat=is_chat)
        name = asked.model
        model = server.text_model(name)
        prompts = await asyncio.to_thread(_prompts, model, asked)
        answer = _Answer(model, asked, _submitted(model, asked, prompts))
        code = 200
        if asked.is_streamed:
            return StreamingResponse(answer.events(), media_type="text/event-stream")
        return JSONResponse(await answer.whole())
    except HipdnnMlirError as error:
        code = status_of(error)
        return _failed(error)
    finally:
        server.answered(name, code, time.perf_counter() - start)


def _failed(error: HipdnnMlirError) -> Response:
    code, is_full = status_of(error), isinstance(error, QueueFullError)
    kind = "rate_limit_error" if is_full else "invalid_request_error" if code < 500 else "server_error"
    reason = "model_not_found" if isinstance(error, UnknownModelError) else None
    found = {"message": str(error), "type": kind, "param": error.where, "code": reason}
    headers = {"Retry-After": "1"} if is_full else None
    # A message may quote what is no Unicode; Starlette's own answers cannot.
    return Response(json.dumps({"error": found}), code, headers, "application/json")


def _prompts(model: ServedTexts, asked: TextRequest) -> list[Sequence[int]]:
    """Return the tokens that are continued; not for the event loop, since long texts take seconds."""
    if asked.messages is not None:
        return [model.tokens(model.template.render(asked.messages), special=False)]
    return [model.tokens(prompt) for prompt in asked.prompts]


def _submitted(model: ServedTexts, asked: TextRequest, prompts: Sequence[Sequence[int]]) -> list[Request]:
    """Put all texts that are asked for into the queue; none where one does not fit."""
    model.check_places(len(prompts) * asked.count)
    made: list[Request] = []
    try:
        for prompt in prompts:
            most = asked.limit.within(model.max_length - len(prompt))
            for _ in range(asked.count):
                options = {**asked.options, "max_new_tokens": most}
                if options.get("seed") is not None:
                    options["seed"] += len(made)  # equal prompts are to have texts of their own
                made.append(model.submit(prompt, options))  # type: ignore[arg-type] # read_text_request knows the keys
    except ModelError:
        for request in made:
            request.cancel()
        raise
    return made


@dataclass
class _Answer:
    """What is generated for a request of a client.

    Attributes:
        model: Generates.
        asked: What the client asked for.
        requests: A text each.
        tokens: How many were generated so far.
    """

    model: ServedTexts
    asked: TextRequest
    requests: Sequence[Request]
    tokens: int = 0
    _head: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        kind = "chatcmpl" if self._is_chat else "cmpl"
        self._head = {
            "id": f"{kind}-{uuid.uuid4().hex}",
            "object": "chat.completion" if self._is_chat else "text_completion",
            "created": int(time.time()),
            "model": self.model.file.name,
        }

    @property
    def _is_chat(self) -> bool:
        return self.asked.messages is not None

    async def whole(self) -> dict[str, Any]:
        """Return the answer when all texts are there."""
        pieces = await asyncio.gather(*(self._collected(request) for request in self.requests))
        choices = []
        for index, own in enumerate(pieces):
            text = "".join(piece.text for piece in own)
            made = {"message": {"role": "assistant", "content": text}} if self._is_chat else {"text": text}
            choices.append({"index": index, **made, "logprobs": None, "finish_reason": own[-1].finish_reason or None})
        return {**self._head, "choices": choices, "usage": self._usage()}

    async def _collected(self, request: Request) -> list[Piece]:
        async with aclosing(self.model.pieces(request, self.asked.stops)) as pieces:
            found = [piece async for piece in pieces]
        self.tokens += sum(piece.tokens for piece in found)
        return found

    async def events(self) -> AsyncIterator[str]:
        """Give the answer as it comes; an error in the middle is an event, too."""
        if self._is_chat:
            self._head["object"] = "chat.completion.chunk"
            for index in range(len(self.requests)):
                yield self._event(index, {"delta": {"role": "assistant", "content": ""}}, None)
        try:
            async with aclosing(self._merged()) as merged:
                async for index, piece in merged:
                    self.tokens += piece.tokens
                    if piece.text or piece.finish_reason:
                        made = {"delta": {"content": piece.text}} if self._is_chat else {"text": piece.text}
                        yield self._event(index, made, piece.finish_reason or None)
        except HipdnnMlirError as error:
            yield _sent({"error": {"message": str(error), "type": "server_error", "param": None, "code": None}})
            return
        if self.asked.has_usage:
            yield _sent({**self._head, "choices": [], "usage": self._usage()})
        yield "data: [DONE]\n\n"

    async def _merged(self) -> AsyncGenerator[tuple[int, Piece], None]:
        """Give the pieces of all texts as they come, with the number of the text."""
        came: asyncio.Queue[tuple[int, Piece] | BaseException | None] = asyncio.Queue()

        async def pass_on(index: int, request: Request) -> None:
            try:
                async with aclosing(self.model.pieces(request, self.asked.stops)) as pieces:
                    async for piece in pieces:
                        came.put_nowait((index, piece))
                came.put_nowait(None)
            except HipdnnMlirError as error:
                came.put_nowait(error)

        tasks = [asyncio.create_task(pass_on(index, request)) for index, request in enumerate(self.requests)]
        left = len(tasks)
        try:
            while left:
                item = await came.get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    left -= 1
                else:
                    yield item
        finally:
            for task in tasks:
                task.cancel()

    def _event(self, index: int, made: Mapping[str, Any], reason: str | None) -> str:
        return _sent({**self._head, "choices": [{"index": index, **made, "logprobs": None, "finish_reason": reason}]})

    def _usage(self) -> dict[str, int]:
        # A prompt counts once, however many texts continue it.
        prompts = sum(request.prompt_tokens for request in self.requests[:: self.asked.count])
        return {"prompt_tokens": prompts, "completion_tokens": self.tokens, "total_tokens": prompts + self.tokens}


def _sent(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data, separators=(',', ':'))}\n\n"
