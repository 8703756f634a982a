"""Prompts of messages, against those that transformers makes of the same folder."""

from __future__ import annotations

import json
from concurrent.futures import Executor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from generation.conftest import write_tokenizer
from generation.exporting import rendered_by_transformers
from hipdnn_mlir.serving.chat_template import ChatTemplate
from hipdnn_mlir_runtime.errors import ModelError

MESSAGES = [{"role": "user", "content": 'hi <b> & "naïve" 日本'}, {"role": "assistant", "content": "yes\n"}]
LINES = "{% for m in messages %}\n  {% if loop.first %}\n{{ m.content }}\n  {% endif %}\n{% endfor %}\n"
CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ add_generation_prompt }}", {}),
    "lines": (LINES, {}),
    "strings": ("{{ messages[0].content.split('&')[0].strip() | upper }}", {}),
    "nothing given": (
        "{{ tools is none }}{{ documents is none }}{{ tools is defined }}{{ nobody is defined }}{{ nobody }}",
        {},
    ),
    "json": ("{{ messages[0] | tojson }}{{ messages[0].content | tojson }}{{ messages[0] | tojson(indent=2) }}", {}),
    "break": ("{% for m in messages %}{% if loop.index0 == 1 %}{% break %}{% endif %}{{ m.content }}{% endfor %}", {}),
    "generation": (
        "{% set x = 1 %}{% for m in messages %}{% generation %}{% set x = 2 %}{{ m.content }}{{ x }}{%- endgeneration %}"
        "\n{{ x }}{% endfor %}",
        {},
    ),
    "time": ("{{ strftime_now('%Y') }}", {}),
    "special tokens": (
        "{{ bos_token }}[{{ eos_token }}]{{ pad_token }}|{{ image_token }}|{{ audio_token }}|{{ unk_token }}",
        {
            "bos_token": "<s>",
            "eos_token": {"__type": "AddedToken", "content": "</s>"},
            "pad_token": None,
            "audio_token": "<audio>",
            "extra_special_tokens": {"image_token": "<img>"},
        },
    ),
    "named": (
        [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D{{ messages[0].role }}"}],
        {},
    ),
}


@pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed: pip install '.[export]'")
def test_prompts_are_those_of_transformers(exporter: Executor, tmp_path: Path) -> None:
    for name, (template, config) in CASES.items():
        folder = tmp_path / name
        folder.mkdir()
        write_tokenizer(folder)
        (folder / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": template}))
        wanted = exporter.submit(rendered_by_transformers, folder, MESSAGES).result()
        assert ChatTemplate(folder).render(MESSAGES) == wanted, name
    (folder / "special_tokens_map.json").write_text(
        json.dumps({"bos_token": "<pad>", "eos_token": {"content": "</s>"}})
    )
    (folder / "chat_template.jinja").write_text("{{ bos_token }}{{ eos_token }}")  # it comes before the configuration's
    wanted = exporter.submit(rendered_by_transformers, folder, MESSAGES).result()
    assert ChatTemplate(folder).render(MESSAGES) == wanted == "<pad></s>"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ ''.__class__.__mro__ }}", "is unsafe"),
        ("{{ 1 // (messages|length - 2) }}", "by zero"),
        ("{{ messages[0].content.index('zzz') }}", "not found"),
        ("{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "recursion"),
        ("{% if %}", "Expected an expression"),
    ],
)
def test_whatever_a_template_raises_is_an_error_of_the_messages(template: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(ModelError, match=f"^messages: the chat template takes no such messages: .*{message}"):
        ChatTemplate(tmp_path).render(MESSAGES)


def test_no_template_is_an_error_when_it_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no chat template"):
        ChatTemplate(tmp_path).render(MESSAGES)


@pytest.mark.parametrize("text", ["{", "[]", '{"chat_template": 5}'])
def test_a_broken_configuration_is_refused_by_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(text)
    with pytest.raises(ModelError, match=r"tokenizer_config\.json"):
        ChatTemplate(tmp_path)
