"""Whole models with their graphs on the plugin equal ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from engine_plugin.conftest import OnBackend
from engine_plugin.loader import Plugin
from engine_plugin.on_backend import EQUAL
from engine_plugin.steps import OnPlugin, RunGraph
from engine_plugin.whole_models import MODELS, compare


@pytest.fixture(scope="module")
def on_plugin(plugin: Plugin) -> Iterator[RunGraph]:
    with ExitStack() as stack:
        yield OnPlugin(plugin, stack)


@pytest.mark.parametrize("name", MODELS)
def test_model_equals_onnxruntime(name: str, on_plugin: RunGraph) -> None:
    assert compare(name, on_plugin) > 0


def test_models_equal_onnxruntime_through_amds_backend(on_backend: OnBackend) -> None:
    answers = on_backend("models")
    assert {name: answers[name] for name in MODELS if answers[name] != EQUAL} == {}
