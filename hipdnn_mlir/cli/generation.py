"""The command `generate`: prompts in, text out as it comes."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from hipdnn_mlir_runtime.cli.command import needed_compiler
from hipdnn_mlir_runtime.cli.options import session_options
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.options import options_of

if TYPE_CHECKING:
    from ..generate.config import DecoderConfig
    from ..generate.sequences import Token
    from ..targets.table import TargetName

logger = logging.getLogger(__name__)
_NEW_TOKENS = 256
"""Most tokens for each prompt, where the user does not say."""
SIDE_BY_SIDE = 16
"""Most prompts that are generated as one batch, each with a cache of its own; of more, as many run at once, over pages."""


def generate(given: SimpleNamespace) -> int:
    """Generate text with a decoder that onnxruntime-genai's model builder or Optimum exported. It is shown as it comes."""
    from ..generate.folder import read_folder
    from ..generate.generator import TextGenerator
    from ..generate.model_file import ModelFile
    from ..generate.tokenizer import Tokenizer

    config = read_folder(given.model)
    prompts = _prompts(given)
    tokenizer = Tokenizer(config.folder)
    tokens = [tokenizer.encode(prompt) for prompt in prompts]
    longest = max(map(len, tokens))
    if longest == config.context_length and given.max_new_tokens is None:
        expected = f"at most {config.context_length - 1}"
        raise ModelError("no room for a token behind the prompt", where="--prompt", expected=expected, got=str(longest))
    length = min(longest + (given.max_new_tokens or _NEW_TOKENS), config.context_length)
    sampling = {name: getattr(given, name) for name in ("temperature", "top_k", "top_p", "repetition_penalty", "seed")}
    if len(prompts) > SIDE_BY_SIDE and not config.grows:
        return _generate_many(given, config, prompts, tokens, length, sampling)

    def use(program: Path) -> int:
        with TextGenerator(given.model, program=program, max_length=length, **session_options(given)) as model:
            model.load_buckets()
            report = _Report(prompts, [len(row) for row in tokens])
            stream = model.stream(tokens, max_new_tokens=given.max_new_tokens, **sampling)
            shown = None if given.json else Shown(prompts)
            start = time.perf_counter()
            for token in stream:
                report.add(token, time.perf_counter() - start)
                if shown is not None:
                    shown.add(token)
        if shown is not None:
            shown.end()
        _show(report, given)
        return 0

    kept = _kept_program(config, given)
    if kept is not None:
        return use(kept)
    target = cast("TargetName", given.target or "host")
    shapes, buckets = ModelFile(config).sizes(target, len(prompts), length)
    sizes = {"shapes": shapes, "buckets": buckets}
    compiled = {**vars(given), "model": config.model, "target": target, **sizes, "last_valid": config.last_valid}
    return needed_compiler("generate").with_program(SimpleNamespace(**compiled), use)


