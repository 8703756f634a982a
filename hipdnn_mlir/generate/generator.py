"""Texts from a folder of onnxruntime-genai's model builder, or of Optimum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, Unpack

from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.precision import UNCHANGED, Precision
from hipdnn_mlir_runtime.session.options import SessionOptions
from hipdnn_mlir_runtime.session.source import Source

from ..targets.table import TargetName
from .decoder import Decoder, length_of
from .decoder_program import open_session
from .folder import read_folder
from .model_file import ModelFile
from .sampling import GenerationOptions
from .sequences import Finish, Prompt, Sequences, Token, check_count, listed
from .tokenizer import Tokenizer, find_tokenizer


@dataclass(frozen=True)
class Completion:
    """A text that was generated behind a prompt.

    Attributes:
        prompt_tokens: number of tokens of the prompt.
        tokens: what was generated, a stop token included.
        text: the same as a text; empty without a tokenizer.
        finish_reason: `stop` or `length`, as of a `Token`; `cancelled` for a request that was cancelled before.
    """

    prompt_tokens: int
    tokens: tuple[int, ...]
    text: str
    finish_reason: Finish | Literal["cancelled"]


class TextGenerator:
    """A decoder and its tokenizer, ready to generate. Several threads may use it, each with `Sequences` of its own.

    Attributes:
        config: what the folder says.
        max_length: most tokens of a text, with its prompt.

    Args:
        folder: made by onnxruntime-genai's model builder, or by Optimum or torch.onnx.export with a configuration of transformers.
        program: the model as it was compiled before: a ``.hipdnn`` file, or what ``hipdnn_mlir.compile`` returned. Without one it is
            compiled now, as the next three say.
        target: what to compile for.
        precision: what to compile in.
        batch_size: how many texts a program for a GPU generates at once. On the CPU that is open, and this has no effect.
        max_length: length of the caches; by default 2048, or the context length if that is less.
        options: of the session; `graph_capture` is on unless it is said to be off.

    Raises:
        ModelError: the folder is not one of a decoder that is supported, or a value does not fit.
        UnsupportedError: the model has operators that the target does not run.
        HipdnnMlirError: as for `hipdnn_mlir.compile` and `hipdnn_mlir.load`; on a GPU it runs, too.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        program: Source | None = None,
        target: TargetName = "host",
        precision: Precision = UNCHANGED,
        batch_size: int = 1,
        max_length: int | None = None,
        **options: Unpack[SessionOptions],
    ) -> None:
        self.config = read_folder(Path(folder))
        self._tokenizer, self._missing = find_tokenizer(self.config.folder)
        length = length_of(self.config, max_length)
        file = ModelFile(self.config)
        if program is None:
            from ..compiler.compile import compile as compile_model  # MLIR is not loaded for a program that is there

            shapes, buckets = file.sizes(target, batch_size, length)
            program = compile_model(
                self.config.model,
                target=target,
                precision=precision,
                shapes=shapes,
                buckets=buckets,
                last_valid=self.config.last_valid,
            )
        self._session = open_session(program, options)
        self._decoder = Decoder(self._session, self.config, length, file.mask_lengths())
        self.max_length = self._decoder.max_length
        if self._session.device.port != "host":
            self._run_windows()

    def __enter__(self) -> Self:
        """Return the generator; the end of the block closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the program's memory back, if nobody has `Sequences` any more; nothing can be generated any more."""
        self._session.close()

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer; raises ModelError where it cannot be used."""
        if self._tokenizer is None:
            raise self._missing or ModelError("no tokenizer")
        return self._tokenizer

    def load_buckets(self) -> None:
        """Load the program for all its sizes, where these are buckets, so that what a library refuses is known before a text begins."""
        if self._session.symbols and set(self._session.symbols) == set(self._session.buckets):
            self._session.prewarm()

    def _run_windows(self) -> None:
        """Run twice on as many tokens as a run may have: libraries load kernels in the first, and its graph is recorded in the second.

        So neither a prompt nor a token of the first text waits for that.
        """
        texts = self.start()
        for size in self._decoder.windows():
            for _ in range(2):
                texts.append([0] * size)
                texts.logits()
                texts.rewind_to(0)

    def start(self, batch_size: int = 1) -> Sequences:
        """Return texts without tokens, to be continued and rewound, with caches of their own.

        Args:
            batch_size: how many texts.

        Raises:
            ModelError: the program is for fewer, or the generator is closed.
        """
        self._session.check_open()
        check_count("batch_size", batch_size)
        return Sequences(self._decoder, self._tokenizer, self._missing, int(batch_size))

    def stream(self, prompts: Prompt | Sequence[Prompt], **options: Unpack[GenerationOptions]) -> Iterator[Token]:
        """Generate behind a prompt, or behind several side by side, and give each token as it comes.

        Args:
            prompts: a text or its tokens, or several.
            options: the keywords of `GenerationOptions`.

        Raises:
            ModelError: as for `Sequences.append` and `Sequences.stream`.
            DeviceError: a call into the device library failed.
        """
        return self._begin(prompts).stream(**options)

    def generate(self, prompts: Prompt | Sequence[Prompt], **options: Unpack[GenerationOptions]) -> list[Completion]:
        """Generate behind a prompt or several, and return a completion for each; arguments and errors as for `stream`."""
        sequences = self._begin(prompts)
        lengths = [len(tokens) for tokens in sequences.tokens]
        made: list[list[Token]] = [[] for _ in lengths]
        for token in sequences.stream(**options):
            made[token.row].append(token)
        return [completion(length, tokens) for length, tokens in zip(lengths, made, strict=True)]

    def _begin(self, prompts: Prompt | Sequence[Prompt]) -> Sequences:
        given = listed(prompts)
        if not given:
            raise ModelError("no prompt", where="prompts", expected="a text, tokens, or a list of these")
        sequences = self.start(len(given))
        sequences.append(prompts)
        return sequences


def completion(prompt_tokens: int, tokens: Sequence[Token]) -> Completion:
    """What the tokens of one text come to; without any there was no room for one."""
    reason = tokens[-1].finish_reason if tokens else None
    text = "".join(token.text for token in tokens)
    return Completion(prompt_tokens, tuple(token.id for token in tokens), text, reason or "length")
