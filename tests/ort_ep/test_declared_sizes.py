"""Sizes that a model declares and a run contradicts: ONNX Runtime warns of them and goes on, and so does the provider."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper

import hipdnn_mlir
import untaken

from .sessions import make_session, partitions, reference, session_options

WHOLE = {
    "of an output": "g (float[n,8] x) => (float[1,4] y) { y = MatMul(x, w) }",
    "of an inner value": "g (float[n,8] x) => (float[n,4] y) <float[1,4] t> { t = MatMul(x, w) y = Relu(t) }",
}
BETWEEN_PARTS = """g (float[n,8] x) => (float[n,4] y) <float[1,4] t, float[1,4] u, float[1,4] v> {
    t = MatMul(x, w) u = Untaken(t) v = MatMul(u, q) y = Relu(v) }"""
MAXIMAL = {"placement": "maximal"}


def _model(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17, {untaken.OPSET_TEXT}]> {untaken.in_text(text)}'
    )
    rng = np.random.default_rng(0)
    weights = {"w": (8, 4), "q": (4, 4)}
    arrays = {name: rng.standard_normal(dims, np.float32) for name, dims in weights.items()}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items() if n in text)
    return model


def _feeds(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(rows).standard_normal((rows, 8), np.float32)}


def _check(session: object, model: onnx.ModelProto, rows: int) -> None:
    (got,), (want,) = session.run(None, _feeds(rows)), reference(model, _feeds(rows))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
@pytest.mark.parametrize("what", WHOLE)
def test_sizes_are_those_of_the_run_when_the_model_declares_others(what: str, kind: str, tmp_path: Path) -> None:
    model = _model(WHOLE[what])
    session = make_session(model, tmp_path, kind=kind, options=MAXIMAL)
    assert partitions(session)
    for rows in (3, 1, 3):
        _check(session, model, rows)


@pytest.mark.parametrize("kind", ["cpu", "gpu"])
def test_sizes_between_parts_are_those_of_the_run_when_the_model_declares_others(kind: str, tmp_path: Path) -> None:
    model = _model(BETWEEN_PARTS)
    for _ in range(2):  # the second time the placement comes from the cache
        session = make_session(model, tmp_path, kind=kind, options=MAXIMAL)
        assert len(partitions(session)) == 2
        for rows in (3, 1):
            _check(session, model, rows)


def test_compiled_model_runs_when_it_declares_other_sizes(tmp_path: Path) -> None:
    model, path = _model(BETWEEN_PARTS), tmp_path / "ctx.onnx"
    onnx.save(model, tmp_path / "m.onnx")
    options = session_options(tmp_path, options=MAXIMAL)
    ort.ModelCompiler(options, str(tmp_path / "m.onnx"), embed_compiled_data_into_model=True).compile_to_file(str(path))
    session = make_session(path, tmp_path, options={"compiler": "none"})
    for rows in (3, 1):
        _check(session, model, rows)


@pytest.mark.parametrize("what", WHOLE)
def test_program_has_the_sizes_of_its_inputs_when_the_model_declares_others(what: str) -> None:
    model = _model(WHOLE[what].replace("[n,8]", "[3,8]").replace("[n,4]", "[3,4]"))
    _check(hipdnn_mlir.compile(model).session(), model, 3)
