"""Python of README.md and of guides runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hipdnn_mlir
from hipdnn_mlir.report.compare import compare_targets

pytestmark = pytest.mark.slow


def snippets(page: Path) -> list[str]:
    """Return the page's Python blocks that are whole programs."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if "\nimport " in f"\n{block}"]


PAGES = ["README.md", "docs/dynamic-dimensions.md", "docs/onnxruntime.md", "docs/profiling.md", "docs/tutorial.md"]


@pytest.mark.parametrize("name", PAGES)
def test_python_of_the_page_runs(name, pytestconfig: pytest.Config, tmp_path) -> None:
    root = pytestconfig.rootpath
    (tmp_path / "examples").symlink_to(root / "examples")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "XDG_CACHE_HOME": str(tmp_path),
    }
    blocks = snippets(root / name)
    assert blocks
    for block in blocks:
        done = subprocess.run(
            [sys.executable, "-P", "-c", block],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_tutorial_shows_what_explain_prints(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pytestconfig.rootpath)
    page = Path("docs/tutorial.md").read_text()
    shown = re.findall(r"^```\nhipdnn-mlir explain (.*)\n```$(?:.|\n)*?^```\n((?:.|\n)*?)^```$", page, re.MULTILINE)
    assert [words.split()[1:] for words, _ in shown] == [
        [],
        ["--target", "host", "--target", "gfx942", "--target", "sm_90"],
    ]
    for words, text in shown:
        model, *rest = words.split()
        targets = [word for word in rest if word != "--target"]
        assert f"{compare_targets(model, targets) if targets else hipdnn_mlir.explain(model)}\n" == text
