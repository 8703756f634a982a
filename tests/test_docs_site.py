"""The site of the documents: it builds without a warning, so that no link or anchor is broken, and loads nothing from the network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hipdnn_mlir.cli import reference
from hipdnn_mlir.report.options_doc import between

LOADED = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\ssrc="?(?:https?:)?//"""
    r"""|<link\b(?=[^>]*\srel="?(?:stylesheet|preload|preconnect|icon)\b)[^>]*\shref="?(?:https?:)?//"""
)


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_site_has_a_page_for_each_document(site: Path, pytestconfig: pytest.Config) -> None:
    pages = {
        path.relative_to(pytestconfig.rootpath).with_suffix(".html")
        for path in pytestconfig.rootpath.glob("docs/**/*.md")
    }
    made = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {page.with_name("index.html") if page.stem == "README" else page for page in pages} <= made


def test_site_loads_nothing_from_the_network(site: Path) -> None:
    found = {
        str(page.relative_to(site)): match[0]
        for page in site.rglob("*.html")
        if (match := LOADED.search(page.read_text()))
    }
    assert found == {}


def test_list_of_commands_is_up_to_date(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / reference.PAGE).read_text()
    assert between(page, *reference.LINES, reference.reference) == page, "run: make generated"
