"""docs/ops.md is what the op table says."""

from __future__ import annotations

import pytest

from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.table import rows
from hipdnn_mlir.report.ops_doc import markdown


def test_ops_page_is_current(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "ops.md").read_text()
    assert page == markdown(), "run: python -m hipdnn_mlir.report.ops_doc docs/ops.md"


def test_ops_page_names_every_row() -> None:
    page = markdown()
    assert [name for name in rows() if f"`{name.removeprefix('torch.').removeprefix(ONNX)}`" not in page] == []
