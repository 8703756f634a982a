"""Partitions that have no dynamic program, left to the CPU where that is asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import untaken

from .sessions import make_session, placed_nodes, reference, session_options

CPU = {"placement": "maximal", "dynamic_fallback": "cpu"}
TWO_PARTS = """g (float[n,12] x) => (float[4,6] y) <int64[2] s = {4,6}> {
    [a] r = Relu(x) [b] u = Untaken(r) [c] m = MatMul(u, w) [d] v = Reshape(m, s) [e] y = Sigmoid(v) }"""
"""Holds for n = 2, which no dynamic program knows."""


def _model() -> onnx.ModelProto:
    header = f'<ir_version: 10, opset_import: ["": 17, {untaken.OPSET_TEXT}]> '
    model = onnx.parser.parse_model(header + untaken.in_text(TWO_PARTS))
    weights = np.random.default_rng(0).standard_normal((12, 12), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


def _check(session: ort.InferenceSession) -> None:
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 12), np.float32)}
    np.testing.assert_allclose(session.run(None, feeds)[0], reference(_model(), feeds)[0], rtol=1e-5)


def test_part_without_one_program_stays_on_the_cpu_when_asked(tmp_path: Path) -> None:
    session = make_session(_model(), tmp_path, options=CPU)
    assert placed_nodes(session) == (["a"], ["b", "c", "d", "e"])
    _check(session)
    assert "c" in placed_nodes(make_session(_model(), tmp_path, options={"placement": "maximal"}))[0]


def test_rest_is_compiled_ahead_when_a_part_has_no_one_program(tmp_path: Path) -> None:
    source, path = tmp_path / "m.onnx", tmp_path / "ctx.onnx"
    onnx.save(_model(), source)
    left = session_options(tmp_path / "cache", options={"placement": "maximal"})
    with pytest.raises(Exception, match=r"'dynamic_fallback' = 'cpu'"):
        ort.ModelCompiler(left, str(source)).compile_to_file(str(path))
    options = session_options(tmp_path / "cache", options=CPU)
    ort.ModelCompiler(options, str(source), embed_compiled_data_into_model=True).compile_to_file(str(path))
    assert [node.op_type for node in onnx.load(path).graph.node].count("EPContext") == 1
    _check(make_session(path, tmp_path / "cache", options={"compiler": "none"}))


def test_unplaced_part_is_told_with_the_reason_when_strict(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"option strict: .*there is no dynamic program"):
        make_session(_model(), tmp_path, options={**CPU, "strict": "1"})
