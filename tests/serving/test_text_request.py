"""Requests for texts as OpenAI's clients write them: what is taken, and what is refused by its name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hipdnn_mlir.generate.batch import Counts
from hipdnn_mlir.serving.faults import QueueFullError
from hipdnn_mlir.serving.text_request import TextRequest, read_text_request
from hipdnn_mlir.serving.texts import check_places
from hipdnn_mlir_runtime.errors import ModelError


def read(*, is_chat: bool = False, **given: Any) -> TextRequest:
    own = {"messages": [{"role": "user", "content": "x"}]} if is_chat else {"prompt": "x"}
    return read_text_request(json.dumps({"model": "m", **own, **given}).encode(), is_chat=is_chat)


@pytest.mark.parametrize(
    ("is_chat", "given", "room", "tokens"),
    [
        (False, {}, 100, 16),
        (False, {}, 6, 6),
        (False, {"max_tokens": None}, 6, 6),
        (False, {"max_tokens": 7}, 100, 7),
        (True, {}, 100, None),
        (True, {"max_tokens": 7}, 100, 7),
        (True, {"max_completion_tokens": 3}, 100, 3),
        (True, {"max_tokens": None, "max_completion_tokens": 3}, 100, 3),
        (True, {"max_tokens": 7, "max_completion_tokens": 3}, 100, 3),
    ],
)
def test_most_tokens_are_those_that_the_client_says(
    is_chat: bool, given: dict[str, Any], room: int, tokens: int | None
) -> None:
    assert read(is_chat=is_chat, **given).limit.within(room) == tokens


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_limit_is_refused_by_the_clients_name(name: str) -> None:
    with pytest.raises(ModelError, match=f"^{name}: no room for 7 tokens behind the prompt: expected at most 6"):
        read(is_chat=True, **{name: 7}).limit.within(6)
    with pytest.raises(ModelError, match=f"^{name}: bad value"):
        read(is_chat=True, **{name: 0})


@pytest.mark.parametrize(
    "given",
    [
        {"response_format": {"type": "text"}},
        {"tool_choice": "none", "parallel_tool_calls": True, "tools": []},
        {"logprobs": False, "top_logprobs": 0, "frequency_penalty": 0.0, "logit_bias": {}},
    ],
    ids=str,
)
def test_values_that_ask_for_nothing_are_taken(given: dict[str, Any]) -> None:
    read(is_chat=True, **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"logprobs": 0}, "logprobs: not supported"),  # asks for the token's own, and is equal to False
        ({"response_format": {"type": "json_object"}}, "response_format: not supported"),
        ({"tool_choice": "required"}, "tool_choice: not supported"),
        ({"echo": True}, "echo: not supported"),
        ({"stop": ""}, "stop: bad request: expected a text that is not empty"),
        ({"stop": ["a", ""]}, "stop: bad request"),
    ],
    ids=str,
)
def test_values_that_ask_for_more_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=f"^{message}"):
        read(**given)


def test_texts_beyond_the_places_are_told_to_come_again_or_never_to() -> None:
    counts = Counts(running=2, waiting=3, pages_in_use=0, pages=0)
    check_places(counts, 5, 10)
    with pytest.raises(QueueFullError):
        check_places(counts, 6, 10)
    with pytest.raises(ModelError, match="n: too many texts: expected at most 10 in all, got 11") as caught:
        check_places(counts, 11, 10)
    assert not isinstance(caught.value, QueueFullError)
