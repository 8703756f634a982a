"""The plugin that is installed with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

import installed
from engine_plugin.loader import Plugin


@pytest.fixture(scope="session")
def plugin_path() -> Path:
    """The library."""
    return installed.library("cpu_plugin")


@pytest.fixture(scope="session")
def plugin(plugin_path: Path) -> Plugin:
    """The library, loaded."""
    return Plugin(plugin_path)
