"""Texts of a decoder over HTTP, against the same decoder in this process; the clients speak plain HTTP."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import hipdnn_mlir
from generation.conftest import Exported, copy_of
from hipdnn_mlir.generate import TextGenerator, Token
from hipdnn_mlir.serving.texts import HeldText, pieces_of
from serving.running import Running, serving

pytestmark = pytest.mark.slow
PROMPT, LENGTH, TEMPLATE = (
    "the quick brown fox",
    64,
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>",
)
LAST = 60
"""Texts that are asked for together when the server is stopped, which takes it a second or more."""
PROMPTS = [PROMPT, "日本語", "the lazy dog, naïve café", "jumps"]


@pytest.fixture(scope="module")
def folder(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = copy_of(exported("llama"), tmp_path_factory.mktemp("models") / "llama")
    (made / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return made


@pytest.fixture(scope="module")
def alone(folder: Path, llama_program: hipdnn_mlir.Program) -> Iterator[TextGenerator]:
    with TextGenerator(folder, program=llama_program, max_length=LENGTH) as model:
        yield model


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with (
        ThreadPoolExecutor() as pool,
        serving(tmp_path_factory.mktemp("server"), folder, "--max-length", LENGTH, "--max-running", 3) as running,
    ):
        yield running
        last = pool.submit(asked, running, "completions", prompt=PROMPT, n=LAST, max_tokens=LENGTH - 10)
        while statistics(running)["running"] == 0 and not last.done():
            time.sleep(0.01)
    status, answer = last.result()  # it was being answered when the server was stopped
    assert (status, len(answer["choices"])) == (200, LAST)


def asked(server: Running, path: str, **body: Any) -> tuple[int, Any]:
    connection = HTTPConnection(server.http, timeout=60)
    connection.request("POST", f"/v1/{path}", json.dumps({"model": "llama", "temperature": 0, **body}))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def statistics(server: Running) -> Any:
    with urllib.request.urlopen(f"http://{server.http}/v2/models/llama/stats") as answer:
        return json.loads(answer.read())["model_stats"][0]["generation_stats"]


def streamed(server: Running, path: str, **body: Any) -> list[Any]:
    """The events of a stream, the last one as a text."""
    body = {"model": "llama", "temperature": 0, "stream": True, **body}
    request = urllib.request.Request(f"http://{server.http}/v1/{path}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = [line.decode().removeprefix("data: ").strip() for line in answer if line.strip()]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_completions_are_those_of_the_decoder_alone(server: Running, alone: TextGenerator) -> None:
    def completed(prompt: str) -> Any:
        status, answer = asked(server, "completions", prompt=prompt, max_tokens=20)
        assert status == 200
        return answer

    with ThreadPoolExecutor() as pool:
        answers = [*pool.map(completed, PROMPTS)]
    for prompt, answer in zip(PROMPTS, answers, strict=True):
        (expected,) = alone.generate(prompt, max_new_tokens=20, temperature=0)
        (choice,) = answer["choices"]
        assert (choice["text"], choice["finish_reason"]) == (expected.text, expected.finish_reason)
        usage = {"prompt_tokens": expected.prompt_tokens, "completion_tokens": len(expected.tokens)}
        assert answer["usage"] == usage | {"total_tokens": sum(usage.values())}


def test_a_stream_gives_the_same_in_pieces(server: Running, alone: TextGenerator) -> None:
    events = streamed(server, "completions", prompt=PROMPTS, max_tokens=20, stream_options={"include_usage": True})
    for index, prompt in enumerate(PROMPTS):
        own = [event["choices"][0] for event in events[:-1] if event["choices"][0]["index"] == index]
        (expected,) = alone.generate(prompt, max_new_tokens=20, temperature=0)
        assert "".join(choice["text"] for choice in own) == expected.text
        assert [choice["finish_reason"] for choice in own if choice["finish_reason"]] == [expected.finish_reason]
    assert len(events) > 2 * len(PROMPTS)
    assert events[-1]["usage"]["completion_tokens"] > len(PROMPTS)


def test_a_chat_is_rendered_by_the_models_template(server: Running, alone: TextGenerator) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    status, answer = asked(server, "chat/completions", messages=messages, max_completion_tokens=12)
    assert status == 200
    (expected,) = alone.generate(f"<user>{PROMPT}<assistant>", max_new_tokens=12, temperature=0)
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": expected.text}
    events = streamed(server, "chat/completions", messages=messages, max_tokens=12)
    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(event["choices"][0]["delta"]["content"] for event in events) == expected.text


def test_a_text_ends_before_a_stop_string(server: Running, alone: TextGenerator) -> None:
    (whole,) = alone.generate(PROMPT, max_new_tokens=30, temperature=0)
    stop = whole.text[6:9]
    cut = whole.text[: whole.text.index(stop)]
    _, answer = asked(server, "completions", prompt=PROMPT, max_tokens=30, stop=[stop])
    assert (answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]) == (cut, "stop")
    events = streamed(server, "completions", prompt=PROMPT, max_tokens=30, stop=stop)
    assert "".join(event["choices"][0]["text"] for event in events) == cut


def test_the_same_seed_draws_the_same_and_choices_differ(server: Running) -> None:
    body = {"prompt": PROMPT, "max_tokens": 20, "temperature": 1.0, "seed": 3, "n": 2}
    first, second = (asked(server, "completions", **body)[1]["choices"] for _ in range(2))
    assert [choice["text"] for choice in first] == [choice["text"] for choice in second]
    assert first[0]["text"] != first[1]["text"]


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        ("completions", {"prompt": PROMPT, "model": "nobody"}, 404, "no text model 'nobody'"),
        ("completions", {}, 400, "prompt: bad request"),
        ("completions", {"prompt": ""}, 400, "an empty prompt"),
        ("completions", {"prompt": PROMPT, "max_tokens": 999}, 400, "no room for 999 tokens"),
        ("completions", {"prompt": PROMPT, "temperature": -1}, 400, "temperature: bad value"),
        ("completions", {"prompt": PROMPT, "logprobs": 3}, 400, "logprobs: not supported"),
        ("completions", {"prompt": PROMPT, "max_token": 3}, 400, "max_token: unknown parameter"),
        ("completions", {"prompt": [99999]}, 400, "no such token"),
        ("completions", {"prompt": [5] * LENGTH}, 400, "the prompt is too long: expected at most 63 tokens, got 64"),
        ("completions", {"prompt": "the " * 100_000}, 400, "expected at most 63 tokens, got 400000 characters"),
        ("completions", {"prompt": "a\ud800"}, 400, r"expected UTF-8, of whole characters, got '\ud800' at 1"),
        ("completions", {"prompt": PROMPT, "model": "\ud800"}, 404, "no text model '\ud800'"),
        ("chat/completions", {"messages": [{"role": "user"}]}, 400, "bad message"),
    ],
)
def test_a_bad_request_gets_its_error(
    path: str, body: dict[str, Any], status: int, reason: str, server: Running
) -> None:
    found, answer = asked(server, path, **body)
    assert found == status
    assert reason in answer["error"]["message"]


def test_clients_that_hang_up_leave_the_server_as_it_was(server: Running) -> None:
    for _ in range(8):
        connection = HTTPConnection(server.http, timeout=60)
        body = {"model": "llama", "prompt": [5], "max_tokens": LENGTH - 1, "stream": True, "temperature": 0}
        connection.request("POST", "/v1/completions", json.dumps(body))
        connection.sock.recv(100)
        connection.close()
    end = time.monotonic() + 30
    while True:
        counts = statistics(server)
        if counts["running"] == counts["waiting"] == counts["pages_in_use"] == 0:
            break
        assert time.monotonic() < end, counts
        time.sleep(0.05)
    assert asked(server, "completions", prompt=PROMPT, max_tokens=2)[0] == 200


class Endless:
    """A text that ends when it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def __iter__(self) -> Iterator[Token]:
        while not self.cancelled.wait(0.001):
            yield Token(0, 1, "x")

    def cancel(self) -> None:
        self.cancelled.set()


