"""How messages become a prompt: the template of the model's folder, rendered as transformers' `apply_chat_template` does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hipdnn_mlir_runtime.errors import ModelError

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_CONFIG, _FILE = "tokenizer_config.json", "chat_template.jinja"
_SPECIAL = "special_tokens_map.json"
"""Has special tokens of folders whose configuration does not list all tokens that were added."""
_NOT_GIVEN = {"tools": None, "documents": None}
"""What transformers gives to each template, and nobody can ask for here."""


class ChatTemplate:
    """The template of a folder.

    Args:
        folder: Where the tokenizer lies. Without a template there, rendering is an error.

    Raises:
        ModelError: A file is broken.
    """

    def __init__(self, folder: Path) -> None:
        self._where = str(folder)
        config = _object(folder / _CONFIG)
        self._text = _text(config.get("chat_template"), folder / _CONFIG)
        if (folder / _FILE).is_file():
            self._text = (folder / _FILE).read_text(encoding="utf-8")
        if "added_tokens_decoder" not in config:
            config |= _object(folder / _SPECIAL)
        self._special = _special_tokens(config)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt for messages, up to where the answer begins.

        Raises:
            ModelError: There is no template, or it refuses the messages.
        """
        if self._text is None:
            expected, hint = f"{_FILE}, or 'chat_template' in {_CONFIG}", "ask /v1/completions with a prompt"
            raise ModelError("the model has no chat template", where=self._where, expected=expected, hint=hint)
        values = {"messages": list(messages), "add_generation_prompt": True, **_NOT_GIVEN, **self._special}
        try:
            return self._template.render(values)
        except Exception as error:  # a template is a program, and fails as programs do
            raise ModelError(f"the chat template takes no such messages: {error}", where="messages") from error

    @cached_property
    def _template(self) -> Template:
        return _environment().from_string(self._text or "")


def _object(path: Path) -> dict[str, Any]:
    """Return the object of a file, an empty one where there is no file."""
    if not path.is_file():
        return {}
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"not JSON: {error}", where=str(path)) from error
    if not isinstance(data, dict):
        raise ModelError("wrong value", where=str(path), expected="an object", got=type(data).__name__)
    return data


def _text(template: Any, path: Path) -> str | None:
    """Return the template: of a list of named ones the default."""
    if isinstance(template, list) and all(isinstance(one, dict) for one in template):
        template = next((one.get("template") for one in template if one.get("name") == "default"), None)
    if template is not None and not isinstance(template, str):
        expected = "a text, or a list of objects with 'name' and 'template'"
        raise ModelError("wrong value", where=f"{path}: chat_template", expected=expected, got=repr(template))
    return template


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the tokens that have names, which are variables of a template."""
    more = config.get("extra_special_tokens")
    named = {name: token for name, token in config.items() if name.endswith("_token")}
    named |= more if isinstance(more, dict) else {}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in named.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _environment() -> Environment:
    """Return what templates are written for. They came with the model: they compute a text, and can do nothing else."""
    from jinja2 import nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """The block around what the model has said: training looks at it, and here it is the text in it."""

        tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            return nodes.Scope(parser.parse_statements(("name:endgeneration",), drop_needle=True)).set_lineno(line)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = _to_json
    made.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
    return made


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON as models have seen it: Jinja's own filter escapes it for HTML, and sorts it."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)
