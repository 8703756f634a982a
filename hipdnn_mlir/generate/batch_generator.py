"""Texts that join and leave a running batch: what a server stands on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Self, Unpack

from hipdnn_mlir_runtime.errors import DeviceError, HipdnnMlirError, ModelError
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.source import Source

from ..targets.table import TargetName
from .batch import Batch, Counts
from .decoder import length_of
from .decoder_program import open_session
from .folder import read_folder
from .model_file import ModelFile
from .paged_decoder import PAGE_ROWS, PagedDecoder
from .request import Limits, Request
from .sampling import GenerationOptions, Sampling
from .sequences import Prompt, check_begun, check_count, encoded, stops_of
from .tokenizer import TextStream, find_tokenizer


class BatchGenerator:
    """Generates behind many prompts at once, each of which comes and goes when it likes. Any thread may use it.

    Keys and values of all texts lie in one pool of pages. A request joins the running batch when there are pages for its prompt, and leaves
    it with its last token; until then others wait. A thread of the generator's own runs the batch as long as there are requests.

    Attributes:
        config: what the folder says.
        max_length: most tokens of a text, with its prompt.

    Args:
        folder: made by onnxruntime-genai's model builder.
        pages: how many pages there are. A page takes 2 x layers x key heads x `page_rows` x head size numbers.
        max_running: how many requests run at once.
        page_rows: tokens of a page: by default 32, or what the program has.
        program: the model as it was compiled before, with `page_rows`: a ``.hipdnn`` file, or what ``hipdnn_mlir.compile`` returned.
            Without one it is compiled now, as the next two say.
        target: what to compile for.
        precision: what to compile in.
        max_length: most tokens of a text; by default 2048, or the context length if that is less. A text never has more than all pages.
        options: of the session; `graph_capture` is on unless it is said to be off.

    Raises:
        ModelError: the folder is not one of a decoder that is supported, or a value does not fit.
        UnsupportedError: the model has operators that the target does not run.
        HipdnnMlirError: as for `hipdnn_mlir.compile` and `hipdnn_mlir.load`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        pages: int,
        max_running: int = 16,
        page_rows: int | None = None,
        program: Source | None = None,
        target: TargetName = "host",
        precision: Precision = UNCHANGED,
        max_length: int | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        rows = PAGE_ROWS if page_rows is None else page_rows
        for name, value in (("pages", pages), ("max_running", max_running), ("page_rows", rows)):
            check_count(name, value)
        self.config = read_folder(Path(folder))
        if self.config.grows:
            hint = "use TextGenerator, or export it with onnxruntime-genai's model builder and -e cuda"
            raise ModelError("caches that grow in the model cannot be pages", where=str(folder), hint=hint)
        self._tokenizer, self._missing = find_tokenizer(self.config.folder)
        length = length_of(self.config, max_length)
        file = ModelFile(self.config)
        if program is None:
            from ..compiler.compile import compile as compile_model  # MLIR is not loaded for a program that is there

            shapes, buckets = file.paged_sizes(target, max_running, length, pages, rows)
            program = compile_model(
                self.config.model,
                target=target,
                precision=precision,
                shapes=shapes,
                buckets=buckets,
                page_rows=rows,
                last_valid=self.config.last_valid,
            )
        self._session = open_session(program, options)
        decoder = PagedDecoder(self._session, self.config, length, pages, file.mask_lengths())
        if page_rows not in (None, decoder.pool.page_rows):
            expected = f"{decoder.pool.page_rows}, as the program was compiled for"
            raise ModelError("bad value", where="page_rows", expected=expected, got=str(page_rows))
        self.max_length = decoder.max_length
        self._batch = Batch(decoder, max_running)
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="hipdnn-mlir batch", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        """Return the generator; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all requests with an error, and give the program's memory back."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join()
        self._session.close()

    @property
    def counts(self) -> Counts:
        """How many requests run and wait, and how many pages are in use."""
        return self._batch.counts

    def submit(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Request:
        """Generate behind a prompt as soon as there is room; returns at once.

        Args:
            prompt: a text or its tokens.
            options: the keywords of `GenerationOptions`. The same seed draws the same tokens, whatever runs beside.

        Returns:
            The request: iterate over it for its tokens.

        Raises:
            ModelError: an option is out of range or has no effect, the prompt is empty or has unknown tokens, there can never be room for
                as many tokens, or the generator is closed.
        """
        request = self._request(prompt, **options)
        with self._changed:
            if self._is_closed:
                raise _closed()
            self._batch.add(request)
            self._changed.notify()
        return request

    def _request(self, prompt: Prompt, **options: Unpack[GenerationOptions]) -> Request:
        most, given = options.pop("max_new_tokens", None), options.pop("stop_tokens", None)
        sampling = Sampling.of(self.config.search, **options)  # type: ignore[misc] # those of generation are gone
        tokens = encoded(prompt, self._tokenizer, self._missing, self.config.vocab_size)
        check_begun([tokens])
        if most is not None:
            check_count("max_new_tokens", most)
        end = len(tokens) + (1 if most is None else most)
        if end > self.max_length:
            wanted = "one token" if most is None else f"{most} tokens"
            message = f"no room for {wanted} behind a prompt of {len(tokens)}, however long it waits"
            expected, hint = f"at most {self.max_length} tokens in all", "ask for fewer"
            if self.max_length < self.config.context_length:
                expected += f": max_length, and what {self._batch.counts.pages} pages hold"
                hint += ", or have more pages"
            raise ModelError(message, where="max_new_tokens", expected=expected, hint=hint)
        limits = Limits(self.max_length if most is None else end, stops_of(self.config, given))
        return Request(tokens, sampling, limits, TextStream(self._tokenizer, tokens), self._wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _work(self) -> None:
        """Run the batch, on the thread of its own."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or not self._batch.is_idle)
                if self._is_closed:
                    break
            try:
                self._batch.step()
            except Exception as error:  # noqa: BLE001 - whoever waits for tokens has to hear of it, and nobody else would
                failed = error if isinstance(error, HipdnnMlirError) else DeviceError(f"a step failed: {error!r}")
                self._batch.end_all(failed)
        self._batch.end_all(_closed())


def _closed() -> ModelError:
    return ModelError("the generator is closed", hint="make a new one")