def test_a_text_that_nobody_reads_on_is_cancelled() -> None:
    request: Any = Endless()

    async def read() -> list[str]:
        with ThreadPoolExecutor() as threads:
            pieces = pieces_of(request, (), threads)
            found = [(await anext(pieces)).text, (await anext(pieces)).text]
            await pieces.aclose()
        return found

    assert asyncio.run(read()) == ["x", "x"]
    assert request.cancelled.is_set()


def test_a_completion_near_the_limit_is_as_long_as_there_is_room(server: Running, alone: TextGenerator) -> None:
    prompt = [5] * (LENGTH - 3)
    status, answer = asked(server, "completions", prompt=prompt)
    (expected,) = alone.generate(prompt, max_new_tokens=3, temperature=0)
    assert (status, answer["choices"][0]["text"]) == (200, expected.text)


def test_models_are_listed(server: Running) -> None:
    with urllib.request.urlopen(f"http://{server.http}/v1/models") as answer:
        (model,) = json.loads(answer.read())["data"]
    assert model["id"] == "llama"
    with urllib.request.urlopen(f"http://{server.http}/v1/models/llama") as answer:
        assert json.loads(answer.read()) == model
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"http://{server.http}/v1/models/nobody")


@pytest.mark.parametrize(
    ("pieces", "stops", "given"),
    [
        (["ab", "cd"], [], "abcd"),
        (["ab", "cd"], ["bc"], "a"),
        (["ab", "abc"], ["abc"], "ab"),
        (["aa", "ab"], ["aab"], "a"),
        (["a", "b"], ["bc"], "ab"),
        (["xay", "b"], ["yb", "a"], "x"),
    ],
)
def test_what_may_begin_a_stop_string_is_held_back(pieces: list[str], stops: list[str], given: str) -> None:
    held, found = HeldText(stops), ""
    for index, piece in enumerate(pieces):
        text, is_stopped = held.add(piece, is_last=index == len(pieces) - 1)
        found += text
        if is_stopped:
            break
    assert found == given
