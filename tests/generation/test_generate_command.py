"""The command `generate`: text as it comes, rates, JSON, the program beside the model; every option acts or is an error."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hipdnn_mlir
from generation.conftest import Exported, change_config
from hipdnn_mlir.cli import commands, generation
from hipdnn_mlir.cli.generation import SIDE_BY_SIDE, Shown
from hipdnn_mlir.generate import TextGenerator, Token
from hipdnn_mlir.service.request import Request
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.options import Settings, options_of
from hipdnn_mlir_runtime.session import session as session_module
from hipdnn_mlir_runtime.session.devices import open_device

PROMPTS = ["the quick", "日本"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def compiled(llama_program: hipdnn_mlir.Program, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compiled") / "model.hipdnn"
    llama_program.save(path)
    return path


@pytest.fixture(scope="module")
def paged(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paged") / "model.hipdnn"
    last = {"logits": "attention_mask"}
    hipdnn_mlir.compile(exported("llama") / "model.onnx", page_rows=32, last_valid=last).save(path)
    return path


@pytest.fixture
def requests(compiled: Path, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would be compiled; the program is there already."""
    made: list[Any] = []

    def perform(request: Request, *, on_progress: object = None, **how: Any) -> dict[str, Any]:
        made.append((replace(request, output=None), how))
        assert request.output is not None
        Path(request.output).write_bytes(compiled.read_bytes())
        return {}

    monkeypatch.setattr(commands, "perform_in_child", perform)
    monkeypatch.setattr(commands, "perform_here", perform)
    return made


@pytest.fixture
def run(llama: Path, requests: list[Any], capsys: pytest.CaptureFixture[str]) -> Run:
    """Call the command here; return its status and what it printed."""

    def call(*arguments: object) -> tuple[int, str, str]:
        status = cli.call(["generate", str(llama), *map(str, arguments)])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def _want(llama: Path, compiled: Path, prompts: list[str], count: int, **options: Any) -> list[Any]:
    with TextGenerator(llama, program=compiled) as model:
        return list(model.generate(prompts, max_new_tokens=count, **options))


def test_the_text_is_printed_and_rates_behind_it(run: Run, llama: Path, compiled: Path) -> None:
    status, out, err = run("--prompt", PROMPTS[0], "--max-new-tokens", 20)
    (want,) = _want(llama, compiled, PROMPTS[:1], 20)
    assert (status, out) == (0, want.text + "\n")
    assert re.fullmatch(
        rf"prompt: [\d.]+ tokens/s \({want.prompt_tokens} in [\d.]+ s\), "
        rf"generated: [\d.]+ tokens/s \({len(want.tokens) - 1} in [\d.]+ s\)\n",
        err,
    )
    assert run("--prompt", PROMPTS[0], "--max-new-tokens", 20, "--quiet") == (0, out, "")


def test_texts_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown(["a", "b", "c"])
    seen = [capsys.readouterr().out]
    for token in (
        Token(0, 5, "one"),
        Token(1, 5, "two"),
        Token(2, 5, "six", "length"),
        Token(0, 5, " and", "stop"),
        Token(1, 5, " more", "length"),
    ):
        shown.add(token)
        seen.append(capsys.readouterr().out)
    assert seen == ["> a\n", "one", "", "", " and\n> b\ntwo", " more\n> c\nsix\n"]


def test_several_texts_follow_each_other(run: Run, llama: Path, compiled: Path, tmp_path: Path) -> None:
    first, second = _want(llama, compiled, PROMPTS, 10)
    want = f"> {PROMPTS[0]}\n{first.text}\n> {PROMPTS[1]}\n{second.text}\n"
    assert run("--prompt", PROMPTS[0], "--prompt", PROMPTS[1], "--max-new-tokens", 10)[:2] == (0, want)
    file = tmp_path / "prompts.txt"
    file.write_text(f"{PROMPTS[0]}\n\n{PROMPTS[1]}\n", encoding="utf-8")
    assert run("--prompt-file", file, "--max-new-tokens", 10)[:2] == (0, want)


def test_a_line_of_a_file_is_a_prompt_whatever_is_in_it(tmp_path: Path) -> None:
    file = tmp_path / "prompts.txt"
    file.write_bytes("\ufeffone\u2028 and\x0c more\r\n\r\ntwo\x85".encode())
    given = SimpleNamespace(prompts=["zero"], prompt_file=file)
    assert generation._prompts(given) == ["zero", "one\u2028 and\x0c more", "two\x85"]