def _generate_many(
    given: SimpleNamespace,
    config: DecoderConfig,
    prompts: Sequence[str],
    tokens: Sequence[list[int]],
    length: int,
    sampling: Mapping[str, Any],
) -> int:
    """Generate behind more prompts than have a place in one batch: they join a running batch and leave it, and are shown in their order."""
    from ..generate.batch_generator import BatchGenerator
    from ..generate.model_file import ModelFile
    from ..generate.paged_decoder import PAGE_ROWS

    pages = SIDE_BY_SIDE * -(-length // PAGE_ROWS)

    def use(program: Path) -> int:
        report = _Report(prompts, [len(row) for row in tokens], is_mixed=True)
        with BatchGenerator(
            given.model,
            pages=pages,
            max_running=SIDE_BY_SIDE,
            program=program,
            max_length=length,
            **session_options(given),
        ) as model:
            start = time.perf_counter()
            requests = []
            for row, text in enumerate(tokens):
                # Equal prompts are to have texts of their own.
                own = sampling if given.seed is None else {**sampling, "seed": given.seed + row}
                try:
                    requests.append(model.submit(text, max_new_tokens=given.max_new_tokens, **own))
                except ModelError as error:
                    error.message += f" (prompt {row + 1})"
                    raise
            shown = None if given.json else Shown(prompts)
            for row, request in enumerate(requests):
                for token in request:
                    report.add(replace(token, row=row), time.perf_counter() - start)
                    if shown is not None:
                        shown.add(report.rows[row][-1])
        if shown is not None:
            shown.end()
        _show(report, given)
        return 0

    target = cast("TargetName", given.target or "host")
    shapes, buckets = ModelFile(config).paged_sizes(target, SIDE_BY_SIDE, length, pages, PAGE_ROWS)
    sizes = {"shapes": shapes, "buckets": buckets, "page_rows": PAGE_ROWS}
    compiled = {**vars(given), "model": config.model, "target": target, **sizes, "last_valid": config.last_valid}
    return needed_compiler("generate").with_program(SimpleNamespace(**compiled), use)


def _prompts(given: SimpleNamespace) -> list[str]:
    prompts = [*given.prompts]
    if given.prompt_file is not None:
        try:
            # Lines as other tools count them: splitlines() would part them at U+2028 and other separators, too.
            lines = given.prompt_file.read_text(encoding="utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise ModelError(f"not UTF-8: {error}", where=str(given.prompt_file)) from error
        prompts += [line for line in lines if line.strip()]
    if not prompts:
        raise ModelError("no prompt", where="--prompt", hint="add --prompt TEXT, or --prompt-file FILE")
    return prompts


def _kept_program(config: DecoderConfig, given: SimpleNamespace) -> Path | None:
    """The program beside the model, where it is made from the model as it is now and nothing is said of compiling."""
    from hipdnn_mlir_runtime.cli.execution import is_made_from

    program = config.model.with_suffix(".hipdnn")
    told = [row for row in options_of("generate").values() if vars(given)[row.name] not in (row.default, [])]
    if not program.is_file() or any("model" in row.needs for row in told):
        return None
    made = program.stat().st_mtime
    files = config.folder.glob(f"{config.model.name}*")  # weights are in files of their own
    if any(file.stat().st_mtime > made for file in files) or not is_made_from(program, config.model):
        logger.warning("%s is not used: %s has changed since it was compiled", program, config.model.name)
        return None
    return program


@dataclass
class _Report:
    """What was generated, and how fast."""

    prompts: Sequence[str]
    lengths: Sequence[int]
    is_mixed: bool = False
    """Whether prompts ran between steps: there is no time of their own then."""
    rows: list[list[Token]] = field(init=False)
    first_s: float = 0.0
    elapsed_s: float = 0.0

    def __post_init__(self) -> None:
        self.rows = [[] for _ in self.prompts]

    def add(self, token: Token, elapsed_s: float) -> None:
        """Take a token, and the time since the beginning."""
        if not self.is_mixed:
            self.first_s = self.first_s or elapsed_s
        self.elapsed_s = elapsed_s
        self.rows[token.row].append(token)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-able form."""
        from ..generate.generator import completion

        made = [completion(length, row) for length, row in zip(self.lengths, self.rows, strict=True)]
        return {
            "completions": [
                {
                    "prompt": prompt,
                    "text": one.text,
                    "prompt_tokens": one.prompt_tokens,
                    "tokens": one.tokens,
                    "finish_reason": one.finish_reason,
                }
                for prompt, one in zip(self.prompts, made, strict=True)
            ],
            "prompt_tokens": sum(self.lengths),
            "prompt_s": self.first_s,
            "generated_tokens": sum(map(len, self.rows)),
            "generation_s": self.elapsed_s - self.first_s,
        }

    def __str__(self) -> str:
        if self.is_mixed:
            return _rate(
                "generated", sum(map(len, self.rows)), self.elapsed_s, f", with prompts of {sum(self.lengths)}"
            )
        # The first token of each text comes of its prompt.
        later = sum(map(len, self.rows)) - sum(map(bool, self.rows))
        parts = [
            _rate("prompt", sum(self.lengths), self.first_s),
            _rate("generated", later, self.elapsed_s - self.first_s),
        ]
        return ", ".join(filter(None, parts))


def _rate(what: str, tokens: int, elapsed_s: float, more: str = "") -> str:
    if not tokens or not elapsed_s:
        return ""
    return f"{what}: {tokens / elapsed_s:.1f} tokens/s ({tokens} in {elapsed_s:.2f} s{more})"


class Shown:
    """Prints texts as they come: of several one after the other, each behind its prompt.

    Args:
        prompts: what the texts continue.
    """

    def __init__(self, prompts: Sequence[str]) -> None:
        self._prompts = prompts
        self._held = [""] * len(prompts)
        self._ended: set[int] = set()
        self._row = 0
        self._begin()

    def add(self, token: Token) -> None:
        """Take a token: its text is printed at once if it is of the text that is being printed."""
        self._held[token.row] += token.text
        if token.finish_reason is not None:
            self._ended.add(token.row)
        while self._row < len(self._prompts):
            sys.stdout.write(self._held[self._row])
            self._held[self._row] = ""
            if self._row not in self._ended:
                break
            self._next()
        sys.stdout.flush()

    def end(self) -> None:
        """Print what is left: of texts that had no room for a token."""
        while self._row < len(self._prompts):
            self._next()

    def _next(self) -> None:
        sys.stdout.write("\n")
        self._row += 1
        if self._row < len(self._prompts):
            self._begin()

    def _begin(self) -> None:
        if len(self._prompts) > 1:
            sys.stdout.write(f"> {self._prompts[self._row]}\n")


def _show(report: _Report, given: SimpleNamespace) -> None:
    if given.json:
        from hipdnn_mlir_runtime.cli.main import show

        show(given, report.to_dict, lambda: "")
    elif not given.quiet:
        sys.stderr.write(f"{report}\n")
