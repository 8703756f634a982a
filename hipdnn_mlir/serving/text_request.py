"""What a client asks for of a text model, in OpenAI's form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hipdnn_mlir_runtime.errors import ModelError

_MOST_TEXTS = 128
_COMPLETION_TOKENS = 16
"""Most tokens of a completion, where the client does not say and there is room; an answer in a chat takes what it needs."""
_OF_ALL = {"model", "max_tokens", "n", "seed", "stop", "stream", "stream_options", "temperature", "top_p"}
_OWN = {"top_k", "repetition_penalty"}
_IGNORED = {"user", "metadata", "store"}
_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "best_of": (None, 1),
    "echo": (None, False),
    "frequency_penalty": (None, 0),
    "logit_bias": (None, {}),
    "logprobs": (None, False),
    "parallel_tool_calls": (None, False, True),
    "presence_penalty": (None, 0),
    "response_format": (None, {"type": "text"}),
    "suffix": (None, ""),
    "tool_choice": (None, "none", "auto"),
    "tools": (None, []),
    "top_logprobs": (None, 0),
}
"""What is not supported, and the values that ask for nothing."""


@dataclass(frozen=True)
class Limit:
    """Most tokens of a text.

    Attributes:
        name: What the client calls it.
        tokens: How many; None where the client does not say.
        default: How many then, if there is room; None for all that there is room for.
    """

    name: str
    tokens: int | None
    default: int | None

    def within(self, room: int) -> int | None:
        """Return how many tokens are generated where so many have room; None for all of these.

        Raises:
            ModelError: The client asks for more.
        """
        if self.tokens is None:
            return self.default and min(self.default, room)
        if self.tokens > room:
            message = f"no room for {self.tokens} tokens behind the prompt"
            raise ModelError(message, where=self.name, expected=f"at most {room}", hint="ask for fewer")
        return self.tokens


@dataclass(frozen=True)
class TextRequest:
    """A request for texts.

    Attributes:
        model: Name of the model.
        prompts: Texts or tokens that are continued.
        messages: Of a chat, which is answered; None where prompts are.
        count: Texts for each prompt.
        limit: Most tokens of each text, and the client's name for it; without a number as many as there is room for.
        options: Other keywords of `BatchGenerator.submit`.
        stops: Strings that end a text.
        is_streamed: Whether it is sent as it comes.
        has_usage: Whether the number of tokens is sent at the end of a stream.
    """

    model: str
    prompts: Sequence[str | Sequence[int]]
    messages: Sequence[Mapping[str, str]] | None
    count: int
    limit: Limit
    options: Mapping[str, Any]
    stops: Sequence[str]
    is_streamed: bool
    has_usage: bool


def read_text_request(body: bytes, *, is_chat: bool) -> TextRequest:
    """Read the body of a request.

    Raises:
        ModelError: It is not in OpenAI's form, or asks for what is not supported.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the body is no JSON: {error}") from error
    if not isinstance(given, dict) or not isinstance(given.get("model"), str):
        raise ModelError("bad request", where="model", expected="an object with the name of a model")
    _check_names(given, {"messages", "max_completion_tokens"} if is_chat else {"prompt"})
    count = _number(given, "n", 1, at_least=1)
    prompts = [] if is_chat else _prompts(given.get("prompt"))
    if count * max(len(prompts), 1) > _MOST_TEXTS:
        raise ModelError("too many texts", where="n", expected=f"at most {_MOST_TEXTS} in all")
    return TextRequest(
        model=given["model"],
        prompts=prompts,
        messages=_messages(given.get("messages")) if is_chat else None,
        count=count,
        limit=_limit(given, None if is_chat else _COMPLETION_TOKENS),
        options=_options(given),
        stops=_stops(given.get("stop")),
        is_streamed=_flag(given, "stream"),
        has_usage=_flag(_object(given, "stream_options"), "include_usage"),
    )


def _check_names(given: Mapping[str, Any], own: set[str]) -> None:
    for name, value in given.items():
        if name in _UNSUPPORTED and not any(_is_same(value, idle) for idle in _UNSUPPORTED[name]):
            raise ModelError("not supported", where=name, hint="leave it out")
        if name not in _OF_ALL | _OWN | _IGNORED | own | set(_UNSUPPORTED):
            raise ModelError("unknown parameter", where=name, expected=", ".join(sorted(_OF_ALL | _OWN | own)))


def _is_same(value: Any, other: Any) -> bool:
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _limit(given: Mapping[str, Any], default: int | None) -> Limit:
    name = next((name for name in ("max_completion_tokens", "max_tokens") if given.get(name) is not None), "max_tokens")
    tokens = None if given.get(name) is None else _number(given, name, 0, at_least=1)
    return Limit(name, tokens, default)


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: given.get(name) for name in ("temperature", "top_p", "top_k", "repetition_penalty", "seed")}
    if options["temperature"] == 0:
        options |= {"top_p": None, "top_k": None, "seed": None}  # clients send them always; they have no effect then
    if options["seed"] is not None:
        options["seed"] = _number(given, "seed", 0, at_least=0)
    return options


def _prompts(prompt: Any) -> list[str | list[int]]:
    given = [prompt] if isinstance(prompt, str) or (isinstance(prompt, list) and _is_tokens(prompt)) else prompt
    if not isinstance(given, list) or not given or not all(isinstance(one, str) or _is_tokens(one) for one in given):
        raise ModelError("bad request", where="prompt", expected="a text, tokens, or a list of either")
    return given


def _is_tokens(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(token) is int for token in value)


def _messages(messages: Any) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise ModelError("bad request", where="messages", expected="a list of objects with 'role' and 'content'")
    return [_message(one) for one in messages]


def _message(one: Any) -> dict[str, str]:
    content = one.get("content") if isinstance(one, dict) else None
    if isinstance(content, list):
        texts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        ]
        content = None if None in texts else "".join(map(str, texts))
    if not isinstance(content, str) or not isinstance(one.get("role"), str):
        raise ModelError("bad message", where="messages", expected="an object with 'role', and a text as 'content'")
    return {"role": one["role"], "content": content}


def _stops(stop: Any) -> list[str]:
    stops = [] if stop is None else [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not all(isinstance(one, str) and one for one in stops):
        raise ModelError("bad request", where="stop", expected="a text that is not empty, or a list of such texts")
    return stops


def _number(given: Mapping[str, Any], name: str, default: int, *, at_least: int) -> int:
    value = default if given.get(name) is None else given[name]
    if type(value) is not int or value < at_least:
        raise ModelError("bad value", where=name, expected=f"a whole number from {at_least}", got=repr(value))
    return value


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise ModelError("bad value", where=name, expected="true or false", got=repr(value))
    return bool(value)


def _object(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = given.get(name) or {}
    if not isinstance(value, dict):
        raise ModelError("bad value", where=name, expected="an object", got=repr(value))
    return value