def test_more_prompts_than_have_a_cache_each_share_pages(
    run: Run, llama: Path, compiled: Path, paged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Request] = []

    def perform(request: Request, **how: Any) -> dict[str, Any]:
        made.append(request)
        Path(request.output or "").write_bytes(paged.read_bytes())
        return {}

    monkeypatch.setattr(commands, "perform_in_child", perform)
    prompts = [
        " ".join(["the", "quick", "brown", "fox"][: 1 + row % 4]) + "!" * (row % 3) for row in range(SIDE_BY_SIDE + 4)
    ]
    file = tmp_path / "prompts.txt"
    file.write_text("\n".join(prompts), encoding="utf-8")
    texts = _want(llama, compiled, prompts, 7)
    want = "".join(f"> {prompt}\n{one.text}\n" for prompt, one in zip(prompts, texts, strict=True))
    status, out, err = run("--prompt-file", file, "--max-new-tokens", 7)
    assert (status, out) == (0, want)
    assert [request.page_rows for request in made] == [32]
    read = sum(one.prompt_tokens for one in texts)
    rate = rf"generated: [\d.]+ tokens/s \({7 * len(prompts)} in [\d.]+ s, with prompts of {read}\)\n"
    assert re.fullmatch(rate, err)
    status, out, _ = run("--prompt-file", file, "--max-new-tokens", 7, "--seed", 3, "--temperature", 3, "--json")
    rows = [one["tokens"] for one in json.loads(out)["completions"]]
    assert len(rows) == len(prompts)
    assert rows[0] != rows[12], "equal prompts have draws of their own"


def test_json_has_texts_tokens_and_times(run: Run, llama: Path, compiled: Path) -> None:
    drawn = {"temperature": 2.0, "top_k": 30, "top_p": 0.9, "seed": 4, "repetition_penalty": 1.2}
    flags = [part for name, value in drawn.items() for part in (f"--{name.replace('_', '-')}", value)]
    prompts = [part for prompt in PROMPTS for part in ("--prompt", prompt)]
    status, out, err = run(*prompts, "--max-new-tokens", 10, "--json", *flags)
    assert (status, err) == (0, "")
    data = json.loads(out)
    want = _want(llama, compiled, PROMPTS, 10, **drawn)
    assert data["completions"] == [
        {
            "prompt": prompt,
            "text": one.text,
            "prompt_tokens": one.prompt_tokens,
            "tokens": list(one.tokens),
            "finish_reason": one.finish_reason,
        }
        for prompt, one in zip(PROMPTS, want, strict=True)
    ]
    assert data["prompt_tokens"] == sum(one.prompt_tokens for one in want)
    assert data["generated_tokens"] == sum(len(one.tokens) for one in want)
    assert data["prompt_s"] > 0
    assert data["generation_s"] > 0


def test_a_stop_token_ends_the_text(run: Run, llama: Path, compiled: Path) -> None:
    (want,) = _want(llama, compiled, PROMPTS[:1], 10, stop_tokens=[])
    change_config(llama, "model", "eos_token_id", to=[2, want.tokens[4]])
    data = json.loads(run("--prompt", PROMPTS[0], "--json")[1])
    count = want.tokens.index(want.tokens[4]) + 1
    assert data["completions"][0]["tokens"] == list(want.tokens[:count])
    assert data["completions"][0]["finish_reason"] == "stop"


def test_sizes_are_open_on_the_cpu_and_numbers_for_a_gpu(run: Run, requests: list[Any], llama: Path) -> None:
    assert run("--prompt", PROMPTS[0])[0] == 0
    assert (requests[0][0].target, requests[0][0].shapes, requests[0][0].buckets) == ("host", {}, {})
    run("--prompt", PROMPTS[0], "--prompt", PROMPTS[1], "--max-new-tokens", 100, "--target", "sm_90")
    length = 100 + max(len(one) for one in _tokens(llama))
    assert requests[1][0].shapes == {
        "batch_size": 2,
        "past_sequence_length": length,
        "total_sequence_length": length,
    }
    assert requests[1][0].buckets == {"sequence_length": [1, 16, 64]}


def _tokens(llama: Path) -> list[list[int]]:
    from hipdnn_mlir.generate.tokenizer import Tokenizer

    return [Tokenizer(llama).encode(prompt) for prompt in PROMPTS]


def test_two_masks_are_compiled_where_the_model_asks_for_them(exported: Exported, requests: list[Any]) -> None:
    folder = exported("phi3-long")
    cli.call(["generate", str(folder), "--prompt", "w5", "--max-new-tokens", "300", "--target", "sm_90"])
    assert requests[0][0].buckets == {
        "sequence_length": [1, 16, 64, 256],
        "total_sequence_length": [256, 301],
    }
    assert "total_sequence_length" not in requests[0][0].shapes


