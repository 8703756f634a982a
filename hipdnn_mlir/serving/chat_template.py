"""How messages become a prompt: the template of the model's folder, as transformers keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hipdnn_mlir_runtime.errors import ModelError

_CONFIG, _FILE = "tokenizer_config.json", "chat_template.jinja"


class ChatTemplate:
    """The template of a folder.

    Args:
        folder: Where the tokenizer lies. Without a template there, rendering is an error.
    """

    def __init__(self, folder: Path) -> None:
        self._where = str(folder)
        path = folder / _CONFIG
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        text = config.get("chat_template")
        if (folder / _FILE).is_file():
            text = (folder / _FILE).read_text(encoding="utf-8")
        self._text = text if isinstance(text, str) else None
        special = {
            name: config[name] for name in ("bos_token", "eos_token", "pad_token", "unk_token") if config.get(name)
        }
        self._special = {name: one["content"] if isinstance(one, dict) else one for name, one in special.items()}

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Return the prompt for messages, up to where the answer begins.

        Raises:
            ModelError: There is no template, or it refuses the messages.
        """
        if self._text is None:
            expected, hint = f"{_FILE}, or 'chat_template' in {_CONFIG}", "ask /v1/completions with a prompt"
            raise ModelError("the model has no chat template", where=self._where, expected=expected, hint=hint)
        from jinja2 import TemplateError
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        # The template came with the model: it computes a text, and can do nothing else.
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        try:
            template = environment.from_string(self._text)
            return template.render(messages=list(messages), add_generation_prompt=True, **self._special)
        except (TemplateError, TypeError) as error:
            raise ModelError(f"the chat template takes no such messages: {error}", where="messages") from error


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)
