"""A decoder that answers requests for texts, as a running batch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hipdnn_mlir_runtime.errors import ModelError

from ..generate import BatchGenerator, Request, Token
from ..generate.batch import Counts
from ..generate.paged_decoder import PAGE_ROWS
from ..generate.sampling import GenerationOptions
from ..generate.tokenizer import Tokenizer
from .chat_template import ChatTemplate
from .faults import QueueFullError
from .repository import ModelFile
from .settings import Settings


@dataclass(frozen=True)
class Piece:
    """What comes of a text.

    Attributes:
        text: What it adds.
        tokens: How many tokens were generated for it.
        finish_reason: Why the text ends here; empty where it does not.
    """

    text: str
    tokens: int
    finish_reason: str = ""


class ServedTexts:
    """A decoder, loaded.

    Attributes:
        file: What is loaded.
        template: Makes a prompt of messages.
        max_length: Most tokens of a text, with its prompt.

    Args:
        file: The program, and the folder that it was compiled from.
        settings: Of the server.
        threads: CPU threads of a run.

    Raises:
        HipdnnMlirError: As for `Tokenizer`, `ChatTemplate` and `BatchGenerator`.
    """

    def __init__(self, file: ModelFile, settings: Settings, threads: int) -> None:
        self.file = file
        self._tokenizer = Tokenizer(Path(file.folder))
        self.template = ChatTemplate(Path(file.folder))
        options: dict[str, Any] = {"threads": threads, **settings.session}
        self._generator = BatchGenerator(
            file.folder,
            program=file.path,
            pages=pages(settings.max_running, file.max_length),
            max_running=settings.max_running,
            max_length=file.max_length,
            **options,
        )
        self.max_length = self._generator.max_length
        self._places = settings.max_running + settings.max_queue
        # Each text has a thread that waits for its tokens.
        self._waiting = ThreadPoolExecutor(self._places, "hipdnn-mlir text")
        self._generator.submit([0], max_new_tokens=1).result()

    @property
    def queued(self) -> int:
        """How many requests wait for a place in the batch."""
        return self._generator.counts.waiting

    def statistics(self) -> dict[str, Any]:
        """Return what the batch is doing."""
        return {
            "name": self.file.name,
            "version": self.file.version,
            "generation_stats": asdict(self._generator.counts),
        }

    async def close(self) -> None:
        """Let requests end, and give the memory back."""
        await asyncio.to_thread(self._waiting.shutdown)
        await asyncio.to_thread(self._generator.close)

    def tokens(self, prompt: str | Sequence[int], *, special: bool = True) -> Sequence[int]:
        """Return the tokens of a prompt, which takes time if it is long; more characters than the longest tokens have are not looked at.

        Args:
            prompt: A text, or its tokens already.
            special: Whether the tokenizer puts its own tokens around a text.

        Raises:
            ModelError: There is no room for a token behind it, or it is no Unicode.
        """
        most = self.max_length - 1
        if isinstance(prompt, str):
            if len(prompt) > most * self._tokenizer.longest:
                raise _too_long(most, f"{len(prompt)} characters")
            prompt = self._tokenizer.encode(prompt, special=special)
        if len(prompt) > most:
            raise _too_long(most, str(len(prompt)))
        return prompt

    def check_places(self, texts: int) -> None:
        """Refuse texts that the queue has no places for; errors as for `check_places`."""
        check_places(self._generator.counts, texts, self._places)

    def submit(self, prompt: Sequence[int], options: GenerationOptions) -> Request:
        """Put a text into the queue.

        Raises:
            ModelError: As for `BatchGenerator.submit`.
        """
        return self._generator.submit(prompt, **options)

    def pieces(self, request: Request, stops: Sequence[str]) -> AsyncGenerator[Piece, None]:
        """Give a text as it comes; see `pieces_of`."""
        return pieces_of(request, stops, self._waiting)


async def pieces_of(request: Request, stops: Sequence[str], threads: ThreadPoolExecutor) -> AsyncGenerator[Piece, None]:
    """Give a text as it comes, up to the first of some strings. Where no more is asked for, its place in the batch is free.

    Args:
        request: The text.
        stops: The strings.
        threads: One of them waits for tokens.

    Raises:
        HipdnnMlirError: The text cannot be generated on.
    """
    loop = asyncio.get_running_loop()
    came: asyncio.Queue[Token | BaseException | None] = asyncio.Queue()
    threads.submit(_pass_on, request, lambda item: loop.call_soon_threadsafe(came.put_nowait, item))
    held = HeldText(stops)
    try:
        while isinstance(token := await came.get(), Token):
            text, is_stopped = held.add(token.text, is_last=token.finish_reason is not None)
            yield Piece(text, 1, "stop" if is_stopped else token.finish_reason or "")
            if is_stopped:
                return
        if token is not None:
            raise token
    finally:
        request.cancel()


def check_places(counts: Counts, texts: int, places: int) -> None:
    """Refuse texts for which there are no places beside those that run and wait.

    Args:
        counts: What runs and waits.
        texts: How many more there are to be.
        places: How many there are for all.

    Raises:
        ModelError: There never are as many places.
        QueueFullError: There are not now.
    """
    if texts > places:
        raise ModelError("too many texts", where="n", expected=f"at most {places} in all", got=str(texts))
    if counts.running + counts.waiting + texts > places:
        raise QueueFullError("the queue is full", hint="come again later")


def _too_long(most: int, got: str) -> ModelError:
    return ModelError("the prompt is too long", expected=f"at most {most} tokens", got=got)


def pages(running: int, length: int) -> int:
    """Return the pages in which as many texts of a length have room."""
    return running * -(-length // PAGE_ROWS)


def _pass_on(request: Request, put: Callable[[Token | BaseException | None], object]) -> None:
    """Hand over the tokens of a request, and how it ends."""
    try:
        for token in request:
            put(token)
        put(None)
    except BaseException as error:  # noqa: BLE001 - whoever waits has to hear of it
        put(error)


class HeldText:
    """A text in pieces, up to the first of some strings: what may be the beginning of one is held back.

    Args:
        stops: The strings.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops, self._held = stops, ""

    def add(self, text: str, *, is_last: bool) -> tuple[str, bool]:
        """Return what can be given of the text, and whether it ends there."""
        self._held += text
        found = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if found:
            return self._held[: min(found)], True
        kept = 0 if is_last else max((self._overlap(stop) for stop in self._stops), default=0)
        given, self._held = self._held[: len(self._held) - kept], self._held[len(self._held) - kept :]
        return given, False

    def _overlap(self, stop: str) -> int:
        """Characters at the end of what is held with which a string begins."""
        return next((size for size in range(len(stop) - 1, 0, -1) if self._held.endswith(stop[:size])), 0)