def test_the_program_beside_the_model_is_used_unless_it_is_old(
    run: Run, requests: list[Any], llama: Path, compiled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = llama / "model.hipdnn"
    program.write_bytes(compiled.read_bytes())
    now = time.time() + 10
    os.utime(program, (now, now))
    arguments = ("--prompt", PROMPTS[0], "--max-new-tokens", 5)
    status, out, _ = run(*arguments)
    assert (status, requests) == (0, [])
    assert run(*arguments, "--in-process")[:2] == (0, out)
    assert len(requests) == 1
    os.utime(program, (1, 1))
    assert run(*arguments)[:2] == (0, out)
    assert len(requests) == 2
    assert f"{program} is not used: model.onnx has changed since it was compiled" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--prompt: no prompt; add --prompt TEXT, or --prompt-file FILE"),
        (["--prompt", ""], "an empty prompt: expected at least one token"),
        (["--prompt", "x", "--max-new-tokens", "0"], "--max-new-tokens: bad value: expected a whole number from 1, got 0"),
        (["--prompt", "x", "--max-new-tokens", "5000"], "--max-new-tokens: no room for 5000 tokens behind 1: expected at most 1023"),
        (["--prompt", b"bad\xff".decode(errors="surrogateescape")], "a prompt that is no Unicode: expected UTF-8"),
        (["--prompt", "x" * 2000], "the prompt is too long: 2000 tokens: expected at most 1024; shorten it"),
        (["--prompt", "x" * 1024], "--prompt: no room for a token behind the prompt: expected at most 1023, got 1024"),
        (["--prompt", "x"] * 18 + ["--prompt", "x" * 1020, "--max-new-tokens", "9"], "however long it waits (prompt 19)"),
        (["--prompt", "x", "--prompt", ""], "an empty prompt: expected at least one token"),
        (["--prompt", "x", "--temperature", "-1"], "--temperature: bad value: expected a number from 0, got '-1'"),
        (["--prompt", "x", "--top-p", "0"], "--top-p: bad value: expected a number above 0, up to 1, got 0.0"),
        (["--prompt", "x", "--top-p", "2"], "--top-p: bad value: expected a number above 0, up to 1, got 2.0"),
        (["--prompt", "x", "--temperature", "0", "--seed", "1"], "--seed: no effect, since temperature 0 takes the most likely token"),
        (["--prompt", "x", "--target", "nonsense"], "nonsense"),
        (["--prompt-file", "nowhere.txt"], "nowhere.txt: No such file or directory"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)  # fmt: skip
def test_errors_are_one_line(
    run: Run, paged: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(arguments) > SIDE_BY_SIDE:

        def perform(request: Request, **_: Any) -> dict[str, Any]:
            Path(request.output or "").write_bytes(paged.read_bytes())
            return {}

        monkeypatch.setattr(commands, "perform_in_child", perform)
    status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("hipdnn-mlir: error: ")
    assert message in err


def test_a_folder_without_tokenizer_is_one_line(run: Run, llama: Path) -> None:
    (llama / "tokenizer.json").unlink()
    assert run("--prompt", "x") == (
        2, "", f"hipdnn-mlir: error: {llama}: no tokenizer.json; give tokens in the place of texts, from Python\n"
    )  # fmt: skip


VALUES = {
    "device": "3", "threads": "1", "autotune": "2", "engine": "HOST_ONEDNN_ENGINE", "knobs": "TILE=64", "plan_cache": "plans",
    "policies": "FIRST", "plugin_dirs": "plugins", "plugin_mode": "absolute", "target": "sm_90", "precision": "bf16",
    "extensions": "no", "compile_timeout_s": "7", "seed": "5", "prompts": "日本", "prompt_file": "prompts.txt",
    "max_new_tokens": "3", "temperature": "3", "top_k": "5", "top_p": "0.4", "repetition_penalty": "1.7",
}  # fmt: skip
"""A value of each option that is no flag, other than its default."""


def test_every_option_acts_or_is_an_error(
    run: Run, requests: list[Any], llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("prompts.txt").write_text("café\n", encoding="utf-8")
    Path("plugins").mkdir()
    devices: list[Any] = []

    def opened(settings: Settings) -> Any:
        devices.append(settings)
        return open_device(settings)

    monkeypatch.setattr(session_module, "open_device", opened)

    def seen(*arguments: str) -> tuple[int, str, str, list[Any], list[Any]]:
        requests.clear()
        devices.clear()
        found = run("--prompt", "the", "--max-new-tokens", "12", *arguments)
        return *found[:2], re.sub(r"[\d.]+", "", found[2]), [*requests], [*devices]

    plain = seen()
    assert plain[0] == 0
    ignored = []
    for option in options_of("generate").values():
        flag = f"--no-{option.flags[0][2:]}" if option.default is True else option.flags[0]
        one = seen(flag, *([] if option.type == "flag" else [VALUES[option.name]]))
        if one[0] == 2:
            assert (one[1], one[2].count("\n")) == ("", 1), one[2]
        elif one == plain:
            ignored.append(option.name)
    assert ignored == []


@pytest.mark.slow
def test_a_process_of_its_own_compiles_and_generates(command: Any, llama: Path, compiled: Path) -> None:
    done = command("generate", llama, "--prompt", PROMPTS[1], "--max-new-tokens", 8, env={})
    (want,) = _want(llama, compiled, PROMPTS[1:], 8)
    assert (done.returncode, done.stdout) == (0, want.text + "\n"), done.stderr
    assert done.stderr.startswith("prompt: ")
