"""Operators of extensions in ONNX Runtime, which knows them as functions of the model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import custom_ops

from .sessions import make_session, placed_nodes, reference

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "extension"
MODEL = """
<ir_version: 10, opset_import: ["" : 21, "acme" : 1]>
g (float[n,6] x) => (float[n,6] y) {
    r = Relu(x)
    q = acme.SortRows<descending=1>(r)
    y = Neg(q)
}
<domain: "acme", opset_import: ["" : 21]>
SortRows <descending: int = 0> (x) => (y)
{ six = Constant<value_ints=[6]>() y, places = TopK<largest: int = @descending>(x, six) }
"""


def model() -> onnx.ModelProto:
    made = parser.parse_model(MODEL)
    for node in made.graph.node:
        node.name = f"n_{node.output[0]}"
    return made


def python_of_its_own(folder: Path) -> str:
    """An interpreter under a name that no compiler runs under yet, so that it reads the environment anew."""
    path = folder / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_nodes_are_taken_as_they_are_and_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin.py").write_text("import custom_ops\ncustom_ops.register_sort_rows()\n")
    folders = [str(EXAMPLE), str(tmp_path), str(Path(custom_ops.__file__).parent), os.environ.get("PYTHONPATH")]
    monkeypatch.setenv("HIPDNN_MLIR_EXTENSIONS", "acme,plugin")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, folders)))
    custom_ops.register_sort_rows()  # here programs run, in the other process they are planned
    options = {"compiler": "subprocess", "python": python_of_its_own(tmp_path)}
    session = make_session(model(), tmp_path / "cache", options=options)
    assert placed_nodes(session) == (["n_r", "n_q", "n_y"], [])
    rng = np.random.default_rng(2)
    for n in (3, 8):
        feeds = {"x": rng.standard_normal((n, 6), np.float32)}
        np.testing.assert_array_equal(session.run(None, feeds)[0], reference(model(), feeds)[0])
    assert not list((tmp_path / "cache").rglob("*.*")), "what is kept on disk does not know the extension's files"
