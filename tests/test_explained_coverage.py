"""What `explain` tells first: coverage, what is left out and what would help; and targets side by side."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import onnx
import pytest

import hipdnn_mlir
from hipdnn_mlir.frontend.shape_inference import DATA_DEPENDENT
from hipdnn_mlir.report.advice import advice
from hipdnn_mlir.report.compare import compare_targets
from hipdnn_mlir.report.explain_text import percent_text
from hipdnn_mlir.targets.table import TARGETS, TargetName, find_target
from hipdnn_mlir_runtime.errors import NO_ROW, ModelError, Reject
from hipdnn_mlir_runtime.tables import aligned


def _model(text: str, imports: str = '"": 17') -> onnx.ModelProto:
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]> {text}")


MIXED = """g (float[2,8] x, float[8,8] w, float[2,8] u) => (float[2,8] y, float[2,8] z, float[a,8] v) {
    m = MatMul(x, w)  r = Relu(m)  i = Identity(r)  y = Softmax(i)
    c = Constant<value_ints = [1]>()  s = CumSum(u, c)  z = Transpose<perm = [0, 1]>(s)
    k = Unique<axis = 0>(u)  v = Relu(k)
}"""


def _mixed() -> onnx.ModelProto:
    return _model(MIXED)


def test_every_node_is_counted_in_one_place() -> None:
    found = hipdnn_mlir.explain(_mixed())
    shares = found.coverage
    assert shares is not None
    assert {node.op for node in found.nodes if node.place == "left out"} == {"Unique", "Relu"}
    assert shares.nodes == len(found.nodes) == 8  # without the constant
    assert shares.graph + shares.kernel + shares.moved + shares.folded + shares.left_out == shares.nodes
    places = {node.op: node.place for node in found.nodes if node.op != "Relu"}
    assert places["MatMul"] == places["Softmax"] == "graph"
    assert places["CumSum"] == "kernel"
    assert places["Identity"] in ("moved", "folded")
    assert shares.flops_percent == 100.0


def test_nodes_without_names_have_their_places_behind_constants() -> None:
    text = "g (float[4] x) => (float[4] y) { c = Constant<value = float[4] {1, 2, 3, 4}>()  y = Add(x, c) }"
    (node,) = hipdnn_mlir.explain(_model(text)).nodes
    assert (node.name, node.place, node.within) == ("Add_1", "graph", ["graph_0"])


def test_nodes_that_share_a_name_are_counted_each() -> None:
    model = _model("g (float[2,8] x, float[8,8] w) => (float[2,8] y) { r = Relu(x)  m = MatMul(r, w)  y = Tanh(m) }")
    model.graph.node[1].name = "Relu_0"  # as the first node is called, which has no name
    model.graph.node[2].name = "Relu_0"
    found = hipdnn_mlir.explain(model)
    assert [(node.name, node.place) for node in found.nodes] == [
        ("Relu_0", "graph"), ("Relu_0#1", "graph"), ("Relu_0#2", "graph")
    ]  # fmt: skip
    assert found.coverage is not None
    assert found.coverage.flops_percent == 100.0


@pytest.mark.parametrize("target", ["host", "gfx942"])
def test_graphs_and_kernels_are_counted_as_coverage_counts_their_nodes(target: TargetName) -> None:
    model = _model("g (float[2,8] x, float[8,8] w, int64 a) => (float[2,8] y) {\n"
                   "m = MatMul(x, w)  s = CumSum(m, a)  y = Softmax(s) }")  # fmt: skip
    model.graph.initializer.append(onnx.helper.make_tensor("a", onnx.TensorProto.INT64, [], [1]))
    del model.graph.input[2]
    found = hipdnn_mlir.explain(model, target=target)
    places = {name: node.place for node in found.nodes for name in node.within}
    graphs, kernels = (list(places.values()).count(place) for place in ("graph", "kernel"))
    assert {"host": (2, 1), "gfx942": (1, 2)}[target] == (graphs, kernels)
    counted = rf"^{graphs} graphs?, {kernels} kernels?:$"
    assert re.search(counted, str(found), re.MULTILINE)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0"), (0.2, "1"), (66.67, "67"), (99.7, "99"), (100, "100"), (99.99999999999, "100")],
)
def test_all_and_none_are_not_said_of_a_part(share: float, text: str) -> None:
    assert percent_text(share) == text


def test_flops_count_when_a_convolution_is_left_out() -> None:
    model = _model("g (float[4,8] x, double[1,64,2,2] h, double[8,64,1,1] w) => (float[4,4] y, double[1,8,2,2] z) {\n"
                   "t = Transpose(x)  y = MatMul(x, t)  z = Conv(h, w) }")  # fmt: skip
    found = hipdnn_mlir.explain(model)
    places = {node.op: node.place for node in found.nodes}
    if places["Conv"] == "left out":
        assert found.coverage is not None
        assert found.coverage.flops_percent == pytest.approx(100 * (4 * 4 * 8) / (4 * 4 * 8 + 4 * 64 * 8))
    else:
        pytest.fail("f64 convolutions have a place now: this test needs another node of work that has none")


def test_rejects_of_one_reason_are_one_group_with_what_would_help() -> None:
    nodes = "".join(f"y{i} = my.Mystery(x)" for i in range(5))
    outputs = ", ".join(f"float[3] y{i}" for i in range(5))
    model = _model(f"g (float[3] x) => ({outputs}, float[3] z) {{ {nodes} z = Relu(x) }}", '"": 17, "my": 1')
    found = hipdnn_mlir.explain(model)
    (group,) = found.reject_groups
    assert len(found.rejects) == len(group.nodes) == 5
    assert "docs/extending.md" in group.advice
    shown = str(found)
    assert "1 of 6 nodes on hipDNN graphs" in " ".join(shown.split())
    assert "and 2 more" in shown
    assert shown.index("nodes on hipDNN graphs") < shown.index("Left out:") < shown.index("1 graph, 0 kernels:")


def test_operators_are_named_as_the_model_writes_them_when_they_became_others() -> None:
    found = hipdnn_mlir.explain(_model("g (float[2,3] x) => (int32[2,1] y) { y = Multinomial(x) }"))
    (group,) = found.reject_groups
    assert (group.op, group.operator) == ("torch.aten.multinomial", "Multinomial (torch.aten.multinomial)")
    assert "Multinomial (torch.aten.multinomial)" in str(found)


@pytest.mark.parametrize(
    ("reject", "taken_by", "symbols", "expected"),
    [
        (Reject("Op", "engine", "no"), ["sm_90"], [], "compile with --target sm_90"),
        (Reject("Op", NO_ROW, "no"), [], [], "write its operator in Python (docs/extending.md)"),
        (Reject("Op", DATA_DEPENDENT, "operand (?)"), [], ["n"], "make dimensions static: --shape n=SIZE"),
        (
            Reject("Op", DATA_DEPENDENT, "the shape of its result depends on data"), [], ["n"],
            "run the model in ONNX Runtime, which computes shapes as it goes",
        ),
        (Reject("Op", "random", "no"), [], [], "give the node the attribute seed"),
        (Reject("Op", "rank", "no"), [], [], ""),
    ],
)  # fmt: skip
def test_advice_fits_the_reason(reject: Reject, taken_by: list[str], symbols: list[str], expected: str) -> None:
    assert advice(reject, taken_by, symbols) == expected


def test_targets_that_take_a_rejected_node_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = replace(find_target("sm_90"), name="lacking", engines=())
    monkeypatch.setitem(TARGETS, "lacking", lacking)
    model = _model(
        "g (float[4,8] x, float[8,8] w, float[8,8] v) => (float[4,8] y) { m = MatMul(x, w) y = MatMul(m, v) }"
    )
    (group,) = hipdnn_mlir.explain(model, target="lacking").reject_groups
    assert len(group.nodes) == 2
    assert group.taken_by == [name for name in TARGETS if name != "lacking"]
    assert group.advice.startswith("compile with --target host or sm_80 or ")


def test_targets_are_shown_side_by_side() -> None:
    model = _model("g (float[4,8] x, float[8,8] w) => (float[4,8] y) { m = MatMul(x, w) y = Softmax(m) }")
    found = compare_targets(model, ["host", "gfx942", "sm_90"])
    assert found.targets == ["host", "gfx942", "sm_90"]
    assert {row.op: row.places["gfx942"] for row in found.rows} == {
        "MatMul": "HIPBLASLT_ENGINE",
        "Softmax": "GENERATED",
    }
    assert found.coverage["host"].percent == 100.0
    assert found.coverage["gfx942"].percent == 50.0  # what the compiler generates is a kernel, and no library's graph
    header = str(found).splitlines()[0].split()
    assert header == ["host", "gfx942", "sm_90"]
    data = json.loads(json.dumps(found.to_dict()))
    assert data["explanations"]["host"] == hipdnn_mlir.explain(model).to_dict()


def test_a_broken_model_is_one_error_when_targets_are_compared() -> None:
    with pytest.raises(ModelError, match=r"none\.onnx"):
        compare_targets("none.onnx", ["host", "sm_90"])
    with pytest.raises(ModelError, match="unknown target 'x'"):
        compare_targets("none.onnx", ["host", "x"])


def test_json_has_the_documented_keys() -> None:
    data: dict[str, Any] = json.loads(json.dumps(hipdnn_mlir.explain(_mixed()).to_dict()))
    assert list(data) == [
        "graphs", "rejects", "movements", "launches", "samples", "refused", "no_program", "plans_not_asked", "target", "nodes",
        "coverage", "reject_groups", "conflicting_dimensions", "partitions",
    ]  # fmt: skip
    assert {region for node in data["nodes"] for region in node["within"]} == {
        region["name"] for region in (*data["graphs"], *data["launches"])
    }


def test_cells_that_are_too_wide_go_on_below() -> None:
    lines = aligned(["a", "b", "empty"], [["word " * 30, "x", ""], ["short", "y", ""]], widest=60)
    assert max(map(len, lines)) <= 70
    assert "empty" not in lines[0]
    assert [line.split()[-1] for line in lines if line.endswith(("x", "y"))] == ["x", "y"]
    assert sum(line.count("word") for line in lines) == 30
