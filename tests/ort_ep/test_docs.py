"""Python of README.md and of guides runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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
