"""examples/tour.ipynb: its cells run, and what they assert holds."""

from __future__ import annotations

import nbclient
import nbformat
import pytest

pytestmark = pytest.mark.slow


def test_tour_runs_from_the_first_cell_to_the_last(pytestconfig: pytest.Config, monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    examples = pytestconfig.rootpath / "examples"
    notebook = nbformat.read(examples / "tour.ipynb", as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(examples)}})
    client.execute()  # raises for a cell that does
    assert [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"] == list(range(1, 10))
