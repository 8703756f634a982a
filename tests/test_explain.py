"""What is explained is what compiling does: neither says of a model what the other denies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import hipdnn_mlir
from hipdnn_mlir_runtime.cli import main as cli
from hipdnn_mlir_runtime.errors import HipdnnMlirError, ModelError, UnsupportedError

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "a size that no expression gives": (
        "g (float[n,6] x) => (float[2,m,3] y) <int64[3] s = {2,-1,3}> { r = Relu(x) y = Reshape(r, s) }",
        {},
    ),
    "a last window that some sizes have": (
        """g (float[n,1,m] x) => (float[n,1,k] y) {
            r = Relu(x) y = AveragePool<kernel_shape=[2], strides=[3], pads=[1,1], ceil_mode=1>(r) }""",
        {},
    ),
    "a size that fits at one sample alone": (
        "g (float[n,8] x) => (float[n,8] y) { r = Relu(x) y = Add(r, w) }",
        {},
    ),
    "padding that would be data": (
        "g (float[n,8] x) => (float[n,8] y) { y = Softmax<axis=0>(x) }",
        {"buckets": {"n": [4, 8]}},
    ),
    "a whole program": ("g (float[n,8] x) => (float[n,8] y) { y = Softmax(x) }", {}),
    "a whole program in buckets": ("g (float[n,8] x) => (float[n,8] y) { y = Softmax(x) }", {"buckets": {"n": [4, 8]}}),
    "exact sizes": ("g (float[3,8] x) => (float[3,8] y) { y = Softmax(x) }", {}),
    "a node without a place": ("g (float[n,8] x) => (float[m] y) { r = Relu(x) y = Unique<axis=0>(r) }", {}),
}


def _model(text: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 22]> {text}')
    if "w)" in text:
        model.graph.initializer.append(numpy_helper.from_array(np.ones((59, 8), np.float32), "w"))
    return model


def _compiled(model: onnx.ModelProto, options: dict[str, Any]) -> HipdnnMlirError | None:
    try:
        hipdnn_mlir.compile(model, **options)
    except HipdnnMlirError as error:
        return error
    return None


def _explained(model: onnx.ModelProto, options: dict[str, Any]) -> hipdnn_mlir.Explanation | HipdnnMlirError:
    try:
        return hipdnn_mlir.explain(model, **options)
    except HipdnnMlirError as error:
        return error


@pytest.mark.parametrize("case", CASES)
def test_explanation_says_of_a_model_what_compiling_does(case: str) -> None:
    text, options = CASES[case]
    model = _model(text)
    refusal, found = _compiled(model, options), _explained(model, options)
    if isinstance(found, HipdnnMlirError):
        assert str(found) == str(refusal)
    elif found.rejects:
        assert isinstance(refusal, UnsupportedError)
        assert {reject.node for reject in found.rejects} == {reject.node for reject in refusal.rejects}
    else:
        assert found.no_program == ("" if refusal is None else str(refusal))


def test_placement_is_shown_with_the_reason_when_there_is_no_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = _model(CASES["a last window that some sizes have"][0])
    onnx.save(model, tmp_path / "m.onnx")
    found = hipdnn_mlir.explain(model, plans=True)
    assert [graph.nodes for graph in found.graphs] == [["Relu_0"], ["AveragePool_1"]]
    assert "a number cannot be written as an expression of the dynamic dimensions" in found.no_program
    assert found.plans_not_asked == "the model has no program"
    assert f"there is no program: {found.no_program}" in " ".join(str(found).split())
    assert found.no_program.startswith("AveragePool_1: ")
    assert found.conflicting_dimensions == ["m"]
    assert "With --shape m=SIZE there is one." in str(found)
    for extra in ([], ["--json"]):
        cli.call(["explain", str(tmp_path / "m.onnx"), "--in-process", *extra])
    shown, data = capsys.readouterr().out.split("{", 1)
    assert "Every node has a place, and there is no program" in " ".join(shown.split())
    assert "cannot be written as an expression" in json.loads("{" + data)["no_program"]


def test_dynamic_dimensions_have_no_code_when_the_target_wants_exact_ones() -> None:
    model = _model("g (float[n,8] x) => (float[n,8] y) <int64[1] i = {1}> { y = CumSum(x, i) }")
    with pytest.raises(ModelError, match="code for sm_90 is made for exact sizes") as raised:
        hipdnn_mlir.compile(model, target="sm_90")
    assert hipdnn_mlir.explain(model, target="sm_90").no_program == str(raised.value)
    assert hipdnn_mlir.explain(model, target="sm_90", buckets={"n": [1, 8]}).no_program == ""


def test_nodes_have_the_names_that_the_model_gives_them() -> None:
    model = _model("g (float[3,8] x) => (float[3,8] y) { y = Softmax(x) }")
    model.graph.node[0].name = 'größe "x"'
    (graph,) = hipdnn_mlir.explain(model).graphs
    assert graph.nodes == ['größe "x"']
